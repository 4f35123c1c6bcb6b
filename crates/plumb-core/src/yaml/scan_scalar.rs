//! Scalars: plain, quoted, and in blocks.

use super::YamlError;
use super::cursor::Cursor;

/// Space between two parts of a scalar, while it is not known yet whether more comes.
#[derive(Default)]
struct Gap {
    blanks: String,
    first_break: Option<char>,
    more_breaks: String,
}

impl Gap {
    fn has_break(&self) -> bool {
        self.first_break.is_some()
    }

    /// Takes in blanks and breaks. Blanks around breaks do not count.
    fn read(&mut self, cursor: &mut Cursor<'_>) {
        while cursor.at_blank() || cursor.at_break() {
            if let Some(found) = cursor.read_break() {
                self.push_break(found);
            } else if self.has_break() {
                cursor.skip();
            } else {
                cursor.read(&mut self.blanks);
            }
        }
    }

    fn push_break(&mut self, found: char) {
        if self.has_break() {
            self.more_breaks.push(found);
        } else {
            self.blanks.clear();
            self.first_break = Some(found);
        }
    }

    /// One line break is a space, each further one is itself.
    fn fold_into(&mut self, text: &mut String) {
        match self.first_break.take() {
            None => text.push_str(&self.blanks),
            Some('\n') if self.more_breaks.is_empty() => text.push(' '),
            Some('\n') => text.push_str(&self.more_breaks),
            Some(separator) => {
                text.push(separator);
                text.push_str(&self.more_breaks);
            }
        }
        self.blanks.clear();
        self.more_breaks.clear();
    }
}

/// A plain scalar.
pub(super) struct Plain {
    pub text: String,
    /// Does a line break follow it?
    pub broken: bool,
    /// The byte behind its last character.
    pub end: usize,
}

/// Reads a plain scalar.
pub(super) fn plain(
    cursor: &mut Cursor<'_>,
    indent: Option<usize>,
    in_flow: bool,
) -> Result<Plain, YamlError> {
    let least_column = indent.map_or(0, |indent| indent + 1);
    let mut text = String::new();
    let mut gap = Gap::default();
    let mut end = cursor.offset();
    loop {
        if cursor.at_any_document_mark() || cursor.peek() == Some('#') {
            break;
        }
        while !cursor.at_space_or_end() && !at_plain_end(cursor, in_flow) {
            gap.fold_into(&mut text);
            cursor.read(&mut text);
            end = cursor.offset();
        }
        if !cursor.at_blank() && !cursor.at_break() {
            break;
        }
        while cursor.at_blank() || cursor.at_break() {
            if let Some(found) = cursor.read_break() {
                gap.push_break(found);
            } else if !gap.has_break() {
                cursor.read(&mut gap.blanks);
            } else if cursor.column() < least_column && cursor.peek() == Some('\t') {
                return Err(cursor.error("a tab cannot be indentation"));
            } else {
                cursor.skip();
            }
        }
        if !in_flow && cursor.column() < least_column {
            break;
        }
    }
    Ok(Plain { text, broken: gap.has_break(), end })
}

fn at_plain_end(cursor: &Cursor<'_>, in_flow: bool) -> bool {
    match cursor.peek() {
        Some(':') => cursor.second_is_space_or_end(),
        Some(',' | '?' | '[' | ']' | '{' | '}') => in_flow,
        _ => false,
    }
}

/// Reads a scalar in these quotes, from the first to the last.
pub(super) fn quoted(cursor: &mut Cursor<'_>, quote: char) -> Result<String, YamlError> {
    let start = cursor.place();
    let unclosed = || start.error(super::YamlProblem::Syntax(format!("the quote {quote} is never closed")));
    cursor.skip();
    let mut text = String::new();
    loop {
        if cursor.at_any_document_mark() || cursor.peek().is_none() {
            return Err(unclosed());
        }
        let mut gap = Gap::default();
        let mut joined = false;
        while !cursor.at_space_or_end() && !joined {
            match cursor.peek() {
                Some('\'') if quote == '\'' && cursor.peek_second() == Some('\'') => {
                    cursor.skip();
                    cursor.read(&mut text);
                }
                Some(char) if char == quote => break,
                Some('\\') if quote == '"' => joined = escape(cursor, &mut text)?,
                _ => cursor.read(&mut text),
            }
        }
        if cursor.peek() == Some(quote) && !joined {
            cursor.skip();
            return Ok(text);
        }
        if joined {
            // Behind an escaped break, leading blanks go and further breaks stay.
            while cursor.at_blank() || cursor.at_break() {
                match cursor.read_break() {
                    Some(found) => text.push(found),
                    None => cursor.skip(),
                }
            }
        } else {
            gap.read(cursor);
            gap.fold_into(&mut text);
        }
    }
}

/// Reads what a backslash starts. Says whether it was an escaped line break.
fn escape(cursor: &mut Cursor<'_>, text: &mut String) -> Result<bool, YamlError> {
    cursor.skip();
    if cursor.read_break().is_some() {
        return Ok(true);
    }
    let Some(char) = cursor.peek() else { return Err(cursor.error("the escape is not finished")) };
    let simple = match char {
        '0' => '\0',
        'a' => '\u{7}',
        'b' => '\u{8}',
        't' | '\t' => '\t',
        'n' => '\n',
        'v' => '\u{B}',
        'f' => '\u{C}',
        'r' => '\r',
        'e' => '\u{1B}',
        // JSON's, which Go's library does not know.
        ' ' | '"' | '\'' | '\\' | '/' => char,
        'N' => '\u{85}',
        '_' => '\u{A0}',
        'L' => '\u{2028}',
        'P' => '\u{2029}',
        'x' | 'u' | 'U' => {
            cursor.skip();
            text.push(code_point(cursor, char)?);
            return Ok(false);
        }
        _ => return Err(cursor.error("unknown escape sequence")),
    };
    cursor.skip();
    text.push(simple);
    Ok(false)
}

