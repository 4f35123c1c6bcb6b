//! What happened to one app, the latest first, as far as the Application and its report know it now.

use jiff::Timestamp;
use plumb_crd::{Application, DriftReport, RecentEvent};
use serde_json::{Value, json};

use crate::object_ref::object_ref;
use crate::row::{initiator, is_heal};
use crate::trouble::{pause_of, short, time};

/// Most entries.
const MOST: usize = 100;

struct Entry {
    at: Timestamp,
    value: Value,
}

fn entry(at: Timestamp, kind: &str, state: &str, text: &str, actor: &str) -> Entry {
    let value = json!({"at": time(Some(at)), "kind": kind, "state": state, "text": short(text), "actor": short(actor)});
    Entry { at, value }
}

/// The entries. Long because it has one part for each place that knows what happened.
pub fn timeline(app: &Application, report: Option<&DriftReport>) -> Vec<Value> {
    let mut entries: Vec<Entry> = Vec::new();
    for past in &app.status.history {
        let revision =
            Some(&past.revision).filter(|revision| !revision.is_empty()).or(past.revisions.first());
        let revision: String =
            revision.map(|revision| revision.chars().take(12).collect()).unwrap_or_default();
        let seconds = past.deploy_started_at.map(|start| past.deployed_at.duration_since(start).as_secs());
        let took = seconds.map(|seconds| format!(" in {seconds} s")).unwrap_or_default();
        let text = format!("synced to {revision}{took}");
        let mut entry = entry(past.deployed_at, "sync", "ok", &text, &initiator(&past.initiated_by));
        entry.value["id"] = json!(past.id);
        entry.value["revision"] = json!(revision);
        entries.push(entry);
    }
    if let Some(state) = app.status.operation_state.as_deref() {
        let is_known = state.phase == "Succeeded"
            && state.finished_at.is_some_and(|end| {
                app.status
                    .history
                    .iter()
                    .any(|past| past.deployed_at.duration_since(end).as_secs().abs() <= 1)
            });
        // That it healed something says more than that it succeeded.
        let is_heal = state.finished_at.is_some_and(|end| {
            let mut recent = report.into_iter().flat_map(|report| &report.recent);
            recent.any(|event| is_heal(event) && event.at.duration_since(end).as_secs().abs() <= 1)
        });
        if !is_known && !is_heal {
            let kind = if state.phase == "Succeeded" { "ok" } else { "bad" };
            let kind = if matches!(state.phase.as_str(), "Running" | "Terminating") { "busy" } else { kind };
            let at = state.finished_at.unwrap_or(state.started_at);
            let by = initiator(&state.operation.initiated_by);
            let is_dry = state.operation.sync.as_ref().is_some_and(|sync| sync.dry_run);
            let what = if is_dry { "dry run" } else { "sync" };
            let text = format!("{what} {}: {}", state.phase.to_lowercase(), state.message);
            entries.push(entry(at, "sync", kind, &text, &by));
        }
    }
    for finding in report.into_iter().flat_map(|report| &report.findings) {
        let Some(since) = finding.since else { continue };
        let state = if finding.counts { "counts" } else { "explained" };
        let fields = finding.fields.first().map(|field| format!(" {field}")).unwrap_or_default();
        let text = format!("{} {} {}{fields}", finding.class, finding.kind, finding.name);
        let mut entry = entry(since, "drift", state, &text, &finding.actor);
        entry.value["object"] = object_ref(&finding.key());
        entries.push(entry);
    }
    for object in report.into_iter().flat_map(|report| &report.health) {
        let Some(since) = object.since else { continue };
        let text = format!("{} {} became {}: {}", object.kind, object.name, object.status, object.message);
        let mut entry = entry(since, "health", "bad", &text, "");
        entry.value["object"] = object_ref(&object.key());
        entries.push(entry);
    }
    if let Some(report) = report {
        let news = report.recent.iter().filter(|event| !is_shown_already(app, report, event));
        entries.extend(news.map(of_recent));
    }
    if let (Some(pause), Some(at)) = (pause_of(app), app.paused_at) {
        entries.push(entry(at, "pause", "paused", &pause.reason, pause.by.as_deref().unwrap_or_default()));
    }
    if let Some(at) = app.metadata.creation_timestamp {
        entries.push(entry(at, "created", "ok", "the Application was created", ""));
    }
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.at));
    entries.into_iter().take(MOST).map(|entry| entry.value).collect()
}

/// What came is shown by what is, and a sync by the history.
fn is_shown_already(app: &Application, report: &DriftReport, event: &RecentEvent) -> bool {
    let near = |at: Timestamp| at.duration_since(event.at).as_secs().abs() <= 1;
    match event.what.as_str() {
        "drift" if !event.over => report.findings.iter().any(|finding| {
            finding.since.is_some() && finding.class == event.class && Some(finding.key()) == event.key()
        }),
        "health" if !event.over => {
            report.health.iter().any(|object| object.since.is_some() && Some(object.key()) == event.key())
        }
        "pause" if !event.over => {
            event.key() == Some(Application::key(&app.id()))
                && pause_of(app).is_some()
                && app.paused_at.is_some()
        }
        "sync" | "sync-failed" => {
            let last = app.status.operation_state.as_deref().and_then(|state| state.finished_at);
            last.is_some_and(near) && !is_heal(event)
                || app.status.history.iter().any(|past| near(past.deployed_at))
        }
        _ => false,
    }
}

