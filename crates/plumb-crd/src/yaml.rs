//! Writes JSON values as YAML text in one deterministic form: sorted keys, block style, every ambiguous string quoted.
//!
//! A string quoted as in JSON means the same to every YAML reader, 1.1 or 1.2. Only texts that no reader takes for a
//! number, a boolean, null or a date are unquoted.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

/// One document, without `---`, ending in a line break.
pub fn to_yaml(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, 0, false, &mut text);
    text
}

/// Several documents, each started by `---`. `apiVersion` and `kind` come first, as usual.
pub fn to_yaml_documents(values: &[Value]) -> String {
    values.iter().flat_map(|value| ["---\n".to_owned(), to_yaml(value)]).collect()
}

/// Writes a value after its key or dash. `in_list`: after a dash, so that the first key of a map stays on its line.
fn write_value(value: &Value, indent: usize, in_list: bool, text: &mut String) {
    match value {
        Value::Object(map) if map.is_empty() => text.push_str("{}\n"),
        Value::Array(items) if items.is_empty() => text.push_str("[]\n"),
        Value::Object(map) => {
            let sorted: BTreeMap<(usize, &String), &Value> =
                map.iter().map(|(key, value)| ((rank(key), key), value)).collect();
            for (position, ((_, key), value)) in sorted.into_iter().enumerate() {
                if position > 0 || !in_list {
                    text.push_str(&" ".repeat(indent));
                }
                text.push_str(&scalar(key));
                text.push(':');
                write_after_key(value, indent, text);
            }
        }
        Value::Array(items) => {
            for (position, item) in items.iter().enumerate() {
                if position > 0 || !in_list {
                    text.push_str(&" ".repeat(indent));
                }
                text.push_str("- ");
                write_value(item, indent + 2, true, text);
            }
        }
        Value::String(string) => {
            text.push_str(&scalar(string));
            text.push('\n');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            text.push_str(&value.to_string());
            text.push('\n');
        }
    }
}

fn write_after_key(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            write_value(value, indent + 2, false, text);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            write_value(value, indent, false, text);
        }
        Value::Object(_)
        | Value::Array(_)
        | Value::String(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_) => {
            text.push(' ');
            write_value(value, indent, true, text);
        }
    }
}

fn rank(key: &str) -> usize {
    ["apiVersion", "kind", "metadata"].iter().position(|first| *first == key).unwrap_or(3)
}

fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

/// As in JSON, with the characters escaped that YAML treats as line breaks or as not printable.
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for c in Value::from(text).to_string().chars() {
        let is_special =
            matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
        if is_special {
            // Writing to a String cannot fail; all of them have four digits.
            let _ = write!(quoted, "\\u{:04x}", u32::from(c));
        } else {
            quoted.push(c);
        }
    }
    quoted
}

fn is_plain(text: &str) -> bool {
    let reserved = ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf"];
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let inside =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ' ' | ',' | '(' | ')');
    begins_well
        && text.chars().all(inside)
        && !text.ends_with(' ')
        && !reserved.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use plumb_core::yaml::{Limits, parse_documents};
    use serde_json::json;

    use super::*;

    #[test]
    fn one_form() {
        let value = json!({
            "kind": "Thing", "apiVersion": "v1", "spec": {
                "list": [{"b": 1, "a": [1, [2, 3], []]}, "on", "x: y", "0644", "1e3", "a\nb", "", "~", "#"],
                "empty": {}, "none": null, "truth": true, "text": "plain words, (here)", "11": "2026-11-15",
            },
        });
        expect![[r##"
            apiVersion: v1
            kind: Thing
            spec:
              "11": "2026-11-15"
              empty: {}
              list:
              - a:
                - 1
                - - 2
                  - 3
                - []
                b: 1
              - "on"
              - "x: y"
              - "0644"
              - "1e3"
              - "a\nb"
              - ""
              - "~"
              - "#"
              none: null
              text: plain words, (here)
              truth: true
        "##]]
        .assert_eq(&to_yaml(&value));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let values = [
            crate::application::tests::complete(),
            json!([[[]], [{}], [{"a": {"b": [[{"c": "d"}]]}}], null, 1.5, -3, "yes", "\u{1f600} \u{0}\u{85}\u{feff}"]),
            json!("= "),
            json!({"": {"": [""]}, "a: b": "c: d", "- x": "? y", "<<": "merge", "!tag": "&anchor", "=": "="}),
        ];
        for value in values.iter().chain(&crate::crds()) {
            let text = to_yaml(value);
            let read = parse_documents(&text, &Limits::default()).expect("readable");
            assert_eq!(read.len(), 1);
            assert_eq!(&read[0].value, value, "{text}");
        }
    }
}
