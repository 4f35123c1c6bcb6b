//! The last operation that tried to sync, across dry runs.

use super::LastOperation;
use crate::sync::OperationPhase;

/// The last operation that was not a dry run. `status.operationState` has room for one operation, and a dry run
/// replaces what was there.
#[derive(Clone, Debug, Default)]
pub enum LastSync {
    /// A dry run was the last operation when this process started, so what was before it is not known.
    #[default]
    Unknown,
    /// There was none.
    None,
    /// This one.
    Known(LastOperation),
}

impl LastSync {
    /// Takes in what the status says now, and returns the last operation that tried to sync. Where only a dry run is
    /// known, the answer is one that succeeded with nothing new, so that no sync starts by itself.
    pub fn update(&mut self, last: Option<LastOperation>, is_dry_run: bool) -> Option<LastOperation> {
        if !is_dry_run {
            *self = last.clone().map_or(Self::None, Self::Known);
            return last;
        }
        match self {
            Self::Known(known) => Some(known.clone()),
            Self::None => None,
            Self::Unknown => {
                last.map(|last| LastOperation { phase: OperationPhase::Succeeded, synced: None, ..last })
            }
        }
    }
}

/// True if an automated sync to a new revision follows this comparison: the app syncs by itself, no user asked for an
/// operation, nothing holds the app, and the revisions are not the ones that were synced last. A sync writes every
/// difference anyway, so the comparison need not ask the API server for a dry run.
pub fn sync_follows(
    is_automated: bool,
    has_operation: bool,
    is_held: bool,
    last: Option<&LastOperation>,
    revisions: &[String],
) -> bool {
    let synced = last.and_then(|last| last.synced.as_ref());
    let is_new = synced.is_some_and(|(_, synced)| synced != revisions);
    is_automated && !has_operation && !is_held && is_new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(phase: OperationPhase, revision: &str) -> LastOperation {
        let synced = Some((Vec::new(), vec![revision.to_owned()]));
        LastOperation { phase, message: "it broke".to_owned(), synced, heal_attempts: 2 }
    }

    /// `Failed a`: the phase and the revision.
    fn print(last: Option<&LastOperation>) -> String {
        let Some(last) = last else { return "none".to_owned() };
        assert_eq!((last.message.as_str(), last.heal_attempts), ("it broke", 2));
        let revisions = last.synced.as_ref().map_or("-".to_owned(), |(_, revisions)| revisions.join(","));
        format!("{} {revisions}", last.phase.name())
    }

    #[test]
    fn a_dry_run_does_not_replace_the_last_sync() {
        let (failed, dry) =
            (operation(OperationPhase::Failed, "a"), operation(OperationPhase::Failed, "dry"));
        let known = || LastSync::Known(operation(OperationPhase::Error, "old"));
        for (before, last, is_dry_run, answer, after) in [
            // A sync replaces whatever was known, and so does a status without an operation.
            (LastSync::Unknown, Some(&failed), false, "Failed a", "Failed a"),
            (LastSync::None, Some(&failed), false, "Failed a", "Failed a"),
            (known(), Some(&failed), false, "Failed a", "Failed a"),
            (LastSync::Unknown, None, false, "none", "none"),
            (known(), None, false, "none", "none"),
            // A dry run changes nothing.
            (known(), Some(&dry), true, "Error old", "Error old"),
            (LastSync::None, Some(&dry), true, "none", "none"),
            // The sync before the dry run is not known: the answer lets no sync start, not even as a retry.
            (LastSync::Unknown, Some(&dry), true, "Succeeded -", "unknown"),
            (LastSync::Unknown, None, true, "none", "unknown"),
        ] {
            let case = format!("{before:?} {last:?} {is_dry_run}");
            let mut state = before;
            let answered = state.update(last.cloned(), is_dry_run);
            assert_eq!(print(answered.as_ref()), answer, "{case}");
            let stored = match &state {
                LastSync::Unknown => "unknown".to_owned(),
                LastSync::None => print(None),
                LastSync::Known(known) => print(Some(known)),
            };
            assert_eq!(stored, after, "{case}");
        }
    }

    #[test]
    fn each_condition_alone_prevents_the_sync() {
        let other = operation(OperationPhase::Succeeded, "old");
        let same = operation(OperationPhase::Succeeded, "new");
        let bare = LastOperation { synced: None, ..other.clone() };
        for (is_automated, has_operation, is_held, last, expected) in [
            (true, false, false, Some(&other), true),
            (false, false, false, Some(&other), false),
            (true, true, false, Some(&other), false),
            (true, false, true, Some(&other), false),
            (true, false, false, Some(&same), false),
            // Which revisions were synced last is not known.
            (true, false, false, Some(&bare), false),
            (true, false, false, None, false),
        ] {
            let follows = sync_follows(is_automated, has_operation, is_held, last, &["new".to_owned()]);
            assert_eq!(follows, expected, "{is_automated} {has_operation} {is_held} {last:?}");
        }
    }
}
