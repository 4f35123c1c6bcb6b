//! Why a run of a tool failed.

use std::time::Duration;

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    /// The program does not exist or cannot be started.
    #[error("cannot run `{program}`: {reason}; install it, or set its path in the settings")]
    Start {
        /// Which program.
        program: String,
        /// The system's reason.
        reason: String,
    },
    /// It ran for too long.
    #[error("it did not finish within {} s and was killed", .limit.as_secs())]
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// It printed too much.
    #[error("it printed more than {limit} bytes and was killed")]
    Output {
        /// The limit.
        limit: usize,
    },
    /// It was killed by a signal: the limits on memory, time or file size.
    #[error("it was killed by signal {signal}, most likely because it used too much memory{said}")]
    Signal {
        /// Which signal.
        signal: i32,
        /// Its error output.
        said: String,
    },
    /// It exited with an error.
    #[error("{message}")]
    Failed {
        /// The exit code.
        code: i32,
        /// Its error output, without temporary paths.
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
