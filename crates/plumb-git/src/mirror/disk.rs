//! The layout of a mirror on disk: `<root>/m<version>-<hash of the address>/{state.json, repo-<n>.git}`.
//!
//! `state.json` names the current repository and is replaced atomically: a rebuilt mirror replaces the old
//! one in one step, and after a crash the old one is still there.
//!
//! The repository holds branches and tags under their own names. Everything else is below `refs/plumb/` under a name
//! that the server cannot choose, so that it can take the place of no branch, and git gives it no meaning.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::readable::Resolved;
use super::stamp::stamp;
use crate::access::RepoAccess;
use crate::objects::Objects;
use crate::refs::{Head, RefTable};
use crate::secret::hex;
use crate::url::RepoUrl;

/// Version of the layout. The repositories of earlier versions may hold refs that take the place of a branch or of an
/// object (`refs/replace/`), so they are not used.
const LAYOUT: &str = "m2-";

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
    /// True if `HEAD` is a commit.
    pub(super) detached: bool,
    /// Full names of the refs that are held besides branches and tags.
    pub(super) others: BTreeSet<String>,
    /// Commits of submodules that are held although no branch or tag contains them.
    pub(super) commits: BTreeSet<String>,
    /// Hashes of the credentials that worked.
    pub(super) proven: Vec<String>,
    /// The stamp of the repository when plumb wrote to it last.
    #[serde(default)]
    pub(super) stamp: String,
    /// The repository's own settings, as git wrote them when it was made.
    #[serde(default)]
    pub(super) config: String,
    /// A hash of everything above; empty in memory.
    #[serde(default)]
    sum: String,
}

/// The state that readers see.
pub(super) struct Current {
    pub(super) objects: Arc<Objects>,
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

    /// What `state.json` holds.
    fn to_bytes(&self) -> std::io::Result<Vec<u8>> {
        let unsigned = serde_json::to_vec(&Self { sum: String::new(), ..self.clone() })?;
        Ok(serde_json::to_vec(&Self { sum: hex(&Sha256::digest(&unsigned)), ..self.clone() })?)
    }

    /// The state, unless the file was damaged.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let state: Self = serde_json::from_slice(bytes).ok()?;
        (state.to_bytes().ok()? == bytes).then(|| Self { sum: String::new(), ..state })
    }
}

pub(super) fn directory_name(url: &RepoUrl) -> String {
    let mut name = hex(&Sha256::digest(url.identity()));
    name.truncate(32);
    format!("{LAYOUT}{name}")
}

/// True for the name of a directory that holds a mirror of this layout.
pub(super) fn is_mirror(name: &str) -> bool {
    name.starts_with(LAYOUT)
}

/// True for the name of a directory that held a mirror in an earlier layout.
fn is_old_mirror(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The local name of the commit of a detached `HEAD`.
pub(super) const LOCAL_HEAD: &str = "refs/plumb/head";

/// The local name of a ref that is neither a branch nor a tag.
pub(super) fn local_ref(name: &str) -> String {
    format!("refs/plumb/ref/{}", hex(&Sha256::digest(name)))
}

/// The local name that keeps a commit from being removed.
pub(super) fn local_commit(hash: &str) -> String {
    format!("refs/plumb/commit/{hash}")
}

/// Makes a directory that only plumb's user can read. Anything else of this name is removed first: it is in the cache.
pub(crate) fn make_private(directory: &Path) -> std::io::Result<()> {
    let is_other = std::fs::symlink_metadata(directory).is_ok_and(|metadata| !metadata.is_dir());
    if is_other {
        std::fs::remove_file(directory)?;
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let present = std::fs::metadata(directory)?.permissions();
    if present.mode() & 0o777 == 0o700 {
        return Ok(());
    }
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700))
}

