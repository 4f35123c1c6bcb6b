//! The lines of the log: each event is one line, whatever the values in it contain.
//!
//! Log lines contain names, messages and addresses that others wrote. Characters that a terminal obeys or does not show
//! become visible, and logins in addresses are blanked.

use std::borrow::Cow;
use std::io::{self, Write};

use plumb_core::text::{is_hidden, one_line, without_logins};
use tracing_subscriber::fmt::MakeWriter;

use crate::output::visible_json;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogStyle {
    /// Text without colours.
    Plain,
    /// Text with colours, for a terminal. The formatter escapes the escape sequences in values.
    Coloured,
    /// One JSON object per line.
    Json,
}

/// Writes log lines to stderr.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogWriter(pub(crate) LogStyle);

impl MakeWriter<'_> for LogWriter {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}

impl Write for LogWriter {
    /// The formatter hands over one whole event at a time.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        io::stderr().lock().write_all(shown(self.0, &text).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

fn shown(style: LogStyle, event: &str) -> String {
    let line = event.strip_suffix('\n').unwrap_or(event);
    let line = without_logins(line);
    let mut shown = match style {
        LogStyle::Plain => one_line(&line).into_owned(),
        LogStyle::Coloured => {
            let pieces: Vec<Cow<'_, str>> = line.split('\u{1b}').map(one_line).collect();
            pieces.join("\u{1b}")
        }
        LogStyle::Json => visible_json(&line),
    };
    debug_assert!(!shown.contains(|c| c != '\u{1b}' && is_hidden(c)), "a hidden character is left");
    shown.push('\n');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_without_logins() {
        let event = "INFO push https://bob:s3cret@host/x\nINFO forged \u{202e}\n";
        assert_eq!(shown(LogStyle::Plain, event), "INFO push https://••••@host/x\\nINFO forged \\u{202e}\n");
        assert_eq!(shown(LogStyle::Coloured, "\u{1b}[32mINFO\u{1b}[0m a\n"), "\u{1b}[32mINFO\u{1b}[0m a\n");
        let json = serde_json::json!({"message": "a\n\u{9b}\u{202e}", "repo": "https://u:p@h/x"});
        let line = shown(LogStyle::Json, &format!("{json}\n"));
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&read["message"], &read["repo"]), (&json["message"], &"https://••••@h/x".into()));
        assert!(!line.trim_end().chars().any(is_hidden));
    }
}
