//! Conversions between types, as Sprig makes them.

use serde_json::Value as Json;

use crate::budget::{Fault, MAX_VALUE_DEPTH, too_deep};
use crate::format::print_value;
use crate::number;
use crate::value::{Scope, Value};
use crate::version::complete;

/// Memory that a JSON value takes, about.
const JSON_BYTES: usize = 64;

/// A whole number from anything; zero where there is none.
pub fn to_integer(value: &Value) -> i64 {
    match value {
        Value::Int(number) | Value::Int64(number) => *number,
        Value::Uint64(number) => i64::try_from(*number).unwrap_or(i64::MAX),
        Value::Byte(byte) => i64::from(*byte),
        Value::Float(number) => truncate(*number),
        Value::Bool(truth) => i64::from(*truth),
        Value::Text(text) => {
            parse_integer(without_zero_decimals(&String::from_utf8_lossy(text))).unwrap_or(0)
        }
        Value::Nil
        | Value::List(_)
        | Value::Map(_)
        | Value::Time(_)
        | Value::Duration(_)
        | Value::Version(_)
        | Value::Raw(_) => 0,
    }
}

/// The integer part.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates; Go's result is not defined there")]
pub fn truncate(number: f64) -> i64 {
    number as i64
}

/// The nearest `f64`.
#[expect(clippy::cast_precision_loss, reason = "as in Go")]
pub fn float(number: i64) -> f64 {
    number as f64
}

/// `1.00` is `1`.
fn without_zero_decimals(text: &str) -> &str {
    match text.split_once('.') {
        Some((whole, decimals)) if !whole.is_empty() && decimals.bytes().all(|digit| digit == b'0') => whole,
        _ => text,
    }
}

/// An integer as in Go's source: `0x1f`, `0o17`, `017`, `0b1`, `1_000`.
pub fn parse_integer(text: &str) -> Option<i64> {
    i64::try_from(parse_wide_integer(text)?).ok()
}

/// The same, of any size that a number literal may have.
pub(crate) fn parse_wide_integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = if let Some(rest) = lower.strip_prefix("0x") {
        (16, rest)
    } else if let Some(rest) = lower.strip_prefix("0b") {
        (2, rest)
    } else if let Some(rest) = lower.strip_prefix("0o") {
        (8, rest)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, &lower[1..])
    } else {
        (10, lower.as_str())
    };
    let based = radix != 10;
    let underscores_ok =
        !digits.ends_with('_') && !digits.contains("__") && (based || !digits.starts_with('_'));
    if digits.is_empty() || digits.starts_with(['+', '-']) || !underscores_ok {
        return None;
    }
    let number = i128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    Some(if negative { -number } else { number })
}

/// A floating-point number from anything; zero where there is none.
pub fn to_float(value: &Value) -> f64 {
    match value {
        Value::Float(number) => *number,
        Value::Int(number) | Value::Int64(number) => float(*number),
        #[expect(clippy::cast_precision_loss, reason = "as in Go")]
        Value::Uint64(number) => *number as f64,
        Value::Byte(byte) => f64::from(*byte),
        Value::Bool(truth) => f64::from(u8::from(*truth)),
        Value::Text(text) => parse_float(&String::from_utf8_lossy(text)).unwrap_or(0.0),
        Value::Nil
        | Value::List(_)
        | Value::Map(_)
        | Value::Time(_)
        | Value::Duration(_)
        | Value::Version(_)
        | Value::Raw(_) => 0.0,
    }
}

/// A number in Go's syntax.
pub fn parse_float(text: &str) -> Option<f64> {
    let allowed = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    let is_word = matches!(
        text.trim_start_matches(['+', '-']).to_ascii_lowercase().as_str(),
        "inf" | "infinity" | "nan"
    );
    (is_word || (!text.is_empty() && text.bytes().all(allowed))).then(|| text.parse().ok()).flatten()
}

/// Sprig's text of a value.
pub fn to_text(scope: &Scope, value: &Value) -> Result<Vec<u8>, Fault> {
    match value {
        Value::Text(text) => Ok(text.to_vec()),
        other => print_value(scope, other),
    }
}

