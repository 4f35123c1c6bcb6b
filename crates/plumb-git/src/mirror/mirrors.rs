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
use super::readable::{Fetched, LookedUp, Mirror};
use super::slot::Slot;
use crate::access::RepoAccess;
use crate::refs::{HashRule, ResolveError, RevisionSpec};
use crate::signature::Signature;
use crate::url::{RepoUrl, Transport};

/// All mirrors, below one directory. Everything in it is a cache.
pub struct Mirrors {
    pub(super) root: PathBuf,
    pub(super) options: GitOptions,
    pub(super) slots: Mutex<HashMap<String, Arc<Slot>>>,
    /// The bytes of each mirror, by the name of its directory.
    pub(super) sizes: Mutex<HashMap<String, u64>>,
    /// True once the mirrors of earlier processes are in `sizes`.
    pub(super) measured: tokio::sync::Mutex<bool>,
    /// The bytes by which mirrors have grown that are fetched at this moment.
    pub(super) growing: Mutex<HashMap<String, u64>>,
    pub(super) requests: Requests,
    /// A lock that shows other processes that private files below the root are in use.
    pub(super) in_use: Mutex<Option<std::fs::File>>,
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
            in_use: Mutex::new(disk::enter(&root).ok()),
            root,
            options,
            slots: Mutex::default(),
            sizes: Mutex::default(),
            measured: tokio::sync::Mutex::default(),
            growing: Mutex::default(),
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
        let result = self.refresh(&slot, url, access).await;
        *served = Some((asked_at, result.clone()));
        result
    }

    /// The last good state, without a request. `None` if there is none, if it is damaged, or if these credentials never
    /// worked for it.
    pub fn last_good(&self, url: &RepoUrl, access: &RepoAccess) -> Option<Mirror> {
        self.check_local(url).ok()?;
        let slot = self.slot(url);
        if slot.is_damaged() {
            return None;
        }
        let current = slot.current()?;
        current.state.is_proven(access).then(|| self.mirror(&slot, url, &current))
    }

    /// Resolves a revision. Uses the last good state; fetches if there is none, or if the revision is a commit or a
    /// full name that it lacks. The commit of a submodule is fetched by itself if no branch or tag contains it.
    pub async fn resolve(
        &self,
        url: &RepoUrl,
        access: &RepoAccess,
        spec: &RevisionSpec,
    ) -> Result<(Mirror, CommitId), ResolveOrFetchError> {
        self.resolve_since(url, access, spec, Instant::now()).await
    }

    /// Resolves a revision like [`resolve`](Self::resolve). If there was a request after `since`, its result, also an
    /// error, is used: callers with the same reason to resolve share one request.
    pub async fn resolve_since(
        &self,
        url: &RepoUrl,
        access: &RepoAccess,
        spec: &RevisionSpec,
        since: Instant,
    ) -> Result<(Mirror, CommitId), ResolveOrFetchError> {
        let slot = self.slot(url);
        let revision = spec.revision.trim();
        let others = spec.other_refs();
        let mut since = since;
        for name in &others {
            if slot.ask(name) {
                since = Instant::now();
            }
        }
        let is_hash = revision.parse::<CommitId>().is_ok();
        let of_submodule = is_hash && spec.hashes == HashRule::OfSubmodule;
        if of_submodule && slot.ask(revision) {
            since = Instant::now();
        }
        let last_good = self.last_good(url, access);
        let may_be_new = last_good.is_some() && (is_hash || !others.is_empty());
        let mirror = match last_good {
            Some(mirror) => mirror,
            None => self.fetch_since(url, access, since).await?.mirror,
        };
        let found = self.find(&slot, &mirror, spec).await;
        if let Ok(commit) = found {
            return Ok((mirror, commit));
        }
        // A fetch makes a damaged mirror again.
        let (mirror, found) = if may_be_new || slot.is_damaged() {
            let mirror = self.fetch_since(url, access, since).await?.mirror;
            let found = self.find(&slot, &mirror, spec).await;
            (mirror, found)
        } else {
            (mirror, found)
        };
        match found {
            Ok(commit) => Ok((mirror, commit)),
            Err(ResolveOrFetchError::Resolve(ResolveError::NotFound { .. })) if of_submodule => {
                let mirror = self.fetch_by_itself(url, access, spec, since).await?;
                let commit = mirror.resolve(spec)?;
                Ok((mirror, commit))
            }
            // The server may have the commit, but not on a ref.
            Err(ResolveOrFetchError::Resolve(ResolveError::NotFound { .. })) if is_hash => {
                Err(mirror.not_on_refs(spec).into())
            }
            Err(error) => Err(error),
        }
    }

    /// The commit of a revision in this state of the mirror.
    async fn find(
        &self,
        slot: &Slot,
        mirror: &Mirror,
        spec: &RevisionSpec,
    ) -> Result<CommitId, ResolveOrFetchError> {
        let candidates = match mirror.look_up(spec)? {
            LookedUp::Commit(commit) => return Ok(commit),
            LookedUp::Hashes(candidates) => candidates,
        };
        let mut contained = Vec::new();
        for commit in candidates {
            if self.is_contained(slot, mirror.url(), &commit, &spec.hashes).await? {
                contained.push(commit);
            }
        }
        match contained.as_slice() {
            [commit] => {
                mirror.resolved.keep(spec, commit);
                Ok(commit.clone())
            }
            [] => Err(mirror.not_on_refs(spec).into()),
            _ => Err(mirror.ambiguous(spec).into()),
        }
    }

    /// Fetches the commit of a submodule, which no branch or tag contains. Callers that wait for the same one share one
    /// request.
    pub(super) async fn fetch_by_itself(
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
            let mut result = self.fetch_commit(&slot, url, access, revision).await;
            if result.is_err() && slot.is_damaged() {
                result = match self.refresh(&slot, url, access).await {
                    Ok(_) => self.fetch_commit(&slot, url, access, revision).await,
                    Err(error) => Err(error),
                };
            }
            *served = Some((asked_at, result.clone()));
            result.map(|fetched| fetched.mirror)
        };
        drop(served);
        slot.leave_lane(&name, lane);
        result
    }

    /// True if an object or a file of the mirror could not be read. The next fetch makes it again.
    pub fn is_damaged(&self, url: &RepoUrl) -> bool {
        self.slot(url).is_damaged()
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
        let slot = slots.entry(name).or_insert_with_key(|name| Arc::new(Slot::new(self.root.join(name))));
        Arc::clone(slot)
    }

    pub(super) fn mirror(&self, slot: &Slot, url: &RepoUrl, current: &Current) -> Mirror {
        Mirror {
            url: url.clone(),
            objects: Arc::clone(&current.objects),
            refs: Arc::clone(&current.refs),
            resolved: Arc::clone(&current.resolved),
            contained: Arc::clone(&slot.contained),
            max_blob: self.options.limits.max_blob,
            damaged: Arc::clone(&slot.damaged),
        }
    }

    fn check_local(&self, url: &RepoUrl) -> Result<(), FetchError> {
        if url.transport() != Transport::File {
            return Ok(());
        }
        let refused = |reason| Err(FetchError::Local { repository: url.to_string(), reason });
        if self.options.local == LocalAccess::Denied {
            return refused(SWITCHED_OFF);
        }
        // Symbolic links are resolved first, so that none leads to a forbidden directory.
        let path = Path::new(url.as_str()).canonicalize();
        if path.as_ref().is_ok_and(|path| path.starts_with(&self.root)) {
            return refused("it is inside plumb's own cache");
        }
        match (&self.options.local, path) {
            (LocalAccess::Anywhere, Ok(_)) => Ok(()),
            (LocalAccess::Anywhere, Err(_)) => refused("no such directory"),
            (LocalAccess::Below(allowed), Ok(path)) if is_below(&path, allowed) => Ok(()),
            // Whether there is such a directory is not told.
            (LocalAccess::Below(_) | LocalAccess::Denied, _) => refused(OUTSIDE),
        }
    }
}

/// Why no repository on the local disk may be used.
const SWITCHED_OFF: &str = "Applications may not use repositories on the local disk; plumb run \
    --local-repositories DIR allows those below a directory";
/// Why this one may not be used.
const OUTSIDE: &str = "it does not exist, or is outside the directories that Applications may use; plumb run \
    --local-repositories DIR adds one";

fn is_below(path: &Path, allowed: &[PathBuf]) -> bool {
    let allowed = allowed.iter().filter_map(|directory| directory.canonicalize().ok());
    allowed.into_iter().any(|directory| path.starts_with(directory))
}
