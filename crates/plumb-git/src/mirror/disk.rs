//! What a mirror looks like on disk: `<root>/<hash of the address>/{state.json, repo-<n>.git}`.
//!
//! `state.json` names the repository that counts and is replaced in one step, so that a rebuilt mirror takes the
//! old one's place at once and a crash leaves the old one.

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

/// What is known about a mirror besides its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// For people who look into the cache.
    pub(super) url: String,
    /// Directory of the repository that counts.
    pub(super) repository: String,
    /// Hash of what the server advertised when it was fetched.
    pub(super) advertised: String,
    /// Full name of the branch that `HEAD` is.
    pub(super) head: Option<String>,
    /// Refs and commits that are fetched besides branches and tags.
    pub(super) extra: Vec<String>,
    /// Hashes of the credentials that worked.
    pub(super) proven: Vec<String>,
}

/// What is readable now.
pub(super) struct Current {
    pub(super) repository: Arc<gix::ThreadSafeRepository>,
    pub(super) refs: Arc<RefTable>,
    pub(super) resolved: Arc<Resolved>,
    pub(super) state: State,
}

/// How the names of directories with private files begin.
pub(super) const SCRATCH: &str = "git-";

/// So many sets of credentials are remembered per mirror.
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

/// Marks the root as in use for as long as the file is open. Whoever finds it unused removes the private files
/// (keys, known hosts) that a process left there which was killed.
pub(super) fn enter(root: &Path) -> std::io::Result<std::fs::File> {
    let directory = std::fs::File::open(root)?;
    if directory.try_lock().is_ok() {
        for entry in std::fs::read_dir(root)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(SCRATCH) {
                std::fs::remove_dir_all(entry.path())?;
            }
        }
        // Whoever comes in between sweeps as well, before anything was made here.
        directory.unlock()?;
    }
    directory.lock_shared()?;
    Ok(directory)
}

/// Reads what is there; `None` if it is not usable.
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
        // A ref that cannot be read is not there; the others are.
        let Ok(mut reference) = reference else { continue };
        let Ok(name) = String::from_utf8(reference.name().as_bstr().to_vec()) else { continue };
        if let Ok(id) = reference.peel_to_id() {
            table.refs.insert(name, id.to_string());
        }
    }
    Ok(table)
}

/// Replaces the state in one step.
pub(super) fn save(directory: &Path, state: &State) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(&serde_json::to_vec(state)?)?;
    file.persist(directory.join("state.json"))?;
    Ok(())
}

/// A name for a new repository beside the one that counts.
pub(super) fn next_name(state: &State) -> String {
    let present = state.repository.strip_prefix("repo-").and_then(|name| name.strip_suffix(".git"));
    let number = present.and_then(|number| number.parse::<u64>().ok()).map_or(0, |number| number + 1);
    format!("repo-{number}.git")
}

/// Removes repositories that neither count now nor did before the last change: readers may still be at work in
/// the one before.
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
