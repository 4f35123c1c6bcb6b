//! `plumb fix` changes working copies, and nothing else of them than it says.

use std::os::unix::fs::{PermissionsExt, symlink};

use anyhow::Result;
use plumb_testkit::git::GitRepo;

use crate::golden::Said;
use crate::shell::Shell;
use crate::things::CRDS;

/// A working copy, a dump, and the command line for both.
struct Scene {
    shell: Shell,
    repo: GitRepo,
    line: String,
}

fn scene() -> Result<Scene> {
    let mut shell = Shell::new()?;
    let repo = GitRepo::new()?;
    repo.name_author()?;
    repo.commit(&[
        ("shop/all.yaml", SHOP.to_owned()),
        ("shop/windows.yaml", WINDOWS.replace('\n', "\r\n")),
        ("shop/list.yaml", LIST.to_owned()),
        ("apps/shop.yaml", APPLICATION.to_owned()),
    ])?;
    shell.file("dump.yaml", &format!("{DUMP}---\n{CRDS}"))?;
    let checkout = repo.path().display().to_string();
    shell.transcript.call(&checkout, "CHECKOUT");
    let line = format!("plumb fix --live dump.yaml --desired {checkout}/shop");
    Ok(Scene { shell, repo, line })
}

impl Scene {
    fn plumb(&mut self, flags: &str) -> Result<()> {
        let line = format!("{} {flags}", self.line);
        self.shell.plumb(line.trim_end())?;
        Ok(())
    }

    /// Runs git in the working copy, and records its output.
    fn git(&mut self, arguments: &[&str]) -> Result<()> {
        let stdout = format!("{}\n", self.repo.git(arguments)?);
        let said = Said { stdout, stderr: String::new(), code: 0 };
        self.shell.transcript.add(&format!("git {}", arguments.join(" ")), &said);
        Ok(())
    }

    fn text(&self, file: &str) -> Result<String> {
        Ok(std::fs::read_to_string(self.repo.path().join(file))?)
    }
}

#[test]
fn fixes_are_proved_and_written_once() -> Result<()> {
    let mut scene = scene()?;
    scene.plumb("--patch")?;
    assert_eq!(scene.text("shop/all.yaml")?, SHOP);
    scene.plumb("--branch less-noise")?;
    // The branch has the commits, the files stay as they are.
    assert_eq!(scene.repo.git(&["status", "--porcelain"])?, "");
    assert_eq!(scene.text("shop/all.yaml")?, SHOP);
    scene.git(&["log", "--reverse", "--format=%B", "--stat", "HEAD..less-noise"])?;
    scene.plumb("--branch less-noise")?;
    scene.plumb("--yes")?;
    // Both ways give the same files, with nothing but the intended lines changed.
    assert_eq!(scene.repo.git(&["diff", "less-noise"])?, "");
    let all = SHOP.replace("shop\n---", "shop\n  size: 1\n---").replace("  replicas: 1\n", "");
    assert_eq!(scene.text("shop/all.yaml")?, all);
    assert_eq!(scene.text("shop/windows.yaml")?, format!("{WINDOWS}  size: 1\n").replace('\n', "\r\n"));
    assert_eq!(scene.text("apps/shop.yaml")?, format!("{APPLICATION}{RULE}"));
    scene.repo.commit_all("fixed")?;
    // What is fixed stays fixed, without a second change.
    scene.plumb("--yes")?;
    assert_eq!(scene.repo.git(&["status", "--porcelain"])?, "");
    scene.shell.transcript.check("fix")
}

#[test]
fn a_user_chooses_changes_one_by_one() -> Result<()> {
    let mut scene = scene()?;
    let line = format!("{} --class SchemaDefault --kind Thing", scene.line);
    scene.shell.run(&line, &[], "n\ny\n")?;
    scene.git(&["diff"])?;
    scene.repo.git(&["checkout", "."])?;
    scene.shell.run(&line, &[], "")?;
    assert_eq!(scene.repo.git(&["status", "--porcelain"])?, "");
    scene.plumb("--patch --for plumb")?;
    scene.plumb("--patch --class LiveEdit --class Unexplained --keep-live example.io:Thing:edited")?;
    scene.plumb("--patch --app nothing")?;
    scene.shell.transcript.check("fix-chosen")
}

#[test]
fn a_working_copy_that_is_not_ready_stays_as_it_is() -> Result<()> {
    let mut scene = scene()?;
    let root = scene.repo.path().to_path_buf();
    let flags = "--class SchemaDefault --yes";
    std::fs::write(root.join("shop/windows.yaml"), WINDOWS)?;
    scene.plumb(flags)?;
    scene.plumb("--class SchemaDefault --branch new")?;
    scene.repo.git(&["checkout", "."])?;
    let head = scene.repo.head()?;
    scene.repo.git(&["checkout", "--detach", &head])?;
    scene.plumb(flags)?;
    scene.repo.git(&["checkout", "-"])?;
    scene.plumb("--class SchemaDefault --branch bad..name")?;
    // A folder in which no file can be made. The administrator may write everywhere.
    if !rustix::process::geteuid().is_root() {
        std::fs::set_permissions(root.join("shop"), PermissionsExt::from_mode(0o555))?;
        let refused = scene.shell.quietly(&format!("{} {flags}", scene.line), &[], "")?;
        std::fs::set_permissions(root.join("shop"), PermissionsExt::from_mode(0o755))?;
        assert!(refused.code == 20 && refused.stderr.contains("error: cannot write"), "{}", refused.stderr);
    }
    assert_eq!(scene.repo.git(&["status", "--porcelain"])?, "");
    // A file that is a link to a place outside.
    let outside = scene.shell.file("outside.yaml", SHOP)?;
    std::fs::remove_file(root.join("shop/all.yaml"))?;
    symlink(&outside, root.join("shop/all.yaml"))?;
    scene.repo.commit_all("a link")?;
    scene.plumb(flags)?;
    assert_eq!(std::fs::read_to_string(&outside)?, SHOP);
    // A folder without a repository.
    std::fs::create_dir(scene.shell.home.path().join("plain"))?;
    scene.shell.file("plain/all.yaml", SHOP)?;
    scene.shell.plumb(&format!("plumb fix --live dump.yaml --desired plain {flags}"))?;
    assert_eq!(std::fs::read_to_string(scene.shell.home.path().join("plain/all.yaml"))?, SHOP);
    scene.shell.transcript.check("fix-refused")
}

