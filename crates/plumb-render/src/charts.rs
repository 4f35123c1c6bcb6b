//! Charts from Helm repositories: which version, where it is, and its files.
//!
//! Repositories over HTTP are read here; for OCI registries the real program does it. What is fetched is checked
//! against the index's digest, unpacked in memory under limits, and kept by version on disk.

mod advice;
mod archive;
mod dependencies;
mod download;
mod index;
mod kept;
mod oci;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use plumb_core::project::shown_repo_url;
use plumb_core::version::{Constraint, Version};
use sha2::{Digest as _, Sha256};

pub use archive::ArchiveError;
pub(crate) use archive::unpack;
pub use dependencies::{ChartDependency, missing_dependencies};

use crate::leftovers;
use crate::local::hex;
use crate::sandbox::{Sandbox, SandboxError};
use crate::{Limits, MemoryFiles, Tools};
use download::get;
use index::{Index, IndexError};
use kept::{ArchiveName, Archives, is_digest};

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
    /// The certificate that is shown to a server that asks for one.
    pub client: Option<ClientCertificate>,
    /// Proxy for http(s); may contain a password.
    pub proxy: Option<String>,
    /// Hosts that are reached without the proxy, separated by commas.
    pub no_proxy: Option<String>,
    /// Speak plain HTTP to an OCI registry.
    pub plain_http: bool,
}

/// A client certificate and its key, as PEM.
#[derive(Clone)]
pub struct ClientCertificate {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl std::fmt::Debug for ChartRepository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChartRepository").field("url", &self.shown()).finish_non_exhaustive()
    }
}

impl ChartRepository {
    /// Tells one repository with its credentials from another: whoever reads what was fetched must have shown the
    /// same.
    fn identity(&self) -> String {
        let part = |text: &Option<String>| text.clone().unwrap_or_default();
        let mut text = format!("{}\0{}\0{}", self.url, part(&self.username), part(&self.password));
        if let Some(client) = &self.client {
            text = format!("{text}\0{}\0{}", client.certificate, client.key);
        }
        hex(&Sha256::digest(text))
    }

    /// The address for messages, without credentials.
    fn shown(&self) -> String {
        shown_repo_url(&self.url)
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
    archives: Arc<Archives>,
    tools: Tools,
    sandbox: Sandbox,
    /// By repository and credentials: when it was asked for, and what came.
    indexes: Mutex<HashMap<String, Arc<IndexSlot>>>,
    /// By repository, credentials, chart and what is asked for as its version.
    answers: Mutex<HashMap<String, Arc<AnswerSlot>>>,
    /// Tells other processes that scratch directories are in use.
    _in_use: Option<std::fs::File>,
}

/// When a version was asked for, and which one it turned out to be; held while it is being fetched. The archive itself
/// is kept on disk only.
type AnswerSlot = tokio::sync::Mutex<Option<(Instant, Result<String, Arc<ChartError>>)>>;

/// When an index was asked for, and what came; held while it is being fetched.
type IndexSlot = tokio::sync::Mutex<Option<(Instant, Arc<Index>)>>;

const MAX_INDEX: usize = 128 << 20;
const MAX_ARCHIVE: usize = 64 << 20;
/// So many bytes of archives are kept.
const MAX_KEPT: u64 = 1 << 30;

impl Charts {
    /// Uses, or makes, a directory for archives; everything in it is a cache.
    pub fn new(directory: impl Into<PathBuf>, tools: Tools, limits: Limits) -> std::io::Result<Self> {
        let directory = directory.into();
        std::fs::create_dir_all(&directory)?;
        let directory = directory.canonicalize()?;
        Ok(Self {
            _in_use: leftovers::enter(&directory).ok(),
            archives: Arc::new(Archives { directory, limits, max_bytes: MAX_KEPT }),
            tools: tools.located(),
            sandbox: Sandbox::detect(),
            indexes: Mutex::default(),
            answers: Mutex::default(),
        })
    }

    /// The chart in the newest version that satisfies `version`, or in exactly this version. What a server said
    /// after `since` is new enough, and a version that is kept needs no server at all.
    pub async fn fetch(
        &self,
        repository: &ChartRepository,
        name: &str,
        version: &str,
        since: Instant,
    ) -> Result<Chart, Arc<ChartError>> {
        let wanted = Wanted { repository, name, version, since, anew: false };
        if wanted.is_sane()
            && wanted.is_exact()
            && let Some(chart) = self.kept(&wanted, version, self.promised_digest(&wanted)).await
        {
            return Ok(chart);
        }
        self.ask(&wanted).await
    }

    /// The same, but the server is asked even for a version that is kept: somebody may have published another chart
    /// under it.
    pub async fn fetch_anew(
        &self,
        repository: &ChartRepository,
        name: &str,
        version: &str,
        since: Instant,
    ) -> Result<Chart, Arc<ChartError>> {
        self.ask(&Wanted { repository, name, version, since, anew: true }).await
    }

