//! Why a chart could not be fetched.

use plumb_core::source::AddressRefused;

use super::archive::ArchiveError;
use super::index::IndexError;

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
        /// The requested version.
        version: String,
    },
    /// The server could not be reached, or refused.
    #[error("cannot fetch {what}; {advice}")]
    Http {
        /// What was fetched.
        what: String,
        /// How to fix it.
        advice: String,
        /// Why it failed, without credentials.
        #[source]
        source: reqwest::Error,
    },
    /// Too many bytes.
    #[error("cannot fetch {what}: it has more than {limit} bytes")]
    TooLarge {
        /// What was fetched.
        what: String,
        /// The limit.
        limit: usize,
    },
    /// The index cannot be parsed.
    #[error("cannot read the index of {repository}")]
    Index {
        /// The repository.
        repository: String,
        /// The cause.
        #[source]
        source: IndexError,
    },
    /// No such chart or version.
    #[error("{repository} has no chart `{name}` in version `{version}`{hint}")]
    NotFound {
        /// The repository.
        repository: String,
        /// Name of the chart.
        name: String,
        /// The requested version.
        version: String,
        /// What the repository has instead.
        hint: String,
    },
    /// The archive does not have the digest that the index gives.
    #[error("chart `{name}` {version}: its digest is {found}, but the index of {repository} has {expected}")]
    Digest {
        /// The repository.
        repository: String,
        /// Name of the chart.
        name: String,
        /// Its version.
        version: String,
        /// The digest in the index.
        expected: String,
        /// The digest of the archive.
        found: String,
    },
    /// The archive cannot be unpacked.
    #[error("cannot unpack chart `{name}` {version}")]
    Archive {
        /// Name of the chart.
        name: String,
        /// Its version.
        version: String,
        /// The cause.
        #[source]
        source: ArchiveError,
    },
    /// The address policy does not permit the server.
    #[error("cannot fetch {what}")]
    Address {
        /// What was to be fetched.
        what: String,
        /// Which server, and why.
        #[source]
        source: AddressRefused,
    },
    /// The server does not keep to the protocol, or asks for something that plumb does not do.
    #[error("cannot fetch {what}: {reason}")]
    Protocol {
        /// What was fetched.
        what: String,
        /// What the server does.
        reason: String,
    },
    /// The archive is another chart than the one that was asked for.
    #[error(
        "{repository} gives another chart for `{name}` {version}: {reason}; ask the owner of the repository to publish \
         the chart under its own name and version"
    )]
    OtherChart {
        /// The repository.
        repository: String,
        /// Name of the chart that was asked for.
        name: String,
        /// Its version.
        version: String,
        /// What the archive is.
        reason: String,
    },
    /// The cache directory is not usable.
    #[error(
        "cannot store chart `{name}` in the cache directory: {reason}; check its free space and owner, and that it is \
         not mounted read-only"
    )]
    Cache {
        /// Name of the chart.
        name: String,
        /// The system's reason.
        reason: String,
    },
}

impl ChartError {
    /// True if a retry fails again until Git, the settings or the repository change.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Url { .. }
            | Self::Name { .. }
            | Self::TooLarge { .. }
            | Self::NotFound { .. }
            | Self::Digest { .. }
            | Self::OtherChart { .. }
            | Self::Address { .. }
            | Self::Archive { .. } => true,
            Self::Http { source, .. } => source.is_builder() || is_final(source.status()),
            Self::Index { source, .. } => match source {
                IndexError::Yaml(_) | IndexError::NoEntries | IndexError::TooLarge { .. } => true,
                IndexError::Interrupted | IndexError::Io(_) => false,
            },
            Self::Protocol { .. } | Self::Cache { .. } => false,
        }
    }

    /// A short name of the kind of failure, for metrics.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Url { .. } | Self::Name { .. } => "option",
            Self::Http { .. } | Self::Protocol { .. } => "fetch",
            Self::Address { .. } => "address",
            Self::TooLarge { .. } => "limit",
            Self::NotFound { .. } => "version",
            Self::Index { .. } | Self::Digest { .. } | Self::OtherChart { .. } | Self::Archive { .. } => {
                "chart"
            }
            Self::Cache { .. } => "scratch",
        }
    }
}

/// True for a refusal that a later request gets too.
fn is_final(status: Option<reqwest::StatusCode>) -> bool {
    use reqwest::StatusCode as Code;
    status.is_some_and(|status| {
        status.is_client_error()
            && !matches!(status, Code::REQUEST_TIMEOUT | Code::TOO_EARLY | Code::TOO_MANY_REQUESTS)
    })
}

#[cfg(test)]
mod tests {
    use plumb_core::source::AddressPolicy;

    use super::*;

    #[test]
    fn every_error_is_classified() {
        let text = || "x".to_owned();
        let http = |source| ChartError::Http { what: text(), advice: text(), source };
        let answered = |status: u16| {
            let response = http::Response::builder().status(status).body("").unwrap();
            http(reqwest::Response::from(response).error_for_status().unwrap_err())
        };
        let index = |source| ChartError::Index { repository: text(), source };
        let cases = [
            (ChartError::Url { url: text() }, true, "option"),
            (ChartError::Name { name: text(), version: text() }, true, "option"),
            (http(reqwest::Proxy::all("http://[").unwrap_err()), true, "fetch"),
            (answered(401), true, "fetch"),
            (answered(404), true, "fetch"),
            (answered(408), false, "fetch"),
            (answered(429), false, "fetch"),
            (answered(503), false, "fetch"),
            (ChartError::TooLarge { what: text(), limit: 1 }, true, "limit"),
            (index(IndexError::NoEntries), true, "chart"),
            (index(IndexError::Interrupted), false, "chart"),
            (
                ChartError::NotFound { repository: text(), name: text(), version: text(), hint: text() },
                true,
                "version",
            ),
            (
                ChartError::Digest {
                    repository: text(),
                    name: text(),
                    version: text(),
                    expected: text(),
                    found: text(),
                },
                true,
                "chart",
            ),
            (
                ChartError::Archive { name: text(), version: text(), source: ArchiveError::Path(text()) },
                true,
                "chart",
            ),
            (ChartError::Protocol { what: text(), reason: text() }, false, "fetch"),
            (
                ChartError::Address {
                    what: text(),
                    source: AddressPolicy::cluster([]).permits_host("127.0.0.1", 80).unwrap_err(),
                },
                true,
                "address",
            ),
            (
                ChartError::OtherChart { repository: text(), name: text(), version: text(), reason: text() },
                true,
                "chart",
            ),
            (index(IndexError::TooLarge { what: "x", limit: 1 }), true, "chart"),
            (ChartError::Cache { name: text(), reason: text() }, false, "scratch"),
        ];
        for (error, is_permanent, category) in cases {
            assert_eq!(error.is_permanent(), is_permanent, "{error:?}");
            assert_eq!(error.category(), category, "{error:?}");
        }
    }
}
