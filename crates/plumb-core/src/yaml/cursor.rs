//! A position in the text that moves forward, with the character classes of YAML 1.1.

use super::token::Place;
use super::{YamlError, YamlProblem};

pub(super) struct Cursor<'text> {
    text: &'text str,
    place: Place,
}

impl<'text> Cursor<'text> {
    pub(super) fn new(text: &'text str, first_line: usize) -> Self {
        Self { text, place: Place { line: first_line, column: 0, index: 0, offset: 0 } }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Bytes before it.
    pub(super) fn offset(&self) -> usize {
        self.place.offset
    }

    pub(super) fn column(&self) -> usize {
        self.place.column
    }

    fn rest(&self) -> &'text str {
        self.text.get(self.place.offset..).unwrap_or_default()
    }

    /// The next character; `None` at the end.
    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// The character behind the next one.
    pub(super) fn peek_second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    pub(super) fn starts_with(&self, prefix: &str) -> bool {
        self.rest().starts_with(prefix)
    }

    /// Steps over one character that is not a line break.
    pub(super) fn skip(&mut self) {
        if let Some(char) = self.peek() {
            self.place.offset += char.len_utf8();
            self.place.column += 1;
            self.place.index += 1;
        }
    }

    /// Steps over one character that is not a line break, into `text`.
    pub(super) fn read(&mut self, text: &mut String) {
        text.extend(self.peek());
        self.skip();
    }

    /// Steps over a line break, if there is one, and says what it is in a text: the separators of Unicode
    /// stay what they are, all others are one.
    pub(super) fn read_break(&mut self) -> Option<char> {
        let char = self.peek().filter(|char| is_break(*char))?;
        let length = if self.starts_with("\r\n") { 2 } else { char.len_utf8() };
        self.place.offset += length;
        self.place.index += if char == '\r' && length == 2 { 2 } else { 1 };
        self.place.column = 0;
        self.place.line += 1;
        Some(if matches!(char, '\u{2028}' | '\u{2029}') { char } else { '\n' })
    }

    pub(super) fn at_blank(&self) -> bool {
        self.peek().is_some_and(is_blank)
    }

    pub(super) fn at_break(&self) -> bool {
        self.peek().is_some_and(is_break)
    }

    /// A line break, or the end.
    pub(super) fn at_break_or_end(&self) -> bool {
        self.peek().is_none_or(is_break)
    }

    /// A blank, a line break, or the end.
    pub(super) fn at_space_or_end(&self) -> bool {
        is_space_or_end(self.peek())
    }

    pub(super) fn second_is_space_or_end(&self) -> bool {
        is_space_or_end(self.peek_second())
    }

    /// `---` or `...` alone at the start of a line.
    pub(super) fn at_document_mark(&self, mark: &str) -> bool {
        self.place.column == 0
            && self.rest().strip_prefix(mark).is_some_and(|rest| is_space_or_end(rest.chars().next()))
    }

    pub(super) fn at_any_document_mark(&self) -> bool {
        self.at_document_mark("---") || self.at_document_mark("...")
    }

    pub(super) fn skip_blanks(&mut self) {
        while self.at_blank() {
            self.skip();
        }
    }

    pub(super) fn skip_comment(&mut self) {
        if self.peek() == Some('#') {
            while !self.at_break_or_end() {
                self.skip();
            }
        }
    }

    pub(super) fn error(&self, what: &str) -> YamlError {
        self.place.error(YamlProblem::Syntax(what.to_owned()))
    }
}

impl Place {
    pub(super) fn error(self, what: YamlProblem) -> YamlError {
        YamlError { line: self.line, column: self.column + 1, what }
    }
}

fn is_break(char: char) -> bool {
    matches!(char, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank(char: char) -> bool {
    matches!(char, ' ' | '\t')
}

fn is_space_or_end(char: Option<char>) -> bool {
    char.is_none_or(|char| is_blank(char) || is_break(char))
}

/// The characters of anchors and tag handles.
pub(super) fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-')
}
