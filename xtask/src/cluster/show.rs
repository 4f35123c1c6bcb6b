//! How clusters and progress are printed.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::Path,
};

use plumb_testkit::cluster::{Cluster, Condition};

/// Results go to standard output.
#[expect(clippy::print_stdout, reason = "the task's result, for its user")]
pub(super) fn say(line: &str) {
    println!("{line}");
}

/// What a task is doing, on standard error: one line that changes on a terminal, one line per step in a log.
pub(super) struct Progress {
    terminal: bool,
    unfinished: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { terminal: io::stderr().is_terminal(), unfinished: false }
    }

    pub(super) fn show(&mut self, line: &str) {
        let mut out = io::stderr().lock();
        // A closed standard error must not stop the task.
        let _ = if self.terminal { write!(out, "\r\x1b[K{line}") } else { writeln!(out, "{line}") };
        let _ = out.flush();
        self.unfinished = self.terminal;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.unfinished {
            let _ = writeln!(io::stderr());
        }
    }
}

/// The line of a cluster in `list`.
pub(super) fn line(cluster: &Cluster) -> String {
    let condition = match cluster.condition() {
        Condition::Ready => "ready",
        Condition::Starting => "starting",
        Condition::Stopped => "stopped",
        Condition::Abandoned => "abandoned",
    };
    let attached = cluster.state.as_ref().is_some_and(|state| state.attached);
    let address = match &cluster.state {
        Some(state) if cluster.condition() == Condition::Ready => format!("https://127.0.0.1:{}", state.port),
        Some(state) if !state.reason.is_empty() => state.reason.lines().next().unwrap_or_default().to_owned(),
        _ => String::from("-"),
    };
    let note = if attached { " (attached to its caller)" } else { "" };
    format!("{:<24} {condition:<10} {address:<26} {}{note}", cluster.name, cluster.directory.display())
}

/// A path, quoted for a POSIX shell.
pub(super) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_where_the_shell_needs_it() {
        assert_eq!(quoted(Path::new("/home/a/.cache/x-1")), "/home/a/.cache/x-1");
        assert_eq!(quoted(Path::new("/a b/$HOME/it's")), r"'/a b/$HOME/it'\''s'");
    }
}
