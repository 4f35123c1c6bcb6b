//! How far a survey is: one line on stderr, if that is a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_engine::Progress;

use crate::context::Context;

/// A line that is overwritten by the next one, and removed at the end.
pub(super) struct StatusLine {
    is_terminal: bool,
    are_dry_runs_denied: AtomicBool,
}

impl StatusLine {
    pub(super) fn begin() -> Self {
        Self { is_terminal: std::io::stderr().is_terminal(), are_dry_runs_denied: AtomicBool::new(false) }
    }

    pub(super) fn show(&self, progress: Progress) {
        self.put(&match progress {
            Progress::Rendered(n_done, n_apps) => format!("rendered {n_done} of {n_apps} apps"),
            Progress::Listing(n_kinds) => format!("listing the live objects of {n_kinds} kinds"),
            Progress::Compared(n_done, n_apps) => format!("compared {n_done} of {n_apps} apps"),
            Progress::DryRunsDenied => {
                self.are_dry_runs_denied.store(true, Ordering::Relaxed);
                return;
            }
        });
    }

    /// Removes the line, and says what the survey lacked.
    pub(super) fn end(self, context: &Context) {
        let is_denied = self.are_dry_runs_denied.load(Ordering::Relaxed);
        drop(self);
        if is_denied {
            context.out.note(
                "note: the API server answered no dry runs of some objects, because you have no right to change them; \
                 some of their differences stay Unexplained",
            );
        }
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
