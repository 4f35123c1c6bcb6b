//! One fetch: the server's refs and, if they changed, its objects.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::advertised::Advertised;
use super::disk::{self, Current, State};
use super::error::FetchError;
use super::mirrors::Mirrors;
use super::readable::Fetched;
use super::slot::Slot;
use super::stamp::stamp;
use crate::access::RepoAccess;
use crate::advice::advice;
use crate::command::CommandError;
use crate::url::RepoUrl;

/// What one fetch brings into a repository.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    /// Branches and tags, the refs that requesters named, and `HEAD` if it is no branch.
    Refs { others: &'a BTreeSet<String>, head: bool },
    /// One commit.
    Commit(&'a str),
}

impl Wanted<'_> {
    fn refspecs(self) -> Vec<String> {
        match self {
            Self::Commit(hash) => vec![format!("+{hash}:{}", disk::local_commit(hash))],
            Self::Refs { others, head } => {
                let mirrored = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"].map(str::to_owned);
                let others = others.iter().map(|name| format!("+{name}:{}", disk::local_ref(name)));
                let head = head.then(|| format!("+HEAD:{}", disk::LOCAL_HEAD));
                mirrored.into_iter().chain(others).chain(head).collect()
            }
        }
    }
}

impl Mirrors {
    /// Asks the server for its refs, fetches what is new, and makes it the state that readers see.
    pub(super) async fn refresh(
        &self,
        slot: &Slot,
        url: &RepoUrl,
        access: &RepoAccess,
    ) -> Result<Fetched, FetchError> {
        match self.refresh_once(slot, url, access).await {
            // The directory was removed while git used it.
            Err(_) if !slot.directory.join(LOCK).exists() => self.refresh_once(slot, url, access).await,
            result => result,
        }
    }

    async fn refresh_once(
        &self,
        slot: &Slot,
        url: &RepoUrl,
        access: &RepoAccess,
    ) -> Result<Fetched, FetchError> {
        let _disk = slot.disk.lock().await;
        let _other_processes = self.lock_directory(slot, url).await?;
        let (current, is_intact) = slot.checked();
        let mut state = current.as_ref().map_or_else(State::default, |current| current.state.clone());
        let advertised = self.ls_remote(url, access, &slot.directory).await?;
        if advertised.refs.is_empty() && current.as_ref().is_some_and(|current| !current.refs.refs.is_empty())
        {
            return Err(FetchError::Empty { repository: url.to_string() });
        }
        // A requester may ask for more while the server is asked.
        let asked = slot.asked();
        let others = advertised.having(&asked.refs);
        let digest = advertised.digest(&others);
        let rebuild = !is_intact || slot.is_damaged();
        let is_current = current.as_ref().is_some_and(|current| current.state.advertised == digest);
        if is_current
            && !rebuild
            && let Some(current) = current.as_ref().filter(|current| current.state.is_proven(access))
        {
            return Ok(Fetched { mirror: self.mirror(slot, url, current), changed: false });
        }
        let before = state.repository.clone();
        if !is_current || rebuild {
            if let Some(error) = slot.refusal(&digest) {
                return Err(error);
            }
            let wanted = Wanted::Refs { others: &others, head: advertised.is_detached() };
            match self.fetch_or_rebuild(slot, url, access, &state, rebuild, wanted).await {
                Ok(repository) => state.repository = repository,
                Err(error) => {
                    if error.is_over_limit() {
                        slot.refuse(&digest, &error);
                    }
                    self.settle(slot, current.filter(|_| !rebuild)).await;
                    return Err(error);
                }
            }
        }
        state.commits.retain(|commit| asked.commits.contains(commit) && state.repository == before);
        url.to_string().clone_into(&mut state.url);
        state.detached = advertised.is_detached();
        state.head = advertised.head;
        state.others = others;
        state.advertised.clone_from(&digest);
        state.prove(access);
        self.remove_stale_refs(slot, &state).await;
        let current = publish(slot, url, state, &before)?;
        if current.state.repository != before || rebuild {
            slot.note_made();
        }
        self.make_room(slot, url).await.inspect_err(|error| slot.refuse(&digest, error))?;
        Ok(Fetched { mirror: self.mirror(slot, url, &current), changed: !is_current })
    }