fn code_point(cursor: &mut Cursor<'_>, kind: char) -> Result<char, YamlError> {
    let length = match kind {
        'x' => 2,
        'u' => 4,
        _ => 8,
    };
    let code = hex(cursor, length)?;
    // JSON writes characters beyond the basic plane as two escapes.
    if kind == 'u' && (0xD800..0xDC00).contains(&code) && cursor.starts_with("\\u") {
        cursor.skip();
        cursor.skip();
        let low = hex(cursor, length)?;
        if (0xDC00..0xE000).contains(&low) {
            let both = 0x1_0000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            return char::from_u32(both).ok_or_else(|| cursor.error("invalid character code"));
        }
    }
    char::from_u32(code).ok_or_else(|| cursor.error("invalid character code"))
}

fn hex(cursor: &mut Cursor<'_>, length: usize) -> Result<u32, YamlError> {
    let mut code = 0_u32;
    for _ in 0..length {
        let digit = cursor.peek().and_then(|digit| digit.to_digit(16));
        let digit = digit.ok_or_else(|| cursor.error("the escape needs more hex digits"))?;
        code = code.wrapping_mul(16).wrapping_add(digit);
        cursor.skip();
    }
    Ok(code)
}

/// What happens to the line breaks at the end of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

/// Reads a block scalar from its `|` (literal) or `>` (folded). Also returns the byte behind its last line, without
/// the break of that line.
pub(super) fn block(
    cursor: &mut Cursor<'_>,
    parent: Option<usize>,
    literal: bool,
) -> Result<(String, usize), YamlError> {
    cursor.skip();
    let (chomping, increment, mut end) = block_header(cursor)?;
    let mut indent = increment.map(|increment| parent.unwrap_or(0) + increment);
    let mut text = String::new();
    let mut first_break = None;
    let mut breaks = String::new();
    let mut was_blank = false;
    let mut last_break = block_breaks(cursor, parent, &mut indent, &mut breaks)?;
    while Some(cursor.column()) == indent && cursor.peek().is_some() {
        let is_blank = cursor.at_blank();
        let folds = !literal && first_break == Some('\n') && !was_blank && !is_blank;
        match first_break.take() {
            Some(_) if folds && breaks.is_empty() => text.push(' '),
            Some(_) if folds => {}
            found => text.extend(found),
        }
        text.push_str(&breaks);
        breaks.clear();
        was_blank = is_blank;
        while !cursor.at_break_or_end() {
            cursor.read(&mut text);
        }
        end = cursor.offset();
        first_break = cursor.read_break();
        last_break = block_breaks(cursor, parent, &mut indent, &mut breaks)?;
    }
    if chomping != Chomping::Strip {
        text.extend(first_break);
    }
    if chomping == Chomping::Keep {
        text.push_str(&breaks);
        end = last_break.unwrap_or(end);
    }
    Ok((text, end))
}

/// The rest of the line behind `|` or `>`: chomping and indentation in either order, and a comment. Also returns the
/// byte behind the two.
fn block_header(cursor: &mut Cursor<'_>) -> Result<(Chomping, Option<usize>, usize), YamlError> {
    let mut chomping = None;
    let mut increment = None;
    for _ in 0..2 {
        match cursor.peek() {
            Some('+') if chomping.is_none() => chomping = Some(Chomping::Keep),
            Some('-') if chomping.is_none() => chomping = Some(Chomping::Strip),
            Some('0') if increment.is_none() => {
                return Err(cursor.error("the indentation of a block is at least 1"));
            }
            Some(digit @ '1'..='9') if increment.is_none() => {
                increment = digit.to_digit(10).and_then(|digit| usize::try_from(digit).ok());
            }
            _ => break,
        }
        cursor.skip();
    }
    let end = cursor.offset();
    cursor.skip_blanks();
    cursor.skip_comment();
    if !cursor.at_break_or_end() {
        return Err(cursor.error("a block scalar starts on its own line"));
    }
    cursor.read_break();
    Ok((chomping.unwrap_or(Chomping::Clip), increment, end))
}

/// Takes in empty lines up to the next line's indentation; the first line that has one sets it. Returns the byte
/// before the last break.
fn block_breaks(
    cursor: &mut Cursor<'_>,
    parent: Option<usize>,
    indent: &mut Option<usize>,
    breaks: &mut String,
) -> Result<Option<usize>, YamlError> {
    let mut deepest = 0;
    let mut last_break = None;
    loop {
        let inside = |column: usize| indent.is_none_or(|indent| column < indent);
        while inside(cursor.column()) && cursor.peek() == Some(' ') {
            cursor.skip();
        }
        deepest = deepest.max(cursor.column());
        if inside(cursor.column()) && cursor.peek() == Some('\t') {
            return Err(cursor.error("a tab cannot be indentation"));
        }
        let before = cursor.offset();
        match cursor.read_break() {
            Some(found) => breaks.push(found),
            None => break,
        }
        last_break = Some(before);
    }
    indent.get_or_insert(deepest.max(parent.map_or(0, |parent| parent + 1)).max(1));
    Ok(last_break)
}
