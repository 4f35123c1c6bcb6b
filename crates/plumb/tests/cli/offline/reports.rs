//! `plumb drift` reads the report of the app that is named, in the namespace of that app.

use anyhow::Result;
use serde_json::{Value, json};

use super::api;
use crate::shell::Shell;

fn application(namespace: &str) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "payments", "namespace": namespace}, "spec": {"destination": {}, "project": "default"}})
}

fn report(namespace: &str, actor: &str, since: &Value) -> Value {
    json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport",
        "metadata": {"name": "payments", "namespace": namespace}, "summary": {"counted": 1, "explained": 0},
        "findings": [{"class": "LiveEdit", "counts": true, "kind": "Deployment", "namespace": namespace, "name": "web",
            "fields": ["/spec/replicas"], "actor": actor, "since": since}]})
}

fn list(items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": items})
}

#[test]
fn reports_are_read_in_the_namespace_of_the_app() -> Result<()> {
    let (home, away) =
        (report("argocd", "kubectl", &json!(null)), report("team-a", "", &json!("2026-11-15T18:00:00Z")));
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cmd-params-cm"},
        "data": {"application.namespaces": "team-*"}});
    let mut shell = Shell::new()?;
    let (apps, reports) = ("/apis/argoproj.io/v1alpha1", "/apis/plumb.dev/v1alpha1");
    api::serve(
        &mut shell,
        &[
            (&format!("{apps}/namespaces/argocd/applications/payments"), application("argocd")),
            (&format!("{apps}/namespaces/team-a/applications/payments"), application("team-a")),
            (&format!("{apps}/namespaces/team-b/applications/payments"), application("team-b")),
            (&format!("{reports}/namespaces/argocd/driftreports"), list(std::slice::from_ref(&home))),
            (&format!("{reports}/namespaces/argocd/driftreports/payments"), home.clone()),
            (&format!("{reports}/namespaces/team-a/driftreports/payments"), away.clone()),
            (&format!("{reports}/driftreports"), list(&[away, home])),
            ("/api/v1/namespaces/argocd/configmaps/argocd-cmd-params-cm", settings),
        ],
    )?;
    for line in [
        "plumb drift team-a/payments",
        "plumb drift payments --app-namespace team-a",
        "plumb drift payments",
        "plumb drift team-b/payments",
        "plumb drift",
    ] {
        shell.plumb(line)?;
    }
    shell.transcript.check("drift-offline")
}
