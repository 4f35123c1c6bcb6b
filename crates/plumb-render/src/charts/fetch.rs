//! Fetches charts. Concurrent requests for the same chart share one download.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::archive_store::{ArchiveName, ArchiveStore, is_digest};
use super::chart_identity::{self, is_full_version};
use super::error::ChartError;
use super::http::{FetchedFile, Request, RequestCredentials};
use super::index_store::IndexStore;
use super::query::ChartQuery;
use super::repository::ChartRepository;
use crate::cache_files::make_directory;
use crate::limits::Limits;
use crate::memory_files::MemoryFiles;
use crate::scratch_cleanup;

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
    indexes: IndexStore,
    /// By repository, credentials, chart and requested version.
    answers: Mutex<HashMap<String, Arc<AnswerSlot>>>,
}

/// When the server was asked for a version, and which version it resolved to. Locked during the request. The archive
/// itself is only on disk.
type AnswerSlot = tokio::sync::Mutex<Option<(Instant, Result<String, Arc<ChartError>>)>>;

/// Longest time for all requests about one chart.
const MAX_TIME: Duration = Duration::from_mins(3);
/// Most answers in memory.
const MAX_ANSWERS: usize = 10_000;
/// Largest archive, in bytes.
pub(super) const MAX_ARCHIVE: usize = 64 << 20;
/// Most bytes of archives on disk.
const MAX_STORED: u64 = 1 << 30;

impl Charts {
    /// Uses a directory for archives and creates it if needed. Everything in it may be deleted at any time.
    pub fn new(directory: impl Into<PathBuf>, limits: Limits) -> std::io::Result<Self> {
        let directory = directory.into();
        make_directory(&directory)?;
        let directory = directory.canonicalize()?;
        // Earlier versions of plumb ran Helm here. What a killed process left may hold credentials.
        drop(scratch_cleanup::enter(&directory));
        ArchiveStore::remove_old(&directory);
        Ok(Self {
            archives: Arc::new(ArchiveStore { directory, limits, max_bytes: MAX_STORED }),
            indexes: IndexStore::default(),
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
            if answers.len() >= MAX_ANSWERS {
                answers.retain(|_, slot| Arc::strong_count(slot) > 1);
            }
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
        let work =
            async { if repository.is_oci() { self.pull(query).await } else { self.download(query).await } };
        let fetched = tokio::time::timeout(MAX_TIME, work).await.unwrap_or_else(|_| {
            let reason = format!("the servers did not answer within {} s", MAX_TIME.as_secs());
            Err(ChartError::Protocol { what: format!("chart `{name}` of {}", repository.shown()), reason })
        });
        let fetched = fetched.map_err(Arc::new);
        let outcome = fetched.as_ref().map(|fetched| fetched.stored_as.clone()).map_err(Arc::clone);
        *answer = Some((asked_at, outcome));
        fetched.map(|fetched| fetched.chart)
    }

    async fn download(&self, query: &ChartQuery<'_>) -> Result<FetchedChart, ChartError> {
        let ChartQuery { repository, name, version, since, force } = *query;
        let versions = self.indexes.versions(repository, name, since, &self.archives.directory).await?;
        let entry = versions.find(version).ok_or_else(|| ChartError::NotFound {
            repository: repository.shown(),
            name: name.to_owned(),
            version: version.to_owned(),
            hint: versions.hint(),
        })?;
        // Without a digest, only the archive itself shows whether it changed.
        let may_use_stored = !force || !entry.digest.is_empty();
        if may_use_stored
            && let Some(chart) = self.stored(query, &entry.version, Some(entry.digest.clone())).await
        {
            return Ok(FetchedChart { stored_as: entry.version.clone(), chart });
        }
        let base = repository.index_address()?;
        let address = Some(&entry.url).filter(|url| !url.is_empty()).and_then(|url| base.join(url).ok());
        let address = address
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| ChartError::Url { url: repository.shown() })?;
        let is_shown = repository.shows_credentials_to(&address, &base);
        let credentials = if is_shown { RequestCredentials::Repository } else { RequestCredentials::None };
        let what = format!("chart `{name}` {}", entry.version);
        let request = Request { repository, address, credentials, accept: None, what: &what };
        let response = request.checked(request.send().await?)?;
        let archive = request.file(response, MAX_ARCHIVE, &self.archives.directory).await?;
        self.store(query, &entry.version, archive, &entry.digest).await
    }

    /// The chart from disk, unless the index gives another digest.
    pub(super) async fn stored(
        &self,
        query: &ChartQuery<'_>,
        version: &str,
        expected_digest: Option<String>,
    ) -> Option<Chart> {
        let at = ArchiveName::new(query.repository, query.name, version);
        let (archives, digest) = (Arc::clone(&self.archives), expected_digest.unwrap_or_default());
        let files = tokio::task::spawn_blocking(move || archives.read(&at, &digest)).await.ok()??;
        let written = chart_identity::check(&files, query.name, version).ok()?;
        Some(chart(files, version, written))
    }

    /// The digest of a version in the index that was fetched last.
    fn indexed_digest(&self, query: &ChartQuery<'_>) -> Option<String> {
        self.indexes.known_digest(query.repository, query.name, query.version)
    }

    /// Unpacks an archive and stores it under the version that was asked for, if it is that chart.
    pub(super) async fn store(
        &self,
        query: &ChartQuery<'_>,
        version: &str,
        archive: FetchedFile,
        expected_digest: &str,
    ) -> Result<FetchedChart, ChartError> {
        let ChartQuery { repository, name, .. } = *query;
        if !is_digest(expected_digest, &archive.digest) {
            return Err(ChartError::Digest {
                repository: repository.shown(),
                name: name.to_owned(),
                version: version.to_owned(),
                expected: expected_digest.to_owned(),
                found: archive.digest,
            });
        }
        let (archives, at) = (Arc::clone(&self.archives), ArchiveName::new(repository, name, version));
        let [shown, name, version] = [&repository.shown(), name, version].map(str::to_owned);
        let interrupted = ChartError::Cache { name: name.clone(), reason: "interrupted".to_owned() };
        let work = move || {
            let files = archives.unpack(archive.reader()).map_err(|source| ChartError::Archive {
                name: name.clone(),
                version: version.clone(),
                source,
            })?;
            let written = match chart_identity::check(&files, &name, &version) {
                Ok(written) => written,
                Err(reason) => {
                    return Err(ChartError::OtherChart { repository: shown, name, version, reason });
                }
            };
            archives.store(&at, archive.reader(), &archive.digest);
            Ok(FetchedChart { chart: chart(files, &version, written), stored_as: version })
        };
        tokio::task::spawn_blocking(work).await.unwrap_or(Err(interrupted))
    }
}

/// A chart, and the version under which it is stored.
pub(super) struct FetchedChart {
    pub(super) stored_as: String,
    pub(super) chart: Chart,
}

/// The version of a chart is the one that was asked for, if that means one chart; `1.2` as a tag does not.
fn chart(files: MemoryFiles, asked: &str, written: String) -> Chart {
    let version = if is_full_version(asked) { asked.to_owned() } else { written };
    Chart { version, files: Arc::new(files) }
}