    /// Fetches one commit into the mirror and keeps it.
    pub(super) async fn fetch_commit(
        &self,
        slot: &Slot,
        url: &RepoUrl,
        access: &RepoAccess,
        commit: &str,
    ) -> Result<Fetched, FetchError> {
        let _disk = slot.disk.lock().await;
        let _other_processes = self.lock_directory(slot, url).await?;
        let (Some(current), true) = slot.checked() else {
            slot.damaged.store(true, Ordering::Relaxed);
            return Err(unusable_cache(slot, url, &REMADE));
        };
        let mut state = current.state.clone();
        let before = state.repository.clone();
        let wanted = Wanted::Commit(commit);
        match self.fetch_or_rebuild(slot, url, access, &state, false, wanted).await {
            Ok(repository) => state.repository = repository,
            Err(error) => {
                self.settle(slot, Some(current)).await;
                return Err(error);
            }
        }
        state.commits.insert(commit.to_owned());
        let current = publish(slot, url, state, &before)?;
        self.make_room(slot, url).await?;
        Ok(Fetched { mirror: self.mirror(slot, url, &current), changed: true })
    }

    async fn lock_directory(&self, slot: &Slot, url: &RepoUrl) -> Result<std::fs::File, FetchError> {
        self.stay_in_root().map_err(|error| unusable_cache(slot, url, &error))?;
        disk::make_private(&slot.directory).map_err(|error| unusable_cache(slot, url, &error))?;
        lock_file(&slot.directory).await.map_err(|error| unusable_cache(slot, url, &error))
    }

    /// Removes what no requester asks for any more, or what the server no longer has.
    async fn remove_stale_refs(&self, slot: &Slot, state: &State) {
        let repository = slot.directory.join(&state.repository);
        for name in disk::stale_refs(&slot.directory, state) {
            // A ref that stays has no meaning, and the next fetch tries again.
            let _ = self.git_offline(&repository, &["update-ref", "-d", &name]).await;
        }
    }

    /// Fetches into the present repository, or into a new one beside it where the present one cannot be used. Returns
    /// the name of the repository that then holds the objects.
    async fn fetch_or_rebuild(
        &self,
        slot: &Slot,
        url: &RepoUrl,
        access: &RepoAccess,
        state: &State,
        rebuild: bool,
        wanted: Wanted<'_>,
    ) -> Result<String, FetchError> {
        if !rebuild {
            let repository = slot.directory.join(&state.repository);
            match self.fetch_objects(slot, url, access, &repository, wanted).await {
                Ok(()) => return Ok(state.repository.clone()),
                Err(error) if error.may_be_damage() && self.is_broken(&repository).await => {}
                Err(error) => return Err(error),
            }
        }
        if let Wanted::Commit(_) = wanted {
            slot.damaged.store(true, Ordering::Relaxed);
            return Err(unusable_cache(slot, url, &REMADE));
        }
        let name = disk::next_name(state);
        let repository = slot.directory.join(&name);
        self.init(url, &repository).await?;
        let fetched = self.fetch_objects(slot, url, access, &repository, wanted).await;
        if fetched.is_err() {
            disk::remove(&repository);
        }
        fetched.map(|()| name)
    }

    async fn init(&self, url: &RepoUrl, repository: &Path) -> Result<(), FetchError> {
        disk::remove(repository);
        let parent = repository.parent().unwrap_or(repository).to_owned();
        let path = repository.as_os_str();
        let init: [&std::ffi::OsStr; 5] =
            ["init".as_ref(), "--bare".as_ref(), "--quiet".as_ref(), "--template=".as_ref(), path];
        let made = self.git_offline(&parent, &init).await;
        made.map(drop).map_err(|source| objects_error(url, source))
    }

    /// After a fetch that failed: removes locks and parts of objects that it left. The rest stays in use, if git can read
    /// it; if not, the next fetch makes the mirror again.
    async fn settle(&self, slot: &Slot, current: Option<Arc<Current>>) {
        let Some(current) = current else { return };
        let repository = slot.directory.join(&current.state.repository);
        disk::remove_partial(&repository);
        let is_readable = disk::config(&repository) == current.state.config
            && self.git_offline(&repository, &["for-each-ref", "--count=1"]).await.is_ok();
        let Some(stamp) = stamp(&repository).filter(|_| is_readable) else { return };
        let mut state = current.state.clone();
        state.stamp = stamp;
        if disk::save(&slot.directory, &state).is_ok() {
            let (objects, refs) = (Arc::clone(&current.objects), Arc::clone(&current.refs));
            let resolved = Arc::clone(&current.resolved);
            *slot.current.lock() = Some(Arc::new(Current { objects, refs, resolved, state }));
        }
    }