    /// Asks the server. All who want the same share one request and its answer, an error included.
    async fn ask(&self, wanted: &Wanted<'_>) -> Result<Chart, Arc<ChartError>> {
        let Wanted { repository, name, version, since, anew } = *wanted;
        if !wanted.is_sane() {
            return Err(Arc::new(ChartError::Name { name: name.to_owned(), version: version.to_owned() }));
        }
        let slot = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            let key = format!("{}\0{name}\0{version}", repository.identity());
            Arc::clone(answers.entry(key).or_default())
        };
        // Held while it is fetched: who waits here gets what came.
        let mut answer = slot.lock().await;
        let found = match answer.as_ref().filter(|(asked_at, _)| *asked_at >= since) {
            Some((_, Err(error))) => return Err(Arc::clone(error)),
            Some((_, Ok(found))) => Some(found.as_str()),
            None => (!anew && wanted.is_exact()).then_some(version),
        };
        if let Some(found) = found
            && let Some(chart) = self.kept(wanted, found, self.promised_digest(wanted)).await
        {
            return Ok(chart);
        }
        let asked_at = Instant::now();
        let fetched = if repository.is_oci() {
            self.pull(repository, name, version).await
        } else {
            self.download(wanted).await
        };
        let fetched = fetched.map_err(Arc::new);
        let outcome = fetched.as_ref().map(|chart| chart.version.clone()).map_err(Arc::clone);
        *answer = Some((asked_at, outcome));
        fetched
    }

    async fn download(&self, wanted: &Wanted<'_>) -> Result<Chart, ChartError> {
        let Wanted { repository, name, version, since, anew } = *wanted;
        let index = self.index(repository, since).await?;
        let entry = index.find(name, version).ok_or_else(|| ChartError::NotFound {
            repository: repository.shown(),
            name: name.to_owned(),
            version: version.to_owned(),
            hint: index.hint(name),
        })?;
        // Without a digest only the archive itself tells whether it is another one.
        let may_be_kept = !anew || !entry.digest.is_empty();
        if may_be_kept
            && let Some(chart) = self.kept(wanted, &entry.version, Some(entry.digest.clone())).await
        {
            return Ok(chart);
        }
        let base = index_address(repository)?;
        let address = entry
            .urls
            .first()
            .and_then(|url| base.join(url).ok())
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| ChartError::Url { url: repository.shown() })?;
        let archive =
            get(repository, address, &base, MAX_ARCHIVE, &format!("chart `{name}` {}", entry.version))
                .await?;
        let found = hex(&Sha256::digest(&archive));
        if !is_digest(&entry.digest, &found) {
            return Err(ChartError::Digest {
                repository: repository.shown(),
                name: name.to_owned(),
                version: entry.version.clone(),
                expected: entry.digest.clone(),
                found,
            });
        }
        self.take_in(repository, name, &entry.version, archive).await
    }

    /// An archive of an earlier time, unless an index promises another one.
    async fn kept(&self, wanted: &Wanted<'_>, version: &str, promised: Option<String>) -> Option<Chart> {
        let at = ArchiveName::new(wanted.repository, wanted.name, version);
        let (archives, digest) = (Arc::clone(&self.archives), promised.unwrap_or_default());
        let files = tokio::task::spawn_blocking(move || archives.read(&at, &digest)).await.ok()??;
        Some(Chart { version: version.to_owned(), files: Arc::new(files) })
    }

    /// What the index said about a version when it was asked for last.
    fn promised_digest(&self, wanted: &Wanted<'_>) -> Option<String> {
        let slot = {
            let indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(indexes.get(&wanted.repository.identity())?)
        };
        // While it is being fetched nothing better is known than what is kept.
        let known = slot.try_lock().ok()?;
        let (_, index) = known.as_ref()?;
        Some(index.find(wanted.name, wanted.version)?.digest.clone())
    }

    /// Unpacks what came and keeps it.
    async fn take_in(
        &self,
        repository: &ChartRepository,
        name: &str,
        version: &str,
        archive: Vec<u8>,
    ) -> Result<Chart, ChartError> {
        let (archives, at) = (Arc::clone(&self.archives), ArchiveName::new(repository, name, version));
        let interrupted = || ChartError::Cache { name: name.to_owned(), reason: "interrupted".to_owned() };
        let files = tokio::task::spawn_blocking(move || archives.take_in(&at, &archive))
            .await
            .map_err(|_| interrupted())?
            .map_err(|source| ChartError::Archive {
                name: name.to_owned(),
                version: version.to_owned(),
                source,
            })?;
        Ok(Chart { version: version.to_owned(), files: Arc::new(files) })
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
        let what = format!("index of {}", repository.shown());
        let bytes = get(repository, address.clone(), &address, MAX_INDEX, &what).await?;
        let digest = hex(&Sha256::digest(&bytes));
        let same =
            known.as_ref().filter(|(_, index)| index.digest == digest).map(|(_, index)| Arc::clone(index));
        let index = if let Some(index) = same {
            index
        } else {
            let parsed = tokio::task::spawn_blocking(move || Index::parse(&bytes, digest)).await;
            let failed = |source| ChartError::Index { repository: repository.shown(), source };
            Arc::new(parsed.unwrap_or(Err(IndexError::Interrupted)).map_err(failed)?)
        };
        *known = Some((asked_at, Arc::clone(&index)));
        Ok(index)
    }
}

/// What is asked for.
struct Wanted<'a> {
    repository: &'a ChartRepository,
    name: &'a str,
    version: &'a str,
    /// What a server said after this is new enough.
    since: Instant,
    /// Ask even for a version that is kept.
    anew: bool,
}

impl Wanted<'_> {
    fn is_exact(&self) -> bool {
        Version::parse(self.version).is_some()
    }

    fn is_sane(&self) -> bool {
        is_sane(self.name, self.version)
    }
}

fn index_address(repository: &ChartRepository) -> Result<reqwest::Url, ChartError> {
    let bad = || ChartError::Url { url: repository.shown() };
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