/// Go's `reflect.DeepEqual`: the types must be the same too.
pub fn deep_equal(scope: &Scope, a: &Value, b: &Value, depth: usize) -> Result<bool, Fault> {
    scope.step(1)?;
    if depth > MAX_VALUE_DEPTH {
        return Err(too_deep());
    }
    Ok(match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b))
        | (Value::Int64(a), Value::Int64(b))
        | (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Uint64(a), Value::Uint64(b)) => a == b,
        (Value::Byte(a), Value::Byte(b)) => a == b,
        #[expect(clippy::float_cmp, reason = "as in Go")]
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Text(a), Value::Text(b)) => {
            scope.step(a.len().min(b.len()) / 64)?;
            a == b
        }
        (Value::Raw(a), Value::Raw(b)) => a == b,
        (Value::Time(a), Value::Time(b)) => a == b,
        (Value::Version(a), Value::Version(b)) => a == b,
        (Value::List(a), Value::List(b)) => {
            if a.of != b.of || a.is_nil != b.is_nil || a.items.len() != b.items.len() {
                return Ok(false);
            }
            for (a, b) in a.items.iter().zip(&b.items) {
                if !deep_equal(scope, a, b, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(a), Value::Map(b)) => {
            let (left, right) = (a.entries(), b.entries());
            if a.of != b.of || left.len() != right.len() {
                return Ok(false);
            }
            for ((a_key, a), (b_key, b)) in left.iter().zip(right.iter()) {
                if a_key != b_key || !deep_equal(scope, a, b, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        _ => false,
    })
}

/// The value as JSON.
pub fn to_json(scope: &Scope, value: &Value, depth: usize) -> Result<Json, Fault> {
    scope.step(1)?;
    scope.allocate(JSON_BYTES)?;
    if depth > MAX_VALUE_DEPTH {
        return Err(too_deep());
    }
    Ok(match value {
        Value::Nil => Json::Null,
        Value::Bool(truth) => Json::from(*truth),
        Value::Int(number) | Value::Int64(number) | Value::Duration(number) => Json::from(*number),
        Value::Uint64(number) => Json::from(*number),
        Value::Byte(byte) => Json::from(*byte),
        Value::Float(number) => float_to_json(*number)?,
        Value::Text(text) => {
            scope.allocate(text.len())?;
            Json::from(String::from_utf8_lossy(text).into_owned())
        }
        Value::List(list) if list.is_nil => Json::Null,
        Value::List(list) => {
            let items = list.items.iter().map(|item| to_json(scope, item, depth + 1));
            Json::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Map(map) => {
            let entries = map.entries();
            let entries = entries.iter().map(|(key, item)| {
                scope.allocate(key.len())?;
                Ok((key.clone(), to_json(scope, item, depth + 1)?))
            });
            Json::Object(entries.collect::<Result<_, Fault>>()?)
        }
        Value::Time(time) => Json::from(crate::time::rfc3339(time)),
        Value::Version(version) => Json::from(complete(version)),
        Value::Raw(raw) => serde_json::from_str(raw).unwrap_or(Json::Null),
    })
}

/// Whole numbers stay whole, so that a tool that reads the JSON sees `3`, not `3.0`.
fn float_to_json(number: f64) -> Result<Json, Fault> {
    if number.fract() == 0.0 && number.abs() < 9.0e15 {
        return Ok(Json::from(truncate(number)));
    }
    serde_json::Number::from_f64(number)
        .map(Json::Number)
        .ok_or_else(|| Fault(format!("json: unsupported value: {}", number::general(number, None, false))))
}

/// JSON text as Go's `encoding/json` writes it: keys sorted, numbers in Go's form, `<`, `>` and `&` escaped on demand.
pub fn json_text(scope: &Scope, json: &Json, escape_html: bool) -> Result<String, Fault> {
    let mut out = String::new();
    write_json(scope, json, (escape_html, None), 0, &mut out)?;
    Ok(out)
}

/// The same over several lines, indented by two blanks.
pub fn pretty_json_text(scope: &Scope, json: &Json, escape_html: bool) -> Result<String, Fault> {
    let mut out = String::new();
    write_json(scope, json, (escape_html, Some("  ")), 0, &mut out)?;
    Ok(out)
}

fn write_json(
    scope: &Scope,
    json: &Json,
    (escape_html, indent): (bool, Option<&str>),
    level: usize,
    out: &mut String,
) -> Result<(), Fault> {
    scope.check_growth(out.len())?;
    let line = |out: &mut String, level: usize| {
        if let Some(indent) = indent {
            out.push('\n');
            out.push_str(&indent.repeat(level));
        }
    };
    match json {
        Json::Null => out.push_str("null"),
        Json::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Json::Number(number) if number.is_f64() => {
            out.push_str(&number::json(number.as_f64().unwrap_or_default()));
        }
        Json::Number(number) => out.push_str(&number.to_string()),
        Json::String(text) => write_json_string(text, escape_html, out),
        Json::Array(items) if items.is_empty() => out.push_str("[]"),
        Json::Object(map) if map.is_empty() => out.push_str("{}"),
        Json::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(out, level + 1);
                write_json(scope, item, (escape_html, indent), level + 1, out)?;
            }
            line(out, level);
            out.push(']');
        }
        Json::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(out, level + 1);
                write_json_string(key, escape_html, out);
                out.push_str(if indent.is_some() { ": " } else { ":" });
                write_json(scope, &map[key], (escape_html, indent), level + 1, out)?;
            }
            line(out, level);
            out.push('}');
        }
    }
    Ok(())
}

/// A JSON string as Go writes it.
pub fn write_json_string(text: &str, escape_html: bool, out: &mut String) {
    use std::fmt::Write as _;
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' if escape_html => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            control if u32::from(control) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
