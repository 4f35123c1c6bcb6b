//! Removes the scratch directories of processes that were killed. They may hold credentials.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::cache_files::{make_directory, remove};
use crate::sandbox::SCRATCH_PREFIX;

/// The directory in which renderings have their scratch directories. Other processes do not remove them.
pub(crate) struct ScratchRoot {
    path: PathBuf,
    /// A lock that keeps other processes from removing scratch directories.
    in_use: Mutex<Option<File>>,
}

impl ScratchRoot {
    /// Creates the directory if it does not exist.
    pub(crate) fn new(directory: &Path) -> std::io::Result<Self> {
        make_directory(directory)?;
        let path = directory.canonicalize()?;
        Ok(Self { in_use: Mutex::new(enter(&path).ok()), path })
    }

    /// The directory, which is made again if it was removed or replaced.
    pub(crate) fn enter(&self) -> std::io::Result<&Path> {
        let mut in_use = self.in_use.lock();
        let number = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let held = in_use.as_ref().and_then(|file| file.metadata().ok()).map(number);
        let present = std::fs::metadata(&self.path).ok().map(number);
        if present.is_none() || held != present {
            make_directory(&self.path)?;
            *in_use = enter(&self.path).ok();
        }
        Ok(&self.path)
    }
}

/// Marks a directory as in use for as long as the returned file is open. If no other process uses the directory, its
/// scratch directories are removed first.
pub(crate) fn enter(root: &Path) -> std::io::Result<File> {
    let directory = File::open(root)?;
    if directory.try_lock().is_ok() {
        for entry in std::fs::read_dir(root)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(SCRATCH_PREFIX) {
                remove(&entry.path());
            }
        }
        // A process that takes the lock before us removes scratch directories too. That is safe: this process has
        // created none yet.
        directory.unlock()?;
    }
    directory.lock_shared()?;
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_was_removed_is_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cache/scratch");
        let root = ScratchRoot::new(&path).unwrap();
        let left = path.join("render-left");
        let ways: [&dyn Fn(); 4] = [
            &|| {},
            &|| std::fs::remove_dir_all(directory.path().join("cache")).unwrap(),
            &|| {
                std::fs::remove_dir_all(&path).unwrap();
                std::fs::write(&path, "").unwrap();
            },
            &|| {
                std::fs::remove_dir_all(&path).unwrap();
                std::os::unix::fs::symlink("/nonexistent", &path).unwrap();
            },
        ];
        for (index, way) in ways.iter().enumerate() {
            way();
            std::fs::create_dir(root.enter().unwrap().join("render-left")).unwrap();
            drop(enter(&path).unwrap());
            assert!(left.exists(), "{index}: the directory is in use");
            std::fs::remove_dir(&left).unwrap();
        }
    }

    #[test]
    fn only_unused_scratch_directories_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let left = root.path().join("render-left");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("registry.json"), "secret").unwrap();
        std::fs::write(root.path().join("kept.tgz"), "chart").unwrap();
        let first = enter(root.path()).unwrap();
        assert!(!left.exists());
        assert!(root.path().join("kept.tgz").exists());
        std::fs::create_dir(&left).unwrap();
        let _second = enter(root.path()).unwrap();
        assert!(left.exists(), "another process uses it");
        drop(first);
    }
}
