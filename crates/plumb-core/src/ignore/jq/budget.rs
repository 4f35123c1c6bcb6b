//! What one evaluation may use.

use std::cell::Cell;
use std::fmt;

/// Most steps of one expression on one object.
const MOST_STEPS: u64 = 1_000_000;
/// Most bytes that one expression may build from one object, all values together.
const MOST_BYTES: u64 = 16 << 20;
/// Deepest nesting of evaluations. Each takes native stack, and an overflow would end the process.
const MOST_NESTING: usize = 100;
/// Bytes that are copied or compared in one step.
const BYTES_PER_STEP: usize = 32;

/// A limit that an evaluation reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::ignore) enum Limit {
    Steps,
    Bytes,
    Nesting,
    Places,
    PathLength,
}

const LIMITS: [Limit; 5] = [Limit::Steps, Limit::Bytes, Limit::Nesting, Limit::Places, Limit::PathLength];

impl Limit {
    /// A number above 0.
    pub(in crate::ignore) fn code(self) -> u64 {
        LIMITS.iter().zip(1..).find(|(limit, _)| **limit == self).map_or(0, |(_, code)| code)
    }

    pub(in crate::ignore) fn of_code(code: u64) -> Option<Self> {
        LIMITS.into_iter().find(|limit| limit.code() == code)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steps => write!(f, "it takes more than {MOST_STEPS} steps on one object"),
            Self::Bytes => write!(f, "it builds more than {} MiB of values on one object", MOST_BYTES >> 20),
            Self::Nesting => write!(f, "its evaluation nests deeper than {MOST_NESTING} levels"),
            Self::Places => {
                write!(f, "with it, more than {} places of one object are named", super::jq_path::MOST_PLACES)
            }
            Self::PathLength => {
                write!(f, "it builds a path of more than {} segments", super::path::LONGEST_PATH)
            }
        }
    }
}

/// Why an evaluation ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// A jq error, which `?` and `try` catch.
    Error,
    /// The consumer needs no more outputs.
    Done,
    /// Caught by nothing.
    Limit(Limit),
}

/// The outcome of an evaluation whose outputs went to a function.
pub(super) type Flow = Result<(), Stop>;

/// Counts down.
#[derive(Debug)]
pub(super) struct Budget {
    steps: Cell<u64>,
    bytes: Cell<u64>,
    nesting: Cell<usize>,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { steps: Cell::new(MOST_STEPS), bytes: Cell::new(MOST_BYTES), nesting: Cell::new(0) }
    }

    /// Steps that were taken.
    pub(super) fn used(&self) -> u64 {
        MOST_STEPS - self.steps.get()
    }

    /// Charges steps.
    pub(super) fn steps(&self, steps: usize) -> Flow {
        let left = self.steps.get().checked_sub(steps as u64);
        self.steps.set(left.unwrap_or_default());
        left.map(drop).ok_or(Stop::Limit(Limit::Steps))
    }

    /// Charges the comparison of bytes.
    pub(super) fn look_at(&self, bytes: usize) -> Flow {
        self.steps(1 + bytes / BYTES_PER_STEP)
    }

    /// Charges a new value of this size. Called before it is allocated.
    pub(super) fn build(&self, bytes: usize) -> Flow {
        self.look_at(bytes)?;
        let left = self.bytes.get().checked_sub(bytes as u64);
        self.bytes.set(left.unwrap_or_default());
        left.map(drop).ok_or(Stop::Limit(Limit::Bytes))
    }

    /// Evaluates one level deeper.
    pub(super) fn deeper(&self, evaluate: impl FnOnce() -> Flow) -> Flow {
        let nesting = self.nesting.get() + 1;
        if nesting > MOST_NESTING {
            return Err(Stop::Limit(Limit::Nesting));
        }
        self.nesting.set(nesting);
        let flow = evaluate();
        self.nesting.set(nesting - 1);
        flow
    }
}
