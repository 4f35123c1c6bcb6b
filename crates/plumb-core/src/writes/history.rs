//! The records of earlier applies, and the questions that a comparison and the automation ask about them.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::drift::{ApiFailure, Attempt, FinishedRun, Previous};
use crate::object::{Fingerprint, Manifest, ObjectKey};

/// What a set of manifests was rendered from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rendering {
    /// Hash of the commits.
    pub commit: u64,
    /// Hash of the commits and of everything else that the rendering depends on. `None` if rendering the same input
    /// again always gives the same manifests.
    pub origin: Option<u64>,
}

impl Rendering {
    fn may_vary(self) -> bool {
        self.origin.is_some()
    }
}

/// The last attempt to apply one object.
#[derive(Clone, Debug)]
pub struct AttemptRecord {
    /// Fingerprint of the manifest that was sent.
    pub desired: Fingerprint,
    /// Fingerprint of the manifest that was first sent from the same commit: see [`WriteHistory::asked`].
    pub asked: Fingerprint,
    /// The commit, if the rendering may vary.
    pub commit: Option<u64>,
    /// What it was rendered from, if the rendering may vary and this process rendered it.
    pub origin: Option<u64>,
    /// How the attempt ended.
    pub result: AttemptResult,
}

impl AttemptRecord {
    /// A successful apply by an earlier process. What that process rendered it from is not known.
    pub fn restored(desired: Fingerprint, rendering: Rendering) -> Self {
        Self {
            desired,
            asked: desired,
            commit: rendering.may_vary().then_some(rendering.commit),
            origin: None,
            result: AttemptResult::Applied,
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub enum AttemptResult {
    /// The API server accepted it.
    Applied,
    /// The API server refused it.
    Refused(Box<ApiFailure>),
    /// It failed, and the reason is no longer known.
    Failed,
}

/// A Job that is known to have finished.
#[derive(Clone, Debug)]
pub struct FinishedJob {
    /// When; `None` if it finished while plumb was down.
    pub at: Option<Timestamp>,
    /// Whether it completed successfully.
    pub succeeded: bool,
    /// Fingerprint of the manifest that it ran with; `None` if that is not known.
    pub desired: Option<Fingerprint>,
}

/// What plumb applied last for one object, compared with what Git asks now.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LastApply {
    /// It is not known.
    #[default]
    Unknown,
    /// The same manifest.
    Same,
    /// Another manifest, if it is known which one.
    Changed(Option<Box<Manifest>>),
    /// Another manifest, rendered from the same input.
    Rerendered,
}

impl LastApply {
    /// As the judge reads it.
    pub fn as_fact(&self) -> Previous<'_> {
        match self {
            Self::Unknown => Previous::Unknown,
            Self::Same => Previous::Same,
            Self::Changed(manifest) => Previous::Changed(manifest.as_deref()),
            Self::Rerendered => Previous::Rerendered,
        }
    }
}

/// How the last attempt to apply what Git asks now ended.
#[derive(Clone, Debug, Default)]
pub enum LastAttempt {
    /// There was none, or it is not known.
    #[default]
    None,
    /// The API server accepted it.
    Applied,
    /// The API server refused it.
    Refused(ApiFailure),
    /// It failed, and the reason is no longer known.
    Failed,
}

impl LastAttempt {
    /// As the judge reads it.
    pub fn as_fact(&self) -> Attempt<'_> {
        match self {
            Self::None => Attempt::None,
            Self::Applied => Attempt::Applied,
            Self::Refused(failure) => Attempt::Refused(failure),
            Self::Failed => Attempt::Failed,
        }
    }
}

/// The records of one app.
#[derive(Clone, Debug, Default)]
pub struct WriteHistory {
    attempts: HashMap<ObjectKey, AttemptRecord>,
    finished: HashMap<ObjectKey, FinishedJob>,
}

impl WriteHistory {
    /// True if no attempt is known.
    pub fn is_empty(&self) -> bool {
        self.attempts.is_empty()
    }

    /// The last attempt to apply an object.
    pub fn attempt(&self, key: &ObjectKey) -> Option<&AttemptRecord> {
        self.attempts.get(key)
    }

    /// Every object with its last attempt, in no order.
    pub fn attempts(&self) -> impl Iterator<Item = (&ObjectKey, &AttemptRecord)> {
        self.attempts.iter()
    }

    /// The finished run of a Job.
    pub fn finished(&self, key: &ObjectKey) -> Option<&FinishedJob> {
        self.finished.get(key)
    }

