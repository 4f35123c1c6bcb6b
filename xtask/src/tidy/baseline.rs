//! The violations that existed when a rule was added. The list can only shrink: a violation that is not in it
//! fails, and so does a line of the list that is no longer violated.
//!
//! A line is `rule: place`, as `cargo xtask tidy` prints it.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use super::violation::Violation;

/// Where the list is.
pub(super) const FILE: &str = "xtask/src/tidy/baseline.txt";

pub(super) struct Baseline {
    lines: BTreeSet<String>,
}

impl Baseline {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self { lines: lines.map(str::to_owned).collect() }
    }

    /// The violations that are not in the list, and the lines that no violation matches.
    pub(super) fn compare(&self, found: Vec<Violation>) -> (Vec<Violation>, Vec<String>) {
        let mut stale = self.lines.clone();
        let mut new = Vec::new();
        for violation in found {
            let line = format!("{}: {}", violation.rule, violation.place);
            stale.remove(&line);
            if !self.lines.contains(&line) {
                new.push(violation);
            }
        }
        (new, stale.into_iter().collect())
    }
}

/// The violation that a line of the list is when nothing matches it.
pub(super) fn stale(line: &str) -> Violation {
    let what = format!("`{line}` is no longer violated: remove the line (`cargo xtask tidy --shrink`)");
    Violation { rule: "baseline", place: FILE.to_owned(), what }
}

/// Removes these lines from the list and leaves its comments.
pub(super) fn remove(root: &Path, stale: &[String]) -> Result<()> {
    let path = root.join(FILE);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {FILE}"))?;
    std::fs::write(&path, without(&text, stale)).with_context(|| format!("cannot write {FILE}"))
}

fn without(text: &str, stale: &[String]) -> String {
    let is_kept = |line: &&str| !stale.iter().any(|stale| stale == line.trim());
    text.split_inclusive('\n').filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# comment\nfile-length: a.rs\nfile-length: b.rs\n";

    fn violation(place: &str) -> Violation {
        Violation { rule: "file-length", place: place.to_owned(), what: "700 lines".to_owned() }
    }

    #[test]
    fn only_new_violations_and_stale_lines_are_returned() {
        let (new, stale) = Baseline::parse(TEXT).compare(vec![violation("a.rs"), violation("c.rs")]);
        assert_eq!(new, [violation("c.rs")]);
        assert_eq!(stale, ["file-length: b.rs"]);
    }

    #[test]
    fn removing_a_line_leaves_the_others() {
        assert_eq!(without(TEXT, &["file-length: b.rs".to_owned()]), "# comment\nfile-length: a.rs\n");
    }
}
