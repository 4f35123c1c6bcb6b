//! Scratch directories of processes that were killed: they may hold credentials.

use std::fs::File;
use std::path::Path;

use crate::sandbox::SCRATCH;

/// Marks a directory as in use for as long as the file is open. Whoever finds it unused removes the scratch directories
/// that nobody will come back for.
pub(crate) fn enter(root: &Path) -> std::io::Result<File> {
    let directory = File::open(root)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_uses_is_removed() {
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
        assert!(left.exists(), "somebody is at work");
        drop(first);
    }
}
