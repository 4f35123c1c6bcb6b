//! Every promise of `docs/security.md` names a test that exists.
//!
//! The last column of its table names tests, modules of tests (`drift::*`) and fuzz targets in backticks. The words before a
//! name are folders and files on the way to it, and the crate may come first: `` `plumb-git names::a_test` ``.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use super::reading::Tree;
use super::violation::Violation;

const DOCUMENT: &str = "docs/security.md";
const HEADING: &str = "## Promises";

pub(super) fn check(tree: &Tree) -> Result<Vec<Violation>> {
    let text = tree.text(Path::new(DOCUMENT))?;
    let mut known = Known::default();
    for path in tree.with_extension("rs") {
        known.read(path, &tree.text(path)?);
    }
    let (_, promises) = text.split_once(HEADING).context("docs/security.md has no promises")?;
    Ok(broken(promises, &known).into_iter().map(|what| Violation::new(DOCUMENT, what)).collect())
}

/// The rows that name no test, or one that does not exist.
fn broken(promises: &str, known: &Known) -> Vec<String> {
    let section = promises.split("\n## ").next().unwrap_or_default();
    let mut found = Vec::new();
    for row in rows(section) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let (promise, tests) =
            (cells.first().copied().unwrap_or_default(), cells.last().copied().unwrap_or_default());
        let names: Vec<(&str, &str)> = spans(tests);
        if cells.len() < 2 || names.is_empty() {
            found.push(format!("the promise \"{promise}\" names no test"));
        }
        let missing = names.into_iter().filter(|(before, name)| !known.has(before, name));
        found.extend(
            missing.map(|(_, name)| format!("the promise \"{promise}\" names `{name}`, which is no test")),
        );
    }
    found
}

/// The rows of all tables, without their heads.
fn rows(section: &str) -> impl Iterator<Item = &str> {
    let mut n_before = 0;
    section.lines().filter(move |line| {
        n_before = if line.starts_with('|') { n_before + 1 } else { 0 };
        n_before > 2
    })
}

/// The texts in backticks, each with what is before it.
fn spans(text: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = text.split('`').collect();
    parts.chunks_exact(2).filter_map(|pair| Some((*pair.first()?, *pair.get(1)?))).collect()
}

/// The tests of the repository, each with the words of its path.
#[derive(Default)]
struct Known {
    tests: Vec<(BTreeSet<String>, String)>,
    fuzz_targets: BTreeSet<String>,
}

impl Known {
    fn read(&mut self, path: &Path, text: &str) {
        let words: BTreeSet<String> = path
            .iter()
            .map(|word| word.to_string_lossy().trim_end_matches(".rs").to_owned())
            .filter(|word| word != "mod")
            .collect();
        if words.contains("fuzz_targets") {
            self.fuzz_targets.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            let name = line.split_once("fn ").and_then(|(_, rest)| rest.split(['(', '<']).next());
            match name.filter(|_| !line.starts_with("//")) {
                Some(name) if is_test => self.tests.push((words.clone(), name.to_owned())),
                _ => {}
            }
            let is_attribute = line.starts_with("#[");
            is_test = (is_test && (is_attribute || name.is_none()) && !line.is_empty())
                || (is_attribute && (line.contains("test]") || line.contains("test(")));
        }
    }

    fn has(&self, before: &str, name: &str) -> bool {
        if before.trim_end().ends_with("fuzz target") {
            return self.fuzz_targets.contains(name);
        }
        let (of_crate, path) = name.rsplit_once(' ').unwrap_or(("", name));
        let mut way: Vec<&str> = path.split("::").filter(|word| *word != "tests").collect();
        let last = way.pop().unwrap_or_default();
        way.extend(Some(of_crate).filter(|name| !name.is_empty()));
        let is_on_way = |words: &BTreeSet<String>| way.iter().all(|word| words.contains(*word));
        let mut tests = self.tests.iter().filter(|(words, _)| is_on_way(words));
        tests.any(|(words, test)| last == "*" || test == last || words.contains(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "#[test]\nfn one() {}\n\nfn helper() {}\n\n#[tokio::test]\n/// Why.\nasync fn two() -> R {}\n";

    #[test]
    fn a_promise_names_tests_that_exist() {
        let mut known = Known::default();
        known.read(Path::new("crates/plumb-git/tests/it/names.rs"), FILE);
        known.read(Path::new("fuzz/fuzz_targets/jq.rs"), "");
        let check = |tests: &str, expected: bool| {
            let table =
                format!("\n| promise | test |\n|---|---|\n| it holds | {tests} |\n\n## Other\n| x | y |");
            assert_eq!(broken(&table, &known).is_empty(), expected, "{tests}");
        };
        check("`names::one`", true);
        check("`plumb-git names::two`, story `names::one`", true);
        check("`plumb-git names::*`, fuzz target `jq`", true);
        check("`names`", true);
        check("`names::tests::one`", true);
        check("`names::helper`", false);
        check("`plumb-core names::one`", false);
        check("`names::one`, `names::three`", false);
        check("fuzz target `yaml`", false);
        check("nothing", false);
        check("`others::*`", false);
    }

    #[test]
    fn each_table_has_a_head() {
        let section = "| a | b |\n|---|---|\n| 1 | 2 |\n\ntext\n\n| c | d |\n|---|---|\n| 3 | 4 |\n| 5 | 6 |";
        assert_eq!(rows(section).collect::<Vec<_>>(), ["| 1 | 2 |", "| 3 | 4 |", "| 5 | 6 |"]);
    }
}
