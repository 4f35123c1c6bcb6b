//! Archives that were fetched before, by repository, name and version. Everything here reads or unpacks whole archives
//! and belongs on a thread that may block.

use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use super::{ArchiveError, ChartRepository, archive};
use crate::local::hex;
use crate::{Limits, MemoryFiles};

/// A directory of archives, each with its hash before it.
pub(super) struct Archives {
    pub(super) directory: PathBuf,
    pub(super) limits: Limits,
}

impl Archives {
    /// The files of an archive, if it is there, whole, and the one of this digest.
    pub(super) fn read(&self, name: &ArchiveName, digest: &str) -> Option<MemoryFiles> {
        let content = std::fs::read(self.path(name)).ok()?;
        let (hash, archive) = content.split_at_checked(64)?;
        let found = hex(&Sha256::digest(archive));
        if found.as_bytes() != hash || !is_digest(digest, &found) {
            return None;
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
