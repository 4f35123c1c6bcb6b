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

/// One document of a stream, with the line that it starts on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chunk<'text> {
    pub text: Cow<'text, str>,
    pub first_line: usize,
    /// Its first byte in the stream, behind a byte order mark.
    pub offset: usize,
}

/// Takes a stream apart as kubectl does: at every line that starts with `---`, before any grammar. A byte
/// order mark may occur at the start of each document, because files get concatenated.
pub(super) fn split(text: &str) -> Result<Vec<Chunk<'_>>, YamlError> {
    if let Some((offset, found)) = text.char_indices().find(|(_, char)| !is_allowed(*char)) {
        let before = text.get(..offset).unwrap_or_default();
        return Err(at(before, YamlProblem::ControlCharacter { code: found.into() }));
    }
    let mut chunks = Vec::new();
    let mut start = Start { offset: 0, line: 1 };
    let mut offset = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let end = offset + line.len();
        if let Some(rest) = line.trim_start_matches(MARK).strip_prefix("---") {
            let rest = rest.trim();
            if !rest.is_empty() && !rest.starts_with('#') {
                return Err(YamlError { line: index + 1, column: 4, what: YamlProblem::Separator });
            }
            chunks.extend(chunk(text, start, offset));
            start = Start { offset: end, line: index + 2 };
        }
        offset = end;
    }
    chunks.extend(chunk(text, start, text.len()));
    Ok(chunks)
}

const MARK: char = '\u{FEFF}';

#[derive(Clone, Copy)]
struct Start {
    offset: usize,
    line: usize,
}

/// The document between two separators. Its last line gets its break if it lacks one: kubectl reads line by
/// line and puts one there.
fn chunk(text: &str, start: Start, end: usize) -> Option<Chunk<'_>> {
    let text = text.get(start.offset..end).filter(|text| !text.is_empty())?;
    let offset = end - text.trim_start_matches(MARK).len();
    let text = text.trim_start_matches(MARK);
    let text = if text.ends_with('\n') { Cow::Borrowed(text) } else { Cow::Owned(format!("{text}\n")) };
    Some(Chunk { text, first_line: start.line, offset })
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