/// Removes whatever has this name.
pub(crate) fn remove(path: &Path) {
    let is_directory = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let removed = if is_directory { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    // What cannot be removed is reported by the next write.
    drop(removed);
}

/// Marks the root as in use while the file is open. A process that finds it unused removes the private files
/// (keys, known hosts) of processes that were killed, and the mirrors of earlier layouts.
pub(super) fn enter(root: &Path) -> std::io::Result<std::fs::File> {
    let directory = std::fs::File::open(root)?;
    if directory.try_lock().is_ok() {
        for entry in std::fs::read_dir(root)?.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(SCRATCH) || is_old_mirror(&name) {
                remove(&entry.path());
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
    let state = State::from_bytes(&std::fs::read(directory.join("state.json")).ok()?)?;
    if state.repository.contains('/') || state.repository.is_empty() {
        return None;
    }
    let repository = directory.join(&state.repository);
    if stamp(&repository).as_ref() != Some(&state.stamp) || has_foreign(&repository) {
        return None;
    }
    open(directory, state).ok()
}

/// True if the files on disk are those that plumb left there.
pub(super) fn is_intact(directory: &Path, state: &State) -> bool {
    let on_disk = std::fs::read(directory.join("state.json")).ok();
    on_disk.is_some_and(|bytes| State::from_bytes(&bytes).as_ref() == Some(state))
        && stamp(&directory.join(&state.repository)).as_ref() == Some(&state.stamp)
}

/// The repository's own settings.
pub(super) fn config(repository: &Path) -> String {
    std::fs::read_to_string(repository.join("config")).unwrap_or_default()
}

/// Opens the repository that the state names, and reads its refs.
pub(super) fn open(directory: &Path, state: State) -> Result<Current, gix::Error> {
    let path = directory.join(&state.repository);
    let repository = gix::open::Options::isolated()
        .open_path_as_is(true)
        .with(gix::sec::Trust::Full)
        // An object is what its hash says, and nothing in its place.
        .config_overrides(["core.useReplaceRefs=false"])
        .open(&path)?;
    let refs = read_refs(&repository.to_thread_local(), &state)?;
    let objects = Arc::new(Objects::new(repository));
    Ok(Current { objects, refs: Arc::new(refs), resolved: Arc::default(), state })
}

/// Files in which a repository names other places that objects or histories come from. plumb writes none of them.
const FOREIGN: [&str; 4] =
    ["objects/info/alternates", "objects/info/http-alternates", "info/grafts", "shallow"];

/// True if the repository takes objects or histories from other places.
fn has_foreign(repository: &Path) -> bool {
    FOREIGN.iter().any(|file| repository.join(file).exists())
}

/// The branches and tags, and the other refs that the state names. Any other ref of the repository has no meaning.
fn read_refs(repository: &gix::Repository, state: &State) -> Result<RefTable, gix::Error> {
    let mut table = RefTable::default();
    let references = repository.references()?;
    for prefix in ["refs/heads/", "refs/tags/"] {
        for reference in references.prefixed(prefix)? {
            // A ref that cannot be read is skipped.
            let Ok(mut reference) = reference else { continue };
            let Ok(name) = String::from_utf8(reference.name().as_bstr().to_vec()) else { continue };
            let object = reference.target().try_id().map(|id| id.to_string());
            if let Ok(id) = reference.peel_to_id() {
                let id = id.to_string();
                if let Some(object) = object.filter(|object| prefix == "refs/tags/" && *object != id) {
                    table.tag_objects.insert(name.clone(), object);
                }
                table.refs.insert(name, id);
            }
        }
    }
    let local = |name: &str| {
        let mut reference = repository.try_find_reference(name).ok().flatten()?;
        Some(reference.peel_to_id().ok()?.to_string())
    };
    let others = state.others.iter();
    table.others = others.filter_map(|name| Some((name.clone(), local(&local_ref(name))?))).collect();
    table.head = match &state.head {
        Some(branch) => Head::Branch(branch.clone()),
        None if state.detached => local(LOCAL_HEAD).map_or(Head::Missing, Head::Detached),
        None => Head::Missing,
    };
    Ok(table)
}

/// The refs below `refs/plumb/` that the state does not need.
pub(super) fn stale_refs(directory: &Path, state: &State) -> Vec<String> {
    let mut needed: BTreeSet<String> = state.others.iter().map(|name| local_ref(name)).collect();
    needed.extend(state.commits.iter().map(|hash| local_commit(hash)));
    if state.detached {
        needed.insert(LOCAL_HEAD.to_owned());
    }
    let list = || -> Result<Vec<String>, gix::Error> {
        let repository = gix::open::Options::isolated()
            .open_path_as_is(true)
            .with(gix::sec::Trust::Full)
            .open(directory.join(&state.repository))?
            .to_thread_local();
        let references = repository.references()?;
        let names = references.prefixed("refs/plumb/")?.flatten();
        Ok(names.map(|reference| reference.name().as_bstr().to_string()).collect())
    };
    list().unwrap_or_default().into_iter().filter(|name| !needed.contains(name)).collect()
}

/// Replaces the state atomically.
pub(super) fn save(directory: &Path, state: &State) -> std::io::Result<()> {
    let target = directory.join("state.json");
    if target.is_dir() {
        remove(&target);
    }
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(&state.to_bytes()?)?;
    file.persist(target)?;
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
        // A process that was killed may have left a temporary file.
        if (name.starts_with("repo-") || name.starts_with(".tmp")) && !keep.contains(&name.as_ref()) {
            remove(&entry.path());
        }
    }
}

/// Removes the files that a fetch leaves behind if it is killed: parts of objects, and locks. The caller holds the disk,
/// so no other fetch uses them.
pub(super) fn remove_partial(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if name.starts_with("tmp_") || name.ends_with(".lock") || name == "gc.pid" {
            remove(&entry.path());
        } else if is_directory {
            remove_partial(&entry.path());
        }
    }
}

/// The bytes of all files below a directory. Links are not followed.
pub(super) fn size(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
