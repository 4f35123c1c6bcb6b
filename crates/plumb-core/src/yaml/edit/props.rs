//! The anchor and the tag in front of a value.

use std::ops::Range;

/// What is between the start of a node and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Props {
    /// Its anchor, with `&`.
    pub anchor: Option<Range<usize>>,
    pub has_tag: bool,
    /// The byte behind the last of them.
    pub end: usize,
}

impl Props {
    /// Reads the text from the start of a node to its value. The reader has accepted it, so only anchors, tags,
    /// blanks and comments can be there.
    pub(super) fn read(text: &str, start: usize, content: usize) -> Self {
        let mut props = Self { anchor: None, has_tag: false, end: start };
        let mut at = start;
        while let Some(rest) = text.get(at..content).filter(|rest| rest.starts_with(['&', '!'])) {
            let length = rest.find([' ', '\t', '\r', '\n']).unwrap_or(rest.len());
            props.end = at + length;
            if rest.starts_with('&') {
                props.anchor = Some(at..props.end);
            } else {
                props.has_tag = true;
            }
            let blanks = rest.get(length..).unwrap_or_default();
            at = props.end + (blanks.len() - blanks.trim_start_matches([' ', '\t']).len());
        }
        props
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_and_tags_in_either_order() {
        let read = |text: &str| Props::read(text, 0, text.len());
        assert_eq!(read(""), Props { anchor: None, has_tag: false, end: 0 });
        assert_eq!(read("&a "), Props { anchor: Some(0..2), has_tag: false, end: 2 });
        assert_eq!(read("!!str &a "), Props { anchor: Some(6..8), has_tag: true, end: 8 });
        assert_eq!(read("&a # not !!str\n  "), Props { anchor: Some(0..2), has_tag: false, end: 2 });
    }
}