fn of_recent(event: &RecentEvent) -> Entry {
    let (kind, state) = recent_state(event);
    let mut entry = entry(event.at, kind, state, &event.text, &event.actor);
    if let Some(key) = event.key() {
        entry.value["object"] = object_ref(&key);
    }
    entry
}

/// How an event is shown: its kind and its state.
pub(crate) fn recent_state(event: &RecentEvent) -> (&str, &'static str) {
    match (event.what.as_str(), event.over) {
        ("sync-failed", _) => ("sync", "bad"),
        ("drift", false) => ("drift", "counts"),
        ("health", false) => ("health", "bad"),
        ("pause", false) => ("pause", "paused"),
        (what, _) => (what, "ok"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::row::tests::{app, live_edit, report};

    #[test]
    fn the_latest_first() {
        let status = json!({
            "history": [{"id": 3, "revision": "3f2c9d1", "deployedAt": "2026-11-15T02:41:07Z",
                         "deployStartedAt": "2026-11-15T02:41:03Z", "initiatedBy": {"automated": true}}],
            "operationState": {"operation": {"sync": {}, "initiatedBy": {"username": "bob"}}, "phase": "Failed",
                "message": "one object\nfailed", "startedAt": "2026-11-15T03:00:00Z", "finishedAt": "2026-11-15T03:00:09Z"},
        });
        let entries = timeline(&app("a", status), Some(&report("a", json!([live_edit()]), json!([]))));
        let lines: Vec<String> = entries
            .iter()
            .map(|entry| {
                format!("{} {} {} ({})", entry["kind"], entry["state"], entry["text"], entry["actor"])
            })
            .collect();
        expect![[r#"
            "drift" "counts" "LiveEdit Deployment payments /spec/replicas" ("alice (kubectl)")
            "sync" "bad" "sync failed: one object failed" ("bob")
            "sync" "ok" "synced to 3f2c9d1 in 4 s" ("plumb")"#]]
        .assert_eq(&lines.join("\n"));
    }

    #[test]
    fn what_came_and_went_is_shown_once() {
        let status =
            json!({"history": [{"id": 3, "revision": "3f2c9d1", "deployedAt": "2026-11-15T02:41:07Z"}]});
        let mut report = report("a", json!([live_edit()]), json!([]));
        let event = |at: &str, what: &str, over: bool, text: &str| RecentEvent {
            at: at.parse().unwrap(),
            what: what.to_owned(),
            over,
            class: "LiveEdit".to_owned(),
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "pay".to_owned(),
            name: "payments".to_owned(),
            text: text.to_owned(),
            ..RecentEvent::default()
        };
        report.recent = vec![
            event("2026-11-15T03:01:12Z", "drift", false, "the finding that is there now"),
            event("2026-11-15T02:50:00Z", "drift", true, "LiveEdit Deployment payments is gone"),
            event("2026-11-15T02:49:00Z", "health", true, "Deployment payments is no longer Degraded"),
            RecentEvent::sync(
                "2026-11-15T02:41:07Z".parse().unwrap(),
                false,
                "plumb",
                "a sync of the history",
            ),
            RecentEvent::sync("2026-11-15T02:30:00Z".parse().unwrap(), true, "bob", "the sync failed"),
        ];
        let entries = timeline(&app("a", status), Some(&report));
        let lines: Vec<String> = entries
            .iter()
            .map(|entry| format!("{} {} {}", entry["kind"], entry["state"], entry["text"]))
            .collect();
        expect![[r#"
            "drift" "counts" "LiveEdit Deployment payments /spec/replicas"
            "drift" "ok" "LiveEdit Deployment payments is gone"
            "health" "ok" "Deployment payments is no longer Degraded"
            "sync" "ok" "synced to 3f2c9d1"
            "sync" "bad" "the sync failed""#]]
        .assert_eq(&lines.join("\n"));
    }

    #[test]
    fn a_heal_is_told_as_one() {
        let status = json!({"operationState": {"operation": {"sync": {}, "initiatedBy": {"automated": true}},
            "phase": "Succeeded", "message": "successfully synced", "startedAt": "2026-11-15T03:00:00Z",
            "finishedAt": "2026-11-15T03:00:01Z"}});
        let mut report = report("a", json!([]), json!([]));
        let at = "2026-11-15T03:00:01Z".parse().unwrap();
        report.recent = vec![RecentEvent::sync(at, false, "plumb", "healed: successfully synced")];
        let entries = timeline(&app("a", status), Some(&report));
        let texts: Vec<&Value> = entries.iter().map(|entry| &entry["text"]).collect();
        assert_eq!(texts, ["healed: successfully synced"]);
    }
}
