//! A template's text as tokens.

use crate::format::quote;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Error,
    Bool,
    /// A character that has no other meaning, such as a comma.
    Char,
    CharConstant,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Complex,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    Keyword(Keyword),
}

/// A keyword. `.` and `nil` count as such in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Block,
    Break,
    Continue,
    Dot,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

/// A token.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// Its first byte in the template.
    pub(crate) position: usize,
    /// Its line, from 1.
    pub(crate) line: usize,
    /// Its text, or the message of an error.
    pub(crate) text: String,
}

impl Token {
    /// The token in a message.
    pub(crate) fn shown(&self) -> String {
        match self.kind {
            TokenKind::Eof => "EOF".to_owned(),
            TokenKind::Error => self.text.clone(),
            TokenKind::Keyword(_) => format!("<{}>", self.text),
            _ if self.text.len() > 10 => {
                let start: String = self.text.chars().take(10).collect();
                format!("{}...", quote(&start))
            }
            _ => quote(&self.text),
        }
    }
}

/// All tokens. The last is the end or an error.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { text, at: 0, start: 0, line: 1, start_line: 1, parens: 0, tokens: Vec::new() };
    if lexer.run().is_none() {
        lexer.emit(TokenKind::Eof);
    }
    lexer.tokens
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    start: usize,
    line: usize,
    start_line: usize,
    parens: usize,
    tokens: Vec<Token>,
}

/// An error token was emitted; the scan is over.
struct Stop;