    /// Records what plumb just sent. A Job that is applied again has not finished.
    pub fn record(
        &mut self,
        key: &ObjectKey,
        desired: Fingerprint,
        rendering: Rendering,
        result: AttemptResult,
    ) {
        let record = AttemptRecord {
            desired,
            asked: self.asked(key, desired, rendering),
            commit: rendering.may_vary().then_some(rendering.commit),
            origin: rendering.origin,
            result,
        };
        self.attempts.insert(key.clone(), record);
        self.finished.remove(key);
    }

    /// Forgets an object that plumb deleted.
    pub fn forget(&mut self, key: &ObjectKey) {
        self.attempts.remove(key);
        self.finished.remove(key);
    }

    /// Records what an earlier process did, unless this process knows better. Returns whether it was recorded.
    pub fn restore(&mut self, key: &ObjectKey, record: impl FnOnce() -> AttemptRecord) -> bool {
        let is_new = !self.attempts.contains_key(key);
        if is_new {
            self.attempts.insert(key.clone(), record());
        }
        is_new
    }

    /// Records that a Job finished.
    pub fn record_finished(&mut self, key: ObjectKey, job: FinishedJob) {
        self.finished.insert(key, job);
    }

    /// Records that a Job finished, unless a run of it is recorded already.
    pub fn restore_finished(&mut self, key: &ObjectKey, job: FinishedJob) {
        self.finished.entry(key.clone()).or_insert(job);
    }

    /// Returns spare memory to the allocator.
    pub fn shrink(&mut self) {
        self.attempts.shrink_to_fit();
        self.finished.shrink_to_fit();
    }

    /// Identifies what Git asks of an object, so that self-heal can count its rounds: another rendering of the same
    /// commit is the same request, whichever tools and API versions rendered it.
    pub fn asked(&self, key: &ObjectKey, desired: Fingerprint, rendering: Rendering) -> Fingerprint {
        let record = self
            .attempts
            .get(key)
            .filter(|record| record.desired == desired || record.commit == Some(rendering.commit));
        record.map_or(desired, |record| record.asked)
    }

    /// True if plumb applied exactly what Git asks now, so that a sync would change nothing.
    pub fn was_applied(&self, key: &ObjectKey, desired: Fingerprint, rendering: Rendering) -> bool {
        self.attempts.get(key).is_some_and(|record| {
            matches!(record.result, AttemptResult::Applied)
                && record.asked == self.asked(key, desired, rendering)
        })
    }

    /// True if plumb's last attempt on each of these objects sent exactly this manifest: a newer commit changed none
    /// of them.
    pub fn sent_all<'k>(&self, mut desired: impl Iterator<Item = (&'k ObjectKey, Fingerprint)>) -> bool {
        desired.all(|(key, desired)| self.attempts.get(key).is_some_and(|record| record.desired == desired))
    }

    /// The finished run of a Job as the judge reads it.
    pub fn finished_run(&self, key: &ObjectKey, desired: Fingerprint) -> Option<FinishedRun> {
        self.finished.get(key).map(|job| FinishedRun {
            at: job.at,
            succeeded: job.succeeded,
            same_desired: job.desired.is_none_or(|ran| ran == desired),
        })
    }

    /// What was applied last, and how the last attempt to apply what Git asks now ended. `previous` is evaluated only
    /// where its answer matters, because it may have to be decompressed.
    pub fn last<'m>(
        &self,
        key: &ObjectKey,
        desired: Fingerprint,
        rendering: Rendering,
        was_in_sync: bool,
        previous: impl FnOnce() -> Option<&'m Manifest>,
    ) -> (LastApply, LastAttempt) {
        match self.attempts.get(key) {
            None => {
                let previous = if was_in_sync { previous() } else { None };
                let changed = previous.filter(|previous| Fingerprint::of(previous) != desired);
                let last = changed.map(|manifest| LastApply::Changed(Some(Box::new(manifest.clone()))));
                (last.unwrap_or_default(), LastAttempt::None)
            }
            Some(record) if record.desired != desired => {
                let is_applied = matches!(record.result, AttemptResult::Applied);
                if is_applied && record.origin.is_some() && record.origin == rendering.origin {
                    return (LastApply::Rerendered, LastAttempt::None);
                }
                let previous = if is_applied || was_in_sync { previous() } else { None };
                let previous =
                    previous.filter(|previous| was_in_sync || Fingerprint::of(previous) == record.desired);
                (LastApply::Changed(previous.cloned().map(Box::new)), LastAttempt::None)
            }
            Some(record) => match &record.result {
                AttemptResult::Applied => (LastApply::Same, LastAttempt::Applied),
                AttemptResult::Refused(failure) => {
                    (LastApply::Unknown, LastAttempt::Refused(ApiFailure::clone(failure)))
                }
                AttemptResult::Failed => (LastApply::Unknown, LastAttempt::Failed),
            },
        }
    }
}
