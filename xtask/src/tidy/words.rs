//! Words that say nothing to a reader of this repository: absolute homes, machine paths, leftovers.

use std::path::Path;

use anyhow::Result;

use super::{Violation, tracked_files};

/// Spelt in two halves, so that this file does not find itself.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("/root", "/", "a path of one machine"),
    ("/work", "/main", "a path of one machine"),
    ("/work", "/shared", "a path of one machine"),
    ("/work", "/bg", "a path of one machine"),
    ("/work", "/wt", "a path of one machine"),
    ("dbg", "!(", "a leftover of debugging"),
    ("<<<<<", "<< ", "a merge conflict"),
    ("#[", "ignore]", "a test that does not run: make it run or remove it"),
];

pub(super) fn check(root: &Path) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for file in tracked_files(root)? {
        let Ok(text) = std::fs::read_to_string(root.join(&file)) else { continue };
        for (number, line) in text.lines().enumerate() {
            for (first, second, why) in FORBIDDEN {
                let word = format!("{first}{second}");
                if line.contains(&word) {
                    found.push(Violation::new(
                        format!("{}:{}", file.display(), number + 1),
                        format!("`{word}`: {why}"),
                    ));
                }
            }
        }
    }
    Ok(found)
}
