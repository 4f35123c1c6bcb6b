//! Why a repository could not be fetched, or a revision not resolved.

use crate::command::CommandError;
use crate::refs::ResolveError;
use crate::retry::Retry;

/// Why a repository could not be brought up to date.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FetchError {
    /// A repository on this machine's disk that may not be read.
    #[error("repository {repository}: {reason}")]
    Local {
        /// Which one.
        repository: String,
        /// Why not.
        reason: &'static str,
    },
    /// The server could not be asked for its refs.
    #[error("ask {repository} for its refs; {advice}")]
    Refs {
        /// Which one.
        repository: String,
        /// What to do about it.
        advice: String,
        /// What git said.
        #[source]
        source: Box<CommandError>,
    },
    /// The objects could not be fetched.
    #[error("fetch {repository}")]
    Objects {
        /// Which one.
        repository: String,
        /// What git said.
        #[source]
        source: CommandError,
    },
    /// A repository that had branches has none: more likely the server's mistake than anyone's wish.
    #[error("{repository} has no branches and tags any more; the last good state is kept")]
    Empty {
        /// Which one.
        repository: String,
    },
    /// The ref or commit does not exist on the server.
    #[error("{repository} has no `{revision}`, or does not give it out")]
    Missing {
        /// Which one.
        repository: String,
        /// What was asked for.
        revision: String,
    },
    /// The cache directory is not usable.
    #[error("keep a mirror of {repository} in {directory}: {reason}; check its free space and owner")]
    Cache {
        /// Which one.
        repository: String,
        /// Where.
        directory: String,
        /// The system's reason.
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

    /// Can damaged objects of the mirror be the reason? Looking for damage takes long in a large repository, and
    /// nobody else can fetch it meanwhile.
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

/// What git says about objects, packs and refs on disk that it cannot use, in lower case. Servers that are away, or
/// have no such ref, are told of in other words.
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
