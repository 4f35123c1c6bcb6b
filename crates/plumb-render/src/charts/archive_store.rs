//! Fetched archives on disk, by repository, name and version. The functions read and unpack whole archives, so they
//! belong on a thread that may block.

use std::path::PathBuf;
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use super::archive::{self, ArchiveError};
use super::repository::ChartRepository;
use crate::hash::hex;
use crate::limits::Limits;
use crate::memory_files::MemoryFiles;

/// A directory of archives, each preceded by its hash. When it grows too big, the least recently used archives are
/// removed.
pub(super) struct ArchiveStore {
    pub(super) directory: PathBuf,
    pub(super) limits: Limits,
    pub(super) max_bytes: u64,
}

impl ArchiveStore {
    /// The files of an archive, if it exists, is not damaged and has this digest.
    pub(super) fn read(&self, name: &ArchiveName, digest: &str) -> Option<MemoryFiles> {
        let path = self.path(name);
        let content = std::fs::read(&path).ok()?;
        let (hash, archive) = content.split_at_checked(64)?;
        let found = hex(&Sha256::digest(archive));
        if found.as_bytes() != hash || !is_digest(digest, &found) {
            return None;
        }
        if let Ok(file) = std::fs::File::open(&path) {
            let _ = file.set_modified(SystemTime::now());
        }
        archive::unpack(archive, &self.limits).ok()
    }

    /// Unpacks an archive and stores it.
    pub(super) fn unpack_and_store(
        &self,
        name: &ArchiveName,
        archive: &[u8],
    ) -> Result<MemoryFiles, ArchiveError> {
        let files = archive::unpack(archive, &self.limits)?;
        self.store(name, archive);
        Ok(files)
    }

    /// Stores an archive. An error only costs another download later.
    pub(super) fn store(&self, name: &ArchiveName, archive: &[u8]) {
        let mut content = hex(&Sha256::digest(archive)).into_bytes();
        content.extend_from_slice(archive);
        if let Ok(file) = tempfile::NamedTempFile::new_in(&self.directory)
            && std::fs::write(file.path(), content).is_ok()
        {
            let _ = file.persist(self.path(name));
        }
        self.make_room();
    }

    /// Removes the least recently used archives until the rest fits.
    fn make_room(&self) {
        let files = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut archives: Vec<(SystemTime, u64, PathBuf)> = files
            .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "tgz"))
            .filter_map(|entry| {
                let metadata = entry.metadata().ok()?;
                Some((metadata.modified().ok()?, metadata.len(), entry.path()))
            })
            .collect();
        archives.sort();
        let mut n_bytes: u64 = archives.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in archives {
            if n_bytes <= self.max_bytes {
                break;
            }
            // It may already be removed.
            let _ = std::fs::remove_file(path);
            n_bytes -= size;
        }
    }

    fn path(&self, name: &ArchiveName) -> PathBuf {
        self.directory.join(format!("{}.tgz", name.0))
    }
}

/// Names an archive: a hash of repository, credentials, chart and version.
pub(super) struct ArchiveName(String);

impl ArchiveName {
    pub(super) fn new(repository: &ChartRepository, name: &str, version: &str) -> Self {
        let key = format!("{}\0{name}\0{version}", repository.identity());
        Self(hex(&Sha256::digest(key)))
    }
}

/// True if the digest is the expected one, or if the index gives none.
pub(super) fn is_digest(expected: &str, found: &str) -> bool {
    let expected = expected.strip_prefix("sha256:").unwrap_or(expected);
    expected.is_empty() || expected.eq_ignore_ascii_case(found)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn least_recently_used_archives_are_removed_first() {
        let directory = tempfile::tempdir().unwrap();
        let archives = ArchiveStore {
            directory: directory.path().to_owned(),
            limits: Limits::default(),
            max_bytes: 10_000,
        };
        let repository = ChartRepository::default();
        let name = |n: usize| ArchiveName::new(&repository, "web", &n.to_string());
        for n in 0..3 {
            archives.store(&name(n), &[0; 3_000]);
            let age = SystemTime::now() - Duration::from_secs(1_000 - n as u64);
            std::fs::File::open(archives.path(&name(n))).unwrap().set_modified(age).unwrap();
        }
        // It cannot be unpacked, but reading it counts as use.
        assert!(archives.read(&name(0), "").is_none());
        archives.store(&name(3), &[0; 3_000]);
        let left: Vec<usize> = (0..4).filter(|n| archives.path(&name(*n)).exists()).collect();
        assert_eq!(left, [0, 2, 3]);
    }
}
