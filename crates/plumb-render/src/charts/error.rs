//! Why a chart could not be fetched.

use super::archive::ArchiveError;
use super::index::IndexError;
use crate::sandbox::SandboxError;

/// Why a chart could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// The address is not that of a repository.
    #[error("helm repository {url:?} is not an http(s) or oci address")]
    Url {
        /// The address.
        url: String,
    },
    /// A name or version that could be taken for an option or a path.
    #[error("chart {name:?} in version {version:?} is not a valid name and version")]
    Name {
        /// Name of the chart.
        name: String,
        /// The version asked for.
        version: String,
    },
    /// The server could not be reached, or refused.
    #[error("fetch {what}; {advice}")]
    Http {
        /// What was fetched.
        what: String,
        /// What to do about it.
        advice: String,
        /// Why it failed, without credentials.
        #[source]
        source: reqwest::Error,
    },
    /// Too many bytes.
    #[error("{what} has more than {limit} bytes")]
    TooLarge {
        /// What was fetched.
        what: String,
        /// How much is allowed.
        limit: usize,
    },
    /// The index cannot be parsed.
    #[error("index of {repository}")]
    Index {
        /// Whose index.
        repository: String,
        /// Why not.
        #[source]
        source: IndexError,
    },
    /// No such chart or version.
    #[error("{repository} has no chart `{name}` in version `{version}`{hint}")]
    NotFound {
        /// Where.
        repository: String,
        /// Name of the chart.
        name: String,
        /// The version asked for.
        version: String,
        /// What there is.
        hint: String,
    },
    /// The archive does not have the digest that the index gives.
    #[error("chart `{name}` {version}: its digest is {found}, the index of {repository} says {expected}")]
    Digest {
        /// Where.
        repository: String,
        /// Name of the chart.
        name: String,
        /// Its version.
        version: String,
        /// What the index says.
        expected: String,
        /// What came.
        found: String,
    },
    /// The archive cannot be unpacked.
    #[error("unpack chart `{name}` {version}")]
    Archive {
        /// Name of the chart.
        name: String,
        /// Its version.
        version: String,
        /// Why not.
        #[source]
        source: ArchiveError,
    },
    /// Helm could not pull from the registry.
    #[error("pull chart `{name}` {version} from {repository}; {advice}")]
    Pull {
        /// Where.
        repository: String,
        /// What to do about it.
        advice: String,
        /// Name of the chart.
        name: String,
        /// Its version.
        version: String,
        /// Why not.
        #[source]
        source: Box<SandboxError>,
    },
    /// The cache directory is not usable.
    #[error("keep chart `{name}`: {reason}")]
    Cache {
        /// Name of the chart.
        name: String,
        /// The system's reason.
        reason: String,
    },
}
