//! Why a source could not be rendered, in words for the person who wrote it.

use plumb_core::source::{RepoPath, SourceError};
use plumb_core::yaml::YamlError;

use crate::sandbox::SandboxError;

/// Why a source could not be rendered. Messages name the file in the repository, never a temporary path.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The source names no path.
    #[error("the source names no path; use `path: .` for the root of the repository")]
    PathMissing,
    /// The app's directory does not exist.
    #[error("app path `{path}` is not a directory of the repository at {revision}")]
    AppPath {
        /// What was asked for.
        path: String,
        /// At which commit.
        revision: String,
        /// Why.
        #[source]
        source: Option<SourceError>,
    },
    /// Something that is needed could not be read.
    #[error("read {what}")]
    Read {
        /// What it is needed as.
        what: String,
        /// Why it could not be read.
        #[source]
        source: SourceError,
    },
    /// A manifest is not YAML as Kubernetes reads it.
    #[error("{file}: not valid YAML")]
    Yaml {
        /// Which file.
        file: String,
        /// Where and why.
        #[source]
        source: YamlError,
    },
    /// A manifest is not JSON, or more than one document.
    #[error("{file}: not one JSON document")]
    Json {
        /// Which file.
        file: String,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// The repository asks for something that is never done.
    #[error("{file}: {reason}")]
    Refused {
        /// Which file asks.
        file: RepoPath,
        /// What and why not.
        reason: String,
    },
    /// The Application or the settings ask for something impossible.
    #[error("{option}: {reason}")]
    Option {
        /// Which field.
        option: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A tool ended badly.
    #[error("{tool} of `{path}`")]
    Tool {
        /// What was run.
        tool: &'static str,
        /// For which directory.
        path: RepoPath,
        /// How it ended.
        #[source]
        source: SandboxError,
    },
    /// More than the limits allow.
    #[error("{what} is over the limit of {limit}")]
    Limit {
        /// What there is too much of.
        what: String,
        /// How much is allowed.
        limit: u64,
    },
    /// The scratch directory is not usable.
    #[error("write temporary files for rendering: {reason}; check the free space of the cache directory")]
    Scratch {
        /// The system's reason.
        reason: String,
    },
}

impl RenderError {
    pub(crate) fn read(what: impl Into<String>) -> impl FnOnce(SourceError) -> Self {
        let what = what.into();
        move |source| Self::Read { what, source }
    }

    pub(crate) fn scratch(error: &std::io::Error) -> Self {
        Self::Scratch { reason: error.to_string() }
    }

    /// The message with all its causes, on one line.
    pub fn full_message(&self) -> String {
        plumb_core::error_chain::error_chain(self)
    }

    /// Will the same commit give the same error? Then there is no use in trying again before something changes.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::PathMissing
            | Self::AppPath { .. }
            | Self::Yaml { .. }
            | Self::Json { .. }
            | Self::Refused { .. }
            | Self::Option { .. }
            | Self::Limit { .. } => true,
            Self::Tool { source, .. } => {
                matches!(source, SandboxError::Failed { .. } | SandboxError::Output { .. })
            }
            Self::Read { source, .. } => !matches!(source, SourceError::Storage { .. }),
            Self::Scratch { .. } => false,
        }
    }

    /// Short name of the kind of failure, for metrics.
    pub fn category(&self) -> &'static str {
        match self {
            Self::PathMissing | Self::AppPath { .. } => "path",
            Self::Read { .. } => "read",
            Self::Yaml { .. } | Self::Json { .. } => "manifest",
            Self::Refused { .. } => "refused",
            Self::Option { .. } => "option",
            Self::Tool { .. } => "tool",
            Self::Limit { .. } => "limit",
            Self::Scratch { .. } => "scratch",
        }
    }
}
