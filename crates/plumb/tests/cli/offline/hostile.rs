//! Text that others wrote cannot forge rows, obey the terminal or show credentials.

use anyhow::{Result, ensure};
use plumb_core::text::is_hidden;
use serde_json::{Value, json};

use super::api;
use crate::shell::Shell;

/// A second row, and sequences that erase the line and set the title of the window.
const HOSTILE: &str = "x\nargocd/payments  in-cluster  shop  default  Synced  Healthy\u{1b}[2K\u{1b}]0;owned\u{7}\r\u{9b}2J\u{202e}\u{200b}";

fn application() -> Value {
    // Written now: a pause ends.
    let written = json!([{"manager": "mallory", "operation": "Update", "time": jiff::Timestamp::now().to_string(),
        "fieldsV1": {"f:metadata": {"f:annotations": {"f:plumb.dev/pause": {}}}}}]);
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
    "metadata": {"name": "evil", "namespace": "argocd", "annotations": {"plumb.dev/pause": HOSTILE},
        "managedFields": written},
    "spec": {
        "project": "default",
        "source": {"repoURL": "https://bob:s3cret-canary@host.example/x?token=s3cret-canary", "path": HOSTILE,
            "targetRevision": HOSTILE},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
    },
    "status": {
        "sync": {"status": "OutOfSync", "revision": "1"},
        "health": {"status": "Degraded", "message": HOSTILE},
        "conditions": [{"type": format!("Sync{HOSTILE}"), "message": HOSTILE}],
        "operationState": {"phase": "Failed", "message": HOSTILE, "startedAt": "2026-11-15T18:00:00Z",
            "finishedAt": "2026-11-15T18:00:09Z", "operation": {"sync": {}}},
        "resources": [{"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "settings",
            "status": "OutOfSync", "health": {"status": "Degraded", "message": HOSTILE}}],
    }})
}

fn report() -> Value {
    json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport",
        "metadata": {"name": "evil", "namespace": "argocd"}, "summary": {"counted": 1, "explained": 0},
        "health": [{"kind": "Pod", "name": "p", "namespace": "shop", "status": "Degraded", "causes": [HOSTILE]}],
        "findings": [{"class": "LiveEdit", "counts": true, "kind": "ConfigMap", "namespace": "shop",
            "name": "settings", "fields": ["/data/a"], "actor": HOSTILE, "evidence": [HOSTILE],
            "fix": {"kind": "sync", "text": HOSTILE, "patch": "data:\n  a: b"}}]})
}

fn list(items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": items})
}

#[test]
fn hostile_text_forges_nothing() -> Result<()> {
    let mut shell = Shell::new()?;
    let (apps, reports) =
        ("/apis/argoproj.io/v1alpha1/namespaces/argocd", "/apis/plumb.dev/v1alpha1/namespaces/argocd");
    api::serve(
        &mut shell,
        &[
            (&format!("{apps}/applications"), list(&[application()])),
            (&format!("{apps}/applications/evil"), application()),
            (&format!("{reports}/driftreports"), list(&[report()])),
            (&format!("{reports}/driftreports/evil"), report()),
            api::engine(),
        ],
    )?;
    for line in ["plumb app list", "plumb app get evil", "plumb app diff evil", "plumb drift evil"] {
        let said = shell.plumb(line)?;
        for text in [&said.stdout, &said.stderr] {
            ensure!(!text.contains(|c| !matches!(c, '\n' | '\t') && is_hidden(c)), "{line}: {text:?}");
            let forged = text.lines().any(|line| line.trim_start().starts_with("argocd/payments"));
            ensure!(!forged, "{line} shows a forged row:\n{text}");
            ensure!(!text.contains("s3cret-canary"), "{line} shows a password:\n{text}");
        }
    }
    // Data that another program reads keeps its exact value.
    let data = shell.quietly("plumb app get evil -o json", &[], "")?;
    let read: Value = serde_json::from_str(&data.stdout)?;
    ensure!(read["metadata"]["annotations"]["plumb.dev/pause"] == HOSTILE, "{}", data.stdout);
    shell.transcript.check("hostile-offline")
}
