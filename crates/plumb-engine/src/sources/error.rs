//! Why the desired set of an app is not known.

use std::sync::Arc;

use plumb_core::error_chain::error_chain;
use plumb_core::source::SourceError as ReadError;
use plumb_crd::application::ConditionType;
use plumb_git::{BadUrl, FetchError, ResolveOrFetchError, Retry, SignatureError, SubmoduleError};
use plumb_render::{ChartError, RenderError};

/// At most this many objects have a message of their own.
const MOST_MESSAGES: usize = 10;

/// Why the desired set of an app is not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    /// The repository's URL is invalid.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// The repository cannot be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The revision does not exist, or cannot be requested.
    #[error(transparent)]
    Resolve(#[from] ResolveOrFetchError),
    /// The project requires a signature that the commit lacks.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// A submodule cannot be read.
    #[error(transparent)]
    Submodule(#[from] SubmoduleError),
    /// The files of the commit cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The chart cannot be fetched. All apps that asked for it share the error.
    #[error("{}", error_chain(.0.as_ref()))]
    Chart(Arc<ChartError>),
    /// A chart that the chart depends on cannot be fetched.
    #[error("chart dependency `{name}`: {}", error_chain(.source))]
    Dependency {
        /// The name of the dependency.
        name: String,
        /// The cause.
        source: Box<SourceError>,
    },
    /// The renderer failed.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// The settings or the project do not allow the source.
    #[error("{0}")]
    NotAllowed(String),
    /// The sources refer to each other in a way that cannot work.
    #[error("{0}")]
    References(String),
    /// What was rendered is not a list of Kubernetes objects.
    #[error("{}", .0.join("; "))]
    Manifests(Vec<String>),
    /// What was rendered does not fit the spec: an object has no namespace.
    #[error("{}", .0.join("; "))]
    Spec(Vec<String>),
    /// The cache directory cannot be used.
    #[error("cannot use the cache directory")]
    Cache(#[from] std::io::Error),
    /// A task of plumb was aborted. The cause is left out: the message of a panic can quote what it worked on.
    #[error("{what} was aborted by a defect of plumb; its log names the place")]
    Aborted {
        /// The task.
        what: &'static str,
    },
}

impl SourceError {
    /// True if the same request may succeed later although no one changes Git or the settings.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Url(error) => error.retry().is_transient(),
            Self::Fetch(error) => error.retry().is_transient(),
            Self::Resolve(error) => error.retry().is_transient(),
            Self::Signature(error) => error.retry().is_transient(),
            Self::Submodule(error) => error.retry().is_transient(),
            Self::Read(error) => Retry::of_source(error).is_transient(),
            Self::Chart(error) => !error.is_permanent(),
            Self::Render(error) => !error.is_permanent(),
            Self::Dependency { source, .. } => source.is_transient(),
            Self::NotAllowed(_) | Self::References(_) | Self::Manifests(_) | Self::Spec(_) => false,
            Self::Cache(_) | Self::Aborted { .. } => true,
        }
    }

    /// True if an object of a mirror could not be read. The mirror is then made again.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Read(error) | Self::Submodule(SubmoduleError::Read(error)) => is_storage_error(error),
            Self::Render(
                RenderError::Read { source, .. } | RenderError::AppPath { source: Some(source), .. },
            ) => is_storage_error(source),
            _ => false,
        }
    }

    /// True if the repository could not be read at all.
    pub(crate) fn is_inaccessible(&self) -> bool {
        matches!(self, Self::Fetch(_) | Self::Resolve(ResolveOrFetchError::Fetch(_)))
    }

    /// A short name of the kind of failure, for metrics.
    pub(crate) fn category(&self) -> &'static str {
        match self {
            Self::Url(error) => error.category(),
            Self::Fetch(error) => error.category(),
            Self::Resolve(error) => error.category(),
            Self::Signature(error) => error.category(),
            Self::Submodule(error) => error.category(),
            Self::Read(_) => "read",
            Self::Chart(error) => error.category(),
            Self::Render(error) => error.category(),
            Self::Dependency { source, .. } => source.category(),
            Self::NotAllowed(_) => "permission",
            Self::References(_) => "option",
            Self::Manifests(_) | Self::Spec(_) => "manifest",
            Self::Cache(_) => "cache",
            Self::Aborted { .. } => "aborted",
        }
    }

    /// The condition that reports it.
    pub(crate) fn condition(&self) -> ConditionType {
        match self {
            Self::Spec(_) => ConditionType::InvalidSpecError,
            _ => ConditionType::ComparisonError,
        }
    }

    /// The message with all its causes, on one line.
    pub(crate) fn message(&self) -> String {
        self.messages().join("; ")
    }

    /// A message for each object that is wrong, or one with all its causes, each on one line.
    pub(crate) fn messages(&self) -> Vec<String> {
        let (Self::Manifests(messages) | Self::Spec(messages)) = self else { return vec![error_chain(self)] };
        let more = messages.len().saturating_sub(MOST_MESSAGES);
        let more = (more > 0).then(|| format!("{more} more objects are wrong in the same way"));
        messages.iter().take(MOST_MESSAGES).cloned().chain(more).collect()
    }
}

fn is_storage_error(error: &ReadError) -> bool {
    matches!(error, ReadError::Storage { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_a_category_and_is_transient_or_not() {
        let dependency =
            |source: SourceError| SourceError::Dependency { name: "db".to_owned(), source: Box::new(source) };
        let denied = || SourceError::NotAllowed("repository x is not permitted in project 'team'".to_owned());
        for (error, is_transient, category) in [
            (SourceError::Manifests(vec!["a ConfigMap has no name".to_owned()]), false, "manifest"),
            (SourceError::Spec(vec!["Namespace for x is missing.".to_owned()]), false, "manifest"),
            (SourceError::References("x".to_owned()), false, "option"),
            (denied(), false, "permission"),
            (dependency(denied()), false, "permission"),
        ] {
            assert_eq!((error.is_transient(), error.category()), (is_transient, category), "{error}");
        }
        let message = "chart dependency `db`: repository x is not permitted in project 'team'";
        assert_eq!(dependency(denied()).to_string(), message);
        assert_eq!(SourceError::Spec(Vec::new()).condition(), ConditionType::InvalidSpecError);
    }

    #[test]
    fn each_object_that_is_wrong_has_its_message() {
        let all =
            |n: usize| SourceError::Spec((0..n).map(|n| format!("Namespace for x{n} is missing.")).collect());
        assert_eq!(all(2).messages(), ["Namespace for x0 is missing.", "Namespace for x1 is missing."]);
        assert_eq!(all(MOST_MESSAGES).messages().len(), MOST_MESSAGES);
        let many = all(MOST_MESSAGES + 7).messages();
        assert_eq!(many.len(), MOST_MESSAGES + 1);
        assert_eq!(many.last().map(String::as_str), Some("7 more objects are wrong in the same way"));
        assert_eq!(SourceError::References("x".to_owned()).messages(), ["x"]);
    }
}
