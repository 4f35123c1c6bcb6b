//! Why a source could not be rendered, for the author of the source.

use plumb_core::source::{RepoPath, SourceError};
use plumb_core::yaml::{YamlError, YamlProblem};

use crate::sandbox::SandboxError;

/// Why a source could not be rendered. Messages name the file in the repository, never a temporary path.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The source has no path.
    #[error("the source has no path; use `path: .` for the root of the repository")]
    PathMissing,
    /// The app's directory does not exist.
    #[error("{path}: app path does not exist as a directory of the repository at {revision}")]
    AppPath {
        /// What was asked for.
        path: String,
        /// At which commit.
        revision: String,
        /// Why.
        #[source]
        source: Option<SourceError>,
    },
    /// A file or directory could not be read.
    #[error("cannot read {what}")]
    Read {
        /// What was read.
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
    /// The repository requests something that is not allowed.
    #[error("{file}: {reason}")]
    Refused {
        /// The file with the request.
        file: RepoPath,
        /// What is not allowed, and why.
        reason: String,
    },
    /// An option of the Application or the settings is invalid.
    #[error("{option}: {reason}")]
    Option {
        /// Which field.
        option: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A tool failed.
    #[error("{tool} failed for `{path}`")]
    Tool {
        /// What was run.
        tool: &'static str,
        /// For which directory.
        path: RepoPath,
        /// How it failed.
        #[source]
        source: SandboxError,
    },
    /// A limit is exceeded.
    #[error("{what} is over the limit of {limit}")]
    Limit {
        /// What exceeds the limit.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// Reading a file takes too much memory.
    #[error("{file}: reading it takes more than {} MiB of memory; split the file, or give plumb's container more memory", .limit >> 20)]
    Memory {
        /// Which file.
        file: String,
        /// The limit, in bytes.
        limit: usize,
    },
    /// Other renderings use what is needed.
    #[error("all renderings together would write more than {} MiB of temporary files; it is tried again", .limit >> 20)]
    Busy {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The scratch directory is not usable.
    #[error(
        "cannot keep temporary files for rendering: {reason}; check the free space and owner of the cache directory, and \
         that it is not mounted read-only"
    )]
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

    /// The reason without the path, which would tell where plumb keeps its files.
    pub(crate) fn scratch(error: &std::io::Error) -> Self {
        Self::Scratch { reason: error.kind().to_string() }
    }

    /// The message with all its causes, on one line.
    pub fn full_message(&self) -> String {
        plumb_core::error_chain::error_chain(self)
    }

    /// True if the rendering needed more memory than it was given.
    pub(crate) fn is_memory_limit(&self) -> bool {
        match self {
            Self::Tool { source, .. } => matches!(source, SandboxError::Memory { .. }),
            Self::Yaml { source, .. } => matches!(source.what, YamlProblem::TooHeavy { .. }),
            Self::Memory { .. } => true,
            Self::PathMissing
            | Self::AppPath { .. }
            | Self::Read { .. }
            | Self::Json { .. }
            | Self::Refused { .. }
            | Self::Option { .. }
            | Self::Limit { .. }
            | Self::Busy { .. }
            | Self::Scratch { .. } => false,
        }
    }

    /// True if trying again soon costs as much as this time.
    pub(crate) fn is_costly(&self) -> bool {
        matches!(self, Self::Tool { source, .. } if source.is_costly())
    }

    /// True if a retry fails again until Git or the settings change.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::PathMissing
            | Self::Yaml { .. }
            | Self::Json { .. }
            | Self::Refused { .. }
            | Self::Option { .. }
            | Self::Memory { .. }
            | Self::Limit { .. } => true,
            Self::AppPath { source, .. } => !source.as_ref().is_some_and(is_storage_error),
            Self::Read { source, .. } => !is_storage_error(source),
            Self::Tool { source, .. } => source.is_permanent(),
            Self::Busy { .. } | Self::Scratch { .. } => false,
        }
    }

    /// A short name of the kind of failure, for metrics.
    pub fn category(&self) -> &'static str {
        match self {
            Self::PathMissing | Self::AppPath { .. } => "path",
            Self::Read { .. } => "read",
            Self::Yaml { .. } | Self::Json { .. } => "manifest",
            Self::Refused { .. } => "refused",
            Self::Option { .. } => "option",
            Self::Tool { .. } => "tool",
            Self::Limit { .. } | Self::Memory { .. } | Self::Busy { .. } => "limit",
            Self::Scratch { .. } => "scratch",
        }
    }
}

/// True if the file could not be read although it may exist.
fn is_storage_error(error: &SourceError) -> bool {
    matches!(error, SourceError::Storage { .. })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_error_is_classified() {
        let path = || RepoPath::parse("app").unwrap();
        let missing = || SourceError::NotFound { path: path() };
        let storage = || SourceError::Storage { path: path(), source: "disk".into() };
        let app_path =
            |source| RenderError::AppPath { path: "app".to_owned(), revision: "3f2c".to_owned(), source };
        let read = |source| RenderError::Read { what: "`app`".to_owned(), source };
        let tool = |source| RenderError::Tool { tool: "helm template", path: path(), source };
        let text = || "x".to_owned();
        let yaml = plumb_core::yaml::parse_documents_bytes(b"a: [", &plumb_core::yaml::Limits::default());
        let json = serde_json::from_str::<serde_json::Value>("{").unwrap_err();
        let cases = [
            (RenderError::PathMissing, true, "path"),
            (app_path(None), true, "path"),
            (app_path(Some(missing())), true, "path"),
            (app_path(Some(storage())), false, "path"),
            (read(missing()), true, "read"),
            (read(storage()), false, "read"),
            (RenderError::Yaml { file: text(), source: yaml.unwrap_err() }, true, "manifest"),
            (RenderError::Json { file: text(), source: json }, true, "manifest"),
            (RenderError::Refused { file: path(), reason: text() }, true, "refused"),
            (RenderError::Option { option: "plugin", reason: text() }, true, "option"),
            (RenderError::Limit { what: text(), limit: 1 }, true, "limit"),
            (RenderError::Memory { file: text(), limit: 1 }, true, "limit"),
            (RenderError::Busy { limit: 1 }, false, "limit"),
            (RenderError::Scratch { reason: text() }, false, "scratch"),
            (tool(SandboxError::Failed { code: 1, message: text() }), true, "tool"),
            (tool(SandboxError::Output { limit: 1 }), true, "tool"),
            (tool(SandboxError::Start { program: text(), reason: text() }), false, "tool"),
            (tool(SandboxError::Disk { limit: 1 }), true, "tool"),
            (tool(SandboxError::Processes { limit: 1 }), true, "tool"),
            (tool(SandboxError::Memory { limit: 1 }), false, "tool"),
            (tool(SandboxError::Timeout { limit: Duration::from_secs(1) }), false, "tool"),
            (tool(SandboxError::Signal { signal: 9, said: text() }), false, "tool"),
        ];
        for (error, is_permanent, category) in cases {
            assert_eq!(error.is_permanent(), is_permanent, "{error}");
            assert_eq!(error.category(), category, "{error}");
        }
    }
}
