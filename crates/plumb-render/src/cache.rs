//! Results on disk, by the hash of everything they depend on.
//!
//! Each file contains the hash of its content, which is checked when the file is read. A cache that is deleted,
//! truncated, full or not writable costs one more rendering, and causes no error. When it grows too big, the least
//! recently used results are removed.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use parking_lot::Mutex;
use plumb_core::desired::{Origin, RenderedManifest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::cache_files::{is_file, make_directory, persist, remove};
use crate::hash::hex;
use crate::source_type::SourceType;

/// Part of every key. Change it when results of earlier versions must not be used.
pub(crate) const FORMAT: &str = concat!("plumb-render ", env!("CARGO_PKG_VERSION"), " 4");

/// Results on disk.
pub(crate) struct Cache {
    directory: PathBuf,
    max_bytes: u64,
    /// Bytes on disk, counted at the start and with each write.
    n_bytes: Mutex<u64>,
}

/// A result without the index of the source, which differs between apps. `V` is a value, or a reference to one:
/// manifests may be large, and are not copied to be written.
#[derive(Serialize, Deserialize)]
struct Stored<V> {
    source_type: String,
    manifests: Vec<(V, Option<StoredOrigin>)>,
}

/// File, line, and whether the file contains the object unchanged.
type StoredOrigin = (String, usize, bool);

impl Cache {
    pub(crate) fn new(directory: PathBuf, max_bytes: u64) -> std::io::Result<Self> {
        make_directory(&directory)?;
        let n_bytes = entries(&directory).iter().map(|entry| entry.size).sum();
        Ok(Self { directory, max_bytes, n_bytes: Mutex::new(n_bytes) })
    }

    /// An earlier result, if it exists and is not damaged.
    pub(crate) fn read(
        &self,
        key: &str,
        source: usize,
        before_reading: &dyn Fn(usize) -> bool,
    ) -> Option<(SourceType, Vec<RenderedManifest>)> {
        let path = self.path(key);
        if !is_file(&path) {
            return None;
        }
        let content = fs::read(&path).ok()?;
        let Some(body) = checked_body(&content) else {
            remove(&path);
            return None;
        };
        before_reading(body.len());
        let stored: Stored<Value> = serde_json::from_slice(body).ok()?;
        // The modification time is the time of last use, which decides what is removed first.
        if let Ok(file) = fs::File::open(&path) {
            let _ = file.set_modified(SystemTime::now());
        }
        let manifests = stored
            .manifests
            .into_iter()
            .map(|(value, origin)| RenderedManifest {
                value,
                origin: origin.map(|(file, line, verbatim)| Origin { source, file, line, verbatim }),
            })
            .collect();
        Some((SourceType::from_name(&stored.source_type)?, manifests))
    }

    /// Stores a result. Errors are ignored: the cache is optional.
    pub(crate) fn write(&self, key: &str, source_type: SourceType, manifests: &[RenderedManifest]) {
        let stored = Stored {
            source_type: source_type.as_str().to_owned(),
            manifests: manifests
                .iter()
                .map(|manifest| {
                    let origin = manifest.origin.as_ref();
                    let origin = origin.map(|origin| (origin.file.clone(), origin.line, origin.verbatim));
                    (&manifest.value, origin)
                })
                .collect(),
        };
        let Ok(body) = serde_json::to_vec(&stored) else { return };
        if body.len() as u64 > self.max_bytes / 4 || self.write_file(key, &body).is_err() {
            return;
        }
        let mut n_bytes = self.n_bytes.lock();
        *n_bytes += body.len() as u64;
        if *n_bytes > self.max_bytes {
            *n_bytes = self.evict();
        }
    }

    fn write_file(&self, key: &str, body: &[u8]) -> std::io::Result<()> {
        let path = self.path(key);
        let parent = path.parent().unwrap_or(&self.directory);
        make_directory(&self.directory)?;
        make_directory(parent)?;
        let mut file = tempfile::NamedTempFile::new_in(parent)?;
        file.write_all(hex(&Sha256::digest(body)).as_bytes())?;
        file.write_all(b"\n")?;
        file.write_all(body)?;
        persist(file, &path)
    }

    /// Removes the least recently used results, down to three quarters of the limit. Returns the number of bytes left.
    fn evict(&self) -> u64 {
        let mut entries = entries(&self.directory);
        entries.sort_by_key(|entry| entry.used);
        let mut n_bytes: u64 = entries.iter().map(|entry| entry.size).sum();
        for entry in entries {
            if n_bytes <= self.max_bytes / 4 * 3 {
                break;
            }
            if fs::remove_file(&entry.path).is_ok() {
                n_bytes -= entry.size;
            }
        }
        n_bytes
    }

    fn path(&self, key: &str) -> PathBuf {
        let (start, rest) = key.split_at_checked(2).unwrap_or(("00", key));
        self.directory.join(start).join(rest)
    }
}

/// The content after its hash, if the hash is right.
fn checked_body(content: &[u8]) -> Option<&[u8]> {
    let (hash, rest) = content.split_at_checked(64)?;
    let body = rest.strip_prefix(b"\n")?;
    (hex(&Sha256::digest(body)).as_bytes() == hash).then_some(body)
}

struct CacheEntry {
    path: PathBuf,
    size: u64,
    used: SystemTime,
}

fn entries(directory: &Path) -> Vec<CacheEntry> {
    let read = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    read(directory)
        .flat_map(|group| read(&group.path()))
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            Some(CacheEntry { path: entry.path(), size: metadata.len(), used })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manifests(text: &str) -> Vec<RenderedManifest> {
        let origin = Some(Origin { source: 3, file: "a.yaml".to_owned(), line: 7, verbatim: true });
        vec![RenderedManifest { value: json!({"kind": "X", "text": text}), origin }]
    }

    fn cache(directory: &Path, max_bytes: u64) -> Cache {
        Cache::new(directory.join("cache"), max_bytes).unwrap()
    }

    #[test]
    fn results_come_back_with_the_asking_source() {
        let directory = tempfile::tempdir().unwrap();
        let key = "ab".repeat(32);
        cache(directory.path(), 1 << 20).write(&key, SourceType::Helm, &manifests("x"));
        let (source_type, found) = cache(directory.path(), 1 << 20).read(&key, 5, &|_| true).unwrap();
        assert_eq!(source_type, SourceType::Helm);
        assert_eq!(found[0].value, manifests("x")[0].value);
        assert_eq!(
            found[0].origin,
            Some(Origin { source: 5, file: "a.yaml".to_owned(), line: 7, verbatim: true })
        );
        assert!(cache(directory.path(), 1 << 20).read(&"cd".repeat(32), 0, &|_| true).is_none());
    }

    #[test]
    fn damaged_and_deleted_files_are_misses() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path(), 1 << 20);
        let key = "ab".repeat(32);
        cache.write(&key, SourceType::Directory, &manifests("some text"));
        let path = cache.path(&key);
        let whole = fs::read(&path).unwrap();
        for cut in [0, 10, 64, 65, whole.len() - 1] {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(cache.read(&key, 0, &|_| true).is_none(), "cut at {cut}");
        }
        let flipped = String::from_utf8(whole).unwrap().replace("some text", "evil text");
        fs::write(&path, flipped).unwrap();
        assert!(cache.read(&key, 0, &|_| true).is_none());
        assert!(!path.exists(), "a damaged file is removed");
        fs::remove_dir_all(directory.path()).unwrap();
        assert!(cache.read(&key, 0, &|_| true).is_none());
        cache.write(&key, SourceType::Directory, &manifests("again"));
        assert!(cache.read(&key, 0, &|_| true).is_some(), "the directory is created again");
    }

    #[test]
    fn the_least_recently_used_go_first() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path(), 40_000);
        let key = |n: usize| format!("{n:064x}");
        let text = "x".repeat(3_000);
        for n in 0..10 {
            cache.write(&key(n), SourceType::Directory, &manifests(&text));
            let age = SystemTime::now() - std::time::Duration::from_secs(1_000 - n as u64);
            fs::File::open(cache.path(&key(n))).unwrap().set_modified(age).unwrap();
        }
        assert!(cache.read(&key(0), 0, &|_| true).is_some(), "reading makes it young");
        for n in 10..13 {
            cache.write(&key(n), SourceType::Directory, &manifests(&text));
        }
        assert!(cache.read(&key(0), 0, &|_| true).is_some());
        assert!(cache.read(&key(1), 0, &|_| true).is_none());
        assert!(cache.read(&key(12), 0, &|_| true).is_some());
        let on_disk: u64 = entries(&cache.directory).iter().map(|entry| entry.size).sum();
        assert!(on_disk <= 40_000, "{on_disk}");
    }
}
