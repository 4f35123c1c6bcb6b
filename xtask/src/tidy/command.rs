//! `cargo xtask tidy`: runs every rule and prints the violations.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use super::baseline::{self, Baseline};
use super::reading::Tree;
use super::violation::Violation;
use super::{
    arrows, columns, dependencies, file_length, function_length, generated, links, mod_files, module_names,
    modules, promises, reachable, summary, visibility, words,
};

/// How to run the rules.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Remove the lines of the baseline that are no longer violated.
    #[arg(long)]
    shrink: bool,
}

/// A rule: its name, and the function that finds what breaks it.
type Rule = (&'static str, Check);

enum Check {
    /// Cannot fail.
    Tree(fn(&Tree) -> Vec<Violation>),
    /// Reads more files or runs a program, and may fail at it.
    More(fn(&Tree) -> Result<Vec<Violation>>),
}

const RULES: &[Rule] = &[
    ("crate-dependencies", Check::More(arrows::check)),
    ("dead-dependency", Check::More(dependencies::check)),
    ("module-order", Check::Tree(modules::check_order)),
    ("module-cycle", Check::Tree(modules::check_cycles)),
    ("reachable", Check::Tree(reachable::check)),
    ("generated-file", Check::More(generated::check)),
    ("words", Check::Tree(words::check)),
    ("file-length", Check::Tree(file_length::check)),
    ("function-length", Check::Tree(function_length::check)),
    ("mod-file", Check::Tree(mod_files::check)),
    ("module-name", Check::Tree(module_names::check)),
    ("visibility", Check::Tree(visibility::check)),
    ("columns", Check::More(columns::check)),
    ("links", Check::More(links::check)),
    ("summary", Check::More(summary::check)),
    ("promises", Check::More(promises::check)),
];

/// Runs all rules. Returns how many hold (apart from the baseline) and every violation.
pub(crate) fn run(root: &Path) -> Result<(usize, Vec<Violation>)> {
    let baseline = Baseline::read(root)?;
    let (new, stale) = baseline.compare(find(root)?);
    let broken = |rule: &str| new.iter().any(|violation| violation.rule == rule);
    let held = RULES.iter().filter(|(name, _)| !broken(name)).count();
    Ok((held, new.into_iter().chain(stale.iter().map(|line| baseline::stale(line))).collect()))
}

/// Every violation, those of the baseline included.
fn find(root: &Path) -> Result<Vec<Violation>> {
    let tree = Tree::read(root)?;
    let mut found = Vec::new();
    for (name, check) in RULES {
        let mut violations = match check {
            Check::Tree(check) => check(&tree),
            Check::More(check) => check(&tree).with_context(|| format!("cannot check rule {name}"))?,
        };
        for violation in &mut violations {
            violation.rule = name;
        }
        found.append(&mut violations);
    }
    Ok(found)
}

/// `cargo xtask tidy`.
#[expect(clippy::print_stdout, reason = "the command's output")]
pub(crate) fn command(args: &Args) -> Result<ExitCode> {
    let root = crate::repository::root();
    if args.shrink {
        let (_, stale) = Baseline::read(root)?.compare(find(root)?);
        baseline::remove(root, &stale)?;
        println!("removed {} lines of {}", stale.len(), baseline::FILE);
    }
    let (held, violations) = run(root)?;
    for violation in &violations {
        println!("{violation}");
    }
    println!("{held} of {} rules hold", RULES.len());
    Ok(if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_keeps_its_rules() {
        let (_, violations) = run(crate::repository::root()).unwrap();
        let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "run `cargo xtask tidy`:\n{}", lines.join("\n"));
    }
}
