//! One app: what its screen shows.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use plumb_core::drift::DriftClass;
use plumb_core::object::ObjectKey;
use plumb_core::tracking::TRACKING_ANNOTATION;
use plumb_crd::application::{ApplicationSource, OperationState, ResourceResult, ResourceStatus};
use plumb_crd::{Application, DriftFinding, DriftReport, UnhealthyObject};
use serde_json::{Value, json};

use crate::object_ref::object_ref;
use crate::row::{Row, initiator, without_userinfo};
use crate::timeline::timeline;
use crate::trouble::{class_of, pause_json, short, sync_waits, time};

/// Most objects of one app that are listed.
const MOST_OBJECTS: usize = 10_000;

/// One app. The lists of the Application must be there.
pub fn detail(app: &Application, report: Option<&DriftReport>, cluster: &str, now: Timestamp) -> Value {
    let row = Row::of(app, report, cluster);
    let sources: Vec<&ApplicationSource> = if app.spec.sources.is_empty() {
        app.spec.source.as_deref().into_iter().collect()
    } else {
        app.spec.sources.iter().collect()
    };
    let revisions = &app.status.sync.revisions;
    let source = |(at, source): (usize, &&ApplicationSource)| {
        let revision =
            revisions.get(at).or_else(|| revisions.is_empty().then_some(&app.status.sync.revision));
        json!({"repo": without_userinfo(&source.repo_url), "path": source.path, "chart": source.chart,
               "target": source.target_revision, "revision": revision})
    };
    let conditions = app.status.conditions.iter().map(|condition| {
        json!({"type": condition.condition_type, "message": short(&condition.message),
               "since": time(condition.last_transition_time)})
    });
    json!({
        "app": [app.metadata.namespace, app.metadata.name],
        "uid": app.metadata.uid,
        "project": row.project, "cluster": cluster, "dest": row.namespace,
        "sync": row.sync, "health": row.health, "healthMessage": short(&app.status.health.message),
        "v": row.version, "labels": row.labels,
        "since": time(row.worst().and_then(|trouble| trouble.since)),
        "sentences": sentences(app, &row, now),
        "findings": report.iter().flat_map(|report| &report.findings).map(finding).collect::<Vec<_>>(),
        "ill": report.iter().flat_map(|report| &report.health).map(ill).collect::<Vec<_>>(),
        "pauses": report.iter().flat_map(|report| &report.pauses).map(pause_json).collect::<Vec<_>>(),
        "pausedUntil": time(row.paused_until.filter(|until| *until > now)),
        "conditions": conditions.collect::<Vec<_>>(),
        "operation": app.status.operation_state.as_deref().map(|state| operation(app, state)),
        "objects": app.status.resources.iter().take(MOST_OBJECTS).map(object).collect::<Vec<_>>(),
        "timeline": timeline(app, report),
        "sources": sources.iter().enumerate().map(source).collect::<Vec<_>>(),
        "links": app.status.summary.external_urls,
        "reconciled": time(app.status.reconciled_at),
        "automated": row.automated,
        "waits": sync_waits(app),
        "deleting": app.metadata.deletion_timestamp.is_some(),
    })
}

fn finding(finding: &DriftFinding) -> Value {
    let fix = finding
        .fix
        .as_ref()
        .map(|fix| json!({"kind": fix.kind, "text": short(&fix.text), "patch": fix.patch}));
    json!({"object": object_ref(&finding.key()), "class": finding.class, "rule": finding.rule,
           "counts": finding.counts, "fields": finding.fields, "actor": short(&finding.actor),
           "since": time(finding.since), "evidence": finding.evidence.iter().map(|text| short(text)).collect::<Vec<_>>(),
           "fix": fix})
}

fn ill(object: &UnhealthyObject) -> Value {
    json!({"object": object_ref(&object.key()), "status": object.status, "class": class_of(object).unwrap_or_default(), "since": time(object.since),
           "stuck": object.stuck, "message": short(&object.message),
           "causes": object.causes.iter().map(|cause| short(cause)).collect::<Vec<_>>()})
}

