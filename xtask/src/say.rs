//! What tasks print.

use std::io::Write as _;

/// Prints a line.
pub(crate) fn say(line: &str) {
    // A reader that went away (`| head`) must not fail the task.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
