//! Conditions, health and the list of Applications, in Argo CD's words.

use jiff::Timestamp;
use plumb_crd::ApplicationSet;
use plumb_crd::application::{HealthStatus, ResourceStatus};
use plumb_crd::application_set::{ApplicationSetCondition, ApplicationSetStatus};
use plumb_crd::wire::{Wire, whole_seconds};
use serde_json::Value as Json;

use super::decide::Decision;
use super::validate::name_of;
use crate::error::Reason;

pub(super) const ERROR: &str = "ErrorOccurred";
pub(super) const PARAMETERS: &str = "ParametersGenerated";
pub(super) const UP_TO_DATE: &str = "ResourcesUpToDate";
pub(super) const ROLLOUT: &str = "RolloutProgressing";
pub(super) const ROLLOUT_CONFIG: &str = "InvalidRolloutConfig";
/// Deletions that wait for a user. Argo CD has no such condition.
pub(super) const DELETIONS: &str = "DeletionsWaiting";
/// Names that another set generates, too. Argo CD has no such condition.
pub(super) const SHARED_NAMES: &str = "NamesGeneratedTwice";

const ALL_WELL: &str = "All applications have been generated successfully";

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The reason, such as `CreateApplicationError`.
    pub reason: &'static str,
    /// The cause.
    pub message: String,
}

