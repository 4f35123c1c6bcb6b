//! Rollback to an earlier sync.

/// The place in `status.history` to go back to: the entry with this id, or the one before the last. The
/// operation that follows syncs that entry's sources and revisions with the `apply` strategy: no hooks run.
pub fn rollback_target(
    ids: &[i64],
    asked: Option<i64>,
    is_automated: bool,
) -> Result<usize, RollbackRefused> {
    if is_automated {
        return Err(RollbackRefused::Automated);
    }
    match asked {
        Some(id) => ids
            .iter()
            .position(|known| *known == id)
            .ok_or_else(|| RollbackRefused::NoSuchEntry { id, known: ids.to_vec() }),
        None => ids.len().checked_sub(2).ok_or(RollbackRefused::NothingBefore),
    }
}

/// Why a rollback is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RollbackRefused {
    /// Auto-sync would undo the rollback at once.
    #[error("rollback cannot be performed when auto-sync is enabled")]
    Automated,
    /// The entry does not exist.
    #[error("no entry {id} in the history (there are: {})", list(known))]
    NoSuchEntry {
        /// The id that was asked for.
        id: i64,
        /// The ids that there are.
        known: Vec<i64>,
    },
    /// The history has no entry before the last.
    #[error("the history has no earlier sync to go back to")]
    NothingBefore,
}

fn list(ids: &[i64]) -> String {
    if ids.is_empty() {
        return "none".to_owned();
    }
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
