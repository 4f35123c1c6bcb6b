//! Writes random values in random styles, and notes which lines belong to which field.

use std::fmt::Write as _;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::object::FieldPath;

/// xorshift: the same numbers everywhere.
pub(super) struct Dice(pub u64);

impl Dice {
    /// Small seeds give small numbers at first.
    pub(super) fn shake(&mut self) {
        for _ in 0..8 {
            self.below(2);
        }
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap_or_default()
    }

    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick<'list, T>(&mut self, list: &'list [T]) -> &'list T {
        &list[self.below(list.len())]
    }
}

const TEXTS: [&str; 26] = [
    "plain",
    "two words",
    "1000m",
    "0644",
    "on",
    "no",
    "",
    " led by a space",
    "it's",
    "say \"hi\"",
    "a: b",
    "a #b",
    "- x",
    "tab\there",
    "nginx:1.25",
    "{{ x }}",
    "*star",
    "&and",
    "one\ntwo\n",
    "one\n\n  two",
    "kept\n\n",
    "\u{e4}\u{20ac}\u{1f600}",
    "2026-11-15",
    "~",
    "x, y",
    "a long text of many words that somebody broke across lines",
];
const KEYS: [&str; 14] = [
    "name",
    "image",
    "replicas",
    "spec",
    "on",
    "1",
    "a/b.c",
    "with space",
    "x-y",
    "labels",
    "env",
    "data",
    "key: x",
    "z",
];

/// A random value, nested at most this deep.
pub(super) fn value(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(if depth == 0 { 5 } else { 10 }) {
        0 => Value::Null,
        1 => json!(dice.one_in(2)),
        2 => json!(dice.below(70_000)),
        3 | 4 => json!(*dice.pick(&TEXTS)),
        5 | 6 => Value::Array((0..dice.below(4)).map(|_| value(dice, depth - 1)).collect()),
        _ => Value::Object(map(dice, depth - 1)),
    }
}

fn map(dice: &mut Dice, depth: usize) -> Map<String, Value> {
    (0..dice.below(5)).map(|_| ((*dice.pick(&KEYS)).to_owned(), value(dice, depth))).collect()
}

/// A document: a map that is not empty.
pub(super) fn document(dice: &mut Dice) -> Value {
    let mut document = map(dice, 4);
    document.insert("kind".to_owned(), json!("Thing"));
    Value::Object(document)
}

/// What was written for one field.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    pub first_line: usize,
    pub last_line: usize,
}

/// Writes one document.
pub(super) struct Writer<'dice> {
    pub text: String,
    pub fields: BTreeMap<String, Written>,
    pub n_comments: usize,
    n_anchors: usize,
    step: usize,
    dice: &'dice mut Dice,
}

impl<'dice> Writer<'dice> {
    pub(super) fn new(dice: &'dice mut Dice, n_comments: usize) -> Self {
        let step = 2 + dice.below(3);
        Self { text: String::new(), fields: BTreeMap::new(), n_comments, n_anchors: 0, step, dice }
    }

    pub(super) fn root(&mut self, value: &Value) {
        if self.dice.one_in(8) {
            self.flow(value, &FieldPath::root());
            self.end_line();
        } else {
            self.collection(value, 0, &FieldPath::root(), false);
        }
    }

    fn line(&self) -> usize {
        self.text.matches('\n').count()
    }

    fn pad(&mut self, column: usize) {
        self.text.push_str(&" ".repeat(column));
    }

    fn comment(&mut self) {
        let _ = write!(self.text, "# c{}: [x", self.n_comments);
        self.n_comments += 1;
    }

    /// The rest of a line: blanks, perhaps a comment, the break.
    fn end_line(&mut self) {
        if self.dice.one_in(5) {
            let n_blanks = 1 + self.dice.below(3);
            self.pad(n_blanks);
            if self.dice.one_in(2) {
                self.comment();
            }
        }
        self.text.push('\n');
    }

    /// Lines between two entries.
    fn between(&mut self, column: usize) {
        // A text behind `|+` would take the blank line in.
        if self.dice.one_in(8) && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
        if self.dice.one_in(6) {
            self.pad(column);
            self.comment();
            self.text.push('\n');
        }
    }

    fn note(&mut self, path: &FieldPath, first_line: usize) {
        let last_line = self.line().saturating_sub(usize::from(self.text.ends_with('\n')));
        self.fields.insert(path.to_string(), Written { first_line, last_line });
    }

    /// A map or list in lines. `inline`: the first one is on the line of the `-` before it.
    fn collection(&mut self, value: &Value, column: usize, path: &FieldPath, mut inline: bool) {
        let n_entries = value.as_object().map_or_else(|| value.as_array().map_or(0, Vec::len), Map::len);
        for at in 0..n_entries {
            if !std::mem::take(&mut inline) {
                self.between(column);
                self.pad(column);
            }
            let line = self.line();
            let inner = if let Value::Object(map) = value {
                let (key, value) = map.iter().nth(at).expect("an entry");
                let inner = path.field(key.as_str());
                self.pair(key, value, column, &inner);
                inner
            } else {
                let inner = path.index(at);
                self.item(&value[at], column, &inner);
                inner
            };
            self.note(&inner, line);
        }
    }

    fn pair(&mut self, key: &str, value: &Value, column: usize, path: &FieldPath) {
        let key = self.scalar(&json!(key), None);
        if self.dice.one_in(25) {
            let _ = writeln!(self.text, "? {key}");
            self.pad(column);
            self.text.push(':');
        } else {
            let _ = write!(self.text, "{key}:");
        }
        self.behind(value, column, path, true);
    }

