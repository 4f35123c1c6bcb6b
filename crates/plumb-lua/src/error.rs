//! Errors of scripts.

use std::fmt;

/// The limit that a script exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Wall time.
    Time,
    /// Number of instructions.
    Instructions,
    /// Memory.
    Memory,
    /// Size of the answer, or of a searched text.
    Size,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Time => "time",
            Self::Instructions => "instructions",
            Self::Memory => "memory",
            Self::Size => "size",
        })
    }
}

/// Why a script or action failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The interpreter could not be set up.
    #[error("cannot set up Lua: {message}")]
    Setup {
        /// The message of Lua.
        message: String,
    },
    /// The script is not valid Lua.
    #[error("cannot compile the Lua script: {message}")]
    Compile {
        /// The message of Lua.
        message: String,
    },
    /// The script raised an error.
    #[error("the Lua script failed: {message}")]
    Run {
        /// The message of Lua.
        message: String,
    },
    /// The script exceeded a limit.
    #[error("the Lua script exceeded its limit of {limit}")]
    Limit {
        /// The limit.
        limit: Limit,
    },
    /// The script returned a value of the wrong type.
    #[error("the Lua script returned {found}, expected {expected}")]
    Answer {
        /// What is expected.
        expected: &'static str,
        /// What it returned.
        found: String,
    },
    /// A built-in action refuses its parameters.
    #[error("the action is refused: {message}")]
    Refused {
        /// Why.
        message: String,
    },
    /// No such action is defined for this kind.
    #[error("no action `{name}` is defined for {kind}")]
    NoAction {
        /// Which action.
        name: String,
        /// For which kind.
        kind: String,
    },
}
