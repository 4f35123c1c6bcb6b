//! A scalar or a key as text.

use std::fmt::Write as _;

use serde_json::Value;

use crate::yaml::scalar::{Resolved, Tag, resolve};
use crate::yaml::span::Style;
use crate::yaml::timestamp::is_timestamp;

/// A value that is not a map or list, on one line. A text keeps the quotes of the value that it replaces.
pub(super) fn scalar(value: &Value, in_flow: bool, like: Style) -> String {
    match value {
        Value::String(text) => string(text, in_flow, like),
        other => other.to_string(),
    }
}

/// A text, on one line.
pub(super) fn string(text: &str, in_flow: bool, like: Style) -> String {
    match like {
        Style::DoubleQuoted => double_quoted(text),
        Style::SingleQuoted if is_printable(text) => format!("'{}'", text.replace('\'', "''")),
        _ if is_plain(text, in_flow) => text.to_owned(),
        _ => double_quoted(text),
    }
}

/// As in JSON, with the characters escaped that YAML takes for line breaks or does not allow. Every reader of YAML
/// reads it the same.
pub(super) fn double_quoted(text: &str) -> String {
    let mut quoted = String::new();
    for char in Value::from(text).to_string().chars() {
        let is_special = matches!(
            char,
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        );
        if is_special {
            // Writing to a String cannot fail; all of them have four digits.
            let _ = write!(quoted, "\\u{:04x}", u32::from(char));
        } else {
            quoted.push(char);
        }
    }
    quoted
}

/// Is it on one line, with characters that need no escape?
fn is_printable(text: &str) -> bool {
    text.chars().all(|char| matches!(char, ' '..='~' | '\u{a1}'..='\u{d7ff}') && !is_separator(char))
}

fn is_separator(char: char) -> bool {
    matches!(char, '\u{2028}' | '\u{2029}')
}

/// Does every reader of YAML take this text for itself when it is not quoted? Careful rather than complete.
fn is_plain(text: &str, in_flow: bool) -> bool {
    let begins_well =
        text.starts_with(|char: char| char.is_ascii_alphanumeric() || matches!(char, '/' | '_' | '.'));
    let inside = |char: char| match char {
        '-' | '_' | '.' | '/' | '+' | '@' | '(' | ')' | ' ' | '=' => true,
        ':' | ',' => !in_flow,
        char => char.is_ascii_alphanumeric(),
    };
    begins_well
        && text.chars().all(inside)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !is_timestamp(text)
        && !looks_like_a_number(text)
        && matches!(resolve(Tag::Implicit, text), Ok(Resolved::Text(found)) if found == text)
}

/// Readers of YAML 1.1 and 1.2 do not agree on `0o17`, `1_000`, `1e3` and `12:30`.
fn looks_like_a_number(text: &str) -> bool {
    text.starts_with(|char: char| char.is_ascii_digit() || char == '.')
        && text
            .chars()
            .all(|char| char.is_ascii_hexdigit() || matches!(char, 'o' | 'x' | '_' | '.' | ':' | '+' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_that_mean_something_else_are_quoted() {
        for (text, expected) in [
            ("Retain", "Retain"),
            ("1000m", "1000m"),
            ("nginx:1.25", "nginx:1.25"),
            ("/var/run/a b", "/var/run/a b"),
            ("", r#""""#),
            ("on", r#""on""#),
            ("n", r#""n""#),
            ("0644", r#""0644""#),
            ("0o17", r#""0o17""#),
            ("1e3", r#""1e3""#),
            ("12:30", r#""12:30""#),
            ("2026-11-15", r#""2026-11-15""#),
            ("a: b", r#""a: b""#),
            ("a:", r#""a:""#),
            ("- a", r#""- a""#),
            ("a #b", r#""a #b""#),
            ("{{ x }}", r#""{{ x }}""#),
            ("a\nb", r#""a\nb""#),
            ("\u{85}\u{2028}", r#""\u0085\u2028""#),
        ] {
            assert_eq!(string(text, false, Style::Plain), expected, "{text}");
        }
        assert_eq!(string("a, b", true, Style::Plain), r#""a, b""#);
        assert_eq!(string("nginx:1.25", true, Style::Plain), r#""nginx:1.25""#);
    }

    #[test]
    fn a_text_keeps_its_quotes() {
        assert_eq!(string("it's", false, Style::SingleQuoted), "'it''s'");
        assert_eq!(string("a\nb", false, Style::SingleQuoted), r#""a\nb""#);
        assert_eq!(string("a", false, Style::DoubleQuoted), r#""a""#);
        assert_eq!(scalar(&json!(3), false, Style::DoubleQuoted), "3");
    }
}
