//! YAML text as `sigs.k8s.io/yaml` writes it, which is what users compare with: sorted keys, lists not indented, long
//! lines folded at 80 columns.

use plumb_core::yaml::{Limits, parse_first};
use serde_json::{Map, Value as Json};

use crate::budget::Fault;
use crate::number;
use crate::value::Scope;

const WIDTH: usize = 80;

/// One document that ends in a line break.
pub(crate) fn write(scope: &Scope, json: &Json) -> Result<String, Fault> {
    let mut out = String::new();
    write_value(scope, json, 0, false, &mut out)?;
    Ok(out)
}

/// Reads the first document; no document is null.
pub(crate) fn read(text: &str) -> Result<Json, String> {
    let limits =
        Limits { max_bytes: 1 << 20, max_depth: 100, max_alias_bytes: 1 << 20, max_memory: 32 << 20 };
    let document = parse_first(text, &limits).map_err(|error| error.to_string())?;
    Ok(document.map_or(Json::Null, |document| document.value))
}

/// Writes a value at its place. `indent` is where further lines of it start; `inline`: after a dash.
fn write_value(
    scope: &Scope,
    json: &Json,
    indent: usize,
    inline: bool,
    out: &mut String,
) -> Result<(), Fault> {
    scope.check_growth(out.len())?;
    match json {
        Json::Object(map) if !map.is_empty() => {
            for (index, key) in sorted_keys(scope, map)?.into_iter().enumerate() {
                if index > 0 || !inline {
                    out.push_str(&" ".repeat(indent));
                }
                write_text(key, indent, true, out);
                out.push(':');
                write_after_key(scope, &map[key], indent, out)?;
            }
        }
        Json::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 || !inline {
                    out.push_str(&" ".repeat(indent));
                }
                out.push_str("- ");
                if has_lines(item) {
                    write_value(scope, item, indent + 2, true, out)?;
                } else {
                    write_scalar(item, indent + 2, out);
                }
            }
        }
        scalar => write_scalar(scalar, indent + 2, out),
    }
    Ok(())
}

/// True for maps and lists that have something in them.
fn has_lines(json: &Json) -> bool {
    match json {
        Json::Object(map) => !map.is_empty(),
        Json::Array(items) => !items.is_empty(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

fn sorted_keys<'a>(scope: &Scope, map: &'a Map<String, Json>) -> Result<Vec<&'a String>, Fault> {
    let mut keys: Vec<&String> = map.keys().collect();
    // Sorting looks at each key as often as the number of keys has bits.
    let bytes: usize = keys.iter().map(|key| key.len()).sum();
    scope.step(bytes.saturating_mul(keys.len().ilog2() as usize + 1) / 16)?;
    keys.sort_by(|a, b| natural(a, b));
    Ok(keys)
}

fn write_after_key(scope: &Scope, json: &Json, indent: usize, out: &mut String) -> Result<(), Fault> {
    if !has_lines(json) {
        out.push(' ');
        write_scalar(json, indent + 2, out);
        return Ok(());
    }
    out.push('\n');
    write_value(scope, json, if json.is_array() { indent } else { indent + 2 }, false, out)
}

fn write_scalar(json: &Json, indent: usize, out: &mut String) {
    match json {
        Json::Null => out.push_str("null"),
        Json::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Json::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => out.push_str(&float_text(float)),
            _ => out.push_str(&number.to_string()),
        },
        Json::String(text) => {
            write_text(text, indent, false, out);
            if text.contains('\n') && out.ends_with('\n') {
                return;
            }
        }
        Json::Array(_) => out.push_str("[]"),
        Json::Object(_) => out.push_str("{}"),
    }
    out.push('\n');
}

/// The number was JSON before: `1e+21` and `0.5` are as Go's YAML library writes floats.
fn float_text(number: f64) -> String {
    whole_text(number).unwrap_or_else(|| number::general(number, None, false))
}

