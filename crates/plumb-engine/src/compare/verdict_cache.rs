//! Verdicts that are still valid, so that an unchanged object is compared without a request to the API server.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use plumb_core::drift::Verdict;
use plumb_core::object::{Manifest, ObjectKey};

/// The verdicts of one app's last run.
#[derive(Debug, Default)]
pub(super) struct VerdictCache(HashMap<ObjectKey, CachedVerdict>);

#[derive(Debug)]
struct CachedVerdict {
    basis: VerdictBasis,
    /// `None` for the plain verdict, which most objects have.
    verdict: Option<Box<Verdict>>,
}

/// Hash of everything that a verdict depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VerdictBasis(u64);

impl VerdictBasis {
    /// `key` is the judge's input (`plumb_core::drift::VerdictKey`). `admission` identifies the admission configurations, and `user` is who asks: both affect
    /// dry runs.
    pub(super) fn new(key: &impl Hash, admission: u64, user: Option<&str>) -> Self {
        let mut hasher = DefaultHasher::new();
        (key, admission, user).hash(&mut hasher);
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

    pub(super) fn keep(&mut self, verdict: &Verdict, basis: VerdictBasis) {
        let is_plain = *verdict == Verdict::plain(verdict.key.clone());
        let cached = (!is_plain).then(|| Box::new(verdict.clone()));
        self.0.insert(verdict.key.clone(), CachedVerdict { basis, verdict: cached });
    }

    /// Drops all verdicts: a hard refresh takes nothing for granted.
    pub(super) fn clear(&mut self) {
        self.0.clear();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_holds_for_one_user_one_admission_and_one_state() {
        let key = ObjectKey::new("", "ConfigMap", Some("a".to_owned()), "x");
        let basis = VerdictBasis::new(&1, 7, Some("deployer"));
        let mut cache = VerdictCache::default();
        cache.keep(&Verdict::plain(key.clone()), basis);
        assert!(cache.get(&key, basis).is_some());
        for other in [
            VerdictBasis::new(&1, 7, Some("auditor")),
            VerdictBasis::new(&1, 7, None),
            VerdictBasis::new(&1, 8, Some("deployer")),
            VerdictBasis::new(&2, 7, Some("deployer")),
        ] {
            assert!(cache.get(&key, other).is_none(), "{other:?}");
        }
        cache.clear();
        assert!(cache.get(&key, basis).is_none());
    }
}
