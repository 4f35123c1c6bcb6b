//! `RollingSync`: which Applications are synced now.
//!
//! An Application waits until all steps before its own are healthy. Then it is pending, and the next run requests its
//! sync. The run in between makes sure that the status says so first: a sync that began later is the one that was
//! requested.

use jiff::Timestamp;
use plumb_crd::ApplicationSet;
use plumb_crd::application_set::{ApplicationSetApplicationStatus, RolloutStep};
use plumb_crd::wire::whole_seconds;
use serde_json::{Value as Json, json};

use super::steps::{Assignment, max_update};
use super::update::Updater;
use super::validate::name_of;

const REVISION_CHANGED: &str = "Application has pending changes, setting status to Waiting";
const SPEC_CHANGED: &str = "Application has pending changes (spec differs), setting status to Waiting";
const BOTH_CHANGED: &str =
    "Application has pending changes (revision and spec differ), setting status to Waiting";
const MOVED_TO_PENDING: &str =
    "Application moved to Pending status, watching for the Application resource to start Progressing";
/// Whose syncs these are.
const USER: &str = "applicationset-controller";

/// The state of a rollout after looking at the Applications.
pub(super) struct Rollout {
    pub(super) statuses: Vec<ApplicationSetApplicationStatus>,
    /// Applications whose sync is to be requested now.
    pub(super) to_sync: Vec<String>,
    pub(super) assignment: Assignment,
}

impl Rollout {
    /// The first step that is not done, from 1.
    pub(super) fn progressing_step(&self, n_steps: usize) -> Option<usize> {
        (1..=n_steps).find(|step| {
            let step = step.to_string();
            self.statuses.iter().any(|status| status.step == step && status.status != "Healthy")
        })
    }
}

/// Looks at all Applications and moves the rollout on. `generated` has automation switched off already.
pub(super) fn advance(
    set: &ApplicationSet,
    steps: &[RolloutStep],
    generated: &[Json],
    owned: &[&Json],
    updater: &Updater<'_>,
    now: Timestamp,
) -> Rollout {
    let assignment = Assignment::new(steps, generated);
    let now = whole_seconds(now);
    let before = &set.status.application_status;
    let mut statuses: Vec<ApplicationSetApplicationStatus> = owned
        .iter()
        .map(|live| {
            let name = name_of(live);
            let known = before.iter().find(|status| status.application == name);
            let wanted = generated.iter().find(|application| name_of(application) == name);
            let spec_changed = wanted.is_some_and(|wanted| updater.changes_spec(wanted, live));
            observe(known, live, spec_changed, assignment.written_step(name), now)
        })
        .collect();
    statuses.sort_by(|a, b| a.application.cmp(&b.application));
    let allowed = allowed(&assignment, &statuses);
    promote(steps, &assignment, &allowed, &mut statuses, now);
    let was_pending =
        |name: &str| before.iter().any(|status| status.application == name && status.status == "Pending");
    let is_pending =
        |name: &str| statuses.iter().any(|status| status.application == name && status.status == "Pending");
    let is_free = |name: &str| {
        owned.iter().find(|live| name_of(live) == name).is_none_or(|live| live["operation"].is_null())
    };
    let to_sync =
        allowed.into_iter().filter(|name| was_pending(name) && is_pending(name) && is_free(name)).collect();
    Rollout { statuses, to_sync, assignment }
}

/// The revisions that an Application was compared with.
fn revisions(live: &Json) -> Vec<String> {
    let sync = &live["status"]["sync"];
    let texts = |value: &Json| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
    };
    let many = texts(&sync["revisions"]);
    if !many.is_empty() {
        return many;
    }
    sync["revision"].as_str().filter(|revision| !revision.is_empty()).map(str::to_owned).into_iter().collect()
}

/// The status of one Application.
fn observe(
    known: Option<&ApplicationSetApplicationStatus>,
    live: &Json,
    spec_changed: bool,
    step: String,
    now: Timestamp,
) -> ApplicationSetApplicationStatus {
    let revisions = revisions(live);
    let mut status = known.cloned().unwrap_or_else(|| ApplicationSetApplicationStatus {
        application: name_of(live).to_owned(),
        last_transition_time: Some(now),
        message: "No Application status found, defaulting status to Waiting".to_owned(),
        status: "Waiting".to_owned(),
        step: String::new(),
        target_revisions: revisions.clone(),
    });
    status.step = step;
    let become_ = |status: &mut ApplicationSetApplicationStatus, word: &str, message: &str| {
        word.clone_into(&mut status.status);
        message.clone_into(&mut status.message);
        status.last_transition_time = Some(now);
    };
    if let Some(message) = changes(status.target_revisions != revisions, spec_changed) {
        status.target_revisions = revisions;
        become_(&mut status, "Waiting", message);
    }
    let is_synced = live["status"]["sync"]["status"] == "Synced";
    let is_healthy = live["status"]["health"]["status"] == "Healthy";
    match status.status.as_str() {
        "Waiting" if is_synced && is_healthy => {
            become_(&mut status, "Healthy", "Application resource has synced, updating status to Healthy");
        }
        "Waiting" if is_synced => {
            become_(
                &mut status,
                "Progressing",
                "Application resource has synced, updating status to Progressing",
            );
        }
        "Pending" => {
            if let Some(message) = started(&status, live) {
                become_(&mut status, "Progressing", message);
            }
        }
        "Progressing" if is_synced && is_healthy => {
            become_(
                &mut status,
                "Healthy",
                "Application resource became Healthy, updating status from Progressing to Healthy",
            );
        }
        _ => {}
    }
    status
}

