//! How far a survey is: one line on stderr, if that is a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

use plumb_engine::Progress;

use crate::context::Context;

const DRY_RUNS_DENIED: &str = "note: the API server answered no dry runs of some objects, because you have no right to \
     change them; some of their differences stay Unexplained";
const PROJECTS_DENIED: &str = "note: you have no right to list AppProjects, so what they forbid is not known";
const PROJECTS_ABSENT: &str = "note: the cluster has no AppProjects, so no project forbids anything";
const TRACKED_BY_LABEL: &str = "note: argocd-cm does not name a tracking method; the objects are marked by label, as \
     Argo CD before 3.0 does it";

/// A line that is overwritten by the next one, and removed at the end.
pub(super) struct StatusLine {
    is_terminal: bool,
    /// What the survey lacked.
    notes: Mutex<Vec<&'static str>>,
}

impl StatusLine {
    pub(super) fn begin() -> Self {
        Self { is_terminal: std::io::stderr().is_terminal(), notes: Mutex::default() }
    }

    pub(super) fn show(&self, progress: Progress) {
        self.put(&match progress {
            Progress::Rendered(n_done, n_apps) => format!("rendered {n_done} of {n_apps} apps"),
            Progress::Listing(n_kinds) => format!("listing the live objects of {n_kinds} kinds"),
            Progress::Compared(n_done, n_apps) => format!("compared {n_done} of {n_apps} apps"),
            Progress::DryRunsDenied => return self.note(DRY_RUNS_DENIED),
            Progress::ProjectsDenied => return self.note(PROJECTS_DENIED),
            Progress::ProjectsAbsent => return self.note(PROJECTS_ABSENT),
            Progress::TrackedByLabel => return self.note(TRACKED_BY_LABEL),
        });
    }

    fn note(&self, note: &'static str) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    /// Removes the line, and says what the survey lacked.
    pub(super) fn end(self, context: &Context) {
        let notes = std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner));
        drop(self);
        for note in notes {
            context.out.note(note);
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
