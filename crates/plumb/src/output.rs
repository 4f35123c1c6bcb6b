//! Data goes to stdout, everything else to stderr. A reader that closes its end (`| head`) is not an error.
//!
//! Much of what is printed was written by others: names, reasons, messages, annotations. Here, and only here, the
//! characters in it that a terminal obeys or does not show become visible (`plumb_core::text`). A cell of a table is one
//! line. Data (`-o json`, `-o yaml`, logs, manifests) is changed only on a terminal: a pipe gets its exact bytes.

use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use plumb_core::text::{is_hidden, one_line, visible_lines};
use serde_json::Value;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::error::CommandError;

/// True once the reader of stdout has closed its end.
static READER_GONE: AtomicBool = AtomicBool::new(false);
/// The first other error of stdout, such as a full disk.
static STDOUT_ERROR: Mutex<Option<io::Error>> = Mutex::new(None);

/// Where a command prints. Colour is for terminals, unless `NO_COLOR` is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    colour: bool,
    terminal: bool,
}

/// The formats of `-o`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A table with all columns.
    Wide,
    /// Names only, one per line.
    Name,
    /// JSON, as the cluster holds it.
    Json,
    /// YAML, as the cluster holds it.
    Yaml,
}

impl Format {
    /// True if the output is read by a program: nothing else may be on stdout.
    pub(crate) fn is_data(self) -> bool {
        matches!(self, Self::Json | Self::Yaml)
    }

    /// JSON or YAML, by its name on the command line.
    pub(crate) fn of_data(name: &str) -> Option<Self> {
        match name {
            "json" => Some(Self::Json),
            "yaml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// The colour of a status on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Good.
    Green,
    /// In progress, or needs attention.
    Yellow,
    /// Bad.
    Red,
}

impl Output {
    /// For the stdout of this process. `colour_allowed` is false with `NO_COLOR`.
    pub(crate) fn of_process(colour_allowed: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        Self { colour: terminal && colour_allowed, terminal }
    }

    /// True if stdout is a terminal.
    pub(crate) fn is_terminal(self) -> bool {
        self.terminal
    }

    /// Rows and columns of the terminal.
    #[expect(clippy::unused_self, reason = "commands print through the value that they are given")]
    fn size(self) -> (usize, usize) {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
        // Some terminals report a size of 0.
        let known = |n: Option<u16>, usual: usize| n.map(usize::from).filter(|n| *n > 0).unwrap_or(usual);
        (known(size.map(|size| size.ws_row), 24), known(size.map(|size| size.ws_col), 80))
    }

    /// Lines as they are drawn on a terminal: cut to its width, with coloured statuses.
    pub(crate) fn drawn(self, lines: &[String]) -> String {
        let (_, width) = self.size();
        let cut: Vec<String> = lines.iter().map(|line| cut(&one_line(line), width)).collect();
        let text = cut.join("\n");
        if self.colour { coloured(&text) } else { text }
    }

    /// Prints one line (or several) to stdout.
    #[expect(clippy::unused_self, reason = "commands print through the value that they are given")]
    pub(crate) fn print(self, line: &str) {
        put(&format!("{}\n", visible_lines(line)));
    }

    /// Prints one line (or several) in colour, if stdout shows colours.
    pub(crate) fn print_coloured(self, colour: Colour, line: &str) {
        let line = visible_lines(line);
        put(&if self.colour { format!("{}{line}\x1b[0m\n", code(colour)) } else { format!("{line}\n") });
    }

    /// Prints data to stdout: its exact bytes, unless stdout is a terminal.
    pub(crate) fn print_data(self, text: &str) {
        if self.terminal { put(&visible_lines(text)) } else { put(text) }
    }

    /// Prints plumb's own text to stdout as it is: escape sequences, scripts, pages of the manual.
    #[expect(clippy::unused_self, reason = "commands print through the value that they are given")]
    pub(crate) fn print_raw(self, text: &str) {
        put(text);
    }

    /// Prints one line to stderr.
    #[expect(clippy::unused_self, reason = "commands print through the value that they are given")]
    pub(crate) fn note(self, line: &str) {
        note(line);
    }

    /// True once the reader of stdout has closed its end: commands that follow something end then.
    #[expect(clippy::unused_self, reason = "commands print through the value that they are given")]
    pub(crate) fn is_reader_gone(self) -> bool {
        READER_GONE.load(Ordering::Relaxed)
    }

    /// Prints a table with aligned columns and coloured statuses.
    pub(crate) fn table(self, header: &[&str], rows: &[Vec<String>]) {
        let text = table(header, rows);
        put(&format!("{}\n", if self.colour { coloured(&text) } else { text }));
    }

    /// Prints one object as JSON or YAML.
    pub(crate) fn object(self, format: Format, object: &Value) -> Result<(), CommandError> {
        match format {
            Format::Yaml => self.print_data(&plumb_crd::yaml::to_yaml(object)),
            Format::Json | Format::Wide | Format::Name => {
                let text = serde_json::to_string_pretty(object)
                    .map_err(|error| CommandError::because("write JSON", error))?;
                put(&format!("{}\n", if self.terminal { visible_json(&text) } else { text }));
            }
        }
        Ok(())
    }
}

/// Flushes stdout. Fails if a part of the output could not be written, unless the reader had closed its end.
pub(crate) fn finish() -> io::Result<()> {
    record(io::stdout().lock().flush());
    let error = STDOUT_ERROR.lock().unwrap_or_else(PoisonError::into_inner).take();
    error.map_or(Ok(()), Err)
}

/// Prints one line to stderr.
pub(crate) fn note(line: &str) {
    // An error here cannot be reported anywhere.
    let _ = writeln!(io::stderr().lock(), "{}", visible_lines(line));
}

/// JSON in which every hidden character of a text is an escape sequence of JSON: it reads back as the same value.
pub(crate) fn visible_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        // JSON itself escapes the control characters below the blank; the only ones left are its own line breaks.
        if character >= ' ' && is_hidden(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                shown.extend(["\\u", &format!("{unit:04x}")]);
            }
        } else {
            shown.push(character);
        }
    }
    shown
}

