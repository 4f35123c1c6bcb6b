//! From bytes to text that the grammar may see.

use std::borrow::Cow;

use super::{YamlError, YamlProblem};

/// UTF-8, or UTF-16 with its byte order mark.
pub(super) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, YamlError> {
    let units = |from_pair: fn([u8; 2]) -> u16| {
        let (pairs, odd) = bytes.as_chunks::<2>();
        let text: Result<String, _> =
            char::decode_utf16(pairs.iter().skip(1).map(|&pair| from_pair(pair))).collect();
        text.ok().filter(|_| odd.is_empty()).map(Cow::Owned)
    };
    let decoded = match bytes {
        [0xFF, 0xFE, ..] => units(u16::from_le_bytes),
        [0xFE, 0xFF, ..] => units(u16::from_be_bytes),
        _ => {
            return std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|error| {
                let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
                at(&String::from_utf8_lossy(valid), YamlProblem::Encoding)
            });
        }
    };
    decoded.ok_or(YamlError { line: 1, column: 1, what: YamlProblem::Encoding })
}

/// The text without byte order mark, with a break behind the last line (kubectl reads line by line and puts
/// one there), and with the one break of YAML 1.1 that the grammar does not know (NEL) as a plain one.
pub(super) fn prepare(text: &str) -> Result<Cow<'_, str>, YamlError> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    if let Some((offset, found)) = text.char_indices().find(|(_, char)| !is_allowed(*char)) {
        let before = text.get(..offset).unwrap_or_default();
        return Err(at(before, YamlProblem::ControlCharacter { code: found.into() }));
    }
    let has_next_line = text.contains('\u{85}');
    if text.ends_with(['\n', '\r']) && !has_next_line {
        return Ok(Cow::Borrowed(text));
    }
    let mut prepared = if has_next_line { text.replace('\u{85}', "\n") } else { text.to_owned() };
    if !prepared.ends_with(['\n', '\r']) {
        prepared.push('\n');
    }
    Ok(Cow::Owned(prepared))
}

fn is_allowed(char: char) -> bool {
    matches!(char,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{A0}'..='\u{FFFD}' | '\u{10000}'..='\u{10FFFF}')
}

/// The place behind this text.
fn at(before: &str, what: YamlProblem) -> YamlError {
    let last_line = before.rsplit('\n').next().unwrap_or_default();
    YamlError { line: before.matches('\n').count() + 1, column: last_line.chars().count() + 1, what }
}
