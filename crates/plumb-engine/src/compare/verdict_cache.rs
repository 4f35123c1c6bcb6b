//! Verdicts that are still valid, so that an unchanged object is compared without a request to the API server.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use plumb_core::drift::{Verdict, VerdictKey};
use plumb_core::object::{Manifest, ObjectKey};

/// The verdicts of one app's last run.
#[derive(Debug, Default)]
pub(super) struct VerdictCache(HashMap<ObjectKey, CachedVerdict>);

#[derive(Debug)]
struct CachedVerdict {
    basis: VerdictBasis,
    /// True if it needed a dry run or a second render.
    asked: bool,
    /// `None` for the plain verdict, which most objects have.
    verdict: Option<Box<Verdict>>,
}

/// Hash of everything that a verdict depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VerdictBasis(u64);

impl VerdictBasis {
    /// `key` is the judge's input. `admission` identifies the admission configurations, which affect dry runs.
    pub(super) fn new(key: &VerdictKey, admission: u64) -> Self {
        let mut hasher = DefaultHasher::new();
        (key, admission).hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl VerdictCache {
    /// The verdict on an object, if its basis is unchanged.
    pub(super) fn get(&self, object: &ObjectKey, basis: VerdictBasis) -> Option<Verdict> {
        let cached = self.0.get(object).filter(|cached| cached.basis == basis)?;
        let verdict = cached.verdict.as_ref();
        Some(verdict.map_or_else(|| Verdict::plain(object.clone()), |verdict| Verdict::clone(verdict)))
    }

    pub(super) fn keep(&mut self, verdict: &Verdict, basis: VerdictBasis, asked: bool) {
        let is_plain = *verdict == Verdict::plain(verdict.key.clone());
        let cached = (!is_plain).then(|| Box::new(verdict.clone()));
        self.0.insert(verdict.key.clone(), CachedVerdict { basis, asked, verdict: cached });
    }

    /// Drops the verdicts that needed a dry run or a second render: a hard refresh repeats these.
    pub(super) fn ask_again(&mut self) {
        self.0.retain(|_, cached| !cached.asked);
    }

    /// Releases unused capacity.
    pub(super) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }

    /// Drops objects that no longer belong to the app.
    pub(super) fn retain(&mut self, is_judged: impl Fn(&ObjectKey) -> bool) {
        self.0.retain(|object, _| is_judged(object));
    }
}

/// Hash of all admission configurations.
pub(super) fn admission(mutators: &[Arc<Manifest>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for mutator in mutators {
        (mutator.kind(), mutator.name(), mutator.resource_version()).hash(&mut hasher);
    }
    hasher.finish()
}
