//! Which tombstones exist, so that their number and size stay bounded without a list for every deletion.
//!
//! Only the leader writes tombstones. The ledger starts with what the daily sweep lists; what another client removes is
//! dropped when its deletion finds nothing.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use plumb_core::plan::{KeptTombstone, TombstoneLimits, exceeding};

/// One stored tombstone and the Secrets that hold it: name and uid of each part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LedgerEntry {
    pub(crate) kept: KeptTombstone,
    pub(crate) parts: Vec<(String, String)>,
}

/// All tombstones by the name of their first Secret.
#[derive(Debug, Default)]
pub(crate) struct TombstoneLedger(Mutex<BTreeMap<String, LedgerEntry>>);

impl TombstoneLedger {
    /// Replaces everything by what the cluster has.
    pub(crate) fn replace(&self, entries: impl IntoIterator<Item = LedgerEntry>) {
        *self.0.lock() = entries.into_iter().map(|entry| (entry.kept.name.clone(), entry)).collect();
    }

    /// Adds a tombstone that was just written. Returns the ones that have to go for it.
    pub(crate) fn add(&self, entry: LedgerEntry, limits: &TombstoneLimits) -> Vec<LedgerEntry> {
        let name = entry.kept.name.clone();
        let mut entries = self.0.lock();
        entries.insert(name.clone(), entry);
        over(&entries, Some(&name), limits)
    }

    /// The ones that exceed the limits now.
    pub(crate) fn exceeding(&self, limits: &TombstoneLimits) -> Vec<LedgerEntry> {
        over(&self.0.lock(), None, limits)
    }

    /// Drops a tombstone that was removed.
    pub(crate) fn remove(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

fn over(
    entries: &BTreeMap<String, LedgerEntry>,
    newest: Option<&str>,
    limits: &TombstoneLimits,
) -> Vec<LedgerEntry> {
    let kept: Vec<KeptTombstone> = entries.values().map(|entry| entry.kept.clone()).collect();
    exceeding(&kept, newest, limits).into_iter().filter_map(|one| entries.get(&one.name)).cloned().collect()
}
