//! All mirrors below one directory, and who may fetch which when.

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
    /// Tells other processes that private files below the root are in use.
    _in_use: Option<std::fs::File>,
    /// Signatures that were checked, by keyring and object.
    pub(crate) checked: Mutex<HashMap<(PathBuf, String), Signature>>,
    /// Held while a keyring is made.
    pub(crate) keyrings: tokio::sync::Mutex<()>,
}

/// How often servers were asked.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pub(super) ls_remote: AtomicU64,
    pub(super) fetch: AtomicU64,
}

/// Between two requests to one repository. The first of many callers is served at once; those who come right
/// after it (a webhook wakes a hundred apps) share one request in place of one each.
const SPACING: Duration = Duration::from_millis(100);

impl Mirrors {
    /// Uses, or makes, the directory for mirrors.
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

    /// Brings the mirror up to date, unless the server was asked after `since`: what it said then, an error
    /// included, is the answer. So all who have the same reason to ask share one request.
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
        // Everyone who began to wait before this line is served by the request that follows it.
        let asked_at = Instant::now();
        let result = self.refresh(&slot, url, access, None).await;
        *served = Some((asked_at, result.clone()));
        result
    }

    /// The last good state, without asking the server. `None` if there is none, or if these credentials never
    /// worked for it.
    pub fn last_good(&self, url: &RepoUrl, access: &RepoAccess) -> Option<Mirror> {
        self.check_local(url).ok()?;
        let slot = self.slot(url);
        let current = slot.current()?;
        current.state.is_proven(access).then(|| self.mirror(&slot, url, &current))
    }

    /// Resolves a revision, fetching it by itself if it is a commit or ref that mirrors do not hold by default
    /// (`refs/pull/7/head`, a hash that no branch contains). Uses the last good state; fetches only without one.
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

    /// Fetches a commit or ref that mirrors do not hold by default. All who wait for the same one share one request.
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
            observer.tell(&GitRequest { repository, kind, took: began.elapsed(), succeeded });
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where the repository lies that these credentials may read.
    pub(crate) fn repository_path(&self, url: &RepoUrl, access: &RepoAccess) -> Option<PathBuf> {
        self.check_local(url).ok()?;
        let slot = self.slot(url);
        let current = slot.current()?;
        current.state.is_proven(access).then(|| slot.directory.join(&current.state.repository))
    }

    /// How often servers were asked since the start.
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
        // Links are resolved first, so that none leads into what is not allowed.
        let Ok(path) = Path::new(url.as_str()).canonicalize() else {
            return refused("there is no such directory");
        };
        if path.starts_with(&self.root) {
            return refused("it lies inside plumb's own cache");
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
