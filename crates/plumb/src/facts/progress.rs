//! How far a survey is: one line on stderr, if that is a terminal.

use std::io::{IsTerminal as _, Write as _};

use plumb_engine::Progress;

/// A line that is overwritten by the next one, and removed at the end.
pub(super) struct StatusLine {
    is_terminal: bool,
}

impl StatusLine {
    pub(super) fn begin() -> Self {
        Self { is_terminal: std::io::stderr().is_terminal() }
    }

    pub(super) fn show(&self, progress: Progress) {
        self.put(&match progress {
            Progress::Rendered(n_done, n_apps) => format!("rendered {n_done} of {n_apps} apps"),
            Progress::Listing(n_kinds) => format!("listing the live objects of {n_kinds} kinds"),
            Progress::Compared(n_done, n_apps) => format!("compared {n_done} of {n_apps} apps"),
        });
    }

    fn put(&self, line: &str) {
        if self.is_terminal {
            // Progress that cannot be shown is not an error.
            let _ = write!(std::io::stderr().lock(), "\r\x1b[2K{line}");
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.put("");
    }
}