fn condition(kind: &str, status: bool, reason: &str, message: &str) -> ApplicationSetCondition {
    ApplicationSetCondition {
        condition_type: kind.to_owned(),
        message: message.to_owned(),
        last_transition_time: None,
        status: if status { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
    }
}

/// The status after the writes of a decision. `failure` is the first request that failed, `owned` the Applications as
/// they are now.
pub fn conclude(
    set: &ApplicationSet,
    decision: &Decision,
    failure: Option<&Failure>,
    owned: &[&Json],
    max_resources: usize,
    now: Timestamp,
) -> ApplicationSetStatus {
    let mut wanted = Vec::new();
    let generated = decision.generation_error.as_ref();
    wanted.push(match generated {
        Some(error) => condition(PARAMETERS, false, ERROR, &error.message),
        None => {
            condition(PARAMETERS, true, PARAMETERS, "Successfully generated parameters for all Applications")
        }
    });
    let failed_to_write = failure.is_some();
    let failure = generated.or(failure).or(decision.failure.as_ref());
    if let Some(failure) = failure {
        wanted.push(condition(ERROR, true, failure.reason, &failure.message));
        wanted.push(condition(UP_TO_DATE, false, ERROR, &failure.message));
    } else {
        wanted.push(condition(ERROR, false, "ApplicationSetUpToDate", ALL_WELL));
        wanted.push(match &decision.held {
            Some(held) => condition(UP_TO_DATE, false, DELETIONS, held),
            None => condition(UP_TO_DATE, true, "ApplicationSetUpToDate", ALL_WELL),
        });
    }
    // Approved deletions are not carried out after a failure: the approval must count for the next try.
    if let Some(held) = decision.held.as_ref().or(decision.approved.as_ref().filter(|_| failed_to_write)) {
        wanted.push(condition(DELETIONS, true, "DeletionBudgetExceeded", held));
    }
    if let Some(shared) = &decision.shared_names {
        wanted.push(condition(SHARED_NAMES, true, "ApplicationGeneratedTwice", shared));
    }
    if decision.ended_early {
        let kept =
            |kind: &str| kind == DELETIONS || decision.rolls_out && matches!(kind, ROLLOUT | ROLLOUT_CONFIG);
        let known = set.status.conditions.iter();
        wanted.extend(known.filter(|known| kept(&known.condition_type)).cloned());
    } else {
        wanted.extend(decision.rollout_conditions.iter().cloned());
    }
    let conditions = dated(&set.status.conditions, wanted, now);
    let (resources, resources_count) = if decision.ended_early {
        (set.status.resources.clone(), set.status.resources_count)
    } else {
        resources(owned, max_resources)
    };
    ApplicationSetStatus {
        health: health(&conditions, &set.status.health),
        conditions,
        application_status: decision.application_status.clone(),
        resources,
        resources_count,
    }
}

pub(super) fn rollout_conditions(
    issue: Option<&str>,
    progressing: Option<usize>,
) -> Vec<ApplicationSetCondition> {
    let config = match issue {
        Some(issue) => condition(ROLLOUT_CONFIG, true, "ApplicationSetInvalidRolloutConfig", issue),
        None => condition(
            ROLLOUT_CONFIG,
            false,
            "ApplicationSetValidRolloutConfig",
            "Rolling Sync Configured correctly",
        ),
    };
    let rollout = match progressing {
        Some(step) => condition(
            ROLLOUT,
            true,
            "ApplicationSetModified",
            &format!("ApplicationSet is performing rollout of step {step}"),
        ),
        None => {
            condition(ROLLOUT, false, "ApplicationSetRolloutComplete", "ApplicationSet Rollout has completed")
        }
    };
    vec![config, rollout]
}

/// Sorted by type; what did not change keeps its time.
fn dated(
    known: &[ApplicationSetCondition],
    mut wanted: Vec<ApplicationSetCondition>,
    now: Timestamp,
) -> Vec<ApplicationSetCondition> {
    for condition in &mut wanted {
        let same = known.iter().find(|known| {
            known.condition_type == condition.condition_type
                && known.status == condition.status
                && known.reason == condition.reason
                && known.message == condition.message
        });
        condition.last_transition_time =
            same.and_then(|same| same.last_transition_time).or(Some(whole_seconds(now)));
    }
    wanted.sort_by(|a, b| a.condition_type.cmp(&b.condition_type));
    wanted
}

/// The conditions of a set that cannot be read, of which `status` is the status as it is. `None` if it has them already.
pub fn unreadable_conditions(status: &Json, message: &str, now: Timestamp) -> Option<Json> {
    let known = status["conditions"].as_array().into_iter().flatten();
    let known: Vec<_> = known.filter_map(|known| ApplicationSetCondition::read(known).ok()).collect();
    let mut wanted: Vec<ApplicationSetCondition> = known
        .iter()
        .filter(|known| ![ERROR, PARAMETERS, UP_TO_DATE].contains(&known.condition_type.as_str()))
        .cloned()
        .collect();
    wanted.push(condition(ERROR, true, Reason::Generation.name(), message));
    wanted.push(condition(PARAMETERS, false, ERROR, message));
    wanted.push(condition(UP_TO_DATE, false, ERROR, message));
    let wanted = dated(&known, wanted, now);
    (wanted != known).then(|| wanted.iter().map(Wire::write).collect())
}

/// Do deletions wait for a user, as far as the status says?
pub(super) fn deletions_wait(set: &ApplicationSet) -> bool {
    let mut conditions = set.status.conditions.iter();
    conditions.any(|known| known.condition_type == DELETIONS && known.status == "True")
}

/// Since when a set waits for a user with exactly this message.
pub(super) fn waits_since(set: &ApplicationSet, message: &str) -> Option<Timestamp> {
    let waiting = set.status.conditions.iter().find(|known| known.condition_type == DELETIONS)?;
    if waiting.message == message { waiting.last_transition_time } else { None }
}

fn health(conditions: &[ApplicationSetCondition], before: &HealthStatus) -> HealthStatus {
    let is_true = |kind: &str| {
        conditions.iter().find(|condition| condition.condition_type == kind && condition.status == "True")
    };
    let (word, condition) = if let Some(error) = is_true(ERROR) {
        ("Degraded", Some(error))
    } else if let Some(rollout) = is_true(ROLLOUT) {
        ("Progressing", Some(rollout))
    } else if let Some(done) = is_true(UP_TO_DATE) {
        ("Healthy", Some(done))
    } else if let Some(waiting) = is_true(DELETIONS) {
        ("Suspended", Some(waiting))
    } else {
        ("Unknown", None)
    };
    HealthStatus {
        status: word.to_owned(),
        message: condition.map(|condition| condition.message.clone()).unwrap_or_default(),
        last_transition_time: before.last_transition_time,
    }
}

fn resources(owned: &[&Json], most: usize) -> (Vec<ResourceStatus>, i64) {
    let mut resources: Vec<ResourceStatus> = owned
        .iter()
        .map(|live| {
            let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
            let health = &live["status"]["health"];
            ResourceStatus {
                namespace: text(&live["metadata"]["namespace"]),
                name: name_of(live).to_owned(),
                status: text(&live["status"]["sync"]["status"]),
                health: Some(HealthStatus {
                    status: text(&health["status"]),
                    message: text(&health["message"]),
                    last_transition_time: health["lastTransitionTime"]
                        .as_str()
                        .and_then(|time| time.parse().ok()),
                }),
                ..ResourceStatus::default()
            }
        })
        .collect();
    resources.sort_by(|a, b| a.name.cmp(&b.name));
    let count = i64::try_from(resources.len()).unwrap_or(i64::MAX);
    resources.truncate(most);
    (resources, count)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_set_that_cannot_be_read_says_so_once() {
        let now = |text: &str| text.parse::<Timestamp>().unwrap();
        let status = json!({"conditions": [
            {"type": "DeletionsWaiting", "status": "True", "reason": "DeletionBudgetExceeded", "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "ErrorOccurred", "status": "False", "reason": "ApplicationSetUpToDate", "message": "ok",
                "lastTransitionTime": "2026-01-01T00:00:00Z"},
            "broken",
        ]});
        let first = unreadable_conditions(&status, "cannot read it", now("2026-01-02T00:00:00Z")).unwrap();
        let shown: Vec<String> = first
            .as_array()
            .unwrap()
            .iter()
            .map(|one| format!("{} {}", one["type"].as_str().unwrap(), one["status"].as_str().unwrap()))
            .collect();
        assert_eq!(
            shown,
            [
                "DeletionsWaiting True",
                "ErrorOccurred True",
                "ParametersGenerated False",
                "ResourcesUpToDate False"
            ]
        );
        let status = json!({"conditions": first});
        assert_eq!(unreadable_conditions(&status, "cannot read it", now("2026-01-03T00:00:00Z")), None);
        assert!(unreadable_conditions(&status, "another reason", now("2026-01-03T00:00:00Z")).is_some());
        assert!(unreadable_conditions(&json!({"conditions": 1}), "x", now("2026-01-03T00:00:00Z")).is_some());
    }
}
