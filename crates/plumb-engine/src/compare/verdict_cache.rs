//! Verdicts that still hold. Comparing again what has not changed asks the API server nothing.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use plumb_core::drift::{Verdict, VerdictKey};
use plumb_core::object::{Manifest, ObjectKey};

/// The verdicts of one app's last look.
#[derive(Debug, Default)]
pub(crate) struct VerdictCache(HashMap<ObjectKey, CachedVerdict>);

#[derive(Debug)]
struct CachedVerdict {
    basis: VerdictBasis,
    /// Somebody was asked for it.
    asked: bool,
    /// `None`: nothing is to be said of the object, as of most.
    verdict: Option<Box<Verdict>>,
}

/// What a verdict rests on, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VerdictBasis(u64);

impl VerdictBasis {
    /// What the judge was told, and which admission configurations there were: they are in the server's answers.
    pub(crate) fn new(key: &VerdictKey, admission: u64) -> Self {
        let mut hasher = DefaultHasher::new();
        (key, admission).hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl VerdictCache {
    /// The verdict on an object, if it still rests on the same.
    pub(crate) fn get(&self, object: &ObjectKey, basis: VerdictBasis) -> Option<Verdict> {
        let kept = self.0.get(object).filter(|kept| kept.basis == basis)?;
        Some(
            kept.verdict.as_ref().map_or_else(|| Verdict::plain(object.clone()), |kept| Verdict::clone(kept)),
        )
    }

    pub(crate) fn keep(&mut self, verdict: &Verdict, basis: VerdictBasis, asked: bool) {
        let is_plain = *verdict == Verdict::plain(verdict.key.clone());
        let kept = (!is_plain).then(|| Box::new(verdict.clone()));
        self.0.insert(verdict.key.clone(), CachedVerdict { basis, asked, verdict: kept });
    }

    /// Forgets what somebody was asked for: whoever looks hard wants to know what they say now.
    pub(crate) fn ask_again(&mut self) {
        self.0.retain(|_, kept| !kept.asked);
    }

    /// Gives back the room that is not needed.
    pub(crate) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }

    /// Forgets objects that are none of the app's business any more.
    pub(crate) fn retain(&mut self, is_judged: impl Fn(&ObjectKey) -> bool) {
        self.0.retain(|object, _| is_judged(object));
    }
}

/// A number that changes when any admission configuration changes.
pub(crate) fn admission(mutators: &[Arc<Manifest>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for mutator in mutators {
        (mutator.kind(), mutator.name(), mutator.resource_version()).hash(&mut hasher);
    }
    hasher.finish()
}
