//! Reads objects from the object database of a mirror, which is a cache: its files may be damaged at any moment.
//!
//! Every object is compared with its hash when it is first read. Packs are mapped into memory, and the operating system
//! ends a process that reads a mapped file behind its end, so packs that became shorter are not read any more.

use std::collections::{BTreeMap, HashSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

/// The object database of one mirror.
pub(crate) struct Objects {
    repository: gix::ThreadSafeRepository,
    packs: Packs,
    /// Objects whose content was compared with their hash.
    verified: Mutex<HashSet<gix::ObjectId>>,
}

/// Most objects that are remembered as verified.
const MOST_VERIFIED: usize = 100_000;

/// Why an object cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The file became shorter while it was in use.
    #[error("{name} was truncated")]
    Truncated { name: String },
    /// The content does not belong to the name.
    #[error("object {id} has another content than its hash says")]
    Content { id: gix::ObjectId },
    /// It is missing, or cannot be decoded.
    #[error(transparent)]
    Git(#[from] gix::Error),
}

impl Objects {
    pub(crate) fn new(repository: gix::ThreadSafeRepository) -> Self {
        let directory = repository.objects_dir().join("pack");
        Self { repository, packs: Packs { directory, known: Mutex::default() }, verified: Mutex::default() }
    }

    /// A view of the repository for one thread. It should not be kept: each view checks the packs first.
    pub(crate) fn view(&self) -> Result<gix::Repository, ReadError> {
        self.packs.check()?;
        Ok(self.repository.to_thread_local())
    }

    /// The content of an object, which is what its hash says.
    pub(crate) fn read<'a>(
        &self,
        view: &'a gix::Repository,
        id: gix::ObjectId,
    ) -> Result<gix::Object<'a>, ReadError> {
        let object = view.find_object(id)?;
        if self.verified.lock().contains(&id) {
            return Ok(object);
        }
        let hash = gix::objs::compute_hash(id.kind(), object.kind, &object.data)?;
        if hash != id {
            return Err(ReadError::Content { id });
        }
        let mut verified = self.verified.lock();
        if verified.len() >= MOST_VERIFIED {
            verified.clear();
        }
        verified.insert(id);
        Ok(object)
    }
}

/// The files that may be mapped into memory.
struct Packs {
    directory: PathBuf,
    known: Mutex<KnownPacks>,
}

/// If there are more files than this, they are looked at no more often than every few milliseconds: a rendering reads
/// thousands of objects.
const FEW: usize = 16;
const LOOK: Duration = Duration::from_millis(5);

#[derive(Default)]
struct KnownPacks {
    looked: Option<Instant>,
    /// The directory's modification time when it was listed last.
    listed: Option<SystemTime>,
    /// By name: the file's number and length.
    files: BTreeMap<String, (u64, u64)>,
}

impl Packs {
    /// Fails if a file became shorter than it was. A file that was removed stays readable where it is mapped.
    fn check(&self) -> Result<(), ReadError> {
        let mut known = self.known.lock();
        if known.files.len() > FEW && known.looked.is_some_and(|at| at.elapsed() < LOOK) {
            return Ok(());
        }
        let Ok(directory) = std::fs::metadata(&self.directory) else { return Ok(()) };
        let modified = directory.modified().ok();
        if known.listed.is_none() || known.listed != modified {
            for entry in std::fs::read_dir(&self.directory).into_iter().flatten().flatten() {
                let Ok(metadata) = entry.metadata() else { continue };
                let name = entry.file_name().to_string_lossy().into_owned();
                let file = (metadata.ino(), metadata.len());
                known.files.entry(name).and_modify(|seen| *seen = same_or_new(*seen, file)).or_insert(file);
            }
            known.listed = modified;
        }
        let mut removed = Vec::new();
        for (name, (number, length)) in &known.files {
            match std::fs::metadata(self.directory.join(name)) {
                Ok(now) if now.ino() == *number && now.len() < *length => {
                    return Err(ReadError::Truncated { name: name.clone() });
                }
                Ok(_) => {}
                Err(_) => removed.push(name.clone()),
            }
        }
        for name in removed {
            known.files.remove(&name);
        }
        known.looked = Some(Instant::now());
        Ok(())
    }
}

/// A file that was replaced has a new number. Of the same file the greatest length counts: it may be mapped.
fn same_or_new(seen: (u64, u64), found: (u64, u64)) -> (u64, u64) {
    if seen.0 == found.0 { (seen.0, seen.1.max(found.1)) } else { found }
}

/// Notes that the mirror is damaged, so that the next fetch makes it again.
pub(crate) fn note_damage(damaged: &Arc<AtomicBool>) {
    damaged.store(true, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packs(directory: &std::path::Path) -> Packs {
        Packs { directory: directory.to_owned(), known: Mutex::default() }
    }

    /// Looks again, however long ago the last look was.
    fn is_usable(packs: &Packs) -> bool {
        packs.known.lock().looked = None;
        packs.check().is_ok()
    }

    #[test]
    fn a_pack_that_became_shorter_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pack-1.pack");
        std::fs::write(&file, "0123456789").unwrap();
        let mapped = packs(directory.path());
        assert!(is_usable(&mapped));
        let truncate =
            |length| std::fs::File::options().write(true).open(&file).unwrap().set_len(length).unwrap();
        truncate(5);
        assert!(!is_usable(&mapped));
        assert!(!is_usable(&mapped), "it stays so");
        truncate(10);
        assert!(is_usable(&mapped), "no byte is behind the end");
        // A removed file stays readable where it is mapped, and a new one of the same name is another.
        std::fs::remove_file(&file).unwrap();
        assert!(is_usable(&mapped));
        std::fs::write(&file, "01").unwrap();
        assert!(is_usable(&mapped));
        std::fs::remove_dir_all(directory.path()).unwrap();
        assert!(is_usable(&mapped));
    }

    #[test]
    fn a_new_pack_is_watched_too() {
        let directory = tempfile::tempdir().unwrap();
        let mapped = packs(directory.path());
        assert!(is_usable(&mapped));
        let file = directory.path().join("pack-2.pack");
        std::fs::write(&file, "0123456789").unwrap();
        // Make sure that the directory shows the change, however coarse its clock is.
        let later = SystemTime::now() + Duration::from_secs(5);
        std::fs::File::open(directory.path()).unwrap().set_modified(later).unwrap();
        assert!(is_usable(&mapped));
        std::fs::write(&file, "").unwrap();
        assert!(!is_usable(&mapped));
    }
}
