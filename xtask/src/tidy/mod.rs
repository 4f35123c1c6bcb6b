//! The repository's rules as checks. Each rule is one file with one function that returns what is wrong.

mod arrows;
mod generated;
mod modules;
mod reachable;
mod words;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

/// One broken rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Where, relative to the repository.
    place: String,
    /// What is wrong and what to do.
    what: String,
}

impl Violation {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// A rule: its name, and what breaks it under `root`.
type Rule = (&'static str, fn(&Path) -> Result<Vec<Violation>>);

const RULES: &[Rule] = &[
    ("arrows between crates", arrows::check),
    ("order of the core's modules", modules::check),
    ("every source file is reachable", reachable::check),
    ("no stray generated file", generated::check),
    ("words that do not belong here", words::check),
];

/// Runs all rules; the result is how many held, and everything that is wrong.
pub(crate) fn run(root: &Path) -> Result<(usize, Vec<Violation>)> {
    let mut held = 0;
    let mut violations = Vec::new();
    for (name, rule) in RULES {
        let found = rule(root).with_context(|| format!("check rule: {name}"))?;
        held += usize::from(found.is_empty());
        violations.extend(found);
    }
    Ok((held, violations))
}

/// `cargo xtask tidy`.
#[expect(clippy::print_stdout, reason = "the command's output")]
pub(crate) fn command() -> Result<ExitCode> {
    let (held, violations) = run(crate::repository_root())?;
    for violation in &violations {
        println!("{violation}");
    }
    println!("{held} of {} rules hold", RULES.len());
    Ok(if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The files that Git knows (or would take), relative to `root`.
fn tracked_files(root: &Path) -> Result<Vec<PathBuf>> {
    let output = std::process::Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output()
        .context("run git ls-files")?;
    anyhow::ensure!(
        output.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let listed = String::from_utf8(output.stdout).context("file names are UTF-8")?;
    let mut files: Vec<PathBuf> = listed
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .filter(|file| root.join(file).is_file())
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_keeps_its_rules() {
        let (_, violations) = run(crate::repository_root()).unwrap();
        assert_eq!(violations, [], "run `cargo xtask tidy`");
    }
}
