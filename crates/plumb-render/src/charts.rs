//! Charts from Helm repositories: which version, where it is, and its files.
//!
//! Repositories over HTTP are read here; for OCI registries the real program does it. What is fetched is checked
//! against the index's digest, unpacked in memory under limits, and kept by version on disk.

mod archive;
mod dependencies;
mod index;
mod oci;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plumb_core::version::{Constraint, Version};
use sha2::{Digest as _, Sha256};

pub use archive::ArchiveError;
pub use dependencies::{ChartDependency, missing_dependencies};

use crate::local::hex;
use crate::sandbox::{Sandbox, SandboxError};
use crate::{Limits, MemoryFiles, Tools};
use index::{Index, IndexError};

/// A Helm repository or OCI registry, and how to reach it.
#[derive(Clone, Default)]
pub struct ChartRepository {
    /// `https://…`, `oci://host/path`, or `host/path` of a registry.
    pub url: String,
    /// User name.
    pub username: Option<String>,
    /// Password or token.
    pub password: Option<String>,
    /// Show the credentials to other hosts that the index names.
    pub pass_credentials: bool,
    /// Accept any certificate.
    pub insecure: bool,
    /// Certificates (PEM) to trust besides the system's.
    pub ca: Option<String>,
    /// Speak plain HTTP to an OCI registry.
    pub plain_http: bool,
}

impl std::fmt::Debug for ChartRepository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChartRepository").field("url", &self.url).finish_non_exhaustive()
    }
}

impl ChartRepository {
    /// Tells one repository with its credentials from another: whoever reads what was fetched must have shown the
    /// same.
    fn identity(&self) -> String {
        let part = |text: &Option<String>| text.clone().unwrap_or_default();
        let text = format!("{}\0{}\0{}", self.url, part(&self.username), part(&self.password));
        hex(&Sha256::digest(text))
    }

    /// Is it a registry rather than a repository with an index?
    pub fn is_oci(&self) -> bool {
        self.url.starts_with("oci://") || !self.url.contains("://")
    }
}

