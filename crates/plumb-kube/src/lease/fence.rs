//! Whether this process may write.

use std::fmt;

use tokio::sync::watch;
use tokio::time::Instant;

/// Whether this process holds the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// Another process holds the Lease, or the holder is not known yet.
    Waiting {
        /// The holder, if known.
        holder: Option<String>,
    },
    /// The Lease cannot be read or renewed, so no process is known to hold it.
    Failing {
        /// Why.
        cause: String,
    },
    /// This process holds the Lease; the fence closes at this moment unless the Lease is renewed.
    Leading {
        /// When the fence closes.
        until: Instant,
        /// Counts the times that this process took the Lease.
        term: u64,
    },
    /// This process released the Lease.
    Released,
}

/// Why this process does not lead, for a log line.
impl fmt::Display for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting { holder: Some(holder) } => write!(f, "another instance leads: {holder}"),
            Self::Waiting { holder: None } => f.write_str("the holder of the lease is not known yet"),
            Self::Failing { cause } => write!(f, "cannot renew the lease: {cause}"),
            Self::Leading { .. } => {
                f.write_str("cannot renew the lease: the API server did not confirm a renewal in time")
            }
            Self::Released => f.write_str("this process released the lease"),
        }
    }
}

/// The Lease is not held, or no longer held: this process must not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this process does not hold the lease; another one may be writing")]
pub struct FenceLost;

/// The right of this process to write during one term, shared by everything that writes.
#[derive(Clone, Debug)]
pub struct Fence(Option<Term>);

#[derive(Clone, Debug)]
struct Term {
    leadership: watch::Receiver<Leadership>,
    number: u64,
}

impl Fence {
    /// For a command that a user runs once: it competes with no other process.
    pub fn of_command() -> Self {
        Self(None)
    }

    pub(super) fn of_term(leadership: watch::Receiver<Leadership>, number: u64) -> Self {
        Self(Some(Term { leadership, number }))
    }

    /// An error if the fence is closed at this moment.
    pub fn check(&self) -> Result<(), FenceLost> {
        let Some(term) = &self.0 else { return Ok(()) };
        match term.until(&term.leadership.borrow()) {
            Some(until) if Instant::now() < until => Ok(()),
            Some(_) | None => Err(FenceLost),
        }
    }

    /// Waits until it closes.
    pub async fn lost(&self) -> FenceLost {
        let Some(term) = &self.0 else { return std::future::pending().await };
        let mut leadership = term.leadership.clone();
        loop {
            let Some(until) = term.until(&leadership.borrow_and_update()) else { return FenceLost };
            tokio::select! {
                () = tokio::time::sleep_until(until) => {
                    if self.check().is_err() {
                        return FenceLost;
                    }
                }
                changed = leadership.changed() => {
                    // The keeper ended: no renewal will come.
                    if changed.is_err() {
                        tokio::time::sleep_until(until).await;
                        return FenceLost;
                    }
                }
            }
        }
    }
}

impl Term {
    /// When the fence closes, if the Lease is held in this term.
    fn until(&self, leadership: &Leadership) -> Option<Instant> {
        match leadership {
            Leadership::Leading { until, term } if *term == self.number => Some(*until),
            Leadership::Leading { .. }
            | Leadership::Waiting { .. }
            | Leadership::Failing { .. }
            | Leadership::Released => None,
        }
    }
}
