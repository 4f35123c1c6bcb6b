//! No file that a tool left behind is in the repository, and no file is too large for it.

use anyhow::Result;

use super::reading::Tree;
use super::violation::Violation;

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

/// The largest file that the repository may have. Trim a recording that is larger.
const LARGEST: u64 = 700 * 1024;

pub(super) fn check(tree: &Tree) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for file in tree.paths() {
        let name = file.display().to_string();
        if STRAY.iter().any(|end| name.ends_with(end)) {
            found
                .push(Violation::new(&name, "was left behind by a tool: remove it, or add it to .gitignore"));
        }
        let size = std::fs::metadata(tree.root().join(file))?.len();
        if size > LARGEST {
            found.push(Violation::new(
                &name,
                format!("{} KiB: trim it, at most {} KiB", size / 1024, LARGEST / 1024),
            ));
        }
    }
    Ok(found)
}
