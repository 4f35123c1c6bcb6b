//! Every exit code, in one place. `plumb help exit-codes` prints this table.

use std::process;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitCode {
    /// Done; for `diff`: no difference that counts.
    Success,
    /// The command ran, and its answer is "no": something differs, a sync did not succeed.
    No,
    /// The command line was not understood.
    Usage,
    /// Something went wrong: no connection, no permission, no such app, a time limit.
    Error,
}

impl ExitCode {
    /// The number. 1 and 20 are what Argo CD's command line uses, so that scripts keep working.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::No => 1,
            Self::Usage => 2,
            Self::Error => 20,
        }
    }
}

impl From<ExitCode> for process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.number())
    }
}
