//! The indexes of Helm repositories that were fetched last.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::error::ChartError;
use super::http::{FetchedFile, Request, RequestCredentials};
use super::index::{ChartVersions, IndexError};
use super::repository::ChartRepository;

/// Most indexes on disk. Each has at most the bytes that the settings permit.
const MAX_INDEXES: usize = 64;
/// Most bytes of versions in memory.
const MAX_VERSION_BYTES: usize = 32 << 20;

/// Indexes by repository and credentials, in files without a name, and the versions that were read from them.
#[derive(Default)]
pub(super) struct IndexStore {
    slots: Mutex<HashMap<String, Arc<IndexSlot>>>,
    versions: Mutex<VersionCache>,
}

/// When the index was requested, and the index. Locked during the request.
type IndexSlot = tokio::sync::Mutex<Option<(Instant, Arc<FetchedFile>)>>;

/// Versions by the index's digest and the chart's name.
#[derive(Default)]
struct VersionCache {
    charts: HashMap<(String, String), Arc<ChartVersions>>,
    n_bytes: usize,
}

impl IndexStore {
    /// The versions of a chart, from an index that was fetched after `since`.
    pub(super) async fn versions(
        &self,
        repository: &ChartRepository,
        name: &str,
        since: Instant,
        directory: &std::path::Path,
    ) -> Result<Arc<ChartVersions>, ChartError> {
        let address = repository.index_address()?;
        let slot = self.slot(repository);
        // Locked during the request, so that concurrent calls wait for its result.
        let mut known = slot.lock().await;
        let current = known.as_ref().filter(|(asked_at, _)| *asked_at >= since);
        let index = if let Some((_, index)) = current {
            Arc::clone(index)
        } else {
            let asked_at = Instant::now();
            let what = format!("index of {}", repository.shown());
            let credentials = RequestCredentials::Repository;
            let request = Request { repository, address, credentials, accept: None, what: &what };
            let response = request.checked(request.send().await?)?;
            let index = Arc::new(request.file(response, repository.max_index_bytes(), directory).await?);
            *known = Some((asked_at, Arc::clone(&index)));
            index
        };
        let key = (index.digest.clone(), name.to_owned());
        if let Some(versions) = self.versions.lock().charts.get(&key) {
            return Ok(Arc::clone(versions));
        }
        let wanted = name.to_owned();
        let read = tokio::task::spawn_blocking(move || ChartVersions::read(|| index.reader(), &wanted)).await;
        let failed = |source| ChartError::Index { repository: repository.shown(), source };
        let versions = Arc::new(read.unwrap_or(Err(IndexError::Interrupted)).map_err(failed)?);
        self.versions.lock().insert(key, &versions);
        Ok(versions)
    }

    /// The digest of a version in the index that was fetched last.
    pub(super) fn known_digest(
        &self,
        repository: &ChartRepository,
        name: &str,
        version: &str,
    ) -> Option<String> {
        let slot = Arc::clone(self.slots.lock().get(&repository.identity())?);
        // While the index is being fetched, use what is on disk.
        let known = slot.try_lock().ok()?;
        let key = (known.as_ref()?.1.digest.clone(), name.to_owned());
        let versions = Arc::clone(self.versions.lock().charts.get(&key)?);
        Some(versions.find(version)?.digest.clone())
    }

    fn slot(&self, repository: &ChartRepository) -> Arc<IndexSlot> {
        let mut slots = self.slots.lock();
        let identity = repository.identity();
        if slots.len() >= MAX_INDEXES && !slots.contains_key(&identity) {
            let asked_at = |slot: &Arc<IndexSlot>| Some(slot.try_lock().ok()?.as_ref()?.0);
            let unused = slots.iter().filter(|(_, slot)| Arc::strong_count(slot) == 1);
            let oldest = unused.min_by_key(|(_, slot)| asked_at(slot)).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                slots.remove(&oldest);
            }
        }
        Arc::clone(slots.entry(identity).or_default())
    }
}

impl VersionCache {
    fn insert(&mut self, key: (String, String), versions: &Arc<ChartVersions>) {
        self.n_bytes += versions.n_bytes();
        if self.n_bytes > MAX_VERSION_BYTES {
            self.charts.clear();
            self.n_bytes = versions.n_bytes();
        }
        self.charts.insert(key, Arc::clone(versions));
    }
}
