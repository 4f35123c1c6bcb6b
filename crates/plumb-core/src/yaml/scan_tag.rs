//! Tags: `!local`, `!!known`, `!<the whole of it>`.

use super::YamlError;
use super::cursor::{Cursor, is_word};
use super::scalar::Tag;

const KNOWN: &str = "tag:yaml.org,2002:";

/// Reads a tag at its `!`.
pub(super) fn tag(cursor: &mut Cursor<'_>) -> Result<Tag, YamlError> {
    let name = name(cursor)?;
    if !cursor.at_space_or_end() {
        return Err(cursor.error("a tag ends with a space or the line"));
    }
    Ok(match name.strip_prefix(KNOWN) {
        Some("str") => Tag::Str,
        Some("bool") => Tag::Bool,
        Some("int") => Tag::Int,
        Some("float") => Tag::Float,
        Some("null") => Tag::Null,
        Some("timestamp") => Tag::Timestamp,
        Some("binary") => Tag::Binary,
        Some("merge") => Tag::Merge,
        None if name == "!" => Tag::Bang,
        Some(_) | None => Tag::Text,
    })
}

fn name(cursor: &mut Cursor<'_>) -> Result<String, YamlError> {
    if cursor.starts_with("!<") {
        cursor.skip();
        cursor.skip();
        let name = uri(cursor, String::new())?;
        if cursor.peek() != Some('>') {
            return Err(cursor.error("a tag that starts with `!<` ends with `>`"));
        }
        cursor.skip();
        return Ok(name);
    }
    let mut handle = String::new();
    cursor.read(&mut handle);
    while cursor.peek().is_some_and(is_word) {
        cursor.read(&mut handle);
    }
    if cursor.peek() == Some('!') {
        cursor.read(&mut handle);
        let suffix = uri(cursor, String::new())?;
        // Other handles need a directive, and directives are not read.
        return match handle.as_str() {
            "!!" => Ok(format!("{KNOWN}{suffix}")),
            _ => Err(cursor.error("the tag's handle is not declared")),
        };
    }
    uri(cursor, handle)
}

/// Characters of a tag, behind those that were read as its head.
fn uri(cursor: &mut Cursor<'_>, head: String) -> Result<String, YamlError> {
    let mut bytes = head.into_bytes();
    while let Some(char) = cursor.peek() {
        if char == '%' {
            cursor.skip();
            let mut octet = 0;
            for _ in 0..2 {
                let digit = cursor.peek().and_then(|digit| digit.to_digit(16));
                let digit = digit.ok_or_else(|| cursor.error("`%` in a tag needs two hex digits"))?;
                octet = octet * 16 + digit;
                cursor.skip();
            }
            bytes.extend(u8::try_from(octet));
        } else if is_word(char) || ";/?:@&=+$,.!~*'()[]".contains(char) {
            bytes.extend(u8::try_from(char));
            cursor.skip();
        } else {
            break;
        }
    }
    if bytes.is_empty() {
        return Err(cursor.error("the tag has no name"));
    }
    String::from_utf8(bytes).map_err(|_| cursor.error("the tag is not UTF-8"))
}
