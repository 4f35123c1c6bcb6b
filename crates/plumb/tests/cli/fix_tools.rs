//! `plumb fix` on what Helm and Kustomize render.

use anyhow::Result;
use plumb_testkit::git::GitRepo;
use plumb_testkit::programs;

use crate::shell::Shell;
use crate::things::CRDS;

const CHART_DUMP: &str = "\
apiVersion: v1
items:
- apiVersion: argoproj.io/v1alpha1
  kind: Application
  metadata: {name: chart, namespace: argocd}
  spec: {project: team, destination: {server: https://kubernetes.default.svc, namespace: web}, source: {repoURL: https://example.com/shop.git, path: chart}}
  status:
    sync: {status: OutOfSync}
    resources:
    - {group: example.io, version: v1, kind: Thing, namespace: web, name: charted, status: OutOfSync}
- apiVersion: argoproj.io/v1alpha1
  kind: Application
  metadata: {name: overlay, namespace: argocd}
  spec: {project: team, destination: {server: https://kubernetes.default.svc, namespace: web}, source: {repoURL: https://example.com/shop.git, path: overlay}}
  status:
    sync: {status: OutOfSync}
    resources:
    - {group: example.io, version: v1, kind: Thing, namespace: web, name: overlaid, status: OutOfSync}
- apiVersion: example.io/v1
  kind: Thing
  metadata: {name: charted, namespace: web, annotations: {argocd.argoproj.io/tracking-id: 'chart:example.io/Thing:web/charted'}}
  spec: {colour: blue, note: other, size: 1}
- apiVersion: example.io/v1
  kind: Thing
  metadata: {name: overlaid, namespace: web, annotations: {argocd.argoproj.io/tracking-id: 'overlay:example.io/Thing:web/overlaid'}}
  spec: {colour: red, size: 1}
- apiVersion: example.io/v1
  kind: Thing
  metadata: {name: p-overlaid, namespace: web, annotations: {argocd.argoproj.io/tracking-id: 'prefixed:example.io/Thing:web/p-overlaid'}}
  spec: {colour: red, size: 1}
kind: List
";

/// What a tool renders is changed where the tool reads it, and only if a render proves it.
#[test]
fn charts_and_overlays_are_changed_where_they_are_made() -> Result<()> {
    let mut shell = Shell::new()?;
    let tools = programs()?;
    shell.transcript.call(&tools.helm.display().to_string(), "HELM");
    shell.transcript.call(&tools.kustomize.display().to_string(), "KUSTOMIZE");
    let tools = format!("--helm {} --kustomize {}", tools.helm.display(), tools.kustomize.display());
    let repo = GitRepo::new()?;
    repo.name_author()?;
    let thing = "apiVersion: example.io/v1\nkind: Thing\nmetadata: {name: overlaid}\nspec: {colour: red}\n";
    repo.commit(&[
        ("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n"),
        ("chart/values.yaml", "# of the shop\nthing:\n  colour: red # the old one\n  size: red\n"),
        (
            "chart/templates/thing.yaml",
            "apiVersion: example.io/v1\nkind: Thing\nmetadata:\n  name: charted\nspec:\n  colour: {{ .Values.thing.colour }}\n  note: this\n  size: 1\n",
        ),
        ("base/kustomization.yaml", "resources: [thing.yaml]\n"),
        ("base/thing.yaml", thing),
        ("plain/kustomization.yaml", "resources:\n- ../base\n"),
        ("lone-base/kustomization.yaml", "resources: [thing.yaml]\n"),
        ("lone-base/thing.yaml", thing),
        ("lone/kustomization.yaml", "resources:\n- ../lone-base\n"),
        ("prefixed/kustomization.yaml", "namePrefix: p-\nresources:\n- ../base\n"),
        ("overlay/kustomization.yaml", "# of the shop\nresources:\n- ../base\nlabels: [{pairs: {a: b}}]\n"),
    ])?;
    let dump = CHART_DUMP
        .replace("name: overlaid, namespace: web, ", "name: overlaid, namespace: web, labels: {a: b}, ");
    shell.file("dump.yaml", &format!("{dump}---\n{CRDS}"))?;
    let checkout = repo.path().display().to_string();
    shell.transcript.call(&checkout, "CHECKOUT");
    let keep = "--keep-live example.io:Thing:charted";
    shell.plumb(&format!(
        "plumb fix {tools} --live dump.yaml --desired {checkout}/chart {keep} --branch chart --merge-request"
    ))?;
    shell.plumb(&format!("plumb fix {tools} --live dump.yaml --desired {checkout}/overlay --patch"))?;
    // The base is not the app's own, and other apps may use it.
    shell.plumb(&format!("plumb fix {tools} --live dump.yaml --desired {checkout}/plain --patch"))?;
    // An overlay renames objects after it has patched them.
    shell.plumb(&format!(
        "plumb fix {tools} --live dump.yaml --desired {checkout}/prefixed --class SchemaDefault --patch"
    ))?;
    // A base that nothing else uses is the app's own.
    shell.plumb(&format!("plumb fix {tools} --live dump.yaml --desired {checkout}/lone --patch"))?;
    // A remote to push to.
    let remote = GitRepo::new()?;
    repo.git(&["remote", "add", "origin", &remote.path().display().to_string()])?;
    shell.plumb(&format!(
        "plumb fix {tools} --live dump.yaml --desired {checkout}/overlay --branch overlay --push"
    ))?;
    assert_eq!(remote.git(&["rev-parse", "overlay"])?, repo.git(&["rev-parse", "overlay"])?);
    let diff = repo.git(&["diff", "HEAD", "chart", "--", "chart"])?;
    assert!(
        diff.contains("-  colour: red # the old one") && diff.contains("+  colour: blue # the old one"),
        "{diff}"
    );
    assert!(diff.contains("-  note: this") && diff.contains("+  note: \"other\""), "{diff}");
    shell.transcript.check("fix-tools")
}

/// What an overlay adds to every object leaves the document of the app alone in charge of the rest.
#[test]
fn an_overlay_that_adds_a_namespace_leaves_the_change_to_the_document() -> Result<()> {
    let shell = Shell::new()?;
    let tools = programs()?;
    let repo = GitRepo::new()?;
    let thing = "apiVersion: example.io/v1\nkind: Thing\nmetadata: {name: overlaid}\nspec: {colour: red}\n";
    let overlay = "namespace: web\nlabels: [{pairs: {a: b}}]\nresources: [thing.yaml]\n";
    repo.commit(&[("app/kustomization.yaml", overlay), ("app/thing.yaml", thing)])?;
    let dump = CHART_DUMP
        .replace("name: overlaid, namespace: web, ", "name: overlaid, namespace: web, labels: {a: b}, ");
    shell.file("dump.yaml", &format!("{dump}---\n{CRDS}"))?;
    let line = format!(
        "plumb fix --helm {} --kustomize {} --live dump.yaml --desired {}/app --class SchemaDefault --patch",
        tools.helm.display(),
        tools.kustomize.display(),
        repo.path().display()
    );
    let said = shell.quietly(&line, &[], "")?;
    assert!(said.stdout.contains("--- a/app/thing.yaml"), "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("+spec: {colour: red, size: 1}"), "{}", said.stdout);
    assert!(!said.stdout.contains("kustomization.yaml"), "{}", said.stdout);
    Ok(())
}

/// Two objects of one template say the same line: the one that differs is changed. A field that is absent goes beside a line.
#[test]
fn a_line_that_a_template_says_twice_is_changed_where_the_render_proves_it() -> Result<()> {
    let shell = Shell::new()?;
    let tools = programs()?;
    let repo = GitRepo::new()?;
    let thing = |name: &str| {
        format!(
            "apiVersion: example.io/v1\nkind: Thing\nmetadata:\n  name: {name}\nspec:\n  colour: red # {{{{ .Release.Name }}}}\n"
        )
    };
    repo.commit(&[
        ("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n".to_owned()),
        ("chart/templates/things.yaml", format!("{}---\n{}", thing("other"), thing("charted"))),
    ])?;
    shell.file("dump.yaml", &format!("{CHART_DUMP}---\n{CRDS}"))?;
    let line = format!(
        "plumb fix --helm {} --kustomize {} --live dump.yaml --desired {}/chart --keep-live example.io:Thing:charted --patch",
        tools.helm.display(),
        tools.kustomize.display(),
        repo.path().display()
    );
    let said = shell.quietly(&line, &[], "")?;
    let expected = "   name: charted\n spec:\n-  colour: red # {{ .Release.Name }}\n+  colour: \"blue\" # {{ .Release.Name }}\n";
    assert!(said.stdout.contains(expected), "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("+  note: \"other\"\n"), "{}", said.stdout);
    assert_eq!(said.stdout.matches("+  colour").count(), 1, "{}", said.stdout);
    Ok(())
}
