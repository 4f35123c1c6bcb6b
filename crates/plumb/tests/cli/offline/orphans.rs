//! `plumb orphans --delete` stops at the first sign of trouble.

use std::sync::{Arc, Mutex};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::api;
use crate::shell::Shell;

/// What the server was asked to change, in order.
type Writes = Arc<Mutex<Vec<String>>>;

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop", "uid": name,
        "resourceVersion": "1", "annotations": {"argocd.argoproj.io/tracking-id": format!("web:/ConfigMap:shop/{name}")}}})
}

/// A Deployment that does not name the `ConfigMap`: its program reads it by itself.
fn deployment(is_well: bool) -> Value {
    let (available, reason) =
        if is_well { (1, "NewReplicaSetAvailable") } else { (0, "ProgressDeadlineExceeded") };
    let status = if is_well { "True" } else { "False" };
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop", "uid": "d", "generation": 1},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": available, "readyReplicas": available,
            "conditions": [{"type": "Progressing", "status": status, "reason": reason, "message": "late"},
                {"type": "Available", "status": status}]}})
}

fn application() -> Value {
    let orphan = |name: &str| {
        json!({"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": name, "status": "OutOfSync",
            "requiresPruning": true})
    };
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "web", "namespace": "argocd"},
        "spec": {"project": "default", "destination": {"namespace": "shop"}},
        "status": {"resources": [orphan("first"), orphan("second")]}})
}

fn list(items: &[Value]) -> Value {
    json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items})
}

fn resources(version: &str, kinds: &[(&str, &str)]) -> Value {
    let kinds: Vec<Value> = kinds
        .iter()
        .map(|(kind, plural)| {
            json!({"name": plural, "kind": kind, "namespaced": true, "verbs": ["get", "list", "create", "delete"]})
        })
        .collect();
    json!({"kind": "APIResourceList", "groupVersion": version, "resources": kinds})
}

fn group(name: &str, version: &str) -> Value {
    let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
    json!({"name": name, "versions": [version], "preferredVersion": version})
}

/// A cluster whose Deployment fails as soon as an object is gone.
fn serve(shell: &mut Shell) -> Result<Writes> {
    let writes = Writes::default();
    let noted = Arc::clone(&writes);
    api::serve_with(shell, move |method, path, body| {
        let mut noted = noted.lock().ok()?;
        let gone = |name: &str| noted.contains(&format!("DELETE {name}"));
        let maps: Vec<Value> =
            ["first", "second"].into_iter().filter(|name| !gone(name)).map(config_map).collect();
        let is_well = !noted.iter().any(|write| write.starts_with("DELETE"));
        match (method, path) {
            ("GET", "/version") => Some(json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0"})),
            ("GET", "/api") => Some(json!({"kind": "APIVersions", "versions": ["v1"]})),
            ("GET", "/apis") => {
                let groups = [group("apps", "v1"), group("argoproj.io", "v1alpha1")];
                Some(json!({"kind": "APIGroupList", "groups": groups}))
            }
            ("GET", "/openapi/v3") => Some(json!({"paths": {}})),
            ("GET", "/api/v1") => {
                Some(resources("v1", &[("ConfigMap", "configmaps"), ("Secret", "secrets")]))
            }
            ("GET", "/apis/apps/v1") => {
                let kinds = [
                    ("Deployment", "deployments"),
                    ("StatefulSet", "statefulsets"),
                    ("DaemonSet", "daemonsets"),
                ];
                Some(resources("apps/v1", &kinds))
            }
            ("GET", "/apis/argoproj.io/v1alpha1") => {
                Some(resources("argoproj.io/v1alpha1", &[("Application", "applications")]))
            }
            ("GET", "/apis/argoproj.io/v1alpha1/applications") => Some(list(&[application()])),
            ("GET", "/api/v1/configmaps") => Some(list(&maps)),
            ("GET", path) if path.ends_with("/deployments") => Some(list(&[deployment(is_well)])),
            ("GET", path) if path.ends_with("sets") || path.ends_with("/secrets") => Some(list(&[])),
            ("GET", path) => {
                let name = path.strip_prefix("/api/v1/namespaces/shop/configmaps/")?;
                maps.into_iter().find(|map| map["metadata"]["name"] == name)
            }
            ("POST", "/api/v1/namespaces/argocd/secrets") => {
                noted.push("POST tombstone".to_owned());
                Some(body.clone())
            }
            ("DELETE", path) => {
                noted.push(format!("DELETE {}", path.rsplit('/').next()?));
                Some(json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}))
            }
            _ => None,
        }
    })?;
    Ok(writes)
}

#[test]
fn deleting_stops_when_something_gets_worse() -> Result<()> {
    let mut shell = Shell::new()?;
    let writes = serve(&mut shell)?;
    shell.plumb("plumb orphans")?;
    ensure!(writes.lock().is_ok_and(|writes| writes.is_empty()), "showing changes nothing");
    // There is no terminal to ask.
    shell.plumb("plumb orphans --delete")?;
    let said = shell.plumb("plumb orphans --delete --yes --dump orphans")?;
    ensure!(
        said.code == 1 && said.stdout.contains("Stopped. To undo: `plumb undo restore "),
        "{}",
        said.stdout
    );
    let writes = writes.lock().map(|writes| writes.clone()).unwrap_or_default();
    ensure!(writes == ["POST tombstone", "DELETE first"], "the second one stays: {writes:?}");
    ensure!(shell.home.path().join("orphans/9999-configmap-shop-first.yaml").is_file(), "the dump is there");
    shell.transcript.check("orphans")
}
