//! Fetched archives on disk, by repository, credentials, name and the version that was asked for. The functions read and
//! unpack whole archives, so they belong on a thread that may block.

use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use super::archive::{self, ArchiveError};
use super::repository::ChartRepository;
use crate::cache_files::{is_file, make_directory, persist};
use crate::hash::hex;
use crate::limits::Limits;
use crate::memory_files::MemoryFiles;

/// The first line of every file begins with it. Files of other layouts are not read.
const FORMAT: &str = "plumb chart 2";
/// The extension of files of this layout.
const EXTENSION: &str = "chart";
/// Of the layout before, whose archives were kept under the version that they claimed to have.
const OLD_EXTENSION: &str = "tgz";

/// A directory of archives. The first line of a file names the chart that was asked for and the archive's digest. When
/// the directory grows too big, the least recently used archives are removed.
pub(super) struct ArchiveStore {
    pub(super) directory: PathBuf,
    pub(super) limits: Limits,
    pub(super) max_bytes: u64,
}

impl ArchiveStore {
    /// The files of an archive, if it exists, belongs to this name, is not damaged and has the digest that the server
    /// gives.
    pub(super) fn read(&self, name: &ArchiveName, digest: &str) -> Option<MemoryFiles> {
        let path = self.path(name);
        if !is_file(&path) {
            return None;
        }
        let mut file = std::fs::File::open(&path).ok()?;
        let mut line = vec![0; first_line(name, &"0".repeat(64)).len()];
        file.read_exact(&mut line).ok()?;
        let line = String::from_utf8(line).ok()?;
        let (_, stored) = line.trim_end().rsplit_once(' ')?;
        if line != first_line(name, stored) || !is_digest(digest, stored) {
            return None;
        }
        let _ = file.set_modified(SystemTime::now());
        let mut content = HashingReader { inner: file, hasher: Sha256::new() };
        let files = archive::unpack(&mut content, &self.limits);
        // What follows the archive counts too.
        std::io::copy(&mut content, &mut std::io::sink()).ok()?;
        if hex(&content.hasher.finalize()) != stored {
            return None;
        }
        files.ok()
    }

    /// Unpacks an archive.
    pub(super) fn unpack(&self, archive: impl Read) -> Result<MemoryFiles, ArchiveError> {
        archive::unpack(archive, &self.limits)
    }

    /// Stores an archive that has this digest. An error only costs another download later.
    pub(super) fn store(&self, name: &ArchiveName, mut archive: impl Read, digest: &str) {
        if make_directory(&self.directory).is_ok()
            && let Ok(mut file) = tempfile::NamedTempFile::new_in(&self.directory)
            && file.write_all(first_line(name, digest).as_bytes()).is_ok()
            && std::io::copy(&mut archive, &mut file).is_ok()
        {
            let _ = persist(file, &self.path(name));
        }
        self.make_room();
    }

    /// Removes archives of the layout before. Such an archive could have been stored under the version of another one.
    pub(super) fn remove_old(directory: &Path) {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if has_extension(&entry.path(), OLD_EXTENSION) {
                // Another process may have removed it.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// Removes the least recently used archives until the rest fits.
    fn make_room(&self) {
        let files = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut archives: Vec<(SystemTime, u64, PathBuf)> = files
            .filter(|entry| has_extension(&entry.path(), EXTENSION))
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
        self.directory.join(format!("{}.{EXTENSION}", name.0))
    }
}

fn first_line(name: &ArchiveName, digest: &str) -> String {
    format!("{FORMAT} {} {digest}\n", name.0)
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension == wanted)
}

/// Hashes what is read.
struct HashingReader<R> {
    inner: R,
    hasher: Sha256,
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n_read = self.inner.read(buffer)?;
        self.hasher.update(buffer.get(..n_read).unwrap_or_default());
        Ok(n_read)
    }
}

/// Names an archive: a hash of repository, credentials, chart and the version that was asked for.
pub(super) struct ArchiveName(String);

impl ArchiveName {
    pub(super) fn new(repository: &ChartRepository, name: &str, version: &str) -> Self {
        let key = format!("{FORMAT}\0{}\0{name}\0{version}", repository.identity());
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

    fn store(directory: &Path, max_bytes: u64) -> ArchiveStore {
        ArchiveStore { directory: directory.to_owned(), limits: Limits::default(), max_bytes }
    }

    fn name(version: &str) -> ArchiveName {
        ArchiveName::new(&ChartRepository::default(), "web", version)
    }

    /// An archive with one file, and its digest.
    fn archive(content: &str) -> (Vec<u8>, String) {
        let encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut builder = tar::Builder::new(encoder);
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, "web/Chart.yaml", content.as_bytes()).unwrap();
        let bytes = builder.into_inner().unwrap().finish().unwrap();
        let digest = hex(&Sha256::digest(&bytes));
        (bytes, digest)
    }

    #[test]
    fn least_recently_used_archives_are_removed_first() {
        let directory = tempfile::tempdir().unwrap();
        let archives = store(directory.path(), 10_000);
        let digest = "0".repeat(64);
        for n in 0..3 {
            let name = name(&n.to_string());
            archives.store(&name, &[0; 3_000][..], &digest);
            let age = SystemTime::now() - Duration::from_secs(1_000 - n);
            std::fs::File::open(archives.path(&name)).unwrap().set_modified(age).unwrap();
        }
        // It cannot be unpacked, but reading it counts as use.
        assert!(archives.read(&name("0"), "").is_none());
        archives.store(&name("3"), &[0; 3_000][..], &digest);
        let left: Vec<usize> = (0..4).filter(|n| archives.path(&name(&n.to_string())).exists()).collect();
        assert_eq!(left, [0, 2, 3]);
    }

    #[test]
    fn damaged_and_exchanged_archives_are_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let archives = store(directory.path(), 1 << 20);
        let ((good, good_digest), (evil, evil_digest)) = (archive("good"), archive("evil"));
        let (one, nine) = (name("1.0.0"), name("9.9.9"));
        let again = || archives.store(&one, &good[..], &good_digest);
        again();
        archives.store(&nine, &evil[..], &evil_digest);
        assert!(archives.read(&one, "").is_some());
        assert!(archives.read(&one, &format!("sha256:{good_digest}")).is_some());
        assert!(archives.read(&one, &evil_digest).is_none(), "the index has another digest");
        std::fs::copy(archives.path(&nine), archives.path(&one)).unwrap();
        assert!(archives.read(&one, "").is_none(), "the file of another version");
        again();
        let path = archives.path(&one);
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(archives.read(&one, "").is_none(), "a damaged byte");
        bytes[last] ^= 1;
        bytes.extend_from_slice(b"more");
        std::fs::write(&path, &bytes).unwrap();
        assert!(archives.read(&one, "").is_none(), "more bytes");
        again();
        assert!(archives.read(&one, "").is_some());
        std::fs::write(&path, &good).unwrap();
        assert!(archives.read(&one, "").is_none(), "no first line");
    }

    #[test]
    fn archives_of_the_layout_before_do_not_survive() {
        let directory = tempfile::tempdir().unwrap();
        let old = directory.path().join(format!("{}.tgz", "a".repeat(64)));
        std::fs::write(&old, "x").unwrap();
        ArchiveStore::remove_old(directory.path());
        assert!(!old.exists());
    }
}