fn put(text: &str) {
    if READER_GONE.load(Ordering::Relaxed) {
        return;
    }
    let mut stdout = io::stdout().lock();
    record(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
}

fn record(result: io::Result<()>) {
    match result {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => READER_GONE.store(true, Ordering::Relaxed),
        Err(error) => {
            STDOUT_ERROR.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }
}

/// A table with aligned columns and two blanks between them, as kubectl prints them. Each cell is one line, whatever it
/// contains.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let header: Vec<String> = header.iter().map(|cell| one_line(cell).into_owned()).collect();
    let visible = |row: &Vec<String>| row.iter().map(|cell| one_line(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(visible).collect();
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.width()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let mut text = String::new();
    for row in std::iter::once(&header).chain(&rows) {
        if !text.is_empty() {
            text.push('\n');
        }
        push_line(&mut text, row, &widths);
    }
    text
}

/// One line of a table, without blanks at its end.
fn push_line(text: &mut String, cells: &[String], widths: &[usize]) {
    let begins = text.len();
    for (index, cell) in cells.iter().enumerate() {
        text.push_str(cell);
        if index + 1 < cells.len() {
            let width = widths.get(index).copied().unwrap_or_default();
            let blanks = width.saturating_sub(cell.width()) + 2;
            text.extend(std::iter::repeat_n(' ', blanks));
        }
    }
    let ends = text.trim_end_matches(' ').len().max(begins);
    text.truncate(ends);
}

fn code(colour: Colour) -> &'static str {
    match colour {
        Colour::Green => "\x1b[32m",
        Colour::Yellow => "\x1b[33m",
        Colour::Red => "\x1b[31m",
    }
}

/// The colour of a status.
fn colour_of(word: &str) -> Option<Colour> {
    match word {
        "Synced" | "Healthy" | "Succeeded" | "Successful" => Some(Colour::Green),
        "Progressing" | "Suspended" | "Running" | "Terminating" | "Pruned" | "PruneSkipped" => {
            Some(Colour::Yellow)
        }
        "OutOfSync" | "Degraded" | "Missing" | "Unknown" | "Failed" | "Error" | "SyncFailed" => {
            Some(Colour::Red)
        }
        _ => None,
    }
}

/// The same text with coloured statuses. Done last, so that no escape sequence counts for the width of a column.
fn coloured(text: &str) -> String {
    let mut painted = String::with_capacity(text.len() + text.len() / 4);
    for piece in text.split_inclusive([' ', '\n']) {
        let word = piece.trim_end_matches([' ', '\n']);
        match colour_of(word) {
            Some(colour) => {
                painted.push_str(code(colour));
                painted.push_str(word);
                painted.push_str("\x1b[0m");
                painted.push_str(&piece[word.len()..]);
            }
            None => painted.push_str(piece),
        }
    }
    painted
}

/// A line cut to a width.
fn cut(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let mut text = String::new();
    let mut left = width.saturating_sub(1);
    for c in line.chars() {
        let Some(rest) = left.checked_sub(c.width().unwrap_or_default()) else { break };
        left = rest;
        text.push(c);
    }
    text.push('…');
    text
}

/// A table that is shown again after a change. On a terminal it is redrawn, cut to the height of the terminal;
/// elsewhere the changed rows are added, as `kubectl get --watch` does.
#[derive(Debug)]
pub(crate) struct LiveTable {
    out: Output,
    shown: HashSet<Vec<String>>,
    begun: bool,
}

impl LiveTable {
    /// An empty table.
    pub(crate) fn new(out: Output) -> Self {
        Self { out, shown: HashSet::new(), begun: false }
    }

    /// Shows the table as it is now.
    pub(crate) fn show(&mut self, header: &[&str], rows: &[Vec<String>]) {
        if self.out.terminal {
            let (height, _) = self.out.size();
            let mut lines: Vec<String> = table(header, rows).lines().map(str::to_owned).collect();
            // One line is left for the cursor.
            let room = height.saturating_sub(1).max(2);
            if lines.len() > room {
                let hidden = lines.len() - (room - 1);
                lines.truncate(room - 1);
                lines.push(format!("… and {hidden} more"));
            }
            self.out.print_raw(&format!("\x1b[H\x1b[2J{}\n", self.out.drawn(&lines)));
            return;
        }
        if self.begun {
            // With the widths of the whole table, later rows line up with earlier ones.
            let whole = table(header, rows);
            for (line, row) in whole.lines().skip(1).zip(rows) {
                if !self.shown.contains(row) {
                    self.out.print(line);
                }
            }
        } else {
            self.out.table(header, rows);
        }
        self.begun = true;
        self.shown = rows.iter().cloned().collect();
    }
}

/// A text that is shown again after a change. On a terminal it is redrawn from the top, cut to the height of the
/// terminal; elsewhere it is printed again, below a line.
#[derive(Debug)]
pub(crate) struct LiveScreen {
    out: Output,
    shown: Option<String>,
}

impl LiveScreen {
    /// Nothing yet.
    pub(crate) fn new(out: Output) -> Self {
        Self { out, shown: None }
    }

    /// Shows the text as it is now.
    pub(crate) fn show(&mut self, text: &str) {
        if self.out.terminal {
            let (height, _) = self.out.size();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            // One line is left for the cursor.
            let room = height.saturating_sub(1).max(2);
            if lines.len() > room {
                let hidden = lines.len() - (room - 1);
                lines.truncate(room - 1);
                lines.push(format!("… and {hidden} more lines"));
            }
            self.out.print_raw(&format!("\x1b[H\x1b[2J{}\n", self.out.drawn(&lines)));
        } else if self.shown.as_deref() != Some(text) {
            if self.shown.is_some() {
                self.out.print("---");
            }
            self.out.print(text);
        }
        self.shown = Some(text.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_have_no_trailing_blanks() {
        let rows = vec![
            vec!["a".to_owned(), "Synced".to_owned(), String::new()],
            vec!["longer".to_owned(), "x".to_owned(), "y".to_owned()],
        ];
        assert_eq!(
            table(&["NAME", "STATUS", "Z"], &rows),
            "NAME    STATUS  Z\na       Synced\nlonger  x       y"
        );
    }

    #[test]
    fn a_column_is_as_wide_as_its_text_on_a_terminal() {
        // A Japanese character takes two cells, an accent that joins its letter takes none.
        let rows = ["日本", "e\u{301}"].map(|name| vec![name.to_owned(), "x".to_owned()]);
        assert_eq!(table(&["N", "S"], &rows), "N     S\n日本  x\ne\u{301}     x");
    }

    #[test]
    fn a_cell_is_one_line_whatever_it_contains() {
        let reason = "x\nargocd/payments  Synced\u{1b}[2K\u{202e}";
        let rows = vec![vec![reason.to_owned(), "a".to_owned()], vec!["y".to_owned(), "b".to_owned()]];
        let shown = table(&["REASON", "Z"], &rows);
        let reason = r"x\nargocd/payments  Synced\u{1b}[2K\u{202e}";
        let blanks = " ".repeat(reason.len() - 1);
        assert_eq!(shown.lines().collect::<Vec<_>>()[1..], [format!("{reason}  a"), format!("y{blanks}  b")]);
    }

    #[test]
    fn json_on_a_terminal_is_the_same_value() {
        let value = serde_json::json!({"a\u{9b}": "b\u{202e}\u{1b}\u{e0041}\nc"});
        let shown = visible_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!shown.chars().any(|c| c != '\n' && is_hidden(c)), "{shown}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
    }

    #[test]
    fn a_line_is_as_wide_as_the_terminal() {
        assert_eq!([cut("abc", 3), cut("abcd", 3), cut("äöüß", 3)], ["abc", "ab…", "äö…"]);
        assert_eq!([cut("日本", 4), cut("日本語", 4), cut("日本語", 5)], ["日本", "日…", "日本…"]);
    }

    #[test]
    fn only_whole_words_get_a_colour() {
        assert_eq!(coloured("a  Synced\nNotSynced"), "a  \x1b[32mSynced\x1b[0m\nNotSynced");
    }
}
