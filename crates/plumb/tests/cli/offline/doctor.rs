//! `plumb doctor` reads the reports of an engine, the status of Argo CD, or files.

use std::time::{Duration, Instant};

use anyhow::Result;
use plumb_testkit::git::GitRepo;
use serde_json::{Value, json};

use super::api;
use crate::shell::Shell;

fn list(items: &[Value]) -> Value {
    json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items})
}

/// A crash loop under noise, an app of another controller, and one that only its status calls `OutOfSync`.
#[test]
fn the_doctor_shows_what_matters_first() -> Result<()> {
    let app = |name: &str, sync: &str, red: &[&str]| {
        let resources: Vec<Value> = red
            .iter()
            .map(|name| json!({"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": name, "status": "OutOfSync"}))
            .collect();
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "namespace": "argocd"}, "spec": {"destination": {}, "project": name},
            "status": {"sync": {"status": sync}, "resources": resources}})
    };
    let report = |name: &str, counted: i64, findings: Value, health: Value| {
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport",
            "metadata": {"name": name, "namespace": "argocd"}, "summary": {"counted": counted, "explained": 1},
            "findings": findings, "health": health})
    };
    let finding = |class: &str, counts: bool, name: &str| {
        json!({"class": class, "counts": counts, "kind": "ConfigMap", "namespace": "shop", "name": name,
            "fields": ["/data/x"], "fix": {"kind": "edit-git", "text": "remove the line from Git"}})
    };
    let crash = json!([{"group": "apps", "kind": "Deployment", "namespace": "argo", "name": "rollouts", "status": "Progressing",
        "stuck": true, "causes": ["apps/Deployment argo/rollouts: Progressing",
            "Pod argo/rollouts-6b4c: container main keeps crashing (CrashLoopBackOff): 1154 restarts"]}]);
    let reports = [
        report(
            "noisy",
            0,
            json!([finding("PhantomDefault", false, "c"), finding("SchemaDefault", false, "d")]),
            json!([]),
        ),
        report("payments", 1, json!([finding("LiveEdit", true, "web")]), json!([])),
        report("rollouts", 0, json!([]), crash),
    ];
    let mut legacy = app("legacy", "OutOfSync", &["old"]);
    legacy["status"]["health"] = json!({"status": "Degraded"});
    legacy["status"]["resources"][0]["health"] =
        json!({"status": "Degraded", "message": "container main: CrashLoopBackOff"});
    let apps = [
        legacy,
        app("noisy", "OutOfSync", &["c"]),
        app("payments", "OutOfSync", &["web"]),
        app("rollouts", "Synced", &[]),
    ];
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "plumb"},
        "spec": {"holderIdentity": "plumb-0", "renewTime": "2199-01-01T00:00:00.000000Z"}});
    let mut shell = Shell::new()?;
    api::serve(
        &mut shell,
        &[
            // Answers to all requests of the discovery but one, so that one message tells what is missing.
            ("/version", json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0"})),
            ("/apis", json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})),
            ("/apis/coordination.k8s.io/v1/namespaces/argocd/leases/plumb", lease),
            ("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications", list(&apps)),
            ("/apis/plumb.dev/v1alpha1/namespaces/argocd/driftreports", list(&reports)),
        ],
    )?;
    for line in [
        "plumb doctor",
        "plumb doctor --app rollout",
        "plumb doctor --project nothing",
        "plumb doctor --exit-code --app rollouts --class LiveEdit",
        "plumb doctor --exit-code --project payments -o markdown",
        "plumb doctor --class phantomdefault -o json",
        "plumb doctor --app payments -o junit",
        "plumb doctor --app rollouts -o sarif",
        "plumb doctor --app rollouts -o yaml",
        "plumb doctor --class nothing",
    ] {
        shell.plumb(line)?;
    }
    shell.transcript.check("doctor-offline")
}

