//! `plumb render` with a local checkout and without a cluster.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::Result;
use plumb_testkit::git::GitRepo;
use plumb_testkit::programs;

const APPLICATION: &str = "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: shop, namespace: argocd}
spec:
  project: default
  destination: {server: 'https://kubernetes.default.svc', namespace: prod}
  SOURCES
";

struct Desk {
    repo: GitRepo,
    directory: tempfile::TempDir,
}

impl Desk {
    fn new(sources: &str, files: &[(&str, &str)]) -> Result<Self> {
        let desk = Self { repo: GitRepo::new()?, directory: tempfile::tempdir()? };
        desk.repo.commit(files)?;
        std::fs::write(desk.directory.path().join("app.yaml"), APPLICATION.replace("SOURCES", sources))?;
        Ok(desk)
    }

    /// Runs `plumb render app.yaml` in the checkout, with nothing in the environment.
    fn render(&self, checkout: &Path, arguments: &[&str]) -> Result<Output> {
        let tools = programs()?;
        let output = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(["render", "--helm"])
            .arg(&tools.helm)
            .arg("--kustomize")
            .arg(&tools.kustomize)
            .arg("--cache-dir")
            .arg(self.directory.path().join("cache"))
            .arg(self.directory.path().join("app.yaml"))
            .args(arguments)
            .env_clear()
            .current_dir(checkout)
            .output()?;
        Ok(output)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const CHART: [(&str, &str); 3] = [
    ("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n"),
    ("chart/values.yaml", "greeting: default\n"),
    (
        "chart/templates/cm.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-chart\"}\ndata: {greeting: {{ .Values.greeting }}}\n",
    ),
];

#[test]
fn a_checkout_is_rendered_and_the_second_time_is_a_cache_hit() -> Result<()> {
    let files = [
        CHART.as_slice(),
        &[
            ("values/eu.yaml", "greeting: hello\n"),
            ("plain/a.jsonnet", "{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'evaluated' } }"),
            ("plain/b.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: extra}\n"),
        ],
    ]
    .concat();
    let sources = "sources:
  - {repoURL: 'https://example.com/repo.git', ref: shared}
  - {repoURL: 'https://example.com/repo.git', path: chart, helm: {valueFiles: ['$shared/values/*.yaml']}}
  - {repoURL: 'https://example.com/repo.git', path: plain}";
    let desk = Desk::new(sources, &files)?;
    let first = desk.render(desk.repo.path(), &["-v"])?;
    assert!(first.status.success(), "{}", text(&first.stderr));
    let printed = text(&first.stdout);
    let documents: Vec<&str> = printed.split("---\n").skip(1).collect();
    assert_eq!(documents.len(), 3, "{printed}");
    let document = |name: &str| documents.iter().find(|text| text.contains(&format!("name: {name}\n")));
    let chart = document("shop-chart").copied().unwrap_or_default();
    assert!(chart.contains("greeting: hello") && chart.contains("namespace: prod"), "{chart}");
    assert!(chart.contains("argocd.argoproj.io/tracking-id"), "as the engine would apply it: {chart}");
    assert!(
        document("evaluated").is_some() && document("extra").is_some_and(|text| !text.contains("namespace:"))
    );
    let talk = text(&first.stderr);
    assert!(talk.contains("Helm chart: 1 documents in") && talk.contains("cache miss"), "{talk}");
    assert!(talk.contains("Directory plain: 2 documents in") && !talk.contains("cache hit"), "{talk}");

    let second =
        desk.render(Path::new("/"), &["-v", "--checkout", &desk.repo.path().display().to_string()])?;
    assert_eq!(text(&second.stdout), printed, "the same, byte for byte");
    let talk = text(&second.stderr);
    assert!(talk.contains("cache hit") && !talk.contains("cache miss"), "{talk}");
    let quiet = desk.render(desk.repo.path(), &["--fresh"])?;
    assert_eq!((text(&quiet.stdout), text(&quiet.stderr)), (printed, String::new()));
    Ok(())
}

#[test]
fn what_cannot_be_rendered_says_where_and_what_to_do() -> Result<()> {
    let source = |path: &str| format!("source: {{repoURL: 'https://example.com/repo.git', path: {path}}}");
    let files = [
        ("twice/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nkind: Secret\n"),
        ("nameless/a.yaml", "apiVersion: v1\nkind: ConfigMap\n"),
    ];
    let desk = Desk::new(&source("twice"), &files)?;
    let output = desk.render(desk.repo.path(), &[])?;
    let talk = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(20), String::new()), "{talk}");
    assert!(talk.contains("twice/a.yaml") && talk.contains("line 4"), "{talk}");

    let nowhere = desk.render(desk.repo.path(), &["--checkout", "https://example.com/other=."])?;
    let talk = text(&nowhere.stderr);
    assert!(
        talk.contains("no checkout of https://example.com/repo.git") && talk.contains("hint: use --checkout"),
        "{talk}"
    );
    assert_eq!(nowhere.status.code(), Some(2));

    std::fs::write(
        desk.directory.path().join("app.yaml"),
        APPLICATION.replace("SOURCES", &source("nameless")),
    )?;
    let nameless = desk.render(desk.repo.path(), &[])?;
    let talk = text(&nameless.stderr);
    assert!(talk.contains("nameless/a.yaml:1") && talk.contains("no name"), "{talk}");
    assert_eq!(nameless.status.code(), Some(20));
    Ok(())
}

#[test]
fn every_example_is_rendered() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let cache = tempfile::tempdir()?;
    let tools = programs()?;
    // The one example of a repository that is not this one.
    let guestbook = GitRepo::new()?;
    guestbook.commit(&[("guestbook/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")])?;
    let mut n_rendered = 0;
    for entry in std::fs::read_dir(root.join("examples"))? {
        let application = entry?.path().join("application.yaml");
        if !application.exists() {
            continue;
        }
        let output = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(["render", "--helm"])
            .arg(&tools.helm)
            .arg("--kustomize")
            .arg(&tools.kustomize)
            .arg("--cache-dir")
            .arg(cache.path())
            .arg(&application)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .current_dir(if application.ends_with("guestbook/application.yaml") {
                guestbook.path()
            } else {
                &root
            })
            .output()?;
        let name = application.display();
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("\nkind: "), "{name}: {}", text(&output.stdout));
        n_rendered += 1;
    }
    assert_eq!(n_rendered, 6);
    Ok(())
}

#[test]
fn the_example_of_a_set_generates_an_application_for_each_environment() -> Result<()> {
    let output = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["appset", "generate", "applicationset.yaml"])
        .env_clear()
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/applicationset"))
        .output()?;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let generated = text(&output.stdout);
    for line in ["name: shop-staging", "name: shop-production", "targetRevision: v1.2.0"] {
        assert!(generated.contains(line), "{line} is not in\n{generated}");
    }
    Ok(())
}

#[test]
fn a_set_that_generates_one_name_twice_is_told_apart_by_the_exit_code() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let set = "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: teams}
spec:
  generators: [{list: {elements: [{name: a}, {name: a}, {name: b}]}}]
  template:
    metadata: {name: '{{name}}'}
    spec: {project: default, source: {repoURL: r, path: .}, destination: {name: in-cluster}}
";
    std::fs::write(directory.path().join("set.yaml"), set)?;
    let output = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["appset", "generate", "set.yaml", "-o", "name"])
        .env_clear()
        .current_dir(directory.path())
        .output()?;
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "a\na\nb\n");
    let said = text(&output.stderr);
    assert!(said.contains("ApplicationSet teams contains applications with duplicate name: a"), "{said}");
    Ok(())
}