    fn item(&mut self, value: &Value, column: usize, path: &FieldPath) {
        self.text.push('-');
        let is_filled = value.as_object().is_some_and(|map| !map.is_empty())
            || value.as_array().is_some_and(|items| !items.is_empty());
        if is_filled && !self.dice.one_in(4) {
            let gap = if self.dice.one_in(5) { 3 } else { 1 };
            self.pad(gap);
            if self.dice.one_in(4) {
                self.flow(value, path);
                self.end_line();
            } else {
                self.collection(value, column + 1 + gap, path, true);
            }
        } else {
            self.behind(value, column, path, false);
        }
    }

    /// A value behind `:` or `-`.
    fn behind(&mut self, value: &Value, column: usize, path: &FieldPath, is_pair: bool) {
        if self.dice.one_in(10) {
            let _ = write!(self.text, " &a{}", self.n_anchors);
            self.n_anchors += 1;
        }
        match value {
            Value::Object(map) if !map.is_empty() && !self.dice.one_in(5) => {
                self.end_line();
                let step = self.step;
                self.collection(value, column + step, path, false);
            }
            Value::Array(items) if !items.is_empty() && !self.dice.one_in(5) => {
                self.end_line();
                let step = if is_pair && self.dice.one_in(2) { 0 } else { self.step };
                self.collection(value, column + step, path, false);
            }
            Value::Object(_) | Value::Array(_) => {
                self.text.push(' ');
                self.flow(value, path);
                self.end_line();
            }
            Value::Null if self.dice.one_in(2) => self.end_line(),
            Value::String(text) if self.dice.one_in(2) && self.block_text(text, column) => {}
            scalar => {
                let n_blanks = if self.dice.one_in(6) { 4 } else { 1 };
                self.pad(n_blanks);
                let text = self.scalar(scalar, Some(column));
                self.text.push_str(&text);
                self.end_line();
            }
        }
    }

    /// A text behind `|`; false if it cannot be there.
    fn block_text(&mut self, text: &str, column: usize) -> bool {
        if text.is_empty() || text.starts_with('\n') {
            return false;
        }
        let body = text.trim_end_matches('\n');
        let chomping = ["-", "", "+"][(text.len() - body.len()).min(2)];
        let depth = 1 + self.dice.below(4);
        let depth_sign =
            if text.starts_with(' ') || self.dice.one_in(4) { depth.to_string() } else { String::new() };
        let header = if self.dice.one_in(2) {
            format!("{depth_sign}{chomping}")
        } else {
            format!("{chomping}{depth_sign}")
        };
        let _ = write!(self.text, " |{header}");
        self.end_line();
        let lines = if chomping == "+" { text.strip_suffix('\n').unwrap_or(text) } else { body };
        for line in lines.split('\n') {
            if !line.is_empty() {
                self.pad(column + depth);
            }
            self.text.push_str(line);
            self.text.push('\n');
        }
        true
    }

    /// A value that is not a map or list; over several lines only where the column is known.
    fn scalar(&mut self, value: &Value, column: Option<usize>) -> String {
        let Value::String(text) = value else {
            return match value {
                Value::Null => (*self.dice.pick(&["null", "~"])).to_owned(),
                other => other.to_string(),
            };
        };
        let is_simple = !text.is_empty()
            && text.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, ' ' | '-' | '.' | '/'))
            && text.starts_with(|char: char| char.is_ascii_alphabetic())
            && !["on", "no", "y", "n"].contains(&text.as_str());
        let line = column.map(|column| format!("\n{}", " ".repeat(column + 1 + self.step)));
        match self.dice.below(4) {
            0 | 1 if is_simple => match line {
                Some(line) if self.dice.one_in(3) => text.replace(' ', &line),
                _ => text.clone(),
            },
            2 if !text.contains(['\n', '\t']) => match line {
                Some(line) if self.dice.one_in(3) && text.trim() == text => {
                    format!("'{}'", text.replace('\'', "''").replace(' ', &line))
                }
                _ => format!("'{}'", text.replace('\'', "''")),
            },
            _ => json!(text).to_string(),
        }
    }

    /// Any value in brackets.
    fn flow(&mut self, value: &Value, path: &FieldPath) {
        let (open, close) = if value.is_array() { ('[', ']') } else { ('{', '}') };
        let n_entries = match value {
            Value::Object(map) => map.len(),
            Value::Array(items) => items.len(),
            scalar => {
                let text = self.scalar(scalar, None);
                // A plain text in brackets ends at some signs.
                let is_quoted = text.starts_with(['"', '\'']) || !scalar.is_string();
                self.text.push_str(&if is_quoted { text } else { scalar.to_string() });
                return;
            }
        };
        self.text.push(open);
        let is_wide = self.dice.one_in(3);
        let column = 1 + self.text.rsplit('\n').next().map_or(0, |line| line.chars().count());
        for at in 0..n_entries {
            if is_wide {
                self.end_line();
                self.pad(column);
            } else if at > 0 {
                self.text.push(' ');
            }
            let line = self.line();
            let inner = if let Value::Object(map) = value {
                let (key, value) = map.iter().nth(at).expect("an entry");
                let inner = path.field(key.as_str());
                self.flow(&json!(key), &FieldPath::root());
                self.text.push_str(": ");
                self.flow(value, &inner);
                inner
            } else {
                let inner = path.index(at);
                self.flow(&value[at], &inner);
                inner
            };
            if at + 1 < n_entries || self.dice.one_in(6) {
                self.text.push(',');
            }
            self.note(&inner, line);
        }
        if is_wide {
            self.end_line();
            self.pad(column.saturating_sub(1).max(1));
        }
        self.text.push(close);
    }
}
