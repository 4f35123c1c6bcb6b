//! Commands that show reports: which report they read, and what they say where no engine of plumb runs.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::api;
use crate::shell::Shell;

fn application(namespace: &str) -> Value {
    with_status(namespace, "Synced")
}

fn with_status(namespace: &str, sync: &str) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "payments", "namespace": namespace}, "spec": {"destination": {}, "project": "default"},
        "status": {"sync": {"status": sync}, "reconciledAt": "2026-11-15T18:00:00Z"}})
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
            api::engine(),
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

/// Commands that show what an engine of plumb found.
const SHOWN: [&str; 5] = [
    "plumb app diff payments",
    "plumb app diff payments -o json",
    "plumb app plan payments",
    "plumb drift payments",
    "plumb drift payments -o json",
];

#[test]
fn beside_another_controller_no_report_is_not_the_answer_that_nothing_differs() -> Result<()> {
    let mut shell = Shell::new()?;
    let path = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/payments";
    for sync in ["OutOfSync", "Synced"] {
        api::serve(&mut shell, &[(path, with_status("argocd", sync))])?;
        for line in SHOWN {
            let said = shell.quietly(line, &[], "")?;
            ensure!(said.code == 20 && said.stdout.is_empty(), "{line}: {} {}", said.code, said.stdout);
            ensure!(
                said.stderr.contains("no engine of plumb has compared payments"),
                "{line}: {}",
                said.stderr
            );
            ensure!(said.stderr.contains("plumb doctor --app payments"), "{line}: {}", said.stderr);
        }
    }
    let all = shell.quietly("plumb drift", &[], "")?;
    ensure!(all.code == 20 && all.stderr.contains("`plumb doctor` judges the apps"), "{}", all.stderr);
    ensure!(!all.stderr.contains("plumb install"), "{}", all.stderr);
    // With an engine, an app that it does not manage.
    api::serve(&mut shell, &[(path, with_status("argocd", "OutOfSync")), api::engine()])?;
    let foreign = shell.quietly("plumb app diff payments", &[], "")?;
    ensure!(foreign.code == 20 && foreign.stderr.contains("has not compared payments"), "{}", foreign.stderr);
    api::serve(&mut shell, &[(path, with_status("argocd", "Synced")), api::engine()])?;
    let synced = shell.quietly("plumb app diff payments", &[], "")?;
    ensure!(synced.code == 0 && synced.stderr.is_empty(), "{}", synced.stderr);
    Ok(())
}

#[test]
fn what_an_engine_found_before_it_stopped_is_shown_as_such() -> Result<()> {
    let mut shell = Shell::new()?;
    let mut found = report("argocd", "kubectl", &json!(null));
    found["observedAt"] = json!("2026-11-15T18:00:00Z");
    let reports = "/apis/plumb.dev/v1alpha1/namespaces/argocd/driftreports";
    api::serve(
        &mut shell,
        &[
            (
                "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/payments",
                with_status("argocd", "OutOfSync"),
            ),
            (&format!("{reports}/payments"), found.clone()),
            (reports, list(&[found])),
        ],
    )?;
    for line in SHOWN.iter().chain(&["plumb drift"]) {
        let said = shell.quietly(line, &[], "")?;
        let note = "note: no engine of plumb runs here now: the latest report is of 2026-11-15T18:00:00Z";
        ensure!(said.stderr.contains(note) && said.code != 20, "{line}: {}", said.stderr);
    }
    Ok(())
}

/// An Application and a report with so many unhealthy objects, one difference and one pause.
fn troubled(shell: &mut Shell, n_unhealthy: usize) -> Result<()> {
    let object = |n: usize| {
        json!({"kind": "Pod", "name": format!("p{n}"), "namespace": "shop", "status": "Degraded",
            "causes": [format!("Pod shop/p{n}"), "it crashes"]})
    };
    let mut found = report("argocd", "kubectl", &json!("2026-11-15T18:00:00Z"));
    found["health"] = (0..n_unhealthy).map(object).collect();
    found["pauses"] =
        json!([{"kind": "Pod", "name": "p0", "until": "2999-01-01T00:00:00Z", "reason": "a fix"}]);
    found["plainSecrets"] = json!([{"namespace": "shop", "name": "login"}]);
    let (apps, reports) =
        ("/apis/argoproj.io/v1alpha1/namespaces/argocd", "/apis/plumb.dev/v1alpha1/namespaces/argocd");
    let app = with_status("argocd", "OutOfSync");
    let answers = [
        (&format!("{apps}/applications") as &str, list(std::slice::from_ref(&app))),
        (&format!("{apps}/applications/payments"), app),
        (&format!("{reports}/driftreports"), list(std::slice::from_ref(&found))),
        (&format!("{reports}/driftreports/payments"), found),
        api::engine(),
    ];
    api::serve(shell, &answers)
}

#[test]
fn data_has_all_unhealthy_objects_and_text_the_first() -> Result<()> {
    let mut shell = Shell::new()?;
    troubled(&mut shell, 25)?;
    let text = shell.quietly("plumb unmask", &[], "")?;
    ensure!(text.stdout.contains("… and 5 more; --limit shows them"), "{}{}", text.stdout, text.stderr);
    let all = shell.quietly("plumb unmask -o json", &[], "")?;
    let read = |text: &str| serde_json::from_str::<Value>(text).map(|all| all.as_array().map(Vec::len));
    ensure!(read(&all.stdout)? == Some(25) && all.stderr.is_empty(), "{}", all.stderr);
    let few = shell.quietly("plumb unmask -o json --limit 3", &[], "")?;
    ensure!(read(&few.stdout)? == Some(3), "{}", few.stdout);
    ensure!(few.stderr.contains("22 more objects are unhealthy"), "{}", few.stderr);
    Ok(())
}

/// The names of all fields, at any depth.
fn fields(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                found.insert(key.clone());
                fields(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        _ => {}
    }
}

#[test]
fn every_field_of_the_data_is_on_the_page() -> Result<()> {
    let page = include_str!("../../../../../docs/editors-and-assistants.md");
    let mut shell = Shell::new()?;
    troubled(&mut shell, 1)?;
    for line in ["plumb doctor -o json", "plumb unmask -o json", "plumb app plan payments -o json"] {
        let said = shell.quietly(line, &[], "")?;
        let mut found = BTreeSet::new();
        fields(&serde_json::from_str(&said.stdout)?, &mut found);
        ensure!(found.len() > 5, "{line}: {found:?}");
        let missing: Vec<&String> =
            found.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
        ensure!(missing.is_empty(), "{line}: not on the page: {missing:?}");
    }
    Ok(())
}