type Scan = Result<(), Stop>;

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.advance(character.len_utf8());
        Some(character)
    }

    fn advance(&mut self, n: usize) {
        let passed = &self.text[self.at..self.at + n];
        self.line += passed.matches('\n').count();
        self.at += n;
    }

    fn ignore(&mut self) {
        self.start = self.at;
        self.start_line = self.line;
    }

    fn emit(&mut self, kind: TokenKind) {
        let text = self.text[self.start..self.at].to_owned();
        self.tokens.push(Token { kind, position: self.start, line: self.start_line, text });
        self.ignore();
    }

    fn fail(&mut self, message: String) -> Scan {
        let kind = TokenKind::Error;
        self.tokens.push(Token { kind, position: self.start, line: self.start_line, text: message });
        Err(Stop)
    }

    /// `Some` if an error ended the scan.
    fn run(&mut self) -> Option<Stop> {
        while let Some(offset) = self.rest().find("{{") {
            let end = self.at + offset;
            let before = &self.text[self.at..end];
            let trims = has_left_trim(&self.text[end + 2..]);
            let kept = if trims { before.trim_end_matches(is_space).len() } else { before.len() };
            self.advance(kept);
            if kept > 0 {
                self.emit(TokenKind::Text);
            }
            self.advance(before.len() - kept);
            self.ignore();
            if let Err(stop) = self.action(trims) {
                return Some(stop);
            }
        }
        self.advance(self.rest().len());
        if self.at > self.start {
            self.emit(TokenKind::Text);
        }
        None
    }

    /// One action or comment, from its left delimiter to its right one.
    fn action(&mut self, trims: bool) -> Scan {
        self.advance(2);
        let marker = if trims { 2 } else { 0 };
        if self.text[self.at + marker..].starts_with("/*") {
            self.advance(marker);
            self.ignore();
            return self.comment();
        }
        self.emit(TokenKind::LeftDelim);
        self.advance(marker);
        self.ignore();
        self.parens = 0;
        loop {
            if let Some(trims) = self.at_right_delim() {
                if self.parens > 0 {
                    return self.fail("unclosed left paren".to_owned());
                }
                self.right_delim(trims);
                return Ok(());
            }
            self.inside()?;
        }
    }

    fn comment(&mut self) -> Scan {
        let Some(length) = self.rest()[2..].find("*/") else {
            return self.fail("unclosed comment".to_owned());
        };
        self.advance(length + 4);
        let Some(trims) = self.at_right_delim() else {
            return self.fail("comment ends before closing delimiter".to_owned());
        };
        self.ignore();
        self.skip_right_delim(trims);
        Ok(())
    }

    /// At a right delimiter: whether it trims the blanks after it.
    fn at_right_delim(&self) -> Option<bool> {
        let rest = self.rest();
        let mut characters = rest.chars();
        let trims = characters.next().is_some_and(is_space) && rest[1..].starts_with("-}}");
        (trims || rest.starts_with("}}")).then_some(trims)
    }

    fn right_delim(&mut self, trims: bool) {
        if trims {
            self.advance(2);
            self.ignore();
        }
        self.advance(2);
        self.emit(TokenKind::RightDelim);
        if trims {
            self.skip_blanks();
        }
    }

    fn skip_right_delim(&mut self, trims: bool) {
        self.advance(if trims { 4 } else { 2 });
        if trims {
            self.skip_blanks();
        }
        self.ignore();
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.advance(rest.len() - rest.trim_start_matches(is_space).len());
        self.ignore();
    }

    /// One token inside an action.
    fn inside(&mut self) -> Scan {
        let Some(character) = self.peek() else { return self.fail("unclosed action".to_owned()) };
        match character {
            blank if is_space(blank) => {
                self.space();
                return Ok(());
            }
            '+' | '-' | '0'..='9' => return self.number(),
            '.' if self.rest()[1..].starts_with(|after: char| after.is_ascii_digit()) => {
                return self.number();
            }
            letter if is_alphanumeric(letter) => return self.identifier(),
            _ => {}
        }
        self.next();
        match character {
            '=' => self.emit(TokenKind::Assign),
            ':' => {
                if self.next() != Some('=') {
                    return self.fail("expected :=".to_owned());
                }
                self.emit(TokenKind::Declare);
            }
            '|' => self.emit(TokenKind::Pipe),
            '"' => return self.quoted('"', TokenKind::String, "unterminated quoted string"),
            '\'' => return self.quoted('\'', TokenKind::CharConstant, "unterminated character constant"),
            '`' => return self.raw_quoted(),
            '$' => return self.field_or_variable(TokenKind::Variable),
            '.' => return self.field_or_variable(TokenKind::Field),
            '(' => {
                self.parens += 1;
                self.emit(TokenKind::LeftParen);
            }
            ')' => {
                if self.parens == 0 {
                    return self.fail("unexpected right paren".to_owned());
                }
                self.parens -= 1;
                self.emit(TokenKind::RightParen);
            }
            printable if printable.is_ascii_graphic() => self.emit(TokenKind::Char),
            other => return self.fail(format!("unrecognized character in action: {}", unicode(Some(other)))),
        }
        Ok(())
    }

    /// Blanks, up to a right delimiter with a trim marker.
    fn space(&mut self) {
        while self.peek().is_some_and(is_space) && self.at_right_delim().is_none() {
            self.next();
        }
        if self.at > self.start {
            self.emit(TokenKind::Space);
        }
    }

    fn identifier(&mut self) -> Scan {
        self.skip_alphanumeric();
        if !self.at_terminator() {
            return self.fail(format!("bad character {}", unicode(self.peek())));
        }
        let kind = match &self.text[self.start..self.at] {
            "block" => TokenKind::Keyword(Keyword::Block),
            "break" => TokenKind::Keyword(Keyword::Break),
            "continue" => TokenKind::Keyword(Keyword::Continue),
            "define" => TokenKind::Keyword(Keyword::Define),
            "else" => TokenKind::Keyword(Keyword::Else),
            "end" => TokenKind::Keyword(Keyword::End),
            "if" => TokenKind::Keyword(Keyword::If),
            "nil" => TokenKind::Keyword(Keyword::Nil),
            "range" => TokenKind::Keyword(Keyword::Range),
            "template" => TokenKind::Keyword(Keyword::Template),
            "with" => TokenKind::Keyword(Keyword::With),
            "true" | "false" => TokenKind::Bool,
            _ => TokenKind::Identifier,
        };
        self.emit(kind);
        Ok(())
    }

    fn skip_alphanumeric(&mut self) {
        while self.peek().is_some_and(is_alphanumeric) {
            self.next();
        }
    }

    fn field_or_variable(&mut self, kind: TokenKind) -> Scan {
        if self.at_terminator() {
            let is_variable = kind == TokenKind::Variable;
            self.emit(if is_variable { kind } else { TokenKind::Keyword(Keyword::Dot) });
            return Ok(());
        }
        self.skip_alphanumeric();
        if !self.at_terminator() {
            return self.fail(format!("bad character {}", unicode(self.peek())));
        }
        self.emit(kind);
        Ok(())
    }

    fn at_terminator(&self) -> bool {
        match self.peek() {
            None | Some('.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(character) => is_space(character) || self.rest().starts_with("}}"),
        }
    }

    fn quoted(&mut self, mark: char, kind: TokenKind, unterminated: &str) -> Scan {
        loop {
            match self.next() {
                Some('\\') if self.peek().is_some_and(|escaped| escaped != '\n') => {
                    self.next();
                }
                None | Some('\n' | '\\') => return self.fail(unterminated.to_owned()),
                Some(character) if character == mark => {
                    self.emit(kind);
                    return Ok(());
                }
                Some(_) => {}
            }
        }
    }

    fn raw_quoted(&mut self) -> Scan {
        loop {
            match self.next() {
                None => return self.fail("unterminated raw quoted string".to_owned()),
                Some('`') => {
                    self.emit(TokenKind::RawString);
                    return Ok(());
                }
                Some(_) => {}
            }
        }
    }

    fn number(&mut self) -> Scan {
        if !self.scan_number() {
            return self.bad_number();
        }
        if matches!(self.peek(), Some('+' | '-')) {
            if !self.scan_number() || !self.text[..self.at].ends_with('i') {
                return self.bad_number();
            }
            self.emit(TokenKind::Complex);
            return Ok(());
        }
        self.emit(TokenKind::Number);
        Ok(())
    }

    fn bad_number(&mut self) -> Scan {
        let text = quote(&self.text[self.start..self.at]);
        self.fail(format!("bad number syntax: {text}"))
    }

    fn accept(&mut self, valid: &str) -> bool {
        let accepted = self.peek().is_some_and(|character| valid.contains(character));
        if accepted {
            self.next();
        }
        accepted
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    fn scan_number(&mut self) -> bool {
        const DECIMAL: &str = "0123456789_";
        self.accept("+-");
        let mut digits = DECIMAL;
        let mut exponent = "eE";
        if self.accept("0") {
            if self.accept("xX") {
                (digits, exponent) = ("0123456789abcdefABCDEF_", "pP");
            } else if self.accept("oO") {
                (digits, exponent) = ("01234567_", "");
            } else if self.accept("bB") {
                (digits, exponent) = ("01_", "");
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        if self.accept(exponent) {
            self.accept("+-");
            self.accept_run(DECIMAL);
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.next();
            return false;
        }
        true
    }
}

fn has_left_trim(after_delim: &str) -> bool {
    let mut characters = after_delim.chars();
    characters.next() == Some('-') && characters.next().is_some_and(is_space)
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

fn is_alphanumeric(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

/// A character as Go's `%#U` shows it.
fn unicode(character: Option<char>) -> String {
    match character {
        None => "U+FFFFFFFFFFFFFFFF".to_owned(),
        Some(character) if crate::format::is_print(character) => {
            format!("U+{:04X} '{character}'", u32::from(character))
        }
        Some(character) => format!("U+{:04X}", u32::from(character)),
    }
}
