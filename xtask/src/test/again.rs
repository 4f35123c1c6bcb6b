//! Tests that failed once, and run once more alone.
//!
//! The tests of a cluster share it, and two cores, with each other and with what they start. One that needs more time
//! than it gave itself fails there, and passes alone. It is run a second time, one after the other, and named in the
//! output either way. A fault of the program fails twice. Tests without a cluster get no second run.

/// The failed tests of one test binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    /// The test binary: `stories`.
    pub(super) binary: String,
    pub(super) tests: Vec<String>,
}

impl Failed {
    /// The arguments of cargo that run these tests alone. For a package alone, cargo may choose other features of crates,
    /// and build everything once more; so the binary is chosen by its name.
    pub(super) fn arguments(&self) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        [
            words(&["test", "--workspace", "--test", &self.binary, "--", "--exact", "--test-threads=1"]),
            self.tests.clone(),
        ]
        .concat()
    }
}

/// Test binaries whose tests use the shared cluster, or a browser.
const SHARING: [&str; 6] = [
    "-p plumb --test cli",
    "-p plumb --test stories",
    "-p plumb-cluster-tests --test differential",
    "-p plumb-cluster-tests --test zero_values",
    "-p plumb-kube --test cluster",
    "-p plumb-page --test browser",
];

/// More failures than this are no accident.
const MOST: usize = 6;

/// What cargo printed about failed tests, read line by line.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// The names of the failed tests of each binary that failed, in the order of the runs.
    lists: Vec<Vec<String>>,
    /// The list that is being read.
    current: Option<Vec<String>>,
    /// The binaries that failed, in the same order.
    targets: Vec<String>,
    is_in_targets: bool,
}

impl Failures {
    /// Reads a line that a test binary printed. The output of failed tests comes first; the list of their names is the
    /// last that begins with `failures:`.
    pub(super) fn read_output(&mut self, line: &str) {
        if line == "failures:" {
            self.current = Some(Vec::new());
        } else if line.starts_with("test result: ") {
            let names = self.current.take();
            if line.starts_with("test result: FAILED") {
                self.lists.push(names.unwrap_or_default());
            }
        } else if let (Some(names), Some(name)) = (&mut self.current, line.strip_prefix("    ")) {
            names.push(name.to_owned());
        }
    }

    /// Reads a line that cargo itself printed. It ends with a list of the binaries that failed.
    pub(super) fn read_message(&mut self, line: &str) {
        if line.starts_with("error: ")
            && (line.ends_with(" target failed:") || line.ends_with(" targets failed:"))
        {
            self.is_in_targets = true;
        } else if self.is_in_targets
            && let Some(target) = line.trim().strip_prefix('`').and_then(|text| text.strip_suffix('`'))
        {
            self.targets.push(target.to_owned());
        }
    }

    /// The tests to run again. None if one of the failures cannot be an accident: then nothing is gained by it.
    pub(super) fn to_run_again(&self) -> Vec<Failed> {
        let is_whole =
            self.lists.len() == self.targets.len() && self.lists.iter().all(|names| !names.is_empty());
        let are_shared = self.targets.iter().all(|target| SHARING.contains(&target.as_str()));
        let n_failed: usize = self.lists.iter().map(Vec::len).sum();
        if !is_whole || !are_shared || n_failed > MOST {
            return Vec::new();
        }
        let failed = |(target, tests): (&String, &Vec<String>)| Failed {
            binary: target.rsplit(' ').next().unwrap_or_default().to_owned(),
            tests: tests.clone(),
        };
        self.targets.iter().zip(&self.lists).map(failed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(output: &str, messages: &str) -> Failures {
        let mut failures = Failures::default();
        output.lines().for_each(|line| failures.read_output(line));
        messages.lines().for_each(|line| failures.read_message(line));
        failures
    }

    const ONE: &str = "
failures:

---- sync::waves stdout ----
    an indented line
failures:
    sync::waves
    fleet::many

test result: FAILED. 10 passed; 2 failed; 0 ignored
";

    #[test]
    fn tests_of_the_cluster_run_again() {
        let messages = "error: 1 target failed:\n    `-p plumb --test stories`\n";
        let again = read(ONE, messages).to_run_again();
        let [one] = again.as_slice() else { panic!("{again:?}") };
        let words = "test --workspace --test stories -- --exact --test-threads=1 sync::waves fleet::many";
        assert_eq!(one.arguments().join(" "), words);
    }

    #[test]
    fn a_failure_without_a_cluster_is_final() {
        let two =
            format!("{ONE}failures:\n    judge::it\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n");
        let messages = "error: 2 targets failed:\n    `-p plumb --test stories`\n    `-p plumb-core --lib`\n";
        assert_eq!(read(&two, messages).to_run_again(), []);
    }

    #[test]
    fn a_binary_that_ended_without_a_result_is_final() {
        let messages = "error: 2 targets failed:\n    `-p plumb --test cli`\n    `-p plumb --test stories`\n";
        assert_eq!(read(ONE, messages).to_run_again(), []);
    }

    #[test]
    fn many_failures_are_final() {
        let names: Vec<String> = (0..=MOST).map(|n| format!("    sync::test_{n}")).collect();
        let names = names.join("\n");
        let output = format!("failures:\n{names}\n\ntest result: FAILED. 0 passed; 7 failed; 0 ignored\n");
        let messages = "error: 1 target failed:\n    `-p plumb --test stories`\n";
        assert_eq!(read(&output, messages).to_run_again(), []);
    }
}
