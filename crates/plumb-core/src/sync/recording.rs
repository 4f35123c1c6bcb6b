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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::fixture::Fixture;

    #[test]
    fn a_sync_is_recorded_unless_it_can_be_repeated_from_the_start() {
        for (facts, n_groups, expected) in [
            ("", 0, false),
            ("git ConfigMap a\nboth ConfigMap b\ndrift ConfigMap c", 1, false),
            ("git ConfigMap a\ngit ConfigMap b wave=1", 2, true),
            ("git ConfigMap a\ngit Job b hook=Sync", 1, true),
            // It runs only after a failure, which must then be known.
            ("git ConfigMap a\ngit Job b hook=SyncFail", 1, true),
            ("sync prune\nboth ConfigMap a\nlive ConfigMap b", 1, true),
            // The object is not deleted.
            ("both ConfigMap a\nlive ConfigMap b", 1, false),
        ] {
            let plan = Fixture::parse(facts).plan();
            assert_eq!(plan.groups.len(), n_groups, "{facts}");
            assert_eq!(must_be_recorded(&plan, false), expected, "{facts}");
            assert!(must_be_recorded(&plan, true), "the user wants to see it running: {facts}");
        }
    }

    #[test]
    fn a_revision_is_newer_if_it_asks_something_else() {
        let (old, new) =
            ("git ConfigMap a\ngit Job b hook=Sync", "git ConfigMap a wave=1\ngit Job b hook=Sync");
        for (synced, current, expected) in [
            (("1", old), ("1", old), None),
            // The same commit rendered something else: a newer revision does not exist.
            (("1", old), ("1", new), None),
            // The commit changes nothing of the app.
            (("1", old), ("2", old), None),
            (("1", old), ("2", new), Some("2")),
            (("1", old), ("2", "git ConfigMap a"), Some("2")),
            (("1", "git ConfigMap a"), ("2", old), Some("2")),
            // Several sources: the first one names the revision.
            (("1 values", old), ("2 values", new), Some("2")),
        ] {
            let case = format!("{synced:?} {current:?}");
            let read = |(revisions, facts): (&str, &str)| {
                let revisions: Vec<String> = revisions.split(' ').map(str::to_owned).collect();
                (revisions, Fixture::parse(facts).desired)
            };
            let (synced, current) = (read(synced), read(current));
            let newer = newer_revision((&synced.0, &synced.1), (&current.0, &current.1));
            assert_eq!(newer.as_deref(), expected, "{case}");
        }
    }
}
