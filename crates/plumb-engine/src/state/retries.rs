//! What failed and is tried again: one chain of retries per app and subject, with growing waits.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use plumb_core::app::AppId;
use plumb_kube::{Backoff, FaultLogs};

const FIRST_WAIT: Duration = Duration::from_secs(3);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What of an app failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    /// Writing the status.
    Status,
    /// Writing the `DriftReport`.
    Report,
    /// Removing the finalizers.
    Finalizers,
    /// A step of a sync. The operation retries it.
    Step,
    /// The run itself.
    Run,
    /// Whatever an error condition says, after it said something else before.
    OtherError,
}

/// What follows from a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// How long to wait before the next try; `None` if one is requested already.
    pub(crate) wait: Option<Duration>,
    /// If it is to be logged: how many times it occurred since it was last logged.
    pub(crate) told: Option<u64>,
}

/// The faults of all apps.
#[derive(Default)]
pub(crate) struct Retries {
    pending: Mutex<HashMap<(AppId, Subject), Pending>>,
    logs: FaultLogs<(AppId, Subject)>,
}

struct Pending {
    backoff: Backoff,
    due: Instant,
}

impl Retries {
    /// Notes a fault that is tried again.
    pub(crate) fn failed(&self, app: &AppId, subject: Subject, now: Instant) -> Fault {
        let told = self.told(app, subject, now);
        let mut pending = self.pending.lock();
        let pending = pending
            .entry((app.clone(), subject))
            .or_insert_with(|| Pending { backoff: Backoff::new(FIRST_WAIT, LONGEST_WAIT), due: now });
        if pending.due > now {
            return Fault { wait: None, told };
        }
        let wait = pending.backoff.next_wait();
        pending.due = now + wait;
        Fault { wait: Some(wait), told }
    }

    /// Notes a fault that is only logged. If so: how many times it occurred since it was last logged.
    pub(crate) fn told(&self, app: &AppId, subject: Subject, now: Instant) -> Option<u64> {
        self.logs.fault((app.clone(), subject), now)
    }

    /// Notes a success. If there were faults before: how many.
    pub(crate) fn over(&self, app: &AppId, subject: Subject) -> Option<u64> {
        let key = (app.clone(), subject);
        self.pending.lock().remove(&key);
        self.logs.over(&key)
    }

    /// The app is gone.
    pub(crate) fn forget(&self, app: &AppId) {
        self.pending.lock().retain(|(known, _), _| known != app);
        self.logs.forget(|(known, _)| known == app);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(name: &str) -> AppId {
        AppId { namespace: "argocd".into(), name: name.into() }
    }

    #[test]
    fn many_faults_are_one_chain_with_growing_waits() {
        let (retries, start) = (Retries::default(), Instant::now());
        // Ten runs a second, each of which fails: what an app with many events does.
        let mut waits = Vec::new();
        let mut told = 0;
        for tenth in 0..6000u64 {
            let fault =
                retries.failed(&app("a"), Subject::Report, start + Duration::from_millis(tenth * 100));
            waits.extend(fault.wait.map(|wait| wait.as_secs()));
            told += usize::from(fault.told.is_some());
        }
        assert_eq!(waits[..6], [3, 6, 12, 24, 30, 30]);
        assert!(waits.len() < 25, "{} retries in ten minutes", waits.len());
        assert!(told < 7, "{told} lines in ten minutes");
        let later = start + Duration::from_hours(1);
        assert_eq!(retries.over(&app("a"), Subject::Report), Some(6000));
        let fresh = retries.failed(&app("a"), Subject::Report, later);
        assert_eq!(fresh, Fault { wait: Some(FIRST_WAIT), told: Some(1) }, "a new fault starts over");
    }

    #[test]
    fn apps_and_subjects_do_not_share_a_chain() {
        let (retries, now) = (Retries::default(), Instant::now());
        let first = Fault { wait: Some(FIRST_WAIT), told: Some(1) };
        for (name, subject) in [("a", Subject::Report), ("a", Subject::Status), ("b", Subject::Report)] {
            assert_eq!(retries.failed(&app(name), subject, now), first, "{name} {subject:?}");
        }
        retries.forget(&app("a"));
        assert_eq!(retries.failed(&app("a"), Subject::Status, now), first);
        assert_eq!(retries.failed(&app("b"), Subject::Report, now), Fault { wait: None, told: None });
    }
}
