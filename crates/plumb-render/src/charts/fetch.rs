//! Fetches charts. Concurrent requests for the same chart share one download.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use super::archive_store::{ArchiveName, ArchiveStore, is_digest};
use super::download::get;
use super::error::ChartError;
use super::index::{Index, IndexError, MAX_INDEX};
use super::query::ChartQuery;
use super::repository::ChartRepository;
use crate::hash::hex;
use crate::limits::Limits;
use crate::memory_files::MemoryFiles;
use crate::sandbox::Sandbox;
use crate::scratch_cleanup;
use crate::tools::Tools;

/// A chart that was fetched.
#[derive(Clone)]
pub struct Chart {
    /// The version that the constraint resolved to.
    pub version: String,
    /// Its files; the root is the chart's directory.
    pub files: Arc<MemoryFiles>,
}

/// Fetches charts and stores them on disk.
pub struct Charts {
    pub(super) archives: Arc<ArchiveStore>,
    pub(super) tools: Tools,
    pub(super) sandbox: Sandbox,
    /// By repository and credentials.
    indexes: Mutex<HashMap<String, Arc<IndexSlot>>>,
    /// By repository, credentials, chart and requested version.
    answers: Mutex<HashMap<String, Arc<AnswerSlot>>>,
    /// A lock that keeps other processes from removing scratch directories.
    _in_use: Option<std::fs::File>,
}

/// When the server was asked for a version, and which version it resolved to. Locked during the request. The archive
/// itself is only on disk.
type AnswerSlot = tokio::sync::Mutex<Option<(Instant, Result<String, Arc<ChartError>>)>>;

/// When the index was requested, and the index. Locked during the request.
type IndexSlot = tokio::sync::Mutex<Option<(Instant, Arc<Index>)>>;

/// Largest archive, in bytes.
const MAX_ARCHIVE: usize = 64 << 20;
/// Most bytes of archives on disk.
const MAX_STORED: u64 = 1 << 30;

impl Charts {
    /// Uses a directory for archives and creates it if needed. Everything in it may be deleted at any time.
    pub fn new(directory: impl Into<PathBuf>, tools: Tools, limits: Limits) -> std::io::Result<Self> {
        let directory = directory.into();
        std::fs::create_dir_all(&directory)?;
        let directory = directory.canonicalize()?;
        Ok(Self {
            _in_use: scratch_cleanup::enter(&directory).ok(),
            archives: Arc::new(ArchiveStore { directory, limits, max_bytes: MAX_STORED }),
            sandbox: Sandbox::detect().with_launcher(&tools.launcher),
            tools: tools.located(),
            indexes: Mutex::default(),
            answers: Mutex::default(),
        })
    }

    /// The chart in the newest version that satisfies `version`, or in exactly this version. An answer that the server
    /// gave after `since` is new enough. An exact version that is on disk needs no request.
    pub async fn fetch(
        &self,
        repository: &ChartRepository,
        name: &str,
        version: &str,
        since: Instant,
    ) -> Result<Chart, Arc<ChartError>> {
        let query = ChartQuery { repository, name, version, since, force: false };
        if query.is_valid()
            && query.is_exact()
            && let Some(chart) = self.stored(&query, version, self.indexed_digest(&query)).await
        {
            return Ok(chart);
        }
        self.ask(&query).await
    }

    /// The same, but asks the server even for a version that is on disk: another chart may have been published under
    /// the same version.
    pub async fn refetch(
        &self,
        repository: &ChartRepository,
        name: &str,
        version: &str,
        since: Instant,
    ) -> Result<Chart, Arc<ChartError>> {
        self.ask(&ChartQuery { repository, name, version, since, force: true }).await
    }