const APPLICATION: &str = "\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: shop
spec:
  project: team # the team's own
  destination: {server: https://kubernetes.default.svc, namespace: web}
  source:
    repoURL: https://example.com/shop.git
    path: shop
";

const RULE: &str = "  ignoreDifferences:
    # the API server fills in this value
    - group: example.io
      kind: Thing
      name: listed
      namespace: web
      jsonPointers:
        - /spec/ports/0/protocol
";

/// `git diff` would not show the change of a file that git does not know.
#[test]
fn a_file_that_is_not_committed_stays_as_it_is() -> Result<()> {
    let scene = scene()?;
    scene.repo.git(&["rm", "--quiet", "--cached", "shop/windows.yaml"])?;
    scene.repo.git(&["commit", "--quiet", "-m", "without it"])?;
    let line = format!("{} --class SchemaDefault --yes", scene.line);
    let said = scene.shell.quietly(&line, &[], "")?;
    assert!(said.code == 20 && said.stderr.contains("shop/windows.yaml"), "{}", said.stderr);
    assert_eq!(scene.text("shop/windows.yaml")?, WINDOWS.replace('\n', "\r\n"));
    assert_eq!(scene.text("shop/all.yaml")?, SHOP);
    Ok(())
}

const SHOP: &str = "\
# The things of the shop.
apiVersion: example.io/v1
kind: Thing
metadata:
  name: quiet # very
spec:
  colour: 'red'   # the colour of the shop
---
apiVersion: example.io/v1
kind: Thing
metadata: {name: edited}
spec: {colour: red}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: scaled
spec:
  # the autoscaler takes it from here
  replicas: 1
  paused: false
";

const WINDOWS: &str = "\
apiVersion: example.io/v1
kind: Thing
metadata:
  name: windows
spec:
  colour: \"red\"
";

const LIST: &str = "\
apiVersion: v1
kind: List
items:
- apiVersion: example.io/v1
  kind: Thing
  metadata: {name: listed}
  spec: {colour: red, size: 1, ports: [{name: http}]}
";

const DUMP: &str = "\
apiVersion: v1
items:
- apiVersion: argoproj.io/v1alpha1
  kind: Application
  metadata: {name: shop, namespace: argocd}
  spec: {project: team, destination: {server: https://kubernetes.default.svc, namespace: web}, source: {repoURL: https://example.com/shop.git, path: shop}}
  status:
    sync: {status: OutOfSync}
    resources:
    - {group: example.io, version: v1, kind: Thing, namespace: web, name: quiet, status: OutOfSync}
    - {group: example.io, version: v1, kind: Thing, namespace: web, name: edited, status: OutOfSync}
    - {group: example.io, version: v1, kind: Thing, namespace: web, name: windows, status: OutOfSync}
    - {group: example.io, version: v1, kind: Thing, namespace: web, name: listed, status: OutOfSync}
    - {group: apps, version: v1, kind: Deployment, namespace: web, name: scaled, status: OutOfSync}
- apiVersion: example.io/v1
  kind: Thing
  metadata: {name: quiet, namespace: web, annotations: {argocd.argoproj.io/tracking-id: 'shop:example.io/Thing:web/quiet'}}
  spec: {colour: red, size: 1}
- apiVersion: example.io/v1
  kind: Thing
  metadata: {name: edited, namespace: web, annotations: {argocd.argoproj.io/tracking-id: 'shop:example.io/Thing:web/edited'}}
  spec: {colour: blue, size: 1}
- apiVersion: example.io/v1
  kind: Thing
  metadata:
    name: windows
    namespace: web
    annotations: {argocd.argoproj.io/tracking-id: 'shop:example.io/Thing:web/windows'}
    managedFields:
    - {manager: operator, operation: Update, apiVersion: example.io/v1, time: '2026-04-16T20:00:00Z', fieldsType: FieldsV1, fieldsV1: {'f:spec': {'f:note': {}}}}
  spec: {colour: red, size: 1, note: seen}
- apiVersion: example.io/v1
  kind: Thing
  metadata: {name: listed, namespace: web, annotations: {argocd.argoproj.io/tracking-id: 'shop:example.io/Thing:web/listed'}}
  spec: {colour: red, size: 1, ports: [{name: http, protocol: TCP}]}
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: scaled
    namespace: web
    annotations: {argocd.argoproj.io/tracking-id: 'shop:apps/Deployment:web/scaled'}
    managedFields:
    - {manager: kube-controller-manager, operation: Update, subresource: scale, apiVersion: apps/v1, time: '2026-04-16T20:00:00Z', fieldsType: FieldsV1, fieldsV1: {'f:spec': {'f:replicas': {}}}}
  spec: {replicas: 4, paused: false}
- apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: scaled, namespace: web}
  spec: {minReplicas: 2, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}}
kind: List
";
