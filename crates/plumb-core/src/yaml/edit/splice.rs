//! Replacing parts of a text.

use std::ops::Range;

/// These bytes become this text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Splice {
    pub range: Range<usize>,
    pub text: String,
}

impl Splice {
    pub(super) fn new(range: Range<usize>, text: impl Into<String>) -> Self {
        Self { range, text: text.into() }
    }

    pub(super) fn insert(at: usize, text: impl Into<String>) -> Self {
        Self::new(at..at, text)
    }

    pub(super) fn delete(range: Range<usize>) -> Self {
        Self::new(range, "")
    }
}

/// The text with all of these applied; `None` if two of them overlap or one is outside of the text.
pub(super) fn spliced(text: &str, mut splices: Vec<Splice>) -> Option<String> {
    splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
    let mut result = String::with_capacity(text.len());
    let mut from = 0;
    for splice in splices {
        result.push_str(text.get(from..splice.range.start)?);
        result.push_str(&splice.text);
        from = splice.range.end;
    }
    result.push_str(text.get(from..)?);
    Some(result)
}