/// With reports, the doctor of a thousand apps costs little more than the list of them.
#[test]
fn the_doctor_of_a_thousand_apps_is_quick() -> Result<()> {
    let name = |n: usize| format!("app-{n:04}");
    let app = |n: usize| {
        let red = json!({"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": name(n), "status": "OutOfSync"});
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name(n), "namespace": "argocd"}, "spec": {"destination": {}, "project": "default"},
            "status": {"sync": {"status": "OutOfSync"}, "resources": [red]}})
    };
    let report = |n: usize| {
        let finding = |class: &str, counts: bool| {
            json!({"class": class, "counts": counts, "kind": "ConfigMap", "namespace": "shop", "name": name(n),
                "fields": ["/data/x"], "fix": {"kind": "edit-git", "text": "remove the line from Git"}})
        };
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport",
            "metadata": {"name": name(n), "namespace": "argocd"}, "summary": {"counted": 1, "explained": 2},
            "findings": [finding("LiveEdit", true), finding("PhantomDefault", false), finding("EquivalentValue", false)]})
    };
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "plumb"},
        "spec": {"holderIdentity": "plumb-0", "renewTime": "2199-01-01T00:00:00.000000Z"}});
    let mut shell = Shell::new()?;
    api::serve(
        &mut shell,
        &[
            ("/version", json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0"})),
            ("/apis", json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})),
            ("/apis/coordination.k8s.io/v1/namespaces/argocd/leases/plumb", lease),
            (
                "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications",
                list(&(0..1_000).map(app).collect::<Vec<Value>>()),
            ),
            (
                "/apis/plumb.dev/v1alpha1/namespaces/argocd/driftreports",
                list(&(0..1_000).map(report).collect::<Vec<Value>>()),
            ),
        ],
    )?;
    let took = |line: &str, shows: &str| -> Result<Duration> {
        let mut best = Duration::MAX;
        for _ in 0..5 {
            let started = Instant::now();
            let said = shell.quietly(line, &[], "")?;
            best = best.min(started.elapsed());
            anyhow::ensure!(said.code == 0 && said.stdout.contains(shows), "{line}: {}", said.stderr);
        }
        Ok(best)
    };
    let listed = took("plumb app list", "app-0999")?;
    let diagnosed = took("plumb doctor", "LiveEdit ConfigMap: 1000 findings")?;
    assert!(diagnosed < listed * 5, "the doctor took {diagnosed:?}, the list {listed:?}");
    Ok(())
}

/// A chart of noise in one directory, compared with a dump: defaults, a phantom line, an edit, an orphan and a crash loop.
#[test]
fn the_doctor_needs_no_cluster() -> Result<()> {
    let mut shell = Shell::new()?;
    let repo = GitRepo::new()?;
    repo.commit(&[("shop/all.yaml", SHOP.to_owned())])?;
    shell.file("crds.yaml", CRDS)?;
    shell.file("dump.yaml", DUMP)?;
    shell.file("cut.yaml", DUMP.split("kind: List").next().unwrap_or_default())?;
    shell.file("no-openapi.json", "{}")?;
    let checkout = repo.path().display().to_string();
    shell.transcript.call(&checkout, "CHECKOUT");
    for line in [
        format!("plumb doctor --live dump.yaml --live crds.yaml --desired {checkout}/shop --exit-code"),
        format!(
            "plumb doctor --live dump.yaml --live crds.yaml --desired {checkout}/shop --class SchemaDefault -o json"
        ),
        format!("plumb doctor --live dump.yaml --desired {checkout}/shop --class Orphan"),
        format!("plumb doctor --live cut.yaml --desired {checkout}/shop"),
        format!("plumb doctor --live dump.yaml --desired {checkout}/nowhere"),
        format!("plumb doctor --live dump.yaml --desired {checkout}/shop --schemas no-openapi.json"),
        "plumb doctor --live dump.yaml".to_owned(),
    ] {
        shell.plumb(&line)?;
    }
    shell.transcript.check("doctor-files")
}

const SHOP: &str = "\
apiVersion: example.io/v1
kind: Thing
metadata:
  name: quiet
spec:
  colour: red
---
apiVersion: example.io/v1
kind: Thing
metadata:
  name: edited
spec:
  colour: red
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: rollouts
spec:
  replicas: 1
";

const CRDS: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.io}
spec:
  group: example.io
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, default: 1}
              colour: {type: string}
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
    - {version: v1, kind: ConfigMap, namespace: web, name: old, status: OutOfSync, requiresPruning: true}
- apiVersion: argoproj.io/v1alpha1
  kind: Application
  metadata: {name: other, namespace: argocd}
  spec: {project: team, destination: {namespace: web}, source: {repoURL: https://example.com/other.git, path: other}}
  status: {sync: {status: OutOfSync}, resources: [{version: v1, kind: ConfigMap, namespace: web, name: other, status: OutOfSync}]}
- apiVersion: example.io/v1
  kind: Thing
  metadata: {name: quiet, namespace: web, annotations: {argocd.argoproj.io/tracking-id: 'shop:example.io/Thing:web/quiet'}}
  spec: {colour: red, size: 1}
- apiVersion: example.io/v1
  kind: Thing
  metadata: {name: edited, namespace: web, annotations: {argocd.argoproj.io/tracking-id: 'shop:example.io/Thing:web/edited'}}
  spec: {colour: blue, size: 1}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: old, namespace: web, annotations: {argocd.argoproj.io/tracking-id: 'shop:/ConfigMap:web/old'}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: rollouts, namespace: web, uid: d, generation: 1, annotations: {argocd.argoproj.io/tracking-id: 'shop:apps/Deployment:web/rollouts'}}
  spec: {replicas: 1}
  status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, unavailableReplicas: 1, conditions: [{type: Available, status: 'False', reason: MinimumReplicasUnavailable}, {type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: late}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: rollouts-6b4c, namespace: web, uid: p, ownerReferences: [{uid: d, kind: Deployment, name: rollouts}]}
  spec: {containers: [{name: main}]}
  status: {phase: Running, containerStatuses: [{name: main, ready: false, restartCount: 1154, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}
kind: List
";