fn object(resource: &ResourceStatus) -> Value {
    let mut value = object_ref(&resource.key());
    value["sync"] = json!(resource.status);
    let health = resource.health.as_ref();
    value["health"] = json!(health.map_or("", |health| &health.status));
    value["message"] = json!(health.map(|health| short(&health.message)).unwrap_or_default());
    value["wave"] = json!(resource.sync_wave);
    for (name, holds) in [
        ("hook", resource.hook),
        ("prune", resource.requires_pruning),
        ("confirm", resource.requires_deletion_confirmation),
    ] {
        if holds {
            value[name] = json!(true);
        }
    }
    value
}

fn operation(app: &Application, state: &OperationState) -> Value {
    let result = state.sync_result.as_deref();
    let waves: HashMap<ObjectKey, i64> =
        app.status.resources.iter().map(|resource| (resource.key(), resource.sync_wave)).collect();
    let entries = result.into_iter().flat_map(|result| &result.resources).map(|entry| {
        let key = entry.key();
        let mut value = object_ref(&key);
        value["phase"] = json!(entry.sync_phase);
        // The status has no waves of hooks.
        value["wave"] = if entry.hook_type.is_empty() {
            json!(waves.get(&key).copied().unwrap_or_default())
        } else {
            Value::Null
        };
        value["status"] = json!(entry.status);
        value["state"] = json!(entry.hook_phase);
        value["hook"] = json!(entry.hook_type);
        value["message"] = json!(short(&entry.message));
        value
    });
    let sync = state.operation.sync.as_deref();
    let begun: HashSet<ObjectKey> =
        result.into_iter().flat_map(|result| &result.resources).map(ResourceResult::key).collect();
    // A sync of some objects, and one that only tries, has no others to come.
    let is_whole = sync.is_some_and(|sync| sync.resources.is_empty() && !sync.dry_run);
    let prunes = sync.is_some_and(|sync| sync.prune);
    let is_to_come = |resource: &&ResourceStatus| {
        state.phase == "Running"
            && is_whole
            && resource.status == "OutOfSync"
            && !resource.hook
            && (prunes || !resource.requires_pruning)
            && !begun.contains(&resource.key())
    };
    let coming = app.status.resources.iter().filter(is_to_come).map(|resource| {
        let mut value = object_ref(&resource.key());
        for (field, text) in
            [("phase", "Sync"), ("state", "Waiting"), ("status", ""), ("hook", ""), ("message", "")]
        {
            value[field] = json!(text);
        }
        value["wave"] = json!(resource.sync_wave);
        value
    });
    json!({
        "phase": state.phase, "message": short(&state.message), "started": time(Some(state.started_at)),
        "finished": time(state.finished_at), "by": initiator(&state.operation.initiated_by),
        "dryRun": sync.is_some_and(|sync| sync.dry_run), "retries": state.retry_count,
        "revision": result.map(|result| result.revision.clone()),
        "entries": entries.chain(coming).take(MOST_OBJECTS).collect::<Vec<_>>(),
    })
}

/// What the app's state is, in sentences without times.
pub fn sentences(app: &Application, row: &Row, now: Timestamp) -> Vec<String> {
    let mut said = Vec::new();
    let at = if row.revision.is_empty() {
        String::new()
    } else {
        let target = if row.target.is_empty() { "HEAD" } else { &row.target };
        format!(" ({target}@{})", row.revision.get(..7).unwrap_or(&row.revision))
    };
    let drift = row.troubles.iter().find(|trouble| trouble.sort == crate::trouble::Sort::Drift);
    said.push(match (row.sync.as_str(), drift) {
        ("Synced", _) if row.explained > 0 => {
            let n = row.explained;
            let what = if n == 1 {
                "1 difference is explained and counts"
            } else {
                &format!("{n} differences are explained and count")
            };
            format!("In sync with Git{at}; {what} for nothing.")
        }
        ("Synced", _) => format!("In sync with Git{at}."),
        ("OutOfSync", Some(drift)) => format!("OutOfSync{at}: {}.", phrase(&drift.class, row.counted)),
        ("OutOfSync", None) => format!("OutOfSync{at}."),
        _ => "plumb could not compare it with Git yet.".to_owned(),
    });
    said.push(match (row.health.as_str(), app.status.health.message.as_str()) {
        ("Unknown", "") => "Its health is not known.".to_owned(),
        (health, "") => format!("{health}."),
        (health, message) => format!("{health}: {}.", short(message).trim_end_matches('.')),
    });
    if matches!(row.operation.as_str(), "Running" | "Terminating") {
        said.push(format!("A sync is {}.", row.operation.to_lowercase()));
    }
    let policy = app.spec.sync_policy.as_ref().and_then(|policy| policy.automated.as_ref());
    said.push(match policy.filter(|policy| policy.enabled != Some(false)) {
        None => "It is synced by hand.".to_owned(),
        Some(policy) => {
            let heal = if policy.self_heal == Some(true) { ", heals live edits" } else { "" };
            let prune = if policy.prune == Some(true) { ", prunes" } else { "" };
            format!("It is synced automatically{heal}{prune}.")
        }
    });
    if let Some(parent) = parent(app) {
        said.push(format!("Child of {parent}."));
    }
    if row.paused_until.is_some_and(|until| until > now) {
        let by = if row.paused_by.is_empty() { "an unknown user" } else { &row.paused_by };
        said.push(format!("Paused by {by}: {}.", row.pause_reason));
    }
    if app.metadata.deletion_timestamp.is_some() {
        said.push("The Application is being deleted.".to_owned());
    }
    said
}