/// Why a chart could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// The address is no repository.
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
    /// The server could not be reached, or said no.
    #[error("fetch {what}; check the address, the network and the credentials")]
    Http {
        /// What was fetched.
        what: String,
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
    /// The index cannot be understood.
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
    /// The archive is not the one that the index promised.
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
    #[error("pull chart `{name}` {version} from {repository}")]
    Pull {
        /// Where.
        repository: String,
        /// Name of the chart.
        name: String,
        /// Its version.
        version: String,
        /// Why not.
        #[source]
        source: SandboxError,
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

/// A chart that was fetched.
#[derive(Clone)]
pub struct Chart {
    /// Its version, which a constraint was resolved to.
    pub version: String,
    /// Its files; the root is the chart's directory.
    pub files: Arc<MemoryFiles>,
}

/// Fetches charts and keeps them.
pub struct Charts {
    directory: PathBuf,
    tools: Tools,
    limits: Limits,
    sandbox: Sandbox,
    /// By repository and credentials: when it was asked for, and what came.
    indexes: Mutex<HashMap<String, Arc<IndexSlot>>>,
}

/// When an index was asked for, and what came; held while it is being fetched.
type IndexSlot = tokio::sync::Mutex<Option<(Instant, Arc<Index>)>>;

const MAX_INDEX: usize = 128 << 20;
const MAX_ARCHIVE: usize = 64 << 20;
const TIMEOUT: Duration = Duration::from_mins(1);

impl Charts {
    /// Uses, or makes, a directory for archives; everything in it is a cache.
    pub fn new(directory: impl Into<PathBuf>, tools: Tools, limits: Limits) -> std::io::Result<Self> {
        let directory = directory.into();
        std::fs::create_dir_all(&directory)?;
        Ok(Self {
            directory: directory.canonicalize()?,
            tools: tools.located(),
            limits,
            sandbox: Sandbox::detect(),
            indexes: Mutex::default(),
        })
    }

    /// The chart in the newest version that satisfies `version`, or in exactly this version. An index that was
    /// asked for after `since` is new enough.
    pub async fn fetch(
        &self,
        repository: &ChartRepository,
        name: &str,
        version: &str,
        since: Instant,
    ) -> Result<Chart, ChartError> {
        if !is_sane(name, version) {
            return Err(ChartError::Name { name: name.to_owned(), version: version.to_owned() });
        }
        let exact = Version::parse(version).is_some();
        if exact && let Some(chart) = self.kept(repository, name, version) {
            return Ok(chart);
        }
        let (version, archive) = if repository.is_oci() {
            self.pull(repository, name, version).await?
        } else {
            self.download(repository, name, version, since).await?
        };
        let files = archive::unpack(&archive, &self.limits).map_err(|source| ChartError::Archive {
            name: name.to_owned(),
            version: version.clone(),
            source,
        })?;
        self.keep(repository, name, &version, &archive);
        Ok(Chart { version, files: Arc::new(files) })
    }

    async fn download(
        &self,
        repository: &ChartRepository,
        name: &str,
        version: &str,
        since: Instant,
    ) -> Result<(String, Vec<u8>), ChartError> {
        let index = self.index(repository, since).await?;
        let entry = index.find(name, version).ok_or_else(|| ChartError::NotFound {
            repository: repository.url.clone(),
            name: name.to_owned(),
            version: version.to_owned(),
            hint: index.hint(name),
        })?;
        if let Some(chart) = self.kept_archive(repository, name, &entry.version) {
            return Ok((entry.version.clone(), chart));
        }
        let base = index_address(repository)?;
        let address = entry
            .urls
            .first()
            .and_then(|url| base.join(url).ok())
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| ChartError::Url { url: repository.url.clone() })?;
        let archive =
            get(repository, address, &base, MAX_ARCHIVE, &format!("chart `{name}` {}", entry.version))
                .await?;
        let found = hex(&Sha256::digest(&archive));
        let expected = entry.digest.strip_prefix("sha256:").unwrap_or(&entry.digest);
        if !expected.is_empty() && !expected.eq_ignore_ascii_case(&found) {
            return Err(ChartError::Digest {
                repository: repository.url.clone(),
                name: name.to_owned(),
                version: entry.version.clone(),
                expected: expected.to_owned(),
                found,
            });
        }
        Ok((entry.version.clone(), archive))
    }

    async fn index(&self, repository: &ChartRepository, since: Instant) -> Result<Arc<Index>, ChartError> {
        let address = index_address(repository)?;
        let slot = {
            let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(indexes.entry(repository.identity()).or_default())
        };
        // Held while it is fetched: who waits here gets what came.
        let mut known = slot.lock().await;
        if let Some((_, index)) = known.as_ref().filter(|(asked_at, _)| *asked_at >= since) {
            return Ok(Arc::clone(index));
        }
        let asked_at = Instant::now();
        let what = format!("index of {}", repository.url);
        let bytes = get(repository, address.clone(), &address, MAX_INDEX, &what).await?;
        let digest = hex(&Sha256::digest(&bytes));
        let same =
            known.as_ref().filter(|(_, index)| index.digest == digest).map(|(_, index)| Arc::clone(index));
        let index = if let Some(index) = same {
            index
        } else {
            let parsed = tokio::task::spawn_blocking(move || Index::parse(&bytes, digest)).await;
            let failed = |source| ChartError::Index { repository: repository.url.clone(), source };
            Arc::new(parsed.unwrap_or(Err(IndexError::Interrupted)).map_err(failed)?)
        };
        *known = Some((asked_at, Arc::clone(&index)));
        Ok(index)
    }

    fn archive_path(&self, repository: &ChartRepository, name: &str, version: &str) -> PathBuf {
        let key = format!("{}\0{name}\0{version}", repository.identity());
        self.directory.join(format!("{}.tgz", hex(&Sha256::digest(key))))
    }

    fn kept_archive(&self, repository: &ChartRepository, name: &str, version: &str) -> Option<Vec<u8>> {
        let content = std::fs::read(self.archive_path(repository, name, version)).ok()?;
        let (hash, archive) = content.split_at_checked(64)?;
        (hex(&Sha256::digest(archive)).as_bytes() == hash).then(|| archive.to_vec())
    }

    fn kept(&self, repository: &ChartRepository, name: &str, version: &str) -> Option<Chart> {
        let archive = self.kept_archive(repository, name, version)?;
        let files = archive::unpack(&archive, &self.limits).ok()?;
        Some(Chart { version: version.to_owned(), files: Arc::new(files) })
    }

    /// Failing to keep a chart costs a download and nothing else.
    fn keep(&self, repository: &ChartRepository, name: &str, version: &str, archive: &[u8]) {
        let mut content = hex(&Sha256::digest(archive)).into_bytes();
        content.extend_from_slice(archive);
        if let Ok(file) = tempfile::NamedTempFile::new_in(&self.directory)
            && std::fs::write(file.path(), content).is_ok()
        {
            let _ = file.persist(self.archive_path(repository, name, version));
        }
    }
}

fn index_address(repository: &ChartRepository) -> Result<reqwest::Url, ChartError> {
    let bad = || ChartError::Url { url: repository.url.clone() };
    let mut url =
        reqwest::Url::parse(&format!("{}/", repository.url.trim_end_matches('/'))).map_err(|_| bad())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad());
    }
    // Credentials come from the Secret; those in the address would end up in messages.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.join("index.yaml").map_err(|_| bad())
}

/// One download, under a limit. Credentials go to the repository's own host only, and not along redirects.
async fn get(
    repository: &ChartRepository,
    address: reqwest::Url,
    base: &reqwest::Url,
    limit: usize,
    what: &str,
) -> Result<Vec<u8>, ChartError> {
    let failed =
        |source: reqwest::Error| ChartError::Http { what: what.to_owned(), source: source.without_url() };
    let mut builder = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .redirect(reqwest::redirect::Policy::limited(5))
        .referer(false)
        .tls_danger_accept_invalid_certs(repository.insecure);
    if let Some(ca) = &repository.ca {
        let certificates = reqwest::Certificate::from_pem_bundle(ca.as_bytes()).map_err(failed)?;
        builder = builder.tls_certs_merge(certificates);
    }
    let client = builder.build().map_err(failed)?;
    let same_host = (address.scheme(), address.host_str(), address.port_or_known_default())
        == (base.scheme(), base.host_str(), base.port_or_known_default());
    let mut request = client.get(address);
    if let Some(username) = &repository.username
        && (same_host || repository.pass_credentials)
    {
        request = request.basic_auth(username, repository.password.as_deref());
    }
    let mut response = request.send().await.and_then(reqwest::Response::error_for_status).map_err(failed)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if bytes.len() + chunk.len() > limit {
            return Err(ChartError::TooLarge { what: what.to_owned(), limit });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Names as Helm allows them, with the slashes that registries have; versions and constraints.
fn is_sane(name: &str, version: &str) -> bool {
    let is_name = !name.is_empty()
        && !name.starts_with(['-', '.', '/'])
        && !name.contains("..")
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/'));
    is_name && !version.starts_with('-') && (Constraint::parse(version).is_some() || is_tag(version))
}

/// What a registry takes as a tag.
fn is_tag(version: &str) -> bool {
    !version.is_empty()
        && version.len() <= 128
        && !version.starts_with(['.', '-'])
        && version
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+'))
}
