//! Asking the user to confirm a deletion.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use plumb_core::text::visible_lines;

use crate::error::CommandError;

/// Asks on stderr and reads the answer from stdin. End of input means no.
pub(crate) fn confirm(question: &str) -> Result<bool, CommandError> {
    let mut stderr = std::io::stderr().lock();
    // A question that cannot be printed is not an error; the answer decides.
    let _ = write!(stderr, "{} [y/n] ", visible_lines(question));
    let _ = stderr.flush();
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    let read = read.map_err(|error| CommandError::because("read the answer", error))?;
    // On a terminal the answer ends the line; piped input does not show.
    if read == 0 || !std::io::stdin().is_terminal() {
        let _ = writeln!(stderr);
    }
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