    async fn ls_remote(
        &self,
        url: &RepoUrl,
        access: &RepoAccess,
        directory: &Path,
    ) -> Result<Advertised, FetchError> {
        self.requests.ls_remote.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let output = self.git(url, access, directory, &["ls-remote", "--symref", "--", url.as_str()]).await;
        self.asked(url, "ls-remote", began, output.is_ok());
        let output = output.map_err(|source| match source {
            CommandError::Cache { .. } => objects_error(url, source),
            source => FetchError::Refs {
                repository: url.to_string(),
                advice: advice(url, access, &source),
                source: Box::new(source),
            },
        })?;
        Ok(Advertised::parse(&String::from_utf8_lossy(&output)))
    }

    async fn fetch_objects(
        &self,
        slot: &Slot,
        url: &RepoUrl,
        access: &RepoAccess,
        repository: &Path,
        wanted: Wanted<'_>,
    ) -> Result<(), FetchError> {
        let mut arguments: Vec<String> = [
            "fetch",
            "--quiet",
            "--force",
            "--prune",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--no-recurse-submodules",
            "--no-show-forced-updates",
            "--",
            url.as_str(),
        ]
        .into_iter()
        .map(str::to_owned)
        .collect();
        arguments.extend(wanted.refspecs());
        self.requests.fetch.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let timeout = self.options.limits.fetch_timeout;
        let fetch = self.git_within(timeout, url, access, repository, &arguments);
        let fetched = self.within_space(slot, url, fetch).await;
        self.asked(url, "fetch", began, matches!(fetched, Ok(Ok(_))));
        fetched?.map_err(|source| objects_error(url, source))?;
        // Cheap unless there is something to do. Its failure does no harm.
        let _ = self.git_offline(repository, &["gc", "--auto", "--quiet"]).await;
        Ok(())
    }

    /// True if objects that the refs need are missing or unreadable.
    async fn is_broken(&self, repository: &Path) -> bool {
        let arguments = ["fsck", "--connectivity-only", "--no-dangling", "--no-progress"];
        matches!(self.git_offline(repository, &arguments).await, Err(CommandError::Failed { .. }))
    }
}

/// Opens the repository that `state` names, makes it the one that readers see, and removes those that are neither it
/// nor `before`.
fn publish(slot: &Slot, url: &RepoUrl, mut state: State, before: &str) -> Result<Arc<Current>, FetchError> {
    let repository = slot.directory.join(&state.repository);
    if state.repository != before || state.config.is_empty() {
        state.config = disk::config(&repository);
    }
    state.stamp = stamp(&repository).ok_or_else(|| unusable_cache(slot, url, &REMADE))?;
    let current = disk::open(&slot.directory, state).map_err(|error| unusable_cache(slot, url, &error))?;
    disk::save(&slot.directory, &current.state).map_err(|error| unusable_cache(slot, url, &error))?;
    disk::sweep(&slot.directory, &[&current.state.repository, before]);
    let current = Arc::new(current);
    *slot.current.lock() = Some(Arc::clone(&current));
    Ok(current)
}

/// Why a mirror cannot be used for a moment.
const REMADE: &str = "it was removed or damaged; the next fetch makes it again";

/// The error of git, or that of the cache directory.
fn objects_error(url: &RepoUrl, source: CommandError) -> FetchError {
    let repository = url.to_string();
    match source {
        CommandError::Cache { directory, reason } => FetchError::Cache { repository, directory, reason },
        source => FetchError::Objects { repository, source },
    }
}

fn unusable_cache(slot: &Slot, url: &RepoUrl, error: &dyn std::fmt::Display) -> FetchError {
    FetchError::Cache {
        repository: url.to_string(),
        directory: slot.directory.display().to_string(),
        reason: error.to_string(),
    }
}

/// The file that is locked while a mirror on disk is changed.
const LOCK: &str = "lock";

/// Another plumb process may use the same cache (the CLI beside the engine).
async fn lock_file(directory: &Path) -> std::io::Result<std::fs::File> {
    let path = directory.join(LOCK);
    let locked = tokio::task::spawn_blocking(move || {
        loop {
            let is_file = std::fs::symlink_metadata(&path).map(|metadata| metadata.is_file());
            if is_file.is_ok_and(|is_file| !is_file) {
                disk::remove(&path);
            }
            let file = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
            file.lock()?;
            // While this process waited, the file may have been removed. Then another process locks another file.
            let (locked, present) = (file.metadata()?, std::fs::symlink_metadata(&path));
            if present.is_ok_and(|present| present.ino() == locked.ino()) {
                return Ok(file);
            }
            disk::make_private(path.parent().unwrap_or(&path))?;
        }
    });
    locked.await.map_err(std::io::Error::other)?
}
