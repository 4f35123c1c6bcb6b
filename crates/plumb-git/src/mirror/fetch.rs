//! One fetch: the server's refs and, if they changed, its objects.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::advertised::{Advertised, Wanted};
use super::disk::{self, Current, State};
use super::error::FetchError;
use super::mirrors::Mirrors;
use super::readable::Fetched;
use super::slot::Slot;
use crate::access::RepoAccess;
use crate::advice::advice;
use crate::command::CommandError;
use crate::url::RepoUrl;

impl Mirrors {
    /// Asks the server for its refs, fetches what is new, and makes it the state that readers see.
    pub(super) async fn refresh(
        &self,
        slot: &Slot,
        url: &RepoUrl,
        access: &RepoAccess,
        extra: Option<&str>,
    ) -> Result<Fetched, FetchError> {
        let _disk = slot.disk.lock().await;
        disk::make_private(&slot.directory).map_err(|error| unusable_cache(slot, url, &error))?;
        let _other_processes =
            lock_file(&slot.directory).await.map_err(|error| unusable_cache(slot, url, &error))?;
        let current = slot.current();
        let mut state = current.as_ref().map_or_else(State::default, |current| current.state.clone());
        // A ref may move, so every fetch includes it; a commit is fetched once and kept.
        if let Some(extra) = extra.filter(|extra| extra.starts_with("refs/"))
            && !state.extra.iter().any(|known| known == extra)
        {
            state.extra.push(extra.to_owned());
        }
        let advertised = self.ls_remote(url, access, &slot.directory).await?;
        if advertised.refs.is_empty() && current.as_ref().is_some_and(|current| !current.refs.refs.is_empty())
        {
            return Err(FetchError::Empty { repository: url.to_string() });
        }
        let wanted = Wanted::new(&advertised, &state.extra, extra);
        let damaged = slot.damaged.swap(false, Ordering::Relaxed);
        let is_current = current.as_ref().is_some_and(|current| current.state.advertised == wanted.digest)
            && extra.is_none();
        if is_current
            && !damaged
            && let Some(current) = current.as_ref().filter(|current| current.state.is_proven(access))
        {
            return Ok(Fetched { mirror: self.mirror(slot, url, current), changed: false });
        }
        let before = state.repository.clone();
        let rebuild = damaged || current.is_none();
        if !is_current || rebuild {
            state.repository =
                self.fetch_or_rebuild(slot, url, access, &state, rebuild, &wanted.refs).await?;
        }
        if let Some(extra) = extra
            && extra.starts_with("refs/")
            && !wanted.refs.iter().any(|name| name == extra)
        {
            return Err(FetchError::Missing { repository: url.to_string(), revision: extra.to_owned() });
        }
        url.to_string().clone_into(&mut state.url);
        state.advertised = wanted.digest;
        state.head = advertised.head;
        state.prove(access);
        let current = publish(slot, url, state, &before)?;
        Ok(Fetched { mirror: self.mirror(slot, url, &current), changed: !is_current })
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
        wanted: &[String],
    ) -> Result<String, FetchError> {
        if !rebuild {
            let repository = slot.directory.join(&state.repository);
            match self.fetch_objects(url, access, &repository, false, wanted).await {
                Ok(()) => return Ok(state.repository.clone()),
                Err(error) if error.may_be_damage() && self.is_broken(&repository).await => {}
                Err(error) => return Err(error),
            }
        }
        let name = disk::next_name(state);
        self.fetch_objects(url, access, &slot.directory.join(&name), true, wanted).await?;
        Ok(name)
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
        let output = output.map_err(|source| FetchError::Refs {
            repository: url.to_string(),
            advice: advice(url, access, &source),
            source: Box::new(source),
        })?;
        Ok(Advertised::parse(&String::from_utf8_lossy(&output)))
    }

    async fn fetch_objects(
        &self,
        url: &RepoUrl,
        access: &RepoAccess,
        repository: &Path,
        fresh: bool,
        wanted: &[String],
    ) -> Result<(), FetchError> {
        let failed = |source| FetchError::Objects { repository: url.to_string(), source };
        if fresh {
            let _ = std::fs::remove_dir_all(repository);
            let parent = repository.parent().unwrap_or(repository).to_owned();
            let path = repository.as_os_str();
            let init: [&std::ffi::OsStr; 5] =
                ["init".as_ref(), "--bare".as_ref(), "--quiet".as_ref(), "--template=".as_ref(), path];
            self.git(url, access, &parent, &init).await.map_err(failed)?;
        }
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
            "+refs/heads/*:refs/heads/*",
            "+refs/tags/*:refs/tags/*",
        ]
        .into_iter()
        .map(str::to_owned)
        .collect();
        for extra in wanted {
            let to = if extra.starts_with("refs/") { extra.clone() } else { format!("refs/plumb/{extra}") };
            arguments.push(format!("+{extra}:{to}"));
        }
        self.requests.fetch.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let timeout = self.options.limits.fetch_timeout;
        let fetched = self.git_within(timeout, url, access, repository, &arguments).await;
        self.asked(url, "fetch", began, fetched.is_ok());
        fetched.map_err(failed)?;
        // Cheap unless there is something to do. Its failure does no harm.
        let _ = self.git(url, access, repository, &["gc", "--auto", "--quiet"]).await;
        Ok(())
    }

    /// True if objects that the refs need are missing or unreadable.
    async fn is_broken(&self, repository: &Path) -> bool {
        let Ok(url) = RepoUrl::parse("/") else { return false };
        let arguments = ["fsck", "--connectivity-only", "--no-dangling", "--no-progress"];
        let checked = self.git(&url, &RepoAccess::default(), repository, &arguments).await;
        matches!(checked, Err(CommandError::Failed { .. }))
    }
}

/// Opens the repository that `state` names, makes it the one that readers see, and removes those that are neither it
/// nor `before`.
fn publish(slot: &Slot, url: &RepoUrl, state: State, before: &str) -> Result<Arc<Current>, FetchError> {
    let current = disk::open(&slot.directory, state).map_err(|error| unusable_cache(slot, url, &error))?;
    disk::save(&slot.directory, &current.state).map_err(|error| unusable_cache(slot, url, &error))?;
    disk::sweep(&slot.directory, &[&current.state.repository, before]);
    let current = Arc::new(current);
    *slot.current.lock() = Some(Arc::clone(&current));
    Ok(current)
}

fn unusable_cache(slot: &Slot, url: &RepoUrl, error: &dyn std::fmt::Display) -> FetchError {
    FetchError::Cache {
        repository: url.to_string(),
        directory: slot.directory.display().to_string(),
        reason: error.to_string(),
    }
}

/// Another plumb process may use the same cache (the CLI beside the engine).
async fn lock_file(directory: &Path) -> std::io::Result<std::fs::File> {
    let path = directory.join("lock");
    let locked = tokio::task::spawn_blocking(move || {
        let file = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        file.lock()?;
        Ok(file)
    });
    locked.await.map_err(std::io::Error::other)?
}
