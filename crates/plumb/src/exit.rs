//! Every exit code. `docs/exit-codes.md` explains them to users.

use std::process;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitCode {
    /// Success; for `diff`: no difference that counts.
    Success,
    /// The command ran, and its answer is "no": something differs, a sync failed, the user answered no.
    No,
    /// The command line is invalid.
    Usage,
    /// The command could not complete: no connection, no permission, no such app, a timeout.
    Error,
    /// The "no" of `app diff --diff-exit-code N`.
    AppSelection(u8),
}

impl ExitCode {
    /// The number. 1 and 20 are what Argo CD's command line uses, so that scripts keep working.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::No => 1,
            Self::Usage => 2,
            Self::Error => 20,
            Self::AppSelection(code) => code,
        }
    }
}

impl From<ExitCode> for process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.number())
    }
}
