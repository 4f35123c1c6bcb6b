//! What a command says when it cannot do its work.

use std::error::Error;
use std::fmt::{self, Display};

use plumb_core::error_chain::with_causes;
use plumb_kube::{ApiError, WriteError};

use crate::exit::ExitCode;

/// A command that failed: what was being done, why it failed, what to do next.
#[derive(Debug)]
pub(crate) struct CommandError {
    /// What is wrong, as a lowercase fragment that names the thing.
    what: String,
    source: Option<Box<dyn Error + Send + Sync>>,
    hints: Vec<String>,
    code: ExitCode,
}

impl CommandError {
    /// A failure without a deeper cause.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None, hints: Vec::new(), code: ExitCode::Error }
    }

    /// A failure with its cause. `what` completes "cannot …".
    pub(crate) fn because(what: impl Display, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            what: format!("cannot {what}"),
            source: Some(source.into()),
            hints: Vec::new(),
            code: ExitCode::Error,
        }
    }

    /// A command line that asks for what cannot be done.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self { code: ExitCode::Usage, ..Self::new(what) }
    }

    /// A flag of argocd's that would do nothing here.
    pub(crate) fn refused_flag(flag: &str, why: &str) -> Self {
        Self::usage(format!("{flag} is not accepted: {why}"))
    }

    /// A request that the API server did not answer as hoped, with what to do about it.
    pub(crate) fn api(what: impl Display, error: ApiError) -> Self {
        let hint = match &error {
            error if error.code() == Some(401) => {
                "the cluster does not know who you are: log in again; `kubectl auth whoami` tells"
            }
            error if error.is_forbidden() => {
                "your user may not do this: `kubectl auth can-i --list --namespace NAMESPACE` shows what it may"
            }
            ApiError::Unreachable { .. } | ApiError::TimedOut { .. } => {
                "is the cluster up? `kubectl get --raw /readyz` tells; --kubeconfig and --context choose another"
            }
            error if error.is_unavailable() => "the API server has trouble of its own; try again",
            ApiError::UnknownKind { .. } => {
                "is plumb installed there? `plumb install --apply` brings its kinds"
            }
            _ => "",
        };
        let failed = Self::because(what, error);
        if hint.is_empty() { failed } else { failed.hint(hint) }
    }

    /// A write that did not happen.
    pub(crate) fn write(what: impl Display, error: WriteError) -> Self {
        match error {
            WriteError::Api(error) => Self::api(what, error),
            error => Self::because(what, error),
        }
    }

    /// Adds a line on what to do next.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds a line on what to do next, if it fits.
    #[must_use]
    pub(crate) fn hint_if(self, fits: bool, hint: &str) -> Self {
        if fits { self.hint(hint) } else { self }
    }

    /// Ends the program with another code than [`ExitCode::Error`].
    #[must_use]
    pub(crate) fn exit(mut self, code: ExitCode) -> Self {
        self.code = code;
        self
    }

    /// What failed and why, in one line, without hints.
    pub(crate) fn message(&self) -> String {
        with_causes(self.what.clone(), self.source.as_deref().map(|source| source as &dyn Error))
    }

    /// The code to end with.
    pub(crate) fn code(&self) -> ExitCode {
        self.code
    }
}

/// `error: cannot connect to the cluster: connection refused`, then one `hint: …` line each.
impl Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message())?;
        for hint in &self.hints {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl Error for CommandError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_cannot_be_done_and_why() {
        let error = CommandError::because("read a.yaml", "no such file").hint("is it a.yml?");
        assert_eq!(error.to_string(), "error: cannot read a.yaml: no such file\nhint: is it a.yml?");
        assert_eq!(error.message(), "cannot read a.yaml: no such file");
        assert_eq!(CommandError::new("no app is named").to_string(), "error: no app is named");
    }
}
