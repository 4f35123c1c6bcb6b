//! What a command says when it cannot do its work.

use std::error::Error;
use std::fmt;

use crate::exit::ExitCode;

/// A command that failed: what was being done, why it failed, what to do next.
#[derive(Debug)]
pub(crate) struct CommandError {
    /// What was being done, as a lowercase fragment that names the thing.
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

    /// A failure with its cause.
    pub(crate) fn because(what: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { what: what.into(), source: Some(source.into()), hints: Vec::new(), code: ExitCode::Error }
    }

    /// Adds a line on what to do next.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Ends the program with another code than [`ExitCode::Error`].
    #[must_use]
    pub(crate) fn exit(mut self, code: ExitCode) -> Self {
        self.code = code;
        self
    }

    /// The code to end with.
    pub(crate) fn code(&self) -> ExitCode {
        self.code
    }
}

/// `error: connect to the cluster: connection refused`, then one `hint: …` line each.
impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        let mut cause: Option<&dyn Error> = self.source.as_deref().map(|source| source as &dyn Error);
        let mut said = self.what.clone();
        while let Some(error) = cause {
            let text = error.to_string();
            // Some libraries repeat their cause in their own text.
            if !said.contains(&text) {
                write!(f, ": {text}")?;
                said.push_str(&text);
            }
            cause = error.source();
        }
        for hint in &self.hints {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl Error for CommandError {}
