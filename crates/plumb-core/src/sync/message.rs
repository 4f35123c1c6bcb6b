//! The messages of an operation. Scripts match their beginnings, so these must not change.

use jiff::Timestamp;

use super::{Observation, Observed, ObservedObject, SyncState};
use crate::health::Health;
use crate::object::ObjectKey;
use crate::plan::{Action, PruneGuard, Step};

/// Something that a sync waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wait<'a> {
    /// That an object becomes healthy.
    Health(&'a Step),
    /// That a hook ends.
    Hook(&'a Step),
    /// That an object is deleted.
    Deletion(&'a Step),
    /// That a user approves a deletion.
    Confirmation(&'a Step),
}

impl Wait<'_> {
    fn step(&self) -> &Step {
        match self {
            Self::Health(step) | Self::Hook(step) | Self::Deletion(step) | Self::Confirmation(step) => step,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Confirmation(_) => 0,
            Self::Deletion(_) => 1,
            Self::Hook(_) => 2,
            Self::Health(_) => 3,
        }
    }

    pub(super) fn live<'o>(&self, observed: &Observed<'o>) -> Option<&'o ObservedObject> {
        match observed.observations.get(&self.step().id.key) {
            Some(Observation::Live(live)) => Some(live),
            Some(Observation::Gone | Observation::Collected) | None => None,
        }
    }
}

/// `waiting for healthy state of apps/Deployment/web and 2 more resources: …`. Only one sort of
/// wait is shown, the one that a user may have to act on first; an object with a known problem is named first.
pub(super) fn waiting(waits: &[Wait<'_>], observed: &Observed<'_>) -> String {
    let Some(rank) = waits.iter().map(Wait::rank).min() else {
        return "one or more tasks are running".to_owned();
    };
    let mut same: Vec<&Wait<'_>> = waits.iter().filter(|wait| wait.rank() == rank).collect();
    same.sort_by_key(|wait| wait.live(observed).is_none_or(|live| live.trouble.is_none()));
    let Some(first) = same.first() else { return "one or more tasks are running".to_owned() };
    let (lead, noun) = match first {
        Wait::Health(_) => ("waiting for healthy state of", "resources"),
        Wait::Hook(_) => ("waiting for completion of hook", "hooks"),
        Wait::Deletion(_) => ("waiting for deletion of", "resources"),
        Wait::Confirmation(_) => ("waiting for pruning confirmation of", "resources"),
    };
    let key = &first.step().id.key;
    let mut text = format!("{lead} {}/{}/{}", key.group, key.kind, key.name);
    if same.len() > 1 {
        text = format!("{text} and {} more {noun}", same.len().saturating_sub(1));
    }
    let detail = match first {
        Wait::Confirmation(step) => confirmation_detail(step),
        Wait::Health(_) | Wait::Hook(_) => first.live(observed).and_then(live_detail),
        Wait::Deletion(_) => first.live(observed).and_then(leaving_detail),
    };
    match detail {
        Some(detail) => format!("{text}: {detail}"),
        None => text,
    }
}

fn confirmation_detail(step: &Step) -> Option<String> {
    match &step.action {
        Action::Prune { guard: PruneGuard::Confirm { reasons, .. }, .. } => {
            Some(reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        }
        Action::Prune { guard: PruneGuard::Free, .. }
        | Action::Apply { .. }
        | Action::Unchanged
        | Action::CreateNamespace { .. }
        | Action::RunHook(_)
        | Action::Skip(_) => None,
    }
}

/// What the deletion of an object waits for.
fn leaving_detail(live: &ObservedObject) -> Option<String> {
    if live.trouble.is_some() {
        return trouble_detail(live);
    }
    let since = since(live.leaving_since);
    match live.finalizers.as_slice() {
        [] if since.is_empty() => None,
        [] => Some(format!("it is being deleted{since}")),
        [one] if one == "foregroundDeletion" => Some(format!("waiting for its children{since}")),
        held_by => Some(format!("held by {}{since}", held_by.join(", "))),
    }
}

fn trouble_detail(live: &ObservedObject) -> Option<String> {
    live.trouble.as_ref().map(|trouble| format!("{}{}", trouble.what, since(trouble.since)))
}

fn live_detail(live: &ObservedObject) -> Option<String> {
    if live.trouble.is_some() {
        return trouble_detail(live);
    }
    let health = live.health.as_ref()?;
    let text = if health.message.is_empty() {
        format!("{:?}", health.status)
    } else {
        format!("{:?}: {}", health.status, health.message)
    };
    Some(format!("{text}{}", since(live.since)))
}

fn since(at: Option<Timestamp>) -> String {
    let seconds = at.and_then(|at| Timestamp::from_second(at.as_second()).ok());
    seconds.map(|at| format!(" (since {at})")).unwrap_or_default()
}

/// A failed object's message: what its health says, and what is known beyond it.
pub(super) fn with_trouble(health: &Health, live: &ObservedObject) -> String {
    match (&live.trouble, health.message.is_empty()) {
        (None, true) => format!("{:?}", health.status),
        (None, false) => health.message.clone(),
        (Some(trouble), true) => format!("{}{}", trouble.what, since(trouble.since)),
        (Some(trouble), false) => format!("{}: {}{}", health.message, trouble.what, since(trouble.since)),
    }
}

/// The message of a failed operation, with the reasons of the first few objects.
pub(super) fn failure(state: &SyncState) -> String {
    const SHOWN: usize = 3;
    let failed: Vec<_> = state.results().iter().filter(|result| result.phase.is_failed()).collect();
    let not_applied = failed.iter().any(|result| result.status == Some(super::ResultCode::SyncFailed));
    let lead = match (not_applied, state.plan.dry_run) {
        (true, false) => "one or more objects failed to apply",
        (true, true) => "one or more objects failed to apply (dry run)",
        (false, _) => "one or more synchronization tasks completed unsuccessfully",
    };
    let mut reasons: Vec<String> =
        failed.iter().take(SHOWN).map(|result| format!("{}: {}", result.id.key, result.message)).collect();
    if failed.len() > SHOWN {
        reasons.push(format!("and {} more", failed.len().saturating_sub(SHOWN)));
    }
    if reasons.is_empty() { lead.to_owned() } else { format!("{lead}, reason: {}", reasons.join(", ")) }
}

/// What happened to an object that was applied, as Argo CD says it. It applies client-side unless `ServerSideApply=true` asks
/// otherwise, and scripts match the words of both.
pub fn applied_word(asks_server_side: bool, is_new: bool, is_changed: bool) -> &'static str {
    match (asks_server_side, is_new, is_changed) {
        (true, _, _) => "serverside-applied",
        (false, true, _) => "created",
        (false, false, true) => "configured",
        (false, false, false) => "unchanged",
    }
}

/// `deployment.apps/web`, as kubectl names an object in its answers.
pub(super) fn kubectl_name(key: &ObjectKey) -> String {
    let kind = key.kind.to_lowercase();
    if key.group.is_empty() {
        format!("{kind}/{}", key.name)
    } else {
        format!("{kind}.{}/{}", key.group, key.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_apply_is_called_server_side_only_if_that_was_asked_for() {
        for (asks_server_side, is_new, is_changed, expected) in [
            (false, true, true, "created"),
            (false, false, true, "configured"),
            (false, false, false, "unchanged"),
            (true, true, true, "serverside-applied"),
            (true, false, false, "serverside-applied"),
        ] {
            assert_eq!(applied_word(asks_server_side, is_new, is_changed), expected);
        }
    }
}