/// A number that JSON writes without exponent is an integer to Go's YAML library, if it is one of 64 bits.
fn whole_text(number: f64) -> Option<String> {
    if number.fract() != 0.0 || number.abs() >= 1e21 {
        return None;
    }
    // The shortest digits, filled up with zeros.
    let written = format!("{number:e}");
    let (digits, exponent) = written.split_once('e')?;
    let exponent: usize = exponent.parse().ok()?;
    let digits = digits.replace('.', "");
    let length = exponent + 1 + usize::from(digits.starts_with('-'));
    let whole = format!("{digits:0<length$}");
    (whole.parse::<i64>().is_ok() || whole.parse::<u64>().is_ok()).then_some(whole)
}

/// Keys in the order of Go's YAML library: numbers inside them count as numbers.
fn natural(a: &str, b: &str) -> std::cmp::Ordering {
    let (left, right): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let digits = |text: &[char], from: usize| -> (usize, u128) {
        let run: Vec<u32> = text[from..].iter().map_while(|character| character.to_digit(10)).collect();
        let value =
            run.iter().fold(0u128, |sum, digit| sum.wrapping_mul(10).wrapping_add(u128::from(*digit)));
        (from + run.len(), value)
    };
    for index in 0..left.len().min(right.len()) {
        let (x, y) = (left[index], right[index]);
        if x == y {
            continue;
        }
        match (x.is_alphabetic(), y.is_alphabetic()) {
            (true, true) => return x.cmp(&y),
            (true, false) => return std::cmp::Ordering::Greater,
            (false, true) => return std::cmp::Ordering::Less,
            (false, false) => {}
        }
        let after_number = left[..index]
            .iter()
            .rev()
            .take_while(|character| character.is_ascii_digit())
            .any(|digit| *digit != '0');
        let carry = u128::from((x == '0' || y == '0') && after_number);
        let (x_end, x_number) = digits(&left, index);
        let (y_end, y_number) = digits(&right, index);
        let lead = |number: u128, end: usize| {
            let carried = carry * 10u128.saturating_pow(u32::try_from(end - index).unwrap_or(20).min(20));
            number.wrapping_add(carried)
        };
        return lead(x_number, x_end).cmp(&lead(y_number, y_end)).then(x_end.cmp(&y_end)).then(x.cmp(&y));
    }
    left.len().cmp(&right.len())
}

fn write_text(text: &str, indent: usize, is_key: bool, out: &mut String) {
    if is_ambiguous(text) {
        return write_double_quoted(text, indent, is_key, out);
    }
    let has_special = text.chars().any(|character| !is_printable(character));
    if text.contains('\n') {
        let block = !has_special && !is_key && !has_trailing_blanks(text);
        return if block {
            write_literal(text, indent, out);
        } else {
            write_double_quoted(text, indent, is_key, out);
        };
    }
    if has_special || text.contains('\t') {
        return write_double_quoted(text, indent, is_key, out);
    }
    if is_plain(text) {
        write_folded(text, indent, is_key, out);
    } else if text.starts_with(' ') || text.ends_with(' ') || !text.is_empty() {
        let mut quoted = String::new();
        write_folded(&text.replace('\'', "''"), indent, is_key, &mut quoted);
        // The fold counts columns from the start of the line, which the quote moves by one.
        out.push('\'');
        out.push_str(&quoted);
        out.push('\'');
    } else {
        out.push_str("\"\"");
    }
}

fn has_trailing_blanks(text: &str) -> bool {
    text.ends_with(' ') || text.contains(" \n")
}