/// What changed, in Argo CD's words.
fn changes(revision_changed: bool, spec_changed: bool) -> Option<&'static str> {
    match (revision_changed, spec_changed) {
        (true, true) => Some(BOTH_CHANGED),
        (true, false) => Some(REVISION_CHANGED),
        (false, true) => Some(SPEC_CHANGED),
        (false, false) => None,
    }
}

/// Why a pending Application is progressing, if it is. Times have whole seconds, so a sync of the same second counts if
/// the set requested it.
fn started(status: &ApplicationSetApplicationStatus, live: &Json) -> Option<&'static str> {
    let since = status.last_transition_time?;
    let time = |value: &Json| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let state = &live["status"];
    if time(&state["reconciledAt"]).is_some_and(|at| at < since) {
        return None;
    }
    let operation = &state["operationState"];
    let is_ours = operation["operation"]["initiatedBy"]["username"] == USER;
    if time(&operation["startedAt"]).is_some_and(|at| at > since || (at == since && is_ours)) {
        return Some(match operation["phase"].as_str().unwrap_or_default() {
            "Succeeded" => {
                "Application resource completed a sync successfully, updating status from Pending to Progressing"
            }
            "Failed" | "Error" => {
                "Application resource completed a sync, updating status from Pending to Progressing"
            }
            _ => "Application resource became Progressing, updating status from Pending to Progressing",
        });
    }
    let mut conditions = state["conditions"].as_array().into_iter().flatten();
    conditions
        .any(|condition| matches!(condition["type"].as_str(), Some("InvalidSpecError" | "UnknownError")))
        .then_some("Application resource has error and cannot sync, updating status to Progressing")
}

/// The Applications that may be synced: up to the first step that is not healthy.
fn allowed(assignment: &Assignment, statuses: &[ApplicationSetApplicationStatus]) -> Vec<String> {
    let mut allowed = Vec::new();
    for names in &assignment.in_step {
        allowed.extend(names.iter().cloned());
        let is_healthy = |name: &String| {
            statuses.iter().any(|status| status.application == *name && status.status == "Healthy")
        };
        if !names.iter().all(is_healthy) {
            break;
        }
    }
    allowed
}

/// Makes waiting Applications pending, as many as their step allows.
fn promote(
    steps: &[RolloutStep],
    assignment: &Assignment,
    allowed: &[String],
    statuses: &mut [ApplicationSetApplicationStatus],
    now: Timestamp,
) {
    let (mut running, mut total) = (vec![0; steps.len()], vec![0; steps.len()]);
    for status in statuses.iter() {
        // As in Argo CD: an Application of no step counts for the first.
        let step = assignment.step(&status.application).unwrap_or_default();
        total[step] += 1;
        running[step] += usize::from(matches!(status.status.as_str(), "Pending" | "Progressing"));
    }
    for status in statuses {
        let Some(step) = assignment.step(&status.application) else { continue };
        let has_room = max_update(&steps[step], total[step]).is_none_or(|most| running[step] < most);
        if status.status == "Waiting" && has_room && allowed.contains(&status.application) {
            "Pending".clone_into(&mut status.status);
            MOVED_TO_PENDING.clone_into(&mut status.message);
            status.last_transition_time = Some(now);
            running[step] += 1;
        }
    }
}

/// Switches automation off: the set requests the syncs. Returns the Applications, and which of them pruned.
pub(super) fn without_automation(generated: &[Json]) -> (Vec<Json>, Vec<String>) {
    let mut pruning = Vec::new();
    let mut all = generated.to_vec();
    for application in &mut all {
        let name = name_of(application).to_owned();
        let Some(automated) =
            application["spec"]["syncPolicy"].get_mut("automated").filter(|found| found.is_object())
        else {
            continue;
        };
        if automated["enabled"] != false {
            if automated["prune"] == true {
                pruning.push(name);
            }
            automated["enabled"] = Json::Bool(false);
        }
    }
    (all, pruning)
}

/// The operation that syncs an Application.
pub(super) fn operation(application: &Json, prunes: bool) -> Json {
    let policy = &application["spec"]["syncPolicy"];
    let mut sync = json!({});
    if prunes {
        sync["prune"] = Json::Bool(true);
    }
    if policy["syncOptions"].is_array() {
        sync["syncOptions"] = policy["syncOptions"].clone();
    }
    let retry = if policy["retry"].is_object() { policy["retry"].clone() } else { json!({"limit": 5}) };
    json!({
        "info": [{
            "name": "Reason",
            "value": "ApplicationSet RollingSync triggered a sync of this Application resource",
        }],
        "initiatedBy": {"automated": true, "username": USER},
        "retry": retry,
        "sync": sync,
    })
}
