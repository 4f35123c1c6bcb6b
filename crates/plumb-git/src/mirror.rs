//! One bare mirror per repository on disk, and who may fetch it when.
//!
//! Many callers for one repository share one fetch. A caller that comes while a fetch runs waits for the next one,
//! since the running one may have asked the server too early, unless it says since when an answer is new enough. A
//! fetch first asks the server for its refs (`ls-remote`) and goes on only if they changed. Whatever fails, the last
//! good state stays readable.

mod disk;
mod fetch;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plumb_core::app::CommitId;
use plumb_core::source::SourceError;

pub(crate) use disk::make_private;
pub use fetch::FetchError;

use crate::refs::{Found, RefTable};
use crate::{GitLimits, RepoAccess, RepoUrl, ResolveError, RevisionSpec, SourceTree};
use disk::State;

/// How mirrors are kept.
#[derive(Clone, Debug)]
pub struct GitOptions {
    /// The git program.
    pub program: PathBuf,
    /// What one command may cost.
    pub limits: GitLimits,
    /// May repositories be read from this machine's disk?
    pub local: LocalAccess,
    /// Is told of every request to a server.
    pub observer: Option<RequestObserver>,
}

impl Default for GitOptions {
    fn default() -> Self {
        Self {
            program: PathBuf::from("git"),
            limits: GitLimits::default(),
            local: LocalAccess::Anywhere,
            observer: None,
        }
    }
}

/// One request to a server that has ended, for metrics.
#[derive(Clone, Copy, Debug)]
pub struct GitRequest<'a> {
    /// Which repository; its address holds no credentials.
    pub repository: &'a RepoUrl,
    /// `ls-remote` or `fetch`, as Argo CD's metrics call them.
    pub kind: &'static str,
    /// How long it took.
    pub took: Duration,
    /// Did it end well?
    pub succeeded: bool,
}

/// Is told of every request to a server. It must be quick.
#[derive(Clone)]
pub struct RequestObserver(Arc<dyn Fn(&GitRequest<'_>) + Send + Sync>);

impl RequestObserver {
    /// An observer from a function.
    pub fn new(tell: impl Fn(&GitRequest<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    fn tell(&self, request: &GitRequest<'_>) {
        (self.0)(request);
    }
}

impl std::fmt::Debug for RequestObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RequestObserver")
    }
}

/// Which repositories of this machine's disk (`file://`, absolute paths) may be read. The mirrors themselves
/// never may: their address would be a way around credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalAccess {
    /// None.
    Denied,
    /// Those below these directories.
    Below(Vec<PathBuf>),
    /// All that the process can read.
    Anywhere,
}

/// All mirrors, below one directory. Everything in it is a cache.
pub struct Mirrors {
    root: PathBuf,
    options: GitOptions,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
    requests: Requests,
    /// Tells other processes that private files below the root are in use.
    _in_use: Option<std::fs::File>,
    /// Signatures that were checked, by keyring and object.
    pub(crate) checked: Mutex<HashMap<(PathBuf, String), crate::Signature>>,
    /// Held while a keyring is made.
    pub(crate) keyrings: tokio::sync::Mutex<()>,
}

/// How often servers were asked.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    ls_remote: AtomicU64,
    fetch: AtomicU64,
}

/// How often servers were asked since the start, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestCounts {
    /// For their refs.
    pub ls_remote: u64,
    /// For objects.
    pub fetch: u64,
}

/// One repository.
struct Slot {
    directory: PathBuf,
    /// Callers with the same credentials share fetches, and so do those of them who want one more commit or ref.
    lanes: Mutex<HashMap<String, Arc<Lane>>>,
    /// Held while the mirror on disk is changed.
    disk: tokio::sync::Mutex<()>,
    current: Mutex<Option<Arc<Current>>>,
    damaged: Arc<AtomicBool>,
}

/// The callers who share their fetches.
#[derive(Default)]
struct Lane {
    /// When the server was asked last, and what came of it.
    served: tokio::sync::Mutex<Option<(Instant, Result<Fetched, FetchError>)>>,
}

/// Between two requests to one repository. The first of many callers is served at once; those who come right
/// after it (a webhook wakes a hundred apps) share one request in place of one each.
const SPACING: std::time::Duration = std::time::Duration::from_millis(100);

/// What is readable now.
struct Current {
    repository: Arc<gix::ThreadSafeRepository>,
    refs: Arc<RefTable>,
    resolved: Arc<Resolved>,
    state: State,
}

/// What revisions turned out to be in one state of a repository. A thousand apps ask for the same few branches over
/// and over, and to open the object database for each of them would cost more than everything else of a poll.
#[derive(Default)]
struct Resolved(Mutex<HashMap<RevisionSpec, CommitId>>);

/// Apps that are pinned to commits have a revision each; nobody gains from remembering all of them.
const MOST_RESOLVED: usize = 1024;

impl Resolved {
    fn get(&self, spec: &RevisionSpec) -> Option<CommitId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(spec).cloned()
    }

    fn keep(&self, spec: &RevisionSpec, commit: &CommitId) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST_RESOLVED {
            known.insert(spec.clone(), commit.clone());
        }
    }
}

/// Outcome of a fetch.
#[derive(Clone)]
pub struct Fetched {
    /// The repository as it is now.
    pub mirror: Mirror,
    /// Did the server have anything new?
    pub changed: bool,
}

