//! No Rust file has more than 600 lines, tests included.

use super::reading::Tree;
use super::violation::Violation;

const MOST_LINES: usize = 600;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let lengths = tree.rust_files().map(|file| (file.place(), file.text.lines().count()));
    lengths.filter_map(|(place, n_lines)| violation(&place, n_lines)).collect()
}

fn violation(place: &str, n_lines: usize) -> Option<Violation> {
    let what = || format!("{n_lines} lines, at most {MOST_LINES}: split it by subject");
    (n_lines > MOST_LINES).then(|| Violation::new(place, what()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_over_the_limit_is_reported() {
        assert_eq!(violation("a.rs", MOST_LINES), None);
        assert!(violation("a.rs", MOST_LINES + 1).is_some());
    }
}
