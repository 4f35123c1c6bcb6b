//! What can go wrong with a script.

use std::fmt;

/// What a script ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// It took too long.
    Time,
    /// It ran too many instructions.
    Instructions,
    /// It took too much memory.
    Memory,
    /// Its answer, or a text it searched, is too large.
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

/// Why a script gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The interpreter could not be set up.
    #[error("set up Lua: {message}")]
    Setup {
        /// What Lua says.
        message: String,
    },
    /// It is not Lua.
    #[error("compile the Lua script: {message}")]
    Compile {
        /// What Lua says.
        message: String,
    },
    /// It stopped with an error.
    #[error("run the Lua script: {message}")]
    Run {
        /// What Lua says.
        message: String,
    },
    /// It passed a limit.
    #[error("the Lua script passed its limit of {limit}")]
    Limit {
        /// Which one.
        limit: Limit,
    },
    /// It returned something else than it should.
    #[error("the Lua script returned {found}, expected {expected}")]
    Answer {
        /// What is expected.
        expected: &'static str,
        /// What it returned.
        found: String,
    },
    /// A built-in action cannot do what it was told.
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
