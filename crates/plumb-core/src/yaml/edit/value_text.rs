//! A value as text, in the style of the document that it goes into.

use serde_json::{Map, Value};

use super::scalar_text::{double_quoted, scalar, string};
use crate::yaml::span::Style;

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Habits {
    /// Spaces from a key to the keys inside it.
    pub step: usize,
    /// Spaces from a key to the `-` of its list.
    pub list_step: usize,
    /// Is all of it JSON?
    pub is_json: bool,
}

/// A value as it is written behind `:` or `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    /// What is on the same line.
    pub head: String,
    /// The lines below, each with its indentation and `\n`.
    pub lines: String,
}

impl Parts {
    pub(super) fn inline(head: String) -> Self {
        Self { head, lines: String::new() }
    }
}

impl Habits {
    /// Behind a key in column `indent`.
    pub(super) fn behind_key(self, value: &Value, indent: usize, like: Style) -> Parts {
        match value {
            Value::Object(map) if !map.is_empty() => {
                Parts { head: String::new(), lines: self.lines(value, indent + self.step) }
            }
            Value::Array(items) if !items.is_empty() => {
                Parts { head: String::new(), lines: self.lines(value, indent + self.list_step) }
            }
            Value::String(text) => block_text(text, indent + self.step, like)
                .unwrap_or_else(|| Parts::inline(string(text, false, like))),
            other => Parts::inline(scalar(other, false, like)),
        }
    }

    /// Behind a `-`, where the value starts in column `column`.
    pub(super) fn behind_dash(self, value: &Value, column: usize, like: Style) -> Parts {
        match value {
            Value::Object(map) if !map.is_empty() => first_line_apart(&self.lines(value, column)),
            Value::Array(items) if !items.is_empty() => first_line_apart(&self.lines(value, column)),
            Value::String(text) => {
                block_text(text, column, like).unwrap_or_else(|| Parts::inline(string(text, false, like)))
            }
            other => Parts::inline(scalar(other, false, like)),
        }
    }

    /// A key and its value, from the start of a line.
    pub(super) fn pair(self, key: &str, value: &Value, column: usize) -> String {
        let Parts { head, lines } = self.behind_key(value, column, Style::Plain);
        let space = if head.is_empty() { "" } else { " " };
        let key = string(key, false, Style::Plain);
        format!("{}{key}:{space}{head}\n{lines}", " ".repeat(column))
    }

    /// An item, from the start of a line: `-` in column `column`, the value `gap` spaces behind it.
    pub(super) fn item(self, value: &Value, column: usize, gap: usize) -> String {
        let Parts { head, lines } = self.behind_dash(value, column + 1 + gap, Style::Plain);
        format!("{}-{}{head}\n{lines}", " ".repeat(column), " ".repeat(gap))
    }

    /// A map or list that is not empty, as lines.
    pub(super) fn lines(self, value: &Value, column: usize) -> String {
        match value {
            Value::Object(map) => {
                sorted(map).into_iter().map(|(key, value)| self.pair(key, value, column)).collect()
            }
            Value::Array(items) => items.iter().map(|item| self.item(item, column, 1)).collect(),
            other => format!("{}{}\n", " ".repeat(column), scalar(other, false, Style::Plain)),
        }
    }

    /// Any value in brackets, on one line.
    pub(super) fn flow(self, value: &Value, like: Style) -> String {
        let like = if self.is_json { Style::DoubleQuoted } else { like };
        // Only the value that is replaced passes on its quotes, and only JSON those of its parts.
        let inner = if self.is_json { Style::DoubleQuoted } else { Style::Plain };
        match value {
            Value::Object(map) => {
                let pairs = sorted(map).into_iter().map(|(key, value)| self.flow_pair(key, value, inner));
                format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
            }
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.flow(item, inner)).collect();
                format!("[{}]", items.join(", "))
            }
            other => scalar(other, true, like),
        }
    }

    /// A key and its value in brackets; the key quoted like this.
    pub(super) fn flow_pair(self, key: &str, value: &Value, like: Style) -> String {
        let key = match like {
            Style::DoubleQuoted => double_quoted(key),
            like => string(key, true, like),
        };
        format!("{key}: {}", self.flow(value, Style::Plain))
    }
}

const FIRST: [&str; 6] = ["apiVersion", "group", "kind", "metadata", "name", "namespace"];

/// What names a thing first, as people write it; the rest by name.
fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut pairs: Vec<_> = map.iter().collect();
    let rank = |key: &str| FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len());
    pairs.sort_by_key(|(key, _)| (rank(key), *key));
    pairs
}

fn first_line_apart(lines: &str) -> Parts {
    let (head, lines) = lines.split_once('\n').unwrap_or((lines, ""));
    Parts { head: head.trim_start().to_owned(), lines: lines.to_owned() }
}

/// A text of several lines behind `|`; `None` if it is better quoted. A text that was behind `|` stays there even if it
/// has one line.
fn block_text(text: &str, column: usize, like: Style) -> Option<Parts> {
    let is_wanted =
        like == Style::BlockText || (text.trim_end_matches('\n').contains('\n') && like == Style::Plain);
    let is_safe = |line: &str| {
        line.chars().all(|char| matches!(char, '\t' | ' '..='~' | '\u{a1}'..='\u{d7ff}'))
            && !line.contains(['\u{2028}', '\u{2029}'])
    };
    let begins_well = !text.starts_with([' ', '\t', '\n']) && !text.is_empty();
    if !is_wanted || !begins_well || column == 0 || !text.split('\n').all(is_safe) {
        return None;
    }
    let (body, chomping) = match text.strip_suffix('\n') {
        Some(body) => (body, ""),
        None => (text, "-"),
    };
    // Blank lines at the end would belong to the text or not, depending on what follows.
    if body.ends_with('\n') {
        return None;
    }
    let indent = " ".repeat(column);
    let written = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("{indent}{line}\n") };
    Some(Parts { head: format!("|{chomping}"), lines: body.split('\n').map(written).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    const HABITS: Habits = Habits { step: 2, list_step: 2, is_json: false };

    #[test]
    fn a_value_in_the_style_of_its_document() {
        let value = json!({"name": "x", "list": [{"b": 1, "a": [[1, 2], []]}, "on"], "empty": {}, "text": "a\n\n b\n"});
        expect![[r#"
            spec:
              name: x
              empty: {}
              list:
                - a:
                    - - 1
                      - 2
                    - []
                  b: 1
                - "on"
              text: |
                a

                 b
        "#]]
        .assert_eq(&HABITS.pair("spec", &value, 0));
        let wide = Habits { step: 4, list_step: 0, is_json: false };
        expect![[r"
            spec:
                name: x
                list:
                - a: 1
        "]]
        .assert_eq(&wide.pair("spec", &json!({"name": "x", "list": [{"a": 1}]}), 0));
    }

    #[test]
    fn brackets_and_json() {
        let value = json!({"a": ["x", "y, z", {"b": null}]});
        assert_eq!(HABITS.flow(&value, Style::Plain), r#"{a: [x, "y, z", {b: null}]}"#);
        let json = Habits { is_json: true, ..HABITS };
        assert_eq!(json.flow(&value, Style::Plain), r#"{"a": ["x", "y, z", {"b": null}]}"#);
    }
}
