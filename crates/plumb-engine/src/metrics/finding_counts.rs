//! How many findings of which class there are in all apps.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use plumb_core::app::AppId;
use plumb_core::drift::Finding;

/// A class, and whether its findings make an app `OutOfSync`.
type Sort = (&'static str, bool);

/// Findings by app.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<HashMap<AppId, BTreeMap<Sort, u64>>>);

impl Tally {
    /// What an app has now.
    pub(crate) fn set<'a>(&self, app: &AppId, findings: impl Iterator<Item = &'a Finding>) {
        let mut counts: BTreeMap<Sort, u64> = BTreeMap::new();
        for finding in findings {
            *counts.entry((finding.class.name(), finding.counts)).or_default() += 1;
        }
        let mut apps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.is_empty() {
            apps.remove(app);
        } else {
            apps.insert(app.clone(), counts);
        }
    }

    pub(crate) fn forget(&self, app: &AppId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(app);
    }

    /// All apps together.
    pub(crate) fn counts(&self) -> BTreeMap<Sort, u64> {
        let apps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: BTreeMap<Sort, u64> = BTreeMap::new();
        for (sort, count) in apps.values().flatten() {
            *all.entry(*sort).or_default() += count;
        }
        all
    }
}
