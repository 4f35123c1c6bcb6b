//! All mirrors below one directory, and how callers share fetches.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use plumb_core::app::CommitId;

use super::disk::{self, Current};
use super::error::{FetchError, ResolveOrFetchError};
use super::options::{GitOptions, GitRequest, LocalAccess, RequestCounts};
use super::readable::{Fetched, Mirror};
use super::slot::Slot;
use crate::access::RepoAccess;
use crate::refs::{ResolveError, RevisionSpec};
use crate::signature::Signature;
use crate::url::{RepoUrl, Transport};

/// All mirrors, below one directory. Everything in it is a cache.
pub struct Mirrors {
    pub(super) root: PathBuf,
    pub(super) options: GitOptions,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
    pub(super) requests: Requests,
    /// A lock that shows other processes that private files below the root are in use.
    _in_use: Option<std::fs::File>,
    /// Signatures that were checked, by keyring and object.
    pub(crate) checked: Mutex<HashMap<(PathBuf, String), Signature>>,
    /// Held while a keyring is created.
    pub(crate) keyrings: tokio::sync::Mutex<()>,
}

/// Number of requests to servers.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pub(super) ls_remote: AtomicU64,
    pub(super) fetch: AtomicU64,
}

/// Shortest time between two requests to one repository. The first of many callers is served at once; the
/// callers right after it (a webhook refreshes a hundred apps) share one request.
const SPACING: Duration = Duration::from_millis(100);

impl Mirrors {
    /// Uses, or creates, the directory for mirrors.
    pub fn new(root: impl Into<PathBuf>, options: GitOptions) -> std::io::Result<Self> {
        let root = root.into();
        disk::make_private(&root)?;
        let root = root.canonicalize()?;
        Ok(Self {
            _in_use: disk::enter(&root).ok(),
            root,
            options,
            slots: Mutex::default(),
            requests: Requests::default(),
            checked: Mutex::default(),
            keyrings: tokio::sync::Mutex::default(),
        })
    }

    /// Brings the mirror up to date. Calls for one repository share the work.
    pub async fn fetch(&self, url: &RepoUrl, access: &RepoAccess) -> Result<Fetched, FetchError> {
        self.fetch_since(url, access, Instant::now()).await
    }

    /// Brings the mirror up to date, unless there was a request after `since`: then its result, also an
    /// error, is returned. So callers with the same reason to fetch share one request.
    pub async fn fetch_since(
        &self,
        url: &RepoUrl,
        access: &RepoAccess,
        since: Instant,
    ) -> Result<Fetched, FetchError> {
        self.check_local(url)?;
        let slot = self.slot(url);
        let lane = slot.lane(access.identity());
        let mut served = lane.served.lock().await;
        if let Some((_, result)) = served.as_ref().filter(|(asked_at, _)| *asked_at >= since) {
            return result.clone();
        }
        if let Some((asked_at, _)) = served.as_ref() {
            tokio::time::sleep_until((*asked_at + SPACING).into()).await;
        }
        // The request below serves every caller that began to wait before this line.
        let asked_at = Instant::now();
        let result = self.refresh(&slot, url, access, None).await;
        *served = Some((asked_at, result.clone()));
        result
    }

    /// The last good state, without a request. `None` if there is none, or if these credentials never worked
    /// for it.
    pub fn last_good(&self, url: &RepoUrl, access: &RepoAccess) -> Option<Mirror> {
        self.check_local(url).ok()?;
        let slot = self.slot(url);
        let current = slot.current()?;
        current.state.is_proven(access).then(|| self.mirror(&slot, url, &current))
    }

    /// Resolves a revision. Fetches it separately if it is a commit or ref that mirrors do not hold by
    /// default (`refs/pull/7/head`, a hash that no branch contains). Uses the last good state; fetches only
    /// if there is none.
    pub async fn resolve(
        &self,
        url: &RepoUrl,
        access: &RepoAccess,
        spec: &RevisionSpec,
    ) -> Result<(Mirror, CommitId), ResolveOrFetchError> {
        let since = Instant::now();
        let mirror = match self.last_good(url, access) {
            Some(mirror) => mirror,
            None => self.fetch_since(url, access, since).await?.mirror,
        };
        let error = match mirror.resolve(spec) {
            Ok(commit) => return Ok((mirror, commit)),
            Err(error) => error,
        };
        let revision = spec.revision.trim();
        let may_exist = matches!(error, ResolveError::NotFound { .. })
            && (revision.starts_with("refs/") || revision.parse::<CommitId>().is_ok());
        if !may_exist {
            return Err(error.into());
        }
        let mirror = self.fetch_by_itself(url, access, spec, since).await?;
        let commit = mirror.resolve(spec)?;
        Ok((mirror, commit))
    }

