//! Text that does not belong in the repository: paths of one machine, leftovers of debugging and merging.

use super::reading::Tree;
use super::violation::Violation;

/// In two halves, so that this file does not match.
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

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.paths() {
        let Ok(text) = std::fs::read_to_string(tree.root().join(file)) else { continue };
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
    found
}
