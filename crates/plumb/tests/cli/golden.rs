//! Transcripts of commands, and the golden files that they are compared with.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Commands with their output, in order.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    text: String,
    /// Texts that differ from run to run, and their replacements, in order.
    names: Vec<(String, String)>,
}

/// The output and the exit code of a command.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl Transcript {
    /// An empty transcript.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Replaces `text` by `name` in all output to come.
    pub(crate) fn call(&mut self, text: &str, name: &str) {
        if !text.is_empty() {
            self.names.push((text.to_owned(), name.to_owned()));
        }
    }

    /// Adds a command with its output.
    pub(crate) fn add(&mut self, line: &str, said: &Said) {
        let mut entry = format!("$ {line}\n{}", said.stdout);
        if !said.stderr.is_empty() {
            let _ = write!(entry, "[stderr]\n{}", said.stderr);
        }
        let _ = write!(entry, "[exit {}]\n\n", said.code);
        let entry = self.normalized(&entry);
        self.text.push_str(&entry);
    }

    fn normalized(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (from, to) in &self.names {
            text = text.replace(from, to);
        }
        let lines: Vec<String> = text.lines().map(normalized_line).map(without_counters).collect();
        // Whether YAML quotes a value depends on its first letter.
        let text = lines.join("\n").replace("\"UID\"", "UID").replace("\"COMMIT\"", "COMMIT");
        format!("{text}\n")
    }

    /// Compares with the golden file of this name, or writes it with UPDATE=1.
    pub(crate) fn check(&self, name: &str) -> Result<()> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/golden").join(format!("{name}.txt"));
        #[expect(clippy::disallowed_methods, reason = "the one setting of these tests")]
        let update = std::env::var_os("UPDATE").is_some();
        if update {
            return std::fs::write(&path, &self.text).with_context(|| format!("write {}", path.display()));
        }
        let expected = std::fs::read_to_string(&path)
            .with_context(|| format!("{} is missing; UPDATE=1 writes it", path.display()))?;
        if expected == self.text {
            return Ok(());
        }
        let mut differences = String::new();
        let (mut old, mut new) = (expected.lines(), self.text.lines());
        let mut number = 0;
        loop {
            number += 1;
            match (old.next(), new.next()) {
                (None, None) => break,
                (one, other) if one == other => {}
                (one, other) => {
                    let _ = writeln!(
                        differences,
                        "line {number}\n  - {}\n  + {}",
                        one.unwrap_or("<end>"),
                        other.unwrap_or("<end>")
                    );
                }
            }
        }
        bail!("{name} differs (UPDATE=1 accepts it):\n{differences}\nall of it:\n{}", self.text)
    }
}

/// Replaces counters of the API server, which differ from run to run.
fn without_counters(line: String) -> String {
    for field in ["resourceVersion", "generation"] {
        if let Some((before, after)) = line
            .split_once(&format!("{field}\": "))
            .map(|(before, after)| (format!("{before}{field}\": "), after))
        {
            return format!("{before}N{}", if after.ends_with(',') { "," } else { "" });
        }
        if let Some((before, _)) = line.split_once(&format!("{field}: ")) {
            return format!("{before}{field}: N");
        }
    }
    line
}

/// Replaces times, hashes and ages, and sets columns two blanks apart.
fn normalized_line(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let (indent, rest) = line.split_at(indent);
    let mut text = String::from(indent);
    let mut blanks = 0;
    let mut word = String::new();
    for c in rest.chars().chain([' ']) {
        if c == ' ' {
            if !word.is_empty() {
                text.push_str(&normalized_word(&word));
                word.clear();
            }
            blanks += 1;
        } else {
            if blanks > 0 {
                text.push_str(if blanks > 1 { "  " } else { " " });
                blanks = 0;
            }
            word.push(c);
        }
    }
    text
}

/// Replaces times, uids, commits and ages in a word.
fn normalized_word(word: &str) -> String {
    let is_edge = |c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '+' && c != ':' && c != '.';
    let inner = word.trim_matches(is_edge);
    let inner = inner.trim_end_matches([':', '.']);
    if let Some(named) = named(inner) {
        return word.replacen(inner, named, 1);
    }
    // Inside JSON, patches and paths.
    let mut text = String::new();
    let mut piece = String::new();
    for c in word.chars() {
        if c.is_ascii_alphanumeric() || c == '-' {
            piece.push(c);
        } else {
            text.push_str(named(&piece).unwrap_or(&piece));
            piece.clear();
            text.push(c);
        }
    }
    text.push_str(named(&piece).unwrap_or(&piece));
    text
}

fn named(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    let digits_at =
        |places: &[usize]| places.iter().all(|place| bytes.get(*place).is_some_and(u8::is_ascii_digit));
    let is_date = bytes.len() == 10 && digits_at(&[0, 1, 2, 3, 5, 6, 8, 9]) && bytes.get(4) == Some(&b'-');
    let is_time = bytes.len() > 18 && digits_at(&[0, 1, 2, 3, 5, 6, 8, 9]) && bytes.get(10) == Some(&b'T');
    let is_clock = bytes.len() == 8 && digits_at(&[0, 1, 3, 4, 6, 7]) && bytes.get(2) == Some(&b':');
    let is_hex = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_hexdigit);
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    let is_address =
        text.starts_with("10.") && text.split('.').filter_map(|part| part.parse::<u8>().ok()).count() == 4;
    let is_uid = bytes.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    let is_age = text.strip_suffix(['s', 'm', 'h', 'd']).is_some_and(|number| {
        !number.is_empty() && number.len() < 4 && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    match () {
        () if is_time => Some("TIME"),
        () if is_date => Some("DATE"),
        () if is_clock => Some("CLOCK"),
        () if is_uid => Some("UID"),
        () if is_hex && (bytes.len() == 40 || (bytes.len() == 7 && digits > 0)) => Some("COMMIT"),
        () if is_address => Some("IP"),
        () if is_age => Some("AGE"),
        () => None,
    }
}

#[test]
fn what_differs_from_run_to_run_has_a_name() {
    assert_eq!(normalized_line("  a    b 2026-11-15T18:58:11Z  45s"), "  a  b TIME  AGE");
    assert_eq!(normalized_line(r#""uid": "0f0f0f0f-1111-2222-3333-444444444444","#), r#""uid": "UID","#);
    assert_eq!(normalized_line("main (0123456789012345678901234567890123456789)."), "main (COMMIT).");
    assert_eq!(normalized_line("web-7d4f  10m  v1.2.3  100"), "web-7d4f  AGE  v1.2.3  100");
}
