//! One line in the log for each change of an app's state, with the reason.

use plumb_core::status::SyncCode;
use plumb_crd::application::{ApplicationStatus, Condition};
use tracing::{info, warn};

/// At most this many objects are named.
const MOST_NAMED: usize = 3;
/// A reason is cut after so many characters. The status has all of it.
const LONGEST_REASON: usize = 500;

/// How the state of an app changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StateChange {
    /// Such as `Synced -> OutOfSync`, or the present one if it did not change.
    sync: String,
    health: String,
    reason: String,
    is_trouble: bool,
    /// Another error of a type that the app had already.
    is_other_error: bool,
}

impl StateChange {
    /// How a write of the status changes the state; `None` if it does not.
    pub(super) fn of(before: &ApplicationStatus, after: &ApplicationStatus) -> Option<Self> {
        let (sync, health) = (&after.sync.status, &after.health.status);
        let sync_changed = before.sync.status != *sync;
        let code = SyncCode::from_name(sync).filter(|_| sync_changed);
        let health_changed = before.health.status != *health;
        let had = |kind: &str| before.conditions.iter().any(|condition| condition.condition_type == kind);
        let errors =
            || after.conditions.iter().filter(|condition| condition.condition_type.ends_with("Error"));
        let has_new_error = errors().any(|condition| !had(&condition.condition_type));
        let is_same_error = |error: &Condition| {
            before
                .conditions
                .iter()
                .any(|one| one.condition_type == error.condition_type && one.message == error.message)
        };
        let has_other_error = errors().any(|error| !is_same_error(error));
        let is_other_error = has_other_error && !sync_changed && !health_changed && !has_new_error;
        if !sync_changed && !health_changed && !has_other_error {
            return None;
        }
        let is_trouble = has_other_error
            || code == Some(SyncCode::Unknown)
            || (health_changed && matches!(health.as_str(), "Unknown" | "Degraded"));
        let mut reasons: Vec<String> = errors().map(|condition| condition.message.clone()).collect();
        if code == Some(SyncCode::OutOfSync) {
            reasons.push(out_of_sync(after));
        }
        if health_changed && !after.health.message.is_empty() {
            reasons.push(after.health.message.clone());
        }
        if reasons.is_empty() && code == Some(SyncCode::Synced) {
            let revision = &after.sync.revision;
            let revision =
                if revision.is_empty() { after.sync.revisions.join(", ") } else { revision.clone() };
            reasons.push(format!("the cluster is as {revision} asks"));
        }
        Some(Self {
            sync: transition(&before.sync.status, sync),
            health: transition(&before.health.status, health),
            reason: reasons.join("; ").chars().take(LONGEST_REASON).collect(),
            is_trouble,
            is_other_error,
        })
    }

    /// True if only the message of an error changed. It may contain something that differs each time, so that not every
    /// change is worth a line.
    pub(super) fn is_other_error(&self) -> bool {
        self.is_other_error
    }

    /// Writes the line.
    pub(super) fn log(&self) {
        let Self { sync, health, reason, is_trouble, .. } = self;
        // The span of the run names the app.
        if *is_trouble {
            warn!(sync, health, reason, "the state of the app changed");
        } else {
            info!(sync, health, reason, "the state of the app changed");
        }
    }
}

fn transition(before: &str, after: &str) -> String {
    if before == after || before.is_empty() { after.to_owned() } else { format!("{before} -> {after}") }
}

fn out_of_sync(status: &ApplicationStatus) -> String {
    let red = || status.resources.iter().filter(|resource| resource.status == SyncCode::OutOfSync.name());
    let named = red().take(MOST_NAMED).map(|resource| {
        let place =
            if resource.namespace.is_empty() { String::new() } else { format!("{}/", resource.namespace) };
        format!("{} {place}{}", resource.kind, resource.name)
    });
    let named: Vec<String> = named.collect();
    let more = red().count().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if named.is_empty() { String::new() } else { format!("out of sync: {}{more}", named.join(", ")) }
}

#[cfg(test)]
mod tests {
    use plumb_crd::application::ResourceStatus;

    use super::*;

    /// `Synced Healthy`, with an error condition and objects that are out of sync.
    fn status(state: &str, error: Option<&str>, red: &[&str]) -> ApplicationStatus {
        let mut status = ApplicationStatus::default();
        let (sync, health) = state.split_once(' ').unwrap_or_default();
        sync.clone_into(&mut status.sync.status);
        "abc".clone_into(&mut status.sync.revision);
        health.clone_into(&mut status.health.status);
        if health == "Degraded" {
            "container \"web\" failed".clone_into(&mut status.health.message);
        }
        status.conditions = error
            .map(|message| Condition {
                condition_type: "ComparisonError".to_owned(),
                message: message.to_owned(),
                last_transition_time: None,
            })
            .into_iter()
            .collect();
        status.resources = red
            .iter()
            .map(|name| ResourceStatus {
                kind: "ConfigMap".to_owned(),
                namespace: "shop".to_owned(),
                name: (*name).to_owned(),
                status: "OutOfSync".to_owned(),
                ..ResourceStatus::default()
            })
            .collect();
        status
    }

    #[track_caller]
    fn check(before: &ApplicationStatus, after: &ApplicationStatus, expected: &str) {
        let line = StateChange::of(before, after).map(|change| {
            let level = if change.is_trouble { "warn" } else { "info" };
            format!("{level}: {} | {} | {}", change.sync, change.health, change.reason)
        });
        assert_eq!(line.unwrap_or_else(|| "nothing".to_owned()), expected);
    }

    #[test]
    fn each_change_of_state_is_one_line_with_its_reason() {
        let plain = |state: &str| status(state, None, &[]);
        let fine = plain("Synced Healthy");
        check(&fine, &fine, "nothing");
        check(&plain(" "), &fine, "info: Synced | Healthy | the cluster is as abc asks");
        let red = status("OutOfSync Healthy", None, &["a", "b", "c", "d", "e"]);
        let line = "info: Synced -> OutOfSync | Healthy | out of sync: ConfigMap shop/a, ConfigMap shop/b, \
                    ConfigMap shop/c and 2 more";
        check(&fine, &red, line);
        check(&red, &status("OutOfSync Healthy", None, &["a"]), "nothing");
        check(&red, &fine, "info: OutOfSync -> Synced | Healthy | the cluster is as abc asks");
        let blind = status("Unknown Healthy", Some("no space left on device"), &[]);
        check(&fine, &blind, "warn: Synced -> Unknown | Healthy | no space left on device");
        check(&blind, &blind, "nothing");
        let refused = status("Unknown Healthy", Some("the login was refused"), &[]);
        check(&blind, &refused, "warn: Unknown | Healthy | the login was refused");
        let [first, other] = [&fine, &blind].map(|before| StateChange::of(before, &refused));
        assert_eq!(
            [first, other].map(|change| change.map(|one| one.is_other_error())),
            [Some(false), Some(true)]
        );
        check(&blind, &fine, "info: Unknown -> Synced | Healthy | the cluster is as abc asks");
        check(&fine, &plain("Synced Progressing"), "info: Synced | Healthy -> Progressing | ");
        check(
            &fine,
            &plain("Synced Degraded"),
            "warn: Synced | Healthy -> Degraded | container \"web\" failed",
        );
        // An error without a change of the two words.
        check(
            &red,
            &status("OutOfSync Healthy", Some("refused"), &["a"]),
            "warn: OutOfSync | Healthy | refused",
        );
    }
}
