//! Ends the process if its worker threads are stuck for good.
//!
//! The lease is renewed on a thread of its own, so that long work does not lose it. A process whose worker threads never
//! come back would then hold the lease for ever. The watchdog expects a sign of life from the runtime every second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use plumb_kube::LeaseReleaser;
use tokio::task::AbortHandle;
use tracing::{error, warn};

const BEAT: Duration = Duration::from_secs(1);
/// When a line in the log says that the worker threads do not respond.
const SLOW_AFTER: u32 = 30;
/// When the process ends. By design no work blocks a thread for more than a few seconds: tools run in processes of their
/// own and expressions have budgets. Three minutes are far more, also on an overloaded machine.
const STUCK_AFTER: u32 = 180;
/// How long the release of the lease may take: a few requests.
const RELEASE_WITHIN: Duration = Duration::from_secs(5);
/// The exit code of an error.
const EXIT_CODE: i32 = 20;

/// Counts beats that did not come. It counts its own looks and not the time: a process that was stopped, with a signal or
/// with its machine, was not stuck.
#[derive(Debug, Default)]
struct Pulse {
    last_beat: u64,
    missed: u32,
}

/// What the watchdog does after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Fine,
    Slow,
    Stuck,
}

impl Pulse {
    fn look(&mut self, beat: u64) -> Verdict {
        if beat != self.last_beat {
            *self = Self { last_beat: beat, missed: 0 };
            return Verdict::Fine;
        }
        self.missed += 1;
        match self.missed {
            SLOW_AFTER => Verdict::Slow,
            missed if missed >= STUCK_AFTER => Verdict::Stuck,
            _ => Verdict::Fine,
        }
    }
}

/// A running watchdog. It ends when this is dropped.
pub(super) struct Watchdog {
    ended: Arc<AtomicBool>,
    beating: AbortHandle,
}

impl Watchdog {
    /// Watches the runtime of the caller.
    pub(super) fn start(lease: LeaseReleaser) -> Result<Self, std::io::Error> {
        let (beats, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let counter = Arc::clone(&beats);
        let beating = tokio::spawn(async move {
            loop {
                counter.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(BEAT).await;
            }
        });
        let is_over = Arc::clone(&ended);
        std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            let mut pulse = Pulse::default();
            loop {
                std::thread::sleep(BEAT);
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                match pulse.look(beats.load(Ordering::Relaxed)) {
                    Verdict::Fine => {}
                    Verdict::Slow => warn!(
                        seconds = SLOW_AFTER,
                        "plumb's worker threads do not respond; if they do not recover, plumb ends"
                    ),
                    Verdict::Stuck => give_up(&lease),
                }
            }
        })?;
        Ok(Self { ended, beating: beating.abort_handle() })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.beating.abort();
    }
}

/// Releases the lease and ends the process. Nothing else can end it: a stuck thread cannot be stopped.
#[expect(clippy::exit, reason = "the threads that would return to main are stuck")]
fn give_up(lease: &LeaseReleaser) {
    error!(
        seconds = STUCK_AFTER,
        "plumb's worker threads are stuck: plumb releases the lease and ends, so that another process goes on"
    );
    lease.release();
    let mut waited = Duration::ZERO;
    while waited < RELEASE_WITHIN && !lease.has_ended() {
        std::thread::sleep(BEAT / 10);
        waited += BEAT / 10;
    }
    std::process::exit(EXIT_CODE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pulse_that_is_missed_for_minutes_is_stuck() {
        let mut pulse = Pulse::default();
        assert_eq!(pulse.look(1), Verdict::Fine);
        let of_silence: Vec<Verdict> = (0..STUCK_AFTER).map(|_| pulse.look(1)).collect();
        assert_eq!(of_silence.iter().filter(|verdict| **verdict == Verdict::Slow).count(), 1);
        assert_eq!(of_silence.iter().position(|verdict| *verdict == Verdict::Stuck), Some(179));
        assert_eq!(pulse.look(2), Verdict::Fine, "it is back");
        assert_eq!(pulse.look(2), Verdict::Fine, "the count starts over");
    }
}
