//! The layout of a mirror on disk: `<root>/<hash of the address>/{state.json, repo-<n>.git}`.
//!
//! `state.json` names the current repository and is replaced atomically: a rebuilt mirror replaces the old
//! one in one step, and after a crash the old one is still there.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::readable::Resolved;
use crate::access::RepoAccess;
use crate::refs::RefTable;
use crate::secret::hex;
use crate::url::RepoUrl;

/// What `state.json` holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// The address, for users who inspect the cache.
    pub(super) url: String,
    /// Directory of the current repository.
    pub(super) repository: String,
    /// Hash of what the server advertised when it was fetched.
    pub(super) advertised: String,
    /// Full name of the branch that `HEAD` points to.
    pub(super) head: Option<String>,
    /// Refs and commits that are fetched besides branches and tags.
    pub(super) extra: Vec<String>,
    /// Hashes of the credentials that worked.
    pub(super) proven: Vec<String>,
}

/// The state that readers see.
pub(super) struct Current {
    pub(super) repository: Arc<gix::ThreadSafeRepository>,
    pub(super) refs: Arc<RefTable>,
    pub(super) resolved: Arc<Resolved>,
    pub(super) state: State,
}

/// Prefix of the names of directories with private files.
pub(super) const SCRATCH: &str = "git-";

/// Most sets of credentials that are remembered per mirror.
const MAX_PROVEN: usize = 16;

impl State {
    pub(super) fn is_proven(&self, access: &RepoAccess) -> bool {
        self.proven.contains(&access.identity())
    }

    pub(super) fn prove(&mut self, access: &RepoAccess) {
        let identity = access.identity();
        self.proven.retain(|known| *known != identity);
        self.proven.push(identity);
        if self.proven.len() > MAX_PROVEN {
            self.proven.remove(0);
        }
    }
}

pub(super) fn directory_name(url: &RepoUrl) -> String {
    let mut name = hex(&Sha256::digest(url.identity()));
    name.truncate(32);
    name
}

pub(crate) fn make_private(directory: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700))
}

/// Marks the root as in use while the file is open. A process that finds it unused removes the private files
/// (keys, known hosts) of processes that were killed.
pub(super) fn enter(root: &Path) -> std::io::Result<std::fs::File> {
    let directory = std::fs::File::open(root)?;
    if directory.try_lock().is_ok() {
        for entry in std::fs::read_dir(root)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(SCRATCH) {
                std::fs::remove_dir_all(entry.path())?;
            }
        }
        // A process that locks it in between removes them as well, before this one has written anything.
        directory.unlock()?;
    }
    directory.lock_shared()?;
    Ok(directory)
}

/// Reads the state and opens its repository; `None` if they are not usable.
pub(super) fn load(directory: &Path) -> Option<Current> {
    let text = std::fs::read(directory.join("state.json")).ok()?;
    let state: State = serde_json::from_slice(&text).ok()?;
    if state.repository.contains('/') || state.repository.is_empty() {
        return None;
    }
    open(directory, state).ok()
}

/// Opens the repository that the state names, and reads its refs.
pub(super) fn open(directory: &Path, state: State) -> Result<Current, gix::Error> {
    let repository = gix::open::Options::isolated()
        .open_path_as_is(true)
        .with(gix::sec::Trust::Full)
        .open(directory.join(&state.repository))?;
    let refs = read_refs(&repository.to_thread_local(), state.head.clone())?;
    Ok(Current { repository: Arc::new(repository), refs: Arc::new(refs), resolved: Arc::default(), state })
}

fn read_refs(repository: &gix::Repository, head: Option<String>) -> Result<RefTable, gix::Error> {
    let mut table = RefTable { head, ..RefTable::default() };
    for reference in repository.references()?.all()? {
        // A ref that cannot be read is skipped.
        let Ok(mut reference) = reference else { continue };
        let Ok(name) = String::from_utf8(reference.name().as_bstr().to_vec()) else { continue };
        if let Ok(id) = reference.peel_to_id() {
            table.refs.insert(name, id.to_string());
        }
    }
    Ok(table)
}

/// Replaces the state atomically.
pub(super) fn save(directory: &Path, state: &State) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(&serde_json::to_vec(state)?)?;
    file.persist(directory.join("state.json"))?;
    Ok(())
}

/// A name for a new repository beside the current one.
pub(super) fn next_name(state: &State) -> String {
    let present = state.repository.strip_prefix("repo-").and_then(|name| name.strip_suffix(".git"));
    let number = present.and_then(|number| number.parse::<u64>().ok()).map_or(0, |number| number + 1);
    format!("repo-{number}.git")
}

/// Removes all repositories except those to keep: the current one, and the one before it, which readers may
/// still use.
pub(super) fn sweep(directory: &Path, keep: &[&str]) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("repo-") && !keep.contains(&name.as_ref()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
