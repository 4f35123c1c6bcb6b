//! Archives that were fetched before, by repository, name and version. Everything here reads or unpacks whole archives
//! and belongs on a thread that may block.

use std::path::PathBuf;
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use super::{ArchiveError, ChartRepository, archive};
use crate::local::hex;
use crate::{Limits, MemoryFiles};

/// A directory of archives, each with its hash before it. Those that were not used for longest go when it grows too
/// big.
pub(super) struct Archives {
    pub(super) directory: PathBuf,
    pub(super) limits: Limits,
    pub(super) max_bytes: u64,
}

impl Archives {
    /// The files of an archive, if it is there, whole, and the one of this digest.
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

    /// Unpacks an archive and keeps it.
    pub(super) fn take_in(&self, name: &ArchiveName, archive: &[u8]) -> Result<MemoryFiles, ArchiveError> {
        let files = archive::unpack(archive, &self.limits)?;
        self.keep(name, archive);
        Ok(files)
    }

    /// Failing to keep an archive costs a download and nothing else.
    pub(super) fn keep(&self, name: &ArchiveName, archive: &[u8]) {
        let mut content = hex(&Sha256::digest(archive)).into_bytes();
        content.extend_from_slice(archive);
        if let Ok(file) = tempfile::NamedTempFile::new_in(&self.directory)
            && std::fs::write(file.path(), content).is_ok()
        {
            let _ = file.persist(self.path(name));
        }
        self.make_room();
    }

    /// Removes the archives that were not used for longest, until the rest fits.
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
            // Already gone is fine.
            let _ = std::fs::remove_file(path);
            n_bytes -= size;
        }
    }

    fn path(&self, name: &ArchiveName) -> PathBuf {
        self.directory.join(format!("{}.tgz", name.0))
    }
}

/// Which archive: a hash of repository, credentials, chart and version.
pub(super) struct ArchiveName(String);

impl ArchiveName {
    pub(super) fn new(repository: &ChartRepository, name: &str, version: &str) -> Self {
        let key = format!("{}\0{name}\0{version}", repository.identity());
        Self(hex(&Sha256::digest(key)))
    }
}

/// Is this what an index promises? One without digests promises nothing.
pub(super) fn is_digest(promised: &str, found: &str) -> bool {
    let promised = promised.strip_prefix("sha256:").unwrap_or(promised);
    promised.is_empty() || promised.eq_ignore_ascii_case(found)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn archives_that_nobody_used_go_first() {
        let directory = tempfile::tempdir().unwrap();
        let archives =
            Archives { directory: directory.path().to_owned(), limits: Limits::default(), max_bytes: 10_000 };
        let repository = ChartRepository::default();
        let name = |n: usize| ArchiveName::new(&repository, "web", &n.to_string());
        for n in 0..3 {
            archives.keep(&name(n), &[0; 3_000]);
            let age = SystemTime::now() - Duration::from_secs(1_000 - n as u64);
            std::fs::File::open(archives.path(&name(n))).unwrap().set_modified(age).unwrap();
        }
        // It is no archive that could be unpacked, but reading it is using it.
        assert!(archives.read(&name(0), "").is_none());
        archives.keep(&name(3), &[0; 3_000]);
        let left: Vec<usize> = (0..4).filter(|n| archives.path(&name(*n)).exists()).collect();
        assert_eq!(left, [0, 2, 3]);
    }
}