fn is_printable(character: char) -> bool {
    matches!(character, '\n' | '\t' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

/// True if a reader would take the unquoted text for something else than this text.
fn is_ambiguous(text: &str) -> bool {
    if text.is_empty() {
        return true;
    }
    if text.len() > 64 || !text.is_ascii() || text.contains(['\n', '\t', '#', '"', '\'', '[', ']', '{', '}'])
    {
        return false;
    }
    let bytes = text.as_bytes();
    let is_sexagesimal = text.contains(':')
        && bytes.iter().all(|byte| byte.is_ascii_digit() || b":._+-".contains(byte))
        && bytes.first().is_some_and(|byte| byte.is_ascii_digit() || b"+-".contains(byte))
        && bytes.last().is_some_and(u8::is_ascii_digit);
    if is_sexagesimal || is_date(text) {
        return true;
    }
    if text.contains(": ") || text.ends_with(':') || text.contains(' ') {
        return false;
    }
    // No number is as long as that.
    if text.len() > 400 {
        return false;
    }
    match parse_first(text, &Limits::default()) {
        Ok(Some(document)) => {
            !document.value.is_string() && !document.value.is_object() && !document.value.is_array()
        }
        Ok(None) | Err(_) => false,
    }
}

/// `2020-01-01`, perhaps with a time.
fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let (Some(year), Some(month), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let is_number =
        |part: &str| !part.is_empty() && part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit());
    let day: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let after = &rest[day.len()..];
    let tail_ok = after.is_empty()
        || (after.starts_with(['T', 't', ' '])
            && after[1..].bytes().all(|byte| byte.is_ascii_digit() || b":.+-Zz ".contains(&byte))
            && after.contains(':'));
    year.len() == 4
        && is_number(year)
        && month.len() <= 2
        && is_number(month)
        && is_number(&day)
        && day.len() <= 2
        && tail_ok
}

/// True if the text can stand without quotes.
fn is_plain(text: &str) -> bool {
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return false };
    let second = characters.next();
    let before_blank = second.is_none_or(|character| character == ' ');
    let starts_badly = match first {
        '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => {
            true
        }
        '?' | ':' | '-' => before_blank,
        _ => false,
    };
    let document_mark = text.starts_with("---") || text.starts_with("...");
    !(starts_badly
        || document_mark
        || text.starts_with(' ')
        || text.ends_with(' ')
        || text.ends_with(':')
        || text.contains(": ")
        || text.contains(" #"))
}

/// Breaks a long text at blanks after the eightieth column.
fn write_folded(text: &str, indent: usize, is_key: bool, out: &mut String) {
    let mut column = out.len() - out.rfind('\n').map_or(0, |at| at + 1);
    let characters: Vec<char> = text.chars().collect();
    for (index, character) in characters.iter().enumerate() {
        let single = *character == ' '
            && characters.get(index + 1).is_some_and(|next| *next != ' ')
            && index > 0
            && characters[index - 1] != ' ';
        if single && !is_key && column > WIDTH {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else {
            out.push(*character);
            column += 1;
        }
    }
}

fn write_literal(text: &str, indent: usize, out: &mut String) {
    out.push('|');
    if text.starts_with([' ', '\n']) {
        out.push('2');
    }
    if !text.ends_with('\n') {
        out.push('-');
    } else if text == "\n" || text.ends_with("\n\n") {
        out.push('+');
    }
    out.push('\n');
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        if !line.is_empty() {
            out.push_str(&" ".repeat(indent));
            out.push_str(line);
        }
        out.push('\n');
    }
    if !text.ends_with('\n') {
        out.pop();
    }
}

fn write_double_quoted(text: &str, indent: usize, is_key: bool, out: &mut String) {
    use std::fmt::Write as _;
    out.push('"');
    let mut column = out.len() - out.rfind('\n').map_or(0, |at| at + 1);
    let characters: Vec<char> = text.chars().collect();
    for (index, character) in characters.iter().enumerate() {
        let before = out.len();
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0' => out.push_str("\\0"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\u{1b}' => out.push_str("\\e"),
            '\u{feff}' => out.push_str("\\uFEFF"),
            ' ' if !is_key && column > WIDTH && index > 0 && index + 1 < characters.len() => {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                if characters[index + 1] == ' ' {
                    out.push('\\');
                }
                column = indent;
                continue;
            }
            printable if is_printable(*printable) => out.push(*printable),
            other => {
                // Writing to a String cannot fail.
                let code = u32::from(*other);
                let _ = if code <= 0xff {
                    write!(out, "\\x{code:02X}")
                } else if code <= 0xffff {
                    write!(out, "\\u{code:04X}")
                } else {
                    write!(out, "\\U{code:08X}")
                };
            }
        }
        column += out.len() - before;
    }
    out.push('"');
}