    /// Fetches a commit or ref that mirrors do not hold by default. Callers that wait for the same one share
    /// one request.
    async fn fetch_by_itself(
        &self,
        url: &RepoUrl,
        access: &RepoAccess,
        spec: &RevisionSpec,
        since: Instant,
    ) -> Result<Mirror, FetchError> {
        let slot = self.slot(url);
        let revision = spec.revision.trim();
        let name = format!("{} {revision}", access.identity());
        let lane = slot.lane(name.clone());
        let mut served = lane.served.lock().await;
        let known = self.last_good(url, access).filter(|mirror| mirror.resolve(spec).is_ok());
        let result = if let Some(mirror) = known {
            Ok(mirror)
        } else if let Some((_, result)) = served.as_ref().filter(|(asked_at, _)| *asked_at >= since) {
            result.clone().map(|fetched| fetched.mirror)
        } else {
            let asked_at = Instant::now();
            let result = self.refresh(&slot, url, access, Some(revision)).await;
            *served = Some((asked_at, result.clone()));
            result.map(|fetched| fetched.mirror)
        };
        drop(served);
        slot.leave_lane(&name, lane);
        result
    }

    pub(super) fn asked(&self, repository: &RepoUrl, kind: &'static str, began: Instant, succeeded: bool) {
        if let Some(observer) = &self.options.observer {
            observer.call(&GitRequest { repository, kind, took: began.elapsed(), succeeded });
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of the repository, if these credentials may read it.
    pub(crate) fn repository_path(&self, url: &RepoUrl, access: &RepoAccess) -> Option<PathBuf> {
        self.check_local(url).ok()?;
        let slot = self.slot(url);
        let current = slot.current()?;
        current.state.is_proven(access).then(|| slot.directory.join(&current.state.repository))
    }

    /// Number of requests to servers since the start.
    pub fn requests(&self) -> RequestCounts {
        RequestCounts {
            ls_remote: self.requests.ls_remote.load(Ordering::Relaxed),
            fetch: self.requests.fetch.load(Ordering::Relaxed),
        }
    }

    fn slot(&self, url: &RepoUrl) -> Arc<Slot> {
        let name = disk::directory_name(url);
        let mut slots = self.slots.lock();
        let slot = slots.entry(name).or_insert_with_key(|name| {
            Arc::new(Slot {
                directory: self.root.join(name),
                lanes: Mutex::default(),
                disk: tokio::sync::Mutex::default(),
                current: Mutex::default(),
                damaged: Arc::default(),
            })
        });
        Arc::clone(slot)
    }

    pub(super) fn mirror(&self, slot: &Slot, url: &RepoUrl, current: &Current) -> Mirror {
        Mirror {
            url: url.clone(),
            repository: Arc::clone(&current.repository),
            refs: Arc::clone(&current.refs),
            resolved: Arc::clone(&current.resolved),
            max_blob: self.options.limits.max_blob,
            damaged: Arc::clone(&slot.damaged),
        }
    }

    fn check_local(&self, url: &RepoUrl) -> Result<(), FetchError> {
        if url.transport() != Transport::File {
            return Ok(());
        }
        let refused = |reason| Err(FetchError::Local { repository: url.to_string(), reason });
        // Symbolic links are resolved first, so that none leads to a forbidden directory.
        let Ok(path) = Path::new(url.as_str()).canonicalize() else {
            return refused("no such directory");
        };
        if path.starts_with(&self.root) {
            return refused("it is inside plumb's own cache");
        }
        match &self.options.local {
            LocalAccess::Anywhere => Ok(()),
            LocalAccess::Denied => refused("repositories on the local disk are switched off in the settings"),
            LocalAccess::Below(allowed) => {
                let inside = allowed.iter().any(|directory| {
                    directory.canonicalize().is_ok_and(|directory| path.starts_with(directory))
                });
                if inside { Ok(()) } else { refused("it is outside the directories that the settings allow") }
            }
        }
    }
}
