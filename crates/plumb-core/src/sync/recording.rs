//! What must be in the cluster before a sync goes on, and when a newer commit ends it.

use crate::desired::DesiredSet;
use crate::plan::{Action, Plan};

/// True if the start of the operation must be written before its first step. A sync that can be repeated from the start
/// without harm is not recorded: that saves one request. Hooks, deletions and several groups need the record to go on
/// after a crash, and a user who started the sync wants to see it running.
pub fn must_be_recorded(plan: &Plan, is_by_user: bool) -> bool {
    is_by_user
        || plan.groups.len() > 1
        || plan.steps().any(|step| matches!(step.action, Action::RunHook(_) | Action::Prune { .. }))
}

/// The revision that Git has now, if it asks something else than what an operation syncs. A commit that changes nothing
/// of the app is not newer.
pub fn newer_revision(synced: (&[String], &DesiredSet), current: (&[String], &DesiredSet)) -> Option<String> {
    let is_same = synced.0 == current.0 || current.1.asks_the_same(synced.1);
    if is_same { None } else { current.0.first().cloned() }
}
