//! `plumb fix` where two apps share an object, or a file.

use anyhow::Result;
use plumb_testkit::git::GitRepo;

use crate::shell::Shell;
use crate::things::CRDS;

fn scene(files: &[(&str, &str)], dump: &str) -> Result<(Shell, GitRepo, String)> {
    let mut shell = Shell::new()?;
    let repo = GitRepo::new()?;
    repo.name_author()?;
    let files: Vec<(&str, String)> = files.iter().map(|(file, text)| (*file, (*text).to_owned())).collect();
    repo.commit(&files)?;
    shell.file("dump.yaml", &format!("{dump}---\n{CRDS}"))?;
    let checkout = repo.path().display().to_string();
    shell.transcript.call(&checkout, "CHECKOUT");
    Ok((shell, repo, checkout))
}

/// The owner keeps the object, or the app that the user names; the document leaves the Git of the others.
#[test]
fn one_app_keeps_a_shared_object() -> Result<()> {
    let shared = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: common}\ndata: {a: b}\n";
    let own = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let first = format!("# of the first\n{}---\n# of both\n{shared}", own("first"));
    let (mut shell, repo, checkout) = scene(
        &[
            ("first/all.yaml", first.as_str()),
            ("second/own.yaml", &own("second")),
            ("second/common.yaml", shared),
        ],
        &shared_dump(),
    )?;
    let line = format!("plumb fix --live dump.yaml --desired {checkout}/first --desired {checkout}/second");
    for flags in [
        "--patch",
        "--patch --keep-in second",
        "--patch --keep-in argocd/first",
        "--patch --keep-in third",
        "--patch --keep-in first --keep-in second",
        "--patch --class SharedResource --app second",
    ] {
        shell.plumb(&format!("{line} {flags}"))?;
    }
    // Asked for, the user names the app first, and then sees each change.
    shell.run(&line, &[], "second\ny\n")?;
    assert_eq!(
        std::fs::read_to_string(repo.path().join("first/all.yaml"))?,
        format!("# of the first\n{}", own("first"))
    );
    assert_eq!(repo.git(&["diff", "--stat", "--", "second"])?, "");
    repo.git(&["checkout", "."])?;
    shell.run(&line, &[], "n\nn\n")?;
    assert_eq!(repo.git(&["status", "--porcelain"])?, "");
    shell.transcript.check("fix-shared-object")
}

/// A change of one app's file is not made if another app would get it, too.
#[test]
fn a_file_of_two_apps_changes_only_as_both_want_it() -> Result<()> {
    let thing = |name: &str| {
        format!(
            "apiVersion: example.io/v1\nkind: Thing\nmetadata:\n  name: {name}\nspec:\n  colour: red\n  ports: [{{name: http}}]\n"
        )
    };
    let (mut shell, _repo, checkout) = scene(
        &[
            ("shop/thing.yaml", thing("shared").as_str()),
            ("alone/thing.yaml", &thing("alone")),
            // Its Application is known by its file alone.
            ("apps/filed.yaml", &application("filed", "alone", "far")),
            ("deep/here/thing.yaml", &thing("deep")),
            ("safe/thing.yaml", &thing("safe")),
        ],
        &files_dump(),
    )?;
    // The app `all` reads every file below `deep`, `twin` is rendered from the same folder as `shop`.
    for folder in ["shop", "alone", "deep/here", "safe"] {
        shell.plumb(&format!("plumb fix --live dump.yaml --desired {checkout}/{folder} --patch"))?;
    }
    shell.transcript.check("fix-shared-file")
}

fn application(name: &str, path: &str, namespace: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\n\
         spec: {{project: team, destination: {{server: https://kubernetes.default.svc, namespace: {namespace}}}, \
         source: {{repoURL: https://example.com/shop.git, path: {path}, directory: {{recurse: true}}}}}}\n"
    )
}

fn red(application: &str, resources: &str) -> String {
    format!("{application}status: {{sync: {{status: OutOfSync}}, resources: [{resources}]}}\n")
}

fn shared_dump() -> String {
    let live = |name: &str, app: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: web, annotations: \
             {{argocd.argoproj.io/tracking-id: '{app}:/ConfigMap:web/{name}'}}}}\n{}",
            if name == "common" { "data: {a: b}\n" } else { "" }
        )
    };
    [
        application("first", "first", "web"),
        red(
            &application("second", "second", "web"),
            "{version: v1, kind: ConfigMap, namespace: web, name: common, status: OutOfSync}",
        ),
        live("first", "first"),
        live("second", "second"),
        live("common", "first"),
    ]
    .join("---\n")
}

fn files_dump() -> String {
    let live = |name: &str| {
        format!(
            "apiVersion: example.io/v1\nkind: Thing\nmetadata: {{name: {name}, namespace: web, annotations: \
             {{argocd.argoproj.io/tracking-id: '{name}:example.io/Thing:web/{name}'}}}}\n\
             spec: {{colour: red, size: 1, ports: [{{name: http, protocol: TCP}}]}}\n"
        )
    };
    let resource = |name: &str| {
        format!(
            "{{group: example.io, version: v1, kind: Thing, namespace: web, name: {name}, status: OutOfSync}}"
        )
    };
    [
        red(&application("shared", "shop", "web"), &resource("shared")),
        application("twin", "shop", "elsewhere"),
        red(&application("alone", "alone", "web"), &resource("alone")),
        application("all", "deep", "other"),
        red(&application("deep", "deep/here", "web"), &resource("deep")),
        red(&application("safe", "safe", "web"), &resource("safe")),
        live("shared"),
        live("alone"),
        live("deep"),
        live("safe"),
    ]
    .join("---\n")
}