/// A readable state of one repository.
#[derive(Clone)]
pub struct Mirror {
    url: RepoUrl,
    repository: Arc<gix::ThreadSafeRepository>,
    refs: Arc<RefTable>,
    resolved: Arc<Resolved>,
    max_blob: u64,
    damaged: Arc<AtomicBool>,
}

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
        let current = slot.current(&self.options)?;
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

    fn asked(&self, repository: &RepoUrl, kind: &'static str, began: Instant, succeeded: bool) {
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
        let current = slot.current(&self.options)?;
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
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn mirror(&self, slot: &Slot, url: &RepoUrl, current: &Current) -> Mirror {
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
        if url.transport() != crate::Transport::File {
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

/// A revision could not be resolved: either the repository could not be reached, or it has no such revision.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ResolveOrFetchError {
    /// The repository could not be reached.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It has no such revision.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
}

impl Slot {
    fn lane(&self, name: String) -> Arc<Lane> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(lanes.entry(name).or_default())
    }

    /// The last one who leaves takes the lane along: there may be any number of commits in the course of time.
    fn leave_lane(&self, name: &str, lane: Arc<Lane>) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        drop(lane);
        if lanes.get(name).is_some_and(|lane| Arc::strong_count(lane) == 1) {
            lanes.remove(name);
        }
    }

    /// What is readable now, read from the disk the first time.
    fn current(&self, options: &GitOptions) -> Option<Arc<Current>> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_none() {
            *current = disk::load(&self.directory, options).map(Arc::new);
        }
        current.clone()
    }
}

impl Mirror {
    /// The address it was fetched from.
    pub fn url(&self) -> &RepoUrl {
        &self.url
    }

    /// The commit that a revision means, as far as this mirror knows.
    pub fn resolve(&self, spec: &RevisionSpec) -> Result<CommitId, ResolveError> {
        if let Some(known) = self.resolved.get(spec) {
            return Ok(known);
        }
        let commit = self.look_up(spec)?;
        self.resolved.keep(spec, &commit);
        Ok(commit)
    }

    fn look_up(&self, spec: &RevisionSpec) -> Result<CommitId, ResolveError> {
        let repository = self.url.to_string();
        let revision = || spec.revision.trim().to_owned();
        let not_found = || ResolveError::NotFound {
            revision: revision(),
            repository: self.url.to_string(),
            hint: String::new(),
        };
        let local = self.repository.to_thread_local();
        let id = match self.refs.resolve(spec, &repository)? {
            Found::Commit(commit) => {
                gix::ObjectId::from_hex(commit.as_str().as_bytes()).map_err(|_| not_found())?
            }
            Found::Prefix(prefix) => {
                let prefix = gix::hash::Prefix::from_hex(&prefix).map_err(|_| not_found())?;
                let mut found = std::collections::HashSet::new();
                local.objects.lookup_prefix(prefix, Some(&mut found)).map_err(|_| not_found())?;
                // In a large repository seven digits are the start of many files, too: only commits count, as
                // for git itself. What is none is told below.
                let is_commit = |id: &&gix::ObjectId| {
                    let header = local.try_find_header(**id).ok().flatten();
                    header.is_some_and(|header| header.kind() == gix::objs::Kind::Commit)
                };
                let commits: Vec<_> = found.iter().filter(is_commit).collect();
                match (commits.as_slice(), found.iter().next()) {
                    ([commit], _) => **commit,
                    ([], Some(other)) => *other,
                    ([], None) => return Err(not_found()),
                    _ => return Err(ResolveError::Ambiguous { revision: revision(), repository }),
                }
            }
        };
        match local.try_find_header(id) {
            Ok(Some(header)) if header.kind() == gix::objs::Kind::Commit => {
                id.to_string().parse().map_err(|_| not_found())
            }
            Ok(Some(_)) => Err(ResolveError::NotACommit { revision: revision(), repository }),
            Ok(None) | Err(_) => Err(not_found()),
        }
    }

    /// The files of a commit.
    pub fn tree(&self, commit: &CommitId) -> Result<SourceTree, SourceError> {
        SourceTree::open(
            Arc::clone(&self.repository),
            commit.clone(),
            self.max_blob,
            Arc::clone(&self.damaged),
        )
    }

    /// Name and hash of the annotated tag of this commit that a revision names, if it names one.
    pub(crate) fn annotated_tag(&self, spec: &RevisionSpec, commit: &CommitId) -> Option<(String, String)> {
        let name = self.refs.tag_of(spec, &self.url.to_string())?;
        let local = self.repository.to_thread_local();
        let id = local.find_reference(name.as_str()).ok()?.target().try_id()?.to_owned();
        let tag = local.find_object(id).ok()?;
        let is_tag = tag.kind == gix::objs::Kind::Tag;
        // The tag may have moved since the revision was resolved.
        let peeled = tag.peel_to_kind(gix::objs::Kind::Commit).ok()?.id.to_string();
        (is_tag && peeled == commit.as_str()).then(|| (name, id.to_string()))
    }

    /// The parents and the message of a commit.
    pub(crate) fn history(&self, commit: &str) -> Option<(Vec<String>, String)> {
        let local = self.repository.to_thread_local();
        let id = gix::ObjectId::from_hex(commit.as_bytes()).ok()?;
        let commit = local.find_commit(id).ok()?;
        let parents = commit.parent_ids().map(|id| id.to_string()).collect();
        Some((parents, commit.message_raw().ok()?.to_string()))
    }

    /// Full names of all refs with their commits.
    pub fn refs(&self) -> &std::collections::BTreeMap<String, String> {
        &self.refs.refs
    }
}
