//! What plumb left on disk, in one text: the names, kinds, sizes and modification times of all files of a repository.
//!
//! Another process that writes to a file, removes it or puts something else in its place changes the stamp, and the
//! repository is made again. Content that changed without it (a disk that forgets) is found when it is read, by its hash.

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::secret::hex;

/// Deepest directory. Refs may have many slashes in their names.
const MAX_DEPTH: usize = 512;

/// The stamp of a directory; `None` if it is not a directory, or cannot be read.
pub(super) fn stamp(directory: &Path) -> Option<String> {
    let is_directory = std::fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.is_dir());
    if !is_directory {
        return None;
    }
    let mut lines = Vec::new();
    list(directory, "", MAX_DEPTH, &mut lines)?;
    lines.sort_unstable();
    Some(hex(&Sha256::digest(lines.join("\n"))))
}

fn list(directory: &Path, prefix: &str, depth: usize, lines: &mut Vec<String>) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    for entry in std::fs::read_dir(directory).ok()? {
        let entry = entry.ok()?;
        let metadata = entry.metadata().ok()?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if metadata.is_dir() {
            lines.push(format!("{name}/"));
            list(&entry.path(), &format!("{name}/"), depth, lines)?;
            continue;
        }
        let mut line = name;
        // Writing to a text cannot fail.
        let _ = write!(
            line,
            " {:o} {} {}.{}",
            metadata.mode() & 0o170_000,
            metadata.len(),
            metadata.mtime(),
            metadata.mtime_nsec()
        );
        lines.push(line);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_file_changes_the_stamp() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("repo");
        let make = || {
            let _ = std::fs::remove_dir_all(&directory);
            std::fs::create_dir_all(directory.join("refs/heads")).unwrap();
            std::fs::write(directory.join("config"), "[core]").unwrap();
            std::fs::write(directory.join("refs/heads/main"), "1").unwrap();
            let past = std::time::SystemTime::now() - std::time::Duration::from_hours(1);
            let file = std::fs::File::options().append(true).open(directory.join("config")).unwrap();
            file.set_modified(past).unwrap();
            stamp(&directory).unwrap()
        };
        let config = directory.join("config");
        let changes: [&dyn Fn(); 8] = [
            &|| std::fs::write(&config, "[croe]").unwrap(),
            &|| std::fs::write(&config, "").unwrap(),
            &|| std::fs::remove_file(&config).unwrap(),
            &|| {
                std::fs::remove_file(&config).unwrap();
                std::fs::create_dir(&config).unwrap();
            },
            &|| {
                std::fs::remove_file(&config).unwrap();
                std::os::unix::fs::symlink("refs/heads/main", &config).unwrap();
            },
            &|| std::fs::write(directory.join("config.lock"), "").unwrap(),
            &|| std::fs::remove_dir_all(directory.join("refs")).unwrap(),
            &|| std::fs::create_dir(directory.join("refs/tags")).unwrap(),
        ];
        for (index, change) in changes.iter().enumerate() {
            let before = make();
            assert_eq!(stamp(&directory).as_ref(), Some(&before), "{index}");
            change();
            assert_ne!(stamp(&directory), Some(before), "{index}");
        }
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(stamp(&directory), None);
        std::os::unix::fs::symlink("/", &directory).unwrap();
        assert_eq!(stamp(&directory), None, "a link is not followed");
    }
}
