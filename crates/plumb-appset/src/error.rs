//! Why no Applications can be generated.

use std::fmt;

/// The reason in the condition of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A generator failed.
    Generation,
    /// A template failed.
    Render,
    /// A fact is not gathered yet. This is no failure: gather it and generate again.
    Unanswered,
}

impl Reason {
    /// The reason in Argo CD's words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Generation | Self::Unanswered => "ApplicationGenerationFromParamsError",
            Self::Render => "RenderTemplateParamsError",
        }
    }
}

/// Nothing may be created, updated or deleted after such an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationError {
    /// For the condition.
    pub reason: Reason,
    /// What is wrong.
    pub message: String,
}

impl GenerationError {
    /// A generator failed.
    pub fn generation(message: impl Into<String>) -> Self {
        Self { reason: Reason::Generation, message: message.into() }
    }

    /// A template failed.
    pub fn render(message: impl Into<String>) -> Self {
        Self { reason: Reason::Render, message: message.into() }
    }

    /// The same error, with what was being done.
    #[must_use]
    pub fn during(self, what: &str) -> Self {
        Self { reason: self.reason, message: format!("{what}: {}", self.message) }
    }
}

impl fmt::Display for GenerationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for GenerationError {}
