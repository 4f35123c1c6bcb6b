//! Why a run of a tool failed.

use std::time::Duration;

/// How a run ended badly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    /// The program is not there, or cannot be run.
    #[error("run `{program}`: {reason}; install it, or name its path in the settings")]
    Start {
        /// Which program.
        program: String,
        /// The system's reason.
        reason: String,
    },
    /// It ran for too long.
    #[error("it did not finish within {} s and was ended", .limit.as_secs())]
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// It printed too much.
    #[error("it printed more than {limit} bytes and was ended")]
    Output {
        /// The limit.
        limit: usize,
    },
    /// It was ended by a signal: the limits on memory, time or file size.
    #[error("it was ended by signal {signal}, most likely for using too much memory{said}")]
    Signal {
        /// Which signal.
        signal: i32,
        /// What it said before.
        said: String,
    },
    /// It said no.
    #[error("{message}")]
    Failed {
        /// The exit code.
        code: i32,
        /// What it said, with temporary paths taken out.
        message: String,
    },
}

impl SandboxError {
    /// True if the same run fails again. A missing program may be installed, and time and memory may have been short
    /// because of other work.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Failed { .. } | Self::Output { .. } => true,
            Self::Start { .. } | Self::Timeout { .. } | Self::Signal { .. } => false,
        }
    }
}
