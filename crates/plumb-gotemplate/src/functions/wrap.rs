//! Line breaks and abbreviations. Lengths count bytes, as in Go.

use super::table::{Row, Type, bytes, integer, new_text};
use crate::budget::Fault;
use crate::value::{Scope, Value};

pub(super) const ROWS: &[Row] = &[
    ("wrap", &[Type::Int, Type::Text], None, |scope, given| {
        wrap(scope, bytes(given, 1), integer(given, 0), b"\n", false)
    }),
    ("wrapWith", &[Type::Int, Type::Text, Type::Text], None, |scope, given| {
        wrap(scope, bytes(given, 2), integer(given, 0), bytes(given, 1), true)
    }),
    ("abbrev", &[Type::Int, Type::Text], None, |scope, given| {
        new_text(scope, abbreviate(bytes(given, 1), 0, integer(given, 0)))
    }),
    ("abbrevboth", &[Type::Int, Type::Int, Type::Text], None, |scope, given| {
        let (left, right) = (integer(given, 0), integer(given, 1));
        let whole = bytes(given, 2);
        if right < 4 || (left > 0 && right < 7) {
            return new_text(scope, whole);
        }
        new_text(scope, abbreviate(whole, left, right))
    }),
];

fn wrap(
    scope: &Scope,
    whole: &[u8],
    width: i64,
    line_break: &[u8],
    cuts_words: bool,
) -> Result<Value, Fault> {
    let line_break = if line_break.is_empty() { b"\n" } else { line_break };
    let width = usize::try_from(width).unwrap_or(0).max(1);
    scope.step(whole.len())?;
    scope.allocate((whole.len() / width).saturating_mul(line_break.len()))?;
    let mut out = Vec::with_capacity(whole.len());
    let mut at = 0;
    while whole.len() - at > width {
        if whole[at] == b' ' {
            at += 1;
            continue;
        }
        let blank = whole[at..=at + width].iter().rposition(|byte| *byte == b' ').map(|offset| at + offset);
        let (end, next) = match blank {
            Some(blank) => (blank, blank + 1),
            None if cuts_words => (at + width, at + width),
            None => match whole[at + width..].iter().position(|byte| *byte == b' ') {
                Some(offset) => (at + width + offset, at + width + offset + 1),
                None => break,
            },
        };
        out.extend_from_slice(&whole[at..end]);
        out.extend_from_slice(line_break);
        at = next;
    }
    out.extend_from_slice(&whole[at..]);
    new_text(scope, out)
}

/// At most `width` bytes, with dots in place of what is missing.
fn abbreviate(whole: &[u8], offset: i64, width: i64) -> Vec<u8> {
    let Some(width) = usize::try_from(width).ok().filter(|width| *width >= 4) else { return whole.to_vec() };
    if whole.len() <= width {
        return whole.to_vec();
    }
    let offset = usize::try_from(offset).unwrap_or(0).min(whole.len());
    let kept = width - 3;
    let offset = if whole.len() - offset < kept { whole.len() - kept } else { offset };
    if offset <= 4 {
        return [&whole[..kept], b"..."].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    if offset + kept < whole.len() {
        let rest = abbreviate(&whole[offset..], 0, i64::try_from(kept).unwrap_or(i64::MAX));
        return [b"...".as_slice(), &rest].concat();
    }
    [b"...".as_slice(), &whole[whole.len() - kept..]].concat()
}
