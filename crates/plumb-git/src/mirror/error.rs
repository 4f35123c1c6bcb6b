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
    /// The commits of the mirror cannot be listed.
    #[error("cannot list the commits on the branches and tags of {repository}")]
    History {
        /// Which one.
        repository: String,
        /// git's error.
        #[source]
        source: CommandError,
    },
    /// The mirror would use too much of the disk.
    #[error(
        "cannot keep a mirror of {repository}: it needs more than {} MiB; plumb run --mirror-space-gib sets the \
         space for all mirrors, and one may use half of it", .limit >> 20
    )]
    TooLarge {
        /// Which one.
        repository: String,
        /// The most bytes of one mirror.
        limit: u64,
    },
    /// All mirrors together would use too much of the disk, and this is the largest.
    #[error(
        "cannot keep a mirror of {repository}: all mirrors need more than {} MiB and it is the largest; plumb run \
         --mirror-space-gib sets the space", .limit >> 20
    )]
    Space {
        /// Which one.
        repository: String,
        /// The most bytes of all mirrors.
        limit: u64,
    },
    /// The cache directory is not usable.
    #[error(
        "cannot keep a mirror of {repository} in {directory}: {reason}; check its free space and owner, and that \
         it is not mounted read-only"
    )]
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
            Self::History { .. } => "history",
            Self::TooLarge { .. } | Self::Space { .. } => "space",
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

    /// True if the repository does not fit the limits: the same objects would fail again, at the same cost.
    pub(super) fn is_over_limit(&self) -> bool {
        let is_memory = |error: &CommandError| matches!(error, CommandError::Memory { .. });
        match self {
            Self::TooLarge { .. } | Self::Space { .. } => true,
            Self::Objects { source, .. } => is_memory(source),
            _ => false,
        }
    }

    /// Can the same call succeed later?
    pub fn retry(&self) -> Retry {
        match self {
            Self::Refs { source, .. } => source.retry(),
            Self::Objects { source, .. } | Self::History { source, .. } => source.retry(),
            Self::Empty { .. } | Self::Cache { .. } | Self::Space { .. } => Retry::Transient,
            Self::Local { .. } | Self::TooLarge { .. } => Retry::Permanent,
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
