//! Limits on one run, and what a run has used of them.

use std::cell::Cell;
use std::time::{Duration, Instant};

use mlua::VmState;

use crate::error::Limit;

/// Limits on one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest wall time. Argo CD allows one second.
    pub time: Duration,
    /// Most instructions of the Lua machine.
    pub instructions: u64,
    /// Most memory of the whole Lua state, in bytes.
    pub memory: usize,
    /// Most values in the answer.
    pub answer: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_secs(1), instructions: 50_000_000, memory: 64 << 20, answer: 200_000 }
    }
}

/// Which libraries a script sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Libraries {
    /// Base, `table`, and the clock through `require("os")`.
    Plain,
    /// Also `string`, `math`, `coroutine` and the clock as `os`.
    Open,
}

/// How often the limits are checked, in instructions.
pub(crate) const CHECK_EVERY: u32 = 1000;

/// What the current run has used of its limits.
pub(crate) struct Usage {
    instructions: Cell<u64>,
    limits: Limits,
    deadline: Cell<Instant>,
    exceeded: Cell<Option<Limit>>,
}

impl Usage {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            instructions: Cell::new(0),
            limits,
            deadline: Cell::new(Instant::now() + limits.time),
            exceeded: Cell::new(None),
        }
    }

    /// Starts a new run.
    pub(crate) fn reset(&self) {
        self.instructions.set(0);
        self.exceeded.set(None);
        self.deadline.set(Instant::now() + self.limits.time);
    }

    /// The limit that the run exceeded. It stays set until the next run, whatever the script does.
    pub(crate) fn exceeded(&self) -> Option<Limit> {
        self.exceeded.get()
    }

    /// Records that a limit is exceeded, and returns the error for the script.
    pub(crate) fn exceed(&self, limit: Limit) -> mlua::Error {
        self.exceeded.set(Some(limit));
        mlua::Error::runtime(format!("the script exceeded its limit of {limit}"))
    }

    /// Called every [`CHECK_EVERY`] instructions.
    pub(crate) fn check(&self) -> mlua::Result<VmState> {
        self.instructions.set(self.instructions.get() + u64::from(CHECK_EVERY));
        if let Some(limit) = self.exceeded.get() {
            return Err(self.exceed(limit));
        }
        if self.instructions.get() > self.limits.instructions {
            return Err(self.exceed(Limit::Instructions));
        }
        if Instant::now() > self.deadline.get() {
            return Err(self.exceed(Limit::Time));
        }
        Ok(VmState::Continue)
    }
}
