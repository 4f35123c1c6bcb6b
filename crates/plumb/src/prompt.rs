//! Asking the user.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use plumb_core::text::visible_lines;

use crate::error::CommandError;

/// An answer to one of several questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// This one.
    Yes,
    /// Not this one.
    No,
    /// This one and all that follow.
    All,
    /// Neither this one nor any that follows.
    Quit,
}

/// Asks one of several questions, as `git add -p` does. End of input means quit.
pub(crate) fn answer(question: &str) -> Result<Answer, CommandError> {
    loop {
        let Some(answer) = ask(question, "[y,n,a,q,?]")? else { return Ok(Answer::Quit) };
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(Answer::Yes),
            "n" | "no" => return Ok(Answer::No),
            "a" | "all" => return Ok(Answer::All),
            "q" | "quit" => return Ok(Answer::Quit),
            _ => {
                let help = "y: make this change\nn: do not make it\na: make this one and all that follow\n\
                    q: make neither this one nor any that follows";
                let _ = writeln!(std::io::stderr().lock(), "{help}");
            }
        }
    }
}

/// Asks for one of several names. `None` if the user wants none of them; end of input means none.
pub(crate) fn choice<'names>(
    question: &str,
    names: &[&'names str],
) -> Result<Option<&'names str>, CommandError> {
    let choices = format!("[{},n]", names.join(","));
    loop {
        let Some(answer) = ask(question, &choices)? else { return Ok(None) };
        let answer = answer.trim();
        if let Some(name) = names.iter().find(|name| **name == answer) {
            return Ok(Some(name));
        }
        if matches!(answer.to_ascii_lowercase().as_str(), "n" | "no" | "q" | "quit") {
            return Ok(None);
        }
    }
}

/// Asks on stderr and reads the answer from stdin. End of input means no.
pub(crate) fn confirm(question: &str) -> Result<bool, CommandError> {
    let answer = ask(question, "[y/n]")?.unwrap_or_default();
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// The answer; `None` at the end of the input.
fn ask(question: &str, choices: &str) -> Result<Option<String>, CommandError> {
    let mut stderr = std::io::stderr().lock();
    // A question that cannot be printed is not an error; the answer decides.
    let _ = write!(stderr, "{} {} ", visible_lines(question), visible_lines(choices));
    let _ = stderr.flush();
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    let read = read.map_err(|error| CommandError::because("read the answer", error))?;
    // On a terminal the answer ends the line; piped input does not show.
    if read == 0 || !std::io::stdin().is_terminal() {
        let _ = writeln!(stderr);
    }
    Ok((read > 0).then_some(answer))
}
