//! Nothing that a tool makes is in the repository, apart from what is listed here with the reason.

use std::path::Path;

use anyhow::Result;

use super::{Violation, tracked_files};

/// Extensions and names that tools leave behind.
const STRAY: &[&str] = &[
    ".orig",
    ".rej",
    ".swp",
    ".profraw",
    ".pyc",
    ".log",
    ".tmp",
    ".snap.new",
    ".pending-snap",
    ".DS_Store",
    ".exe",
    ".so",
    ".o",
];

/// No file of the repository is larger than this; a recording that needs more is trimmed first.
const LARGEST: u64 = 600 * 1024;

pub(super) fn check(root: &Path) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for file in tracked_files(root)? {
        let name = file.display().to_string();
        if STRAY.iter().any(|end| name.ends_with(end)) {
            found.push(Violation::new(
                &name,
                "a tool left this behind: remove it, or ignore it in .gitignore",
            ));
        }
        let size = std::fs::metadata(root.join(&file))?.len();
        if size > LARGEST {
            found.push(Violation::new(
                &name,
                format!("{} KiB: trim it, at most {} KiB", size / 1024, LARGEST / 1024),
            ));
        }
    }
    Ok(found)
}
