//! What the demo prints.

use std::io::Write as _;

pub(super) fn say(line: &str) {
    // A reader that went away (`| head`) must not stop the demo.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
