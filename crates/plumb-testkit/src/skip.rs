//! Tests that this machine cannot run.

use std::io::Write as _;

use anyhow::{Context as _, Result, ensure};

/// Says that a test is skipped, and why. The line goes past the test harness, which keeps what a passing test prints, so
/// that it is seen and counted (`cargo xtask test`). It is an error with the variable `PLUMB_REQUIRE_{need}`.
#[expect(clippy::disallowed_methods, reason = "the caller of the tests says what must run")]
pub fn skipped(need: &str, why: &str) -> Result<()> {
    let variable = format!("PLUMB_REQUIRE_{need}");
    ensure!(std::env::var_os(&variable).is_none(), "{variable} is set, but a test cannot run: {why}");
    // The harness may be in the middle of a line.
    writeln!(std::io::stdout().lock(), "\nskipped: {why}").context("cannot say that a test is skipped")
}
