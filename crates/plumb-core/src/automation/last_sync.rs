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
