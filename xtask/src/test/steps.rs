//! The steps of a run, and how their results are counted.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

use super::again::Failures;
use super::counts::Counts;
pub(super) use crate::say::say;
use crate::{book, image, release, tidy};

/// How many of cargo's last messages are kept: the list of failed binaries is at the end.
const LAST_MESSAGES: usize = 200;

/// Runs one step, prints how long it took, and adds its counts. A step that fails does not stop the others: one
/// run shows everything that is wrong.
pub(super) fn step(counts: &mut Counts, name: &str, part: impl FnOnce() -> Result<Counts>) -> Result<()> {
    say(&format!("== {name}"));
    let started = Instant::now();
    let found = part().with_context(|| name.to_owned())?;
    let verdict = if found.failed == 0 { "ok" } else { "FAILED" };
    say(&format!("== {name}: {verdict}, {found}, {:.1} s", started.elapsed().as_secs_f64()));
    *counts += found;
    Ok(())
}

/// Counts each rule that holds as passed and each violation as failed.
pub(super) fn tidy(root: &Path) -> Result<Counts> {
    let (held, violations) = tidy::run(root)?;
    for violation in &violations {
        say(&violation.to_string());
    }
    Ok(Counts { passed: held, failed: violations.len(), skipped: 0 })
}

/// Runs `cargo deny`; skipped where it is not installed. Advisories need their database, which is fetched.
pub(super) fn deny(root: &Path) -> Result<Counts> {
    let runs = |words: &[&str]| {
        let mut command = Command::new("cargo-deny");
        command.args(words).current_dir(root).stdin(Stdio::null());
        command.output().is_ok_and(|output| output.status.success())
    };
    if !runs(&["--version"]) {
        say("skipped: cargo-deny is not installed (`cargo install cargo-deny`)");
        return Ok(Counts { skipped: 1, ..Counts::default() });
    }
    // Crates of other platforms, too: cargo-deny reads their licences.
    cargo(root, &["fetch", "--quiet", "--locked"], &[])?;
    let mut counts = cargo(root, &["deny", "--offline", "check", "licenses", "bans", "sources"], &[])?;
    if runs(&["fetch", "db"]) {
        counts += cargo(root, &["deny", "--offline", "check", "advisories"], &[])?;
    } else {
        say("skipped: advisories: their database cannot be fetched");
        counts.skipped += 1;
    }
    Ok(counts)
}

/// Makes the image and runs it; skipped where a program for it is missing.
pub(super) fn image(root: &Path) -> Counts {
    if let Some(missing) = image::missing_tools() {
        say(&format!("skipped: {missing}"));
        return Counts { skipped: 1, ..Counts::default() };
    }
    counted(image::check(root, None))
}

/// Makes the files of a release, twice, and uses them.
pub(super) fn release(root: &Path) -> Counts {
    counted(release::check(root, None))
}

/// Makes the site of the documents; skipped where mdBook is not installed.
pub(super) fn book(root: &Path) -> Counts {
    match book::check(root, None) {
        Ok(false) => Counts { skipped: 1, ..Counts::default() },
        outcome => counted(outcome.map(drop)),
    }
}

fn counted(outcome: Result<()>) -> Counts {
    match outcome {
        Ok(()) => Counts::one_passed(),
        Err(error) => {
            say(&format!("{error:#}"));
            Counts::one_failed()
        }
    }
}

/// Runs cargo, prints its output, and counts the results of test binaries. A command without test results counts
/// as one test.
pub(super) fn cargo(root: &Path, args: &[&str], env: &[(&str, OsString)]) -> Result<Counts> {
    run_cargo(root, args, env).map(|(counts, _)| counts)
}

/// Runs tests that share a cluster. What fails beside the others runs once more alone;
/// what passes then is added to `unsteady`.
pub(super) fn cargo_with_cluster(
    root: &Path,
    args: &[&str],
    env: &[(&str, OsString)],
    unsteady: &mut Vec<String>,
) -> Result<Counts> {
    let (mut counts, failures) = run_cargo(root, args, env)?;
    for failed in failures.to_run_again() {
        let names = failed.tests.join(", ");
        say(&format!("failed once, runs again alone: {names}"));
        let arguments = failed.arguments();
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (second, _) = run_cargo(root, &words, env)?;
        if second.failed == 0 && second.passed == failed.tests.len() {
            counts.failed = counts.failed.saturating_sub(second.passed);
            counts.passed += second.passed;
            unsteady.push(names);
        }
    }
    Ok(counts)
}

fn run_cargo(root: &Path, args: &[&str], env: &[(&str, OsString)]) -> Result<(Counts, Failures)> {
    let mut child = Command::new(env!("CARGO"))
        .args(args)
        .envs(env.iter().map(|(name, value)| (name, value)))
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run cargo {}", args.join(" ")))?;
    let messages = child.stderr.take().map(|stderr| std::thread::spawn(move || pass_on(stderr)));
    let (mut counts, mut n_skips, mut failures) = (Counts::default(), 0, Failures::default());
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line.context("cannot read cargo's output")?;
            if let Some(found) = Counts::from_test_result(&line) {
                counts += found;
            }
            n_skips += usize::from(Counts::is_skip(&line));
            failures.read_output(&line);
            say(&line);
        }
    }
    let status = child.wait().context("cannot wait for cargo")?;
    for line in messages.and_then(|thread| thread.join().ok()).unwrap_or_default() {
        failures.read_message(&line);
    }
    counts = counts.with_skips(n_skips);
    if counts == Counts::default() || (!status.success() && counts.failed == 0) {
        counts += if status.success() { Counts::one_passed() } else { Counts::one_failed() };
    }
    Ok((counts, failures))
}

/// Prints cargo's messages, and returns the last of them.
fn pass_on(stderr: impl Read) -> Vec<String> {
    let mut last = VecDeque::new();
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        // A reader that went away must not fail the run.
        let _ = writeln!(std::io::stderr().lock(), "{line}");
        if last.len() == LAST_MESSAGES {
            last.pop_front();
        }
        last.push_back(line);
    }
    last.into()
}
