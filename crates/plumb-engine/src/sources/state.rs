//! The desired sets of one app, kept between two runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use plumb_core::desired::{Complete, DesiredSet};
use plumb_core::object::ObjectKey;

use super::error::SourceError;
use super::gathered::{Gathered, StoredGathered};
use super::parked::Parked;
use plumb_crd::application::ConditionType;

/// Why the sources could not be read at the last try.
pub(crate) struct LastFailure {
    pub(crate) condition: ConditionType,
    pub(crate) messages: Vec<String>,
    /// True if the next try may succeed without a change in Git or in the app.
    pub(crate) is_transient: bool,
}

impl LastFailure {
    pub(crate) fn new(error: &SourceError) -> Self {
        Self { condition: error.condition(), messages: error.messages(), is_transient: error.is_transient() }
    }
}

/// The current desired set of an app, and the previous one.
#[derive(Default)]
pub(crate) struct GitState {
    current: Option<Arc<StoredGathered>>,
    /// Set from a failed try to read the sources until one that succeeds. `current` is older than it.
    pub(crate) failure: Option<LastFailure>,
    /// True if a run found the cluster equal to `current`.
    was_in_sync: bool,
    previous: Option<Previous>,
    /// The request for the app's sources that a run has yielded to.
    pub(crate) parked: Parked,
    /// The request for the commit that an earlier process synced last.
    pub(crate) restoring: Parked,
}

/// The set before the current one, for as long as the cluster may hold it.
struct Previous {
    stored: Arc<StoredGathered>,
    /// True if a run found the cluster equal to this set, however it became so.
    was_in_sync: bool,
    /// Objects that plumb has applied from a newer set since.
    overwritten: BTreeSet<ObjectKey>,
}

impl Previous {
    fn new(stored: Arc<StoredGathered>, was_in_sync: bool) -> Self {
        Self { stored, was_in_sync, overwritten: BTreeSet::new() }
    }
}

impl GitState {
    /// What was gathered last, compressed.
    pub(crate) fn current(&self) -> Option<&Arc<StoredGathered>> {
        self.current.as_ref()
    }

    /// What was gathered last, decompressed.
    pub(crate) fn load(&self) -> Option<Arc<Gathered>> {
        self.current.as_ref().and_then(StoredGathered::load)
    }

    /// Takes in a newly gathered set. The previous one is kept while the cluster may hold it.
    pub(crate) fn replace(&mut self, gathered: &Gathered) {
        let was_in_sync = std::mem::take(&mut self.was_in_sync);
        let before = self.current.replace(gathered.stored()).map(|stored| Previous::new(stored, was_in_sync));
        self.previous = if was_in_sync { before } else { self.previous.take().or(before) };
    }

    /// Drops the current set: the spec that it came from is no longer valid.
    pub(crate) fn clear(&mut self) {
        self.current = None;
        self.failure = None;
    }

    /// Takes in what an earlier process synced last, unless a previous set is known.
    pub(crate) fn restore_previous(&mut self, gathered: &Gathered) {
        self.previous.get_or_insert_with(|| Previous::new(gathered.stored(), false));
    }

    /// Notes that plumb applied an object from the current set.
    pub(crate) fn note_applied(&mut self, key: &ObjectKey) {
        if let Some(previous) = &mut self.previous {
            previous.overwritten.insert(key.clone());
        }
    }

    /// Notes that a sync brought the cluster to the current set.
    pub(crate) fn note_synced(&mut self) {
        self.previous = None;
    }

    /// Notes that a run found the cluster equal to the current set.
    pub(crate) fn note_in_sync(&mut self) {
        self.was_in_sync = true;
        self.previous = None;
    }

    /// True if a run found this object equal to the previous set and nothing newer was applied since.
    pub(crate) fn was_in_sync_before(&self, key: &ObjectKey) -> bool {
        self.previous
            .as_ref()
            .is_some_and(|previous| previous.was_in_sync && !previous.overwritten.contains(key))
    }

    /// The previous set, decompressed.
    pub(crate) fn previous(&self) -> Option<Arc<Complete<DesiredSet>>> {
        self.previous.as_ref()?.stored.set.load()
    }
}
