//! The error of a command.

use std::error::Error;
use std::fmt::{self, Display};

use plumb_core::error_chain::with_causes;
use plumb_kube::{ApiError, Reason, WriteError};

use crate::exit::ExitCode;

/// The reasons of refusals by plumb's or Argo CD's server, in the place of Kubernetes' own.
pub(crate) const NOT_PERMITTED: &str = "NotPermittedByServer";
pub(crate) const NOT_LOGGED_IN: &str = "NotLoggedIn";

/// A command that failed: what cannot be done, why, and what to do next.
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

    /// An invalid command line.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self { code: ExitCode::Usage, ..Self::new(what) }
    }

    /// A flag that is refused.
    pub(crate) fn refused_flag(flag: &str, why: &str) -> Self {
        Self::usage(format!("{flag} is not accepted: {why}"))
    }

    /// A failed request to the API server, with a hint for the usual causes.
    pub(crate) fn api(what: impl Display, error: ApiError) -> Self {
        let reason = match error.reason() {
            Some(Reason::Other(reason)) => reason.as_str(),
            _ => "",
        };
        let hint = match &error {
            _ if reason == NOT_LOGGED_IN => "log in: `plumb login SERVER`",
            _ if reason == NOT_PERMITTED => {
                "`plumb account can-i ACTION RESOURCE OBJECT` shows what you may do; --core uses the kubeconfig"
            }
            error if error.code() == Some(401) => {
                "the cluster does not accept your credentials: log in again; `kubectl auth whoami` shows who you are"
            }
            error if error.is_forbidden() => {
                "your user is not allowed to do this: `kubectl auth can-i --list --namespace NAMESPACE` shows what is allowed"
            }
            ApiError::Unreachable { .. } | ApiError::TimedOut { .. } => {
                "is the cluster up? check with `kubectl get --raw /readyz`; --kubeconfig and --context select another one"
            }
            error if error.is_unavailable() => "the API server is not available; try again",
            ApiError::UnknownKind { .. } => {
                "is plumb installed in this cluster? `plumb install --apply` installs its CRDs"
            }
            _ => "",
        };
        let failed = Self::because(what, error);
        if hint.is_empty() { failed } else { failed.hint(hint) }
    }

    /// A write that the gate or the API server refused.
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

    /// Adds a line on what to do next, if the condition holds.
    #[must_use]
    pub(crate) fn hint_if(self, condition: bool, hint: &str) -> Self {
        if condition { self.hint(hint) } else { self }
    }

    /// Sets another exit code than [`ExitCode::Error`].
    #[must_use]
    pub(crate) fn exit(mut self, code: ExitCode) -> Self {
        self.code = code;
        self
    }

    /// What failed and why, in one line, without hints.
    pub(crate) fn message(&self) -> String {
        with_causes(self.what.clone(), self.source.as_deref().map(|source| source as &dyn Error))
    }

    /// The exit code.
    pub(crate) fn code(&self) -> ExitCode {
        self.code
    }
}

/// `error: cannot connect to the cluster: connection refused`, then one `hint: …` line each.
impl Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A cause can have several lines that others wrote: indented, they cannot pass for a hint.
        write!(f, "error: {}", self.message().trim_end().replace('\n', "\n  "))?;
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
        let forged = CommandError::because("sync", "no\nhint: delete it");
        assert_eq!(forged.to_string(), "error: cannot sync: no\n  hint: delete it");
    }
}
