//! Removes the scratch directories of processes that were killed. They may hold credentials.

use std::fs::File;
use std::path::Path;

use crate::sandbox::SCRATCH_PREFIX;

/// Marks a directory as in use for as long as the returned file is open. If no other process uses the directory, its
/// scratch directories are removed first.
pub(crate) fn enter(root: &Path) -> std::io::Result<File> {
    let directory = File::open(root)?;
    if directory.try_lock().is_ok() {
        for entry in std::fs::read_dir(root)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(SCRATCH_PREFIX) {
                std::fs::remove_dir_all(entry.path())?;
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
