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
    /// It used too much memory.
    #[error(
        "it used more than {} MiB of memory and was killed; make the source smaller, or give plumb's container more memory",
        .limit >> 20
    )]
    Memory {
        /// The limit, in bytes.
        limit: u64,
    },
    /// It wrote too much to its scratch directory.
    #[error("it wrote more than {} MiB of temporary files and was killed", .limit >> 20)]
    Disk {
        /// The limit, in bytes.
        limit: u64,
    },
    /// It started too many processes.
    #[error("it started more than {limit} processes and was killed")]
    Processes {
        /// The limit.
        limit: usize,
    },
    /// It was killed by a signal: the limits on processor time or file size, or a fault of the tool.
    #[error("it was killed by signal {signal}{said}")]
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
            Self::Failed { .. } | Self::Output { .. } | Self::Disk { .. } | Self::Processes { .. } => true,
            Self::Start { .. } | Self::Timeout { .. } | Self::Memory { .. } | Self::Signal { .. } => false,
        }
    }

    /// True if the run took all that it may take of a limit, so that trying it again soon costs as much.
    pub(crate) fn is_costly(&self) -> bool {
        match self {
            Self::Timeout { .. }
            | Self::Output { .. }
            | Self::Memory { .. }
            | Self::Disk { .. }
            | Self::Processes { .. }
            | Self::Signal { .. } => true,
            Self::Start { .. } | Self::Failed { .. } => false,
        }
    }
}