/// The app whose object this Application is, by its tracking annotation.
fn parent(app: &Application) -> Option<&str> {
    let id = app.metadata.annotations.get(TRACKING_ANNOTATION)?;
    let (parent, object) = id.split_once(':')?;
    let own = format!("argoproj.io/Application:{}/{}", app.metadata.namespace, app.metadata.name);
    // A copy of another Application brings that one's annotation.
    (object == own).then_some(parent)
}

/// What a class means, in words.
fn phrase(class: &str, n: i64) -> String {
    let Some(known) = DriftClass::ALL.into_iter().find(|known| known.name() == class) else {
        // A report of another version of plumb.
        return if n > 1 { format!("{n} differences, the gravest is {class}") } else { class.to_owned() };
    };
    let what = match known {
        DriftClass::LiveEdit => "another writer changed a value that Git sets",
        DriftClass::Behind => "Git has changes that are not applied yet",
        DriftClass::Blocked => "the API server refuses what Git has",
        DriftClass::Orphan => "objects left Git and still exist",
        DriftClass::Unadopted => "objects exist that plumb has not adopted yet",
        DriftClass::TugOfWar => "another writer changes back what plumb applies",
        DriftClass::SharedResource => "another app owns the same object",
        DriftClass::RejectedField => "the cluster drops a field that Git sets",
        DriftClass::Unexplained => "a difference has no explanation yet",
        DriftClass::UnclaimedAddition => "another writer added something that Git does not set",
        DriftClass::StaleOwnership => "a field left Git, and another field manager still owns it",
        DriftClass::AdmissionMutated => "a webhook or policy changes a field on every write",
        DriftClass::ControllerOwned => "a controller sets a field",
        DriftClass::EquivalentValue => "a value is written differently",
        DriftClass::PhantomDefault => "Git sets a value that a field would have anyway",
        DriftClass::SchemaDefault => "the API server filled in a default",
        DriftClass::HookResidue => "a hook has finished, or a Job was deleted after it had ended",
        DriftClass::UnstableRender => "the same commit renders differently each time",
    };
    if n > 1 { format!("{what} ({n} differences)") } else { what.to_owned() }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::row::tests::{app, live_edit, report};

    #[test]
    fn a_state_in_sentences() {
        let check = |status: Value, findings: Value, expected: Expect| {
            let app = app("payments", status);
            let now = "2026-11-15T03:12:12Z".parse().unwrap();
            let row = Row::of(&app, Some(&report("payments", findings, json!([]))), "prod");
            expected.assert_eq(&sentences(&app, &row, now).join(" "));
        };
        check(
            json!({"sync": {"status": "OutOfSync", "revision": "3f2c9d1aa0"}, "health": {"status": "Healthy"}}),
            json!([live_edit()]),
            expect![
                "OutOfSync (main@3f2c9d1): another writer changed a value that Git sets. Healthy. It is synced automatically."
            ],
        );
        check(
            json!({"sync": {"status": "Synced", "revision": "3f2c9d1aa0"},
                   "health": {"status": "Degraded", "message": "container main keeps crashing"}}),
            json!([]),
            expect![
                "In sync with Git (main@3f2c9d1). Degraded: container main keeps crashing. It is synced automatically."
            ],
        );
        check(
            json!({}),
            json!([]),
            expect![
                "plumb could not compare it with Git yet. Its health is not known. It is synced automatically."
            ],
        );
    }

    #[test]
    fn every_class_is_told_in_words() {
        for class in DriftClass::ALL {
            let told = phrase(class.name(), 1);
            assert!(told.contains(' ') && !told.contains(class.name()), "{class}: {told}");
        }
        assert_eq!(phrase("Behind", 2), "Git has changes that are not applied yet (2 differences)");
        assert_eq!(phrase("OfLater", 1), "OfLater");
        assert_eq!(phrase("OfLater", 2), "2 differences, the gravest is OfLater");
    }

    #[test]
    fn an_app_of_an_app_names_its_parent() {
        let now = "2026-11-15T03:12:12Z".parse().unwrap();
        let said = |id: &str| {
            let mut app = app("payments", json!({}));
            app.metadata.annotations.insert(TRACKING_ANNOTATION.to_owned(), id.to_owned());
            sentences(&app, &Row::of(&app, None, "prod"), now).join(" ")
        };
        assert!(said("root:argoproj.io/Application:argocd/payments").contains("Child of root."));
        assert!(!said("root:argoproj.io/Application:argocd/other").contains("Child of"), "it is a copy");
    }

    #[test]
    fn a_running_sync_names_what_is_to_come() {
        let object = |name: &str, status: &str, wave: i64| json!({"group": "", "kind": "ConfigMap", "namespace": "pay", "name": name, "status": status, "syncWave": wave});
        let check = |sync: Value, expected: &str| {
            let mut begun = object("first", "", 0);
            begun["syncPhase"] = json!("Sync");
            let status = json!({
                "resources": [object("first", "OutOfSync", 0), object("last", "OutOfSync", 2), object("same", "Synced", 2)],
                "operationState": {"operation": {"sync": sync}, "phase": "Running", "startedAt": "2026-11-15T03:00:00Z",
                    "message": "", "syncResult": {"revision": "a", "resources": [begun]}}});
            let shown = detail(&app("web", status), None, "prod", "2026-11-15T03:12:12Z".parse().unwrap());
            let entries = shown["operation"]["entries"].as_array().unwrap().iter();
            let lines =
                entries.map(|entry| format!("{} {} {}", entry["name"], entry["wave"], entry["state"]));
            assert_eq!(lines.collect::<Vec<_>>().join(", "), expected);
        };
        check(json!({}), r#""first" 0 "", "last" 2 "Waiting""#);
        check(json!({"resources": [{"kind": "ConfigMap", "name": "first"}]}), r#""first" 0 """#);
        check(json!({"dryRun": true}), r#""first" 0 """#);
    }

    /// An app with so many objects, and an operation that names all of them.
    fn large(n: usize) -> Application {
        let object = |at: usize| {
            json!({"group": "apps", "kind": "Deployment", "namespace": "pay", "name": format!("web-{at}"),
                                        "status": "OutOfSync", "syncWave": at % 3})
        };
        let objects: Vec<Value> = (0..n).map(object).collect();
        let mut status = json!({"resources": objects, "operationState": {"operation": {"sync": {}}, "phase": "Running",
            "startedAt": "2026-11-15T03:00:00Z", "message": "", "syncResult": {"revision": "a", "resources": objects}}});
        for entry in status["operationState"]["syncResult"]["resources"].as_array_mut().unwrap() {
            entry["syncPhase"] = json!("Sync");
        }
        app("large", status)
    }

    #[test]
    fn an_operation_on_thousands_of_objects_is_looked_up_once() {
        let now = "2026-11-15T03:12:12Z".parse().unwrap();
        let took = |n: usize| {
            let app = large(n);
            let start = std::time::Instant::now();
            let shown = detail(&app, None, "prod", now);
            let entries = shown["operation"]["entries"].as_array().unwrap();
            assert_eq!((entries.len(), &entries[4]["wave"]), (n, &json!(1)));
            start.elapsed()
        };
        // The quickest of three: other programs may be busy.
        let quickest = |n: usize| (0..3).map(|_| took(n)).min().unwrap();
        let (few, many) = (quickest(500), quickest(5000));
        // Ten times as many objects take about ten times as long, not a hundred times.
        assert!(many < few * 40, "500 objects take {few:?}, 5,000 {many:?}");
    }
}
