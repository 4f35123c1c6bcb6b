//! Counts of test results.

use std::fmt;
use std::ops::AddAssign;

/// How many tests passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

impl Counts {
    pub(super) fn one_passed() -> Self {
        Self { passed: 1, ..Self::default() }
    }

    pub(super) fn one_failed() -> Self {
        Self { failed: 1, ..Self::default() }
    }

    /// True for the line of a test that this machine cannot run (`plumb_testkit::skipped`).
    pub(super) fn is_skip(line: &str) -> bool {
        line.starts_with("skipped: ")
    }

    /// So many of the tests that passed said that they were skipped.
    pub(super) fn with_skips(mut self, n_skips: usize) -> Self {
        self.passed = self.passed.saturating_sub(n_skips);
        self.skipped += n_skips;
        self
    }

    /// Reads the last line of a Rust test binary: `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
    pub(super) fn from_test_result(line: &str) -> Option<Self> {
        let (_, rest) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let mut counts = Self::default();
        for part in rest.split(';') {
            let (number, word) = part.trim().split_once(' ')?;
            let Ok(number) = number.parse::<usize>() else { break };
            match word {
                "passed" => counts.passed = number,
                "failed" => counts.failed = number,
                "ignored" => counts.skipped = number,
                _ => break,
            }
        }
        Some(counts)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_test_binary_is_counted() {
        let line = "test result: FAILED. 12 passed; 1 failed; 2 ignored; 0 measured; 3 filtered out; finished in 0.01s";
        assert_eq!(Counts::from_test_result(line), Some(Counts { passed: 12, failed: 1, skipped: 2 }));
        assert_eq!(Counts::from_test_result("running 3 tests"), None);
    }

    #[test]
    fn a_test_that_says_that_it_is_skipped_has_not_passed() {
        let counts = Counts { passed: 3, failed: 0, skipped: 1 }.with_skips(2);
        assert_eq!(counts, Counts { passed: 1, failed: 0, skipped: 3 });
        assert!(Counts::is_skip("skipped: install chromium") && !Counts::is_skip("test skipped: x ... ok"));
    }

    #[test]
    fn the_sum_has_the_format_that_scripts_parse() {
        assert_eq!(Counts { passed: 3, failed: 0, skipped: 0 }.to_string(), "3 passed, 0 failed");
        assert_eq!(Counts { passed: 3, failed: 1, skipped: 2 }.to_string(), "3 passed, 1 failed, 2 skipped");
    }
}
