//! Why a repository could not be fetched, or a revision not resolved.

use crate::command::CommandError;
use crate::refs::ResolveError;
use crate::retry::Retry;

/// Why a repository cannot be brought up to date.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FetchError {
    /// A repository on the local disk that may not be read.
    #[error("cannot read local repository {repository}: {reason}")]
    Local {
        /// Which one.
        repository: String,
        /// Why not.
        reason: &'static str,
    },
    /// The refs cannot be read from the server.
    #[error("cannot list the refs of {repository}; {advice}")]
    Refs {
        /// Which one.
        repository: String,
        /// What to do about it.
        advice: String,
        /// git's error.
        #[source]
        source: Box<CommandError>,
    },
    /// The objects cannot be fetched.
    #[error("cannot fetch {repository}")]
    Objects {
        /// Which one.
        repository: String,
        /// git's error.
        #[source]
        source: CommandError,
    },
    /// A repository that had branches has none: more likely a fault of the server than intended.
    #[error("{repository} has lost all branches and tags; plumb keeps the last good state")]
    Empty {
        /// Which one.
        repository: String,
    },
    /// The ref or commit does not exist on the server.
    #[error("{repository} has no `{revision}`, or does not allow fetching it")]
    Missing {
        /// Which one.
        repository: String,
        /// What was asked for.
        revision: String,
    },
    /// The cache directory is not usable.
    #[error("cannot keep a mirror of {repository} in {directory}: {reason}; check its free space and owner")]
    Cache {
        /// Which one.
        repository: String,
        /// Where.
        directory: String,
        /// The operating system's error.
        reason: String,
    },
}

impl FetchError {
    /// Short name of the kind of failure, for metrics.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Local { .. } => "local",
            Self::Refs { .. } => "refs",
            Self::Objects { .. } => "objects",
            Self::Missing { .. } => "missing",
            Self::Empty { .. } => "empty",
            Self::Cache { .. } => "cache",
        }
    }

    /// True if damaged objects of the mirror can be the cause. A check for damage takes long in a large
    /// repository, and blocks other fetches of it.
    pub(super) fn may_be_damage(&self) -> bool {
        let Self::Objects { source: CommandError::Failed { message, .. }, .. } = self else { return false };
        let message = message.to_ascii_lowercase();
        DAMAGE.iter().any(|word| message.contains(word))
    }

    /// Can the same call succeed later?
    pub fn retry(&self) -> Retry {
        match self {
            Self::Refs { source, .. } => source.retry(),
            Self::Objects { source, .. } => source.retry(),
            Self::Empty { .. } | Self::Cache { .. } => Retry::Transient,
            Self::Local { .. } | Self::Missing { .. } => Retry::Permanent,
        }
    }
}

/// Parts of git's messages about objects, packs and refs on disk that it cannot use, in lower case. Its
/// messages about unreachable servers and missing refs contain none of them.
const DAMAGE: [&str; 17] = [
    "corrupt",
    "bad object",
    "bad ref",
    "missing ",
    "hash mismatch",
    "inflate",
    "loose object",
    "object file",
    "packfile",
    "pack has",
    ".pack",
    "index file",
    ".idx",
    "unable to read ",
    "unable to parse",
    "did not send all necessary objects",
    "not a git repository",
];

/// A revision could not be resolved: either the repository could not be reached, or it has no such revision.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ResolveOrFetchError {
    /// The repository could not be reached.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It has no such revision.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
}

impl ResolveOrFetchError {
    /// Can the same call succeed later?
    pub fn retry(&self) -> Retry {
        match self {
            Self::Fetch(error) => error.retry(),
            Self::Resolve(error) => error.retry(),
        }
    }

    /// Short name of the kind of failure, for metrics.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Fetch(error) => error.category(),
            Self::Resolve(error) => error.category(),
        }
    }
}