    /// Asks the server. Concurrent calls for the same chart share one request and its answer, errors included.
    async fn ask(&self, query: &ChartQuery<'_>) -> Result<Chart, Arc<ChartError>> {
        let ChartQuery { repository, name, version, since, force } = *query;
        if !query.is_valid() {
            return Err(Arc::new(ChartError::Name { name: name.to_owned(), version: version.to_owned() }));
        }
        let slot = {
            let mut answers = self.answers.lock();
            let key = format!("{}\0{name}\0{version}", repository.identity());
            Arc::clone(answers.entry(key).or_default())
        };
        // Locked during the request, so that concurrent calls wait for its result.
        let mut answer = slot.lock().await;
        let found = match answer.as_ref().filter(|(asked_at, _)| *asked_at >= since) {
            Some((_, Err(error))) => return Err(Arc::clone(error)),
            Some((_, Ok(found))) => Some(found.as_str()),
            None => (!force && query.is_exact()).then_some(version),
        };
        if let Some(found) = found
            && let Some(chart) = self.stored(query, found, self.indexed_digest(query)).await
        {
            return Ok(chart);
        }
        let asked_at = Instant::now();
        let fetched = if repository.is_oci() {
            self.pull(repository, name, version).await
        } else {
            self.download(query).await
        };
        let fetched = fetched.map_err(Arc::new);
        let outcome = fetched.as_ref().map(|chart| chart.version.clone()).map_err(Arc::clone);
        *answer = Some((asked_at, outcome));
        fetched
    }

    async fn download(&self, query: &ChartQuery<'_>) -> Result<Chart, ChartError> {
        let ChartQuery { repository, name, version, since, force } = *query;
        let index = self.index(repository, since).await?;
        let entry = index.find(name, version).ok_or_else(|| ChartError::NotFound {
            repository: repository.shown(),
            name: name.to_owned(),
            version: version.to_owned(),
            hint: index.hint(name),
        })?;
        // Without a digest, only the archive itself shows whether it changed.
        let may_use_stored = !force || !entry.digest.is_empty();
        if may_use_stored
            && let Some(chart) = self.stored(query, &entry.version, Some(entry.digest.clone())).await
        {
            return Ok(chart);
        }
        let base = repository.index_address()?;
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
        self.store(repository, name, &entry.version, archive).await
    }

    /// The chart from disk, unless the index gives another digest.
    async fn stored(
        &self,
        query: &ChartQuery<'_>,
        version: &str,
        expected_digest: Option<String>,
    ) -> Option<Chart> {
        let at = ArchiveName::new(query.repository, query.name, version);
        let (archives, digest) = (Arc::clone(&self.archives), expected_digest.unwrap_or_default());
        let files = tokio::task::spawn_blocking(move || archives.read(&at, &digest)).await.ok()??;
        Some(Chart { version: version.to_owned(), files: Arc::new(files) })
    }

    /// The digest of a version in the index that was fetched last.
    fn indexed_digest(&self, query: &ChartQuery<'_>) -> Option<String> {
        let slot = {
            let indexes = self.indexes.lock();
            Arc::clone(indexes.get(&query.repository.identity())?)
        };
        // While the index is being fetched, use what is on disk.
        let known = slot.try_lock().ok()?;
        let (_, index) = known.as_ref()?;
        Some(index.find(query.name, query.version)?.digest.clone())
    }

    /// Unpacks an archive and stores it.
    async fn store(
        &self,
        repository: &ChartRepository,
        name: &str,
        version: &str,
        archive: Vec<u8>,
    ) -> Result<Chart, ChartError> {
        let (archives, at) = (Arc::clone(&self.archives), ArchiveName::new(repository, name, version));
        let interrupted = || ChartError::Cache { name: name.to_owned(), reason: "interrupted".to_owned() };
        let files = tokio::task::spawn_blocking(move || archives.unpack_and_store(&at, &archive))
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
        let address = repository.index_address()?;
        let slot = {
            let mut indexes = self.indexes.lock();
            Arc::clone(indexes.entry(repository.identity()).or_default())
        };
        // Locked during the request, so that concurrent calls wait for its result.
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
