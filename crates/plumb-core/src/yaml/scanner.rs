//! From text to tokens.
//!
//! The rules are those of libyaml, which Go's library follows: they differ from YAML 1.2 where people notice
//! it (tabs, `[-]`, quoted lines without indentation, `?` in flow collections). What makes a scanner of YAML
//! unlike others is that a key is known as one only when its `:` comes: until then its place is kept free in
//! the queue of tokens.

use std::collections::VecDeque;

use super::cursor::{Cursor, is_word};
use super::token::{Kind, Place, ScalarStyle, Token};
use super::{YamlError, YamlProblem, scan_scalar, scan_tag};

/// A key may be this many characters away from its `:`.
const LONGEST_KEY: usize = 1024;

pub(super) struct Scanner<'text> {
    cursor: Cursor<'text>,
    tokens: VecDeque<Token>,
    /// How many tokens have left the queue.
    n_taken: usize,
    /// The key that may have started, for the block context and for each flow collection that is open.
    keys: Vec<Option<PossibleKey>>,
    /// May a key start here?
    key_allowed: bool,
    /// Column of the innermost block collection; `None` outside of any.
    indent: Option<usize>,
    /// Those around it.
    indents: Vec<Option<usize>>,
    max_depth: usize,
}

#[derive(Clone, Copy)]
struct PossibleKey {
    /// Number of its first free token, counted from the start of the text.
    token: usize,
    place: Place,
    /// Only a key is allowed at its position.
    required: bool,
}

impl<'text> Scanner<'text> {
    pub(super) fn new(text: &'text str, first_line: usize, max_depth: usize) -> Self {
        Self {
            cursor: Cursor::new(text, first_line),
            tokens: VecDeque::new(),
            n_taken: 0,
            keys: vec![None],
            key_allowed: true,
            indent: None,
            indents: Vec::new(),
            max_depth,
        }
    }

    /// The next token, which stays. Behind the last one there is always [`Kind::End`].
    pub(super) fn peek(&mut self) -> Result<&Token, YamlError> {
        loop {
            match self.tokens.front().map(|token| &token.kind) {
                None => self.fetch()?,
                Some(Kind::Nothing) => self.pop(),
                Some(&Kind::MaybeKey { level }) => {
                    if !self.expire_key(level)? {
                        self.fetch()?;
                    }
                }
                Some(_) => return Ok(&self.tokens[0]),
            }
        }
    }

    /// Takes the next token.
    pub(super) fn next(&mut self) -> Result<Token, YamlError> {
        let token = self.peek()?.clone();
        if token.kind != Kind::End {
            self.pop();
        }
        Ok(token)
    }

    fn pop(&mut self) {
        if self.tokens.pop_front().is_some() {
            self.n_taken += 1;
        }
    }

    /// A token without text of its own.
    fn push(&mut self, kind: Kind, place: Place) {
        self.tokens.push_back(Token { kind, place, end: place.offset });
    }

    /// A token whose text ends at the cursor.
    fn push_read(&mut self, kind: Kind, place: Place) {
        self.tokens.push_back(Token { kind, place, end: self.cursor.offset() });
    }

    fn in_flow(&self) -> bool {
        self.keys.len() > 1
    }

    /// Scans at least one token. Long because it is one `match` over the first character.
    fn fetch(&mut self) -> Result<(), YamlError> {
        self.skip_to_token();
        self.close_blocks(Some(self.cursor.column()));
        let place = self.cursor.place();
        let Some(char) = self.cursor.peek() else {
            self.leave_blocks()?;
            (0..self.keys.len()).try_for_each(|level| self.give_up_key(level))?;
            self.push(Kind::End, place);
            return Ok(());
        };
        if self.cursor.at_document_mark("---") {
            return self.document_mark(Kind::DocumentStart);
        }
        if self.cursor.at_document_mark("...") {
            return self.document_mark(Kind::DocumentEnd);
        }
        let spaced = self.cursor.second_is_space_or_end();
        match char {
            '%' if place.column == 0 => Err(self.cursor.error("Kubernetes reads no directives (`%`)")),
            '[' => self.open_flow(Kind::FlowSequenceStart),
            '{' => self.open_flow(Kind::FlowMappingStart),
            ']' => self.close_flow(Kind::FlowSequenceEnd),
            '}' => self.close_flow(Kind::FlowMappingEnd),
            ',' => {
                self.drop_key()?;
                self.key_allowed = true;
                self.indicator(Kind::FlowEntry);
                Ok(())
            }
            '-' if spaced => self.block_entry(),
            '?' if spaced || self.in_flow() => self.explicit_key(),
            ':' if spaced || self.in_flow() => self.value(),
            '*' => self.anchor(Kind::Alias),
            '&' => self.anchor(Kind::Anchor),
            '!' => {
                self.start_key()?;
                let tag = scan_tag::tag(&mut self.cursor)?;
                self.push_read(Kind::Tag(tag), place);
                Ok(())
            }
            '|' | '>' if !self.in_flow() => {
                self.drop_key()?;
                self.key_allowed = true;
                let (text, end) = scan_scalar::block(&mut self.cursor, self.indent, char == '|')?;
                let kind = Kind::Scalar { text, style: ScalarStyle::Block };
                self.tokens.push_back(Token { kind, place, end });
                Ok(())
            }
            '\'' | '"' => {
                self.start_key()?;
                let text = scan_scalar::quoted(&mut self.cursor, char)?;
                let style = if char == '"' { ScalarStyle::DoubleQuoted } else { ScalarStyle::SingleQuoted };
                self.push_read(Kind::Scalar { text, style }, place);
                Ok(())
            }
            '?' | ':' if !self.in_flow() => self.plain(),
            // Those with a meaning of their own are behind us: this `-` has no space behind it.
            '?' | ':' | '#' | '|' | '>' | '%' | '@' | '`' | ' ' | '\t' => {
                Err(self.cursor.error("a value cannot start with this character: quote it"))
            }
            _ => self.plain(),
        }
    }

    /// Steps over blanks, comments and line breaks. A tab is a blank only where no key may start: otherwise
    /// it would count as indentation.
    fn skip_to_token(&mut self) {
        loop {
            while self.cursor.peek() == Some(' ')
                || (self.cursor.peek() == Some('\t') && (self.in_flow() || !self.key_allowed))
            {
                self.cursor.skip();
            }
            self.cursor.skip_comment();
            if self.cursor.read_break().is_none() {
                return;
            }
            if !self.in_flow() {
                self.key_allowed = true;
            }
        }
    }

    /// One character that is a token.
    fn indicator(&mut self, kind: Kind) {
        let place = self.cursor.place();
        self.cursor.skip();
        self.push_read(kind, place);
    }

    fn document_mark(&mut self, kind: Kind) -> Result<(), YamlError> {
        self.leave_blocks()?;
        let place = self.cursor.place();
        for _ in 0..3 {
            self.cursor.skip();
        }
        self.push_read(kind, place);
        Ok(())
    }

    fn leave_blocks(&mut self) -> Result<(), YamlError> {
        self.close_blocks(None);
        self.drop_key()?;
        self.key_allowed = false;
        Ok(())
    }

    fn open_flow(&mut self, kind: Kind) -> Result<(), YamlError> {
        self.start_key()?;
        if self.keys.len() > self.max_depth {
            return Err(self.too_deep());
        }
        self.keys.push(None);
        self.key_allowed = true;
        self.indicator(kind);
        Ok(())
    }

    fn close_flow(&mut self, kind: Kind) -> Result<(), YamlError> {
        self.drop_key()?;
        if self.in_flow() {
            self.keys.pop();
        }
        self.key_allowed = false;
        self.indicator(kind);
        Ok(())
    }

    fn block_entry(&mut self) -> Result<(), YamlError> {
        if !self.in_flow() {
            if !self.key_allowed {
                return Err(self.cursor.error("an item of a list is not allowed here"));
            }
            self.open_block(self.cursor.place(), None, Kind::BlockSequenceStart)?;
        }
        self.drop_key()?;
        self.key_allowed = true;
        self.indicator(Kind::BlockEntry);
        Ok(())
    }

    fn explicit_key(&mut self) -> Result<(), YamlError> {
        if !self.in_flow() {
            if !self.key_allowed {
                return Err(self.cursor.error("a key is not allowed here"));
            }
            self.open_block(self.cursor.place(), None, Kind::BlockMappingStart)?;
        }
        self.drop_key()?;
        self.key_allowed = !self.in_flow();
        self.indicator(Kind::Key);
        Ok(())
    }

    fn value(&mut self) -> Result<(), YamlError> {
        let level = self.keys.len() - 1;
        self.expire_key(level)?;
        if let Some(key) = self.keys[level].take() {
            self.replace(key.token, Kind::Nothing);
            self.replace(key.token + 1, Kind::Key);
            self.open_block(key.place, Some(key.token), Kind::BlockMappingStart)?;
            self.key_allowed = false;
        } else {
            if !self.in_flow() {
                if !self.key_allowed {
                    return Err(self.cursor.error("a value (`:`) is not allowed here: quote the text?"));
                }
                self.open_block(self.cursor.place(), None, Kind::BlockMappingStart)?;
            }
            self.key_allowed = !self.in_flow();
        }
        self.indicator(Kind::Value);
        Ok(())
    }

    fn anchor(&mut self, kind: fn(String) -> Kind) -> Result<(), YamlError> {
        self.start_key()?;
        let place = self.cursor.place();
        self.cursor.skip();
        let mut name = String::new();
        while self.cursor.peek().is_some_and(is_word) {
            self.cursor.read(&mut name);
        }
        let ended = self.cursor.at_space_or_end()
            || matches!(self.cursor.peek(), Some('?' | ':' | ',' | ']' | '}' | '%' | '@' | '`'));
        if name.is_empty() || !ended {
            return Err(self.cursor.error("the name of an anchor or alias has letters, digits, `_` and `-`"));
        }
        self.push_read(kind(name), place);
        Ok(())
    }

    fn plain(&mut self) -> Result<(), YamlError> {
        self.start_key()?;
        let place = self.cursor.place();
        let in_flow = self.in_flow();
        let plain = scan_scalar::plain(&mut self.cursor, self.indent, in_flow)?;
        if plain.broken {
            self.key_allowed = true;
        }
        let kind = Kind::Scalar { text: plain.text, style: ScalarStyle::Plain };
        self.tokens.push_back(Token { kind, place, end: plain.end });
        Ok(())
    }

    /// Closes block collections that are indented deeper than this.
    fn close_blocks(&mut self, column: Option<usize>) {
        if self.in_flow() {
            return;
        }
        let place = self.cursor.place();
        while self.indent > column {
            self.push(Kind::BlockEnd, place);
            self.indent = self.indents.pop().flatten();
        }
    }

    /// Opens a block collection, if this is deeper than the current one: with a token in a place that was
    /// kept free, or with a new one.
    fn open_block(&mut self, place: Place, free: Option<usize>, kind: Kind) -> Result<(), YamlError> {
        if self.in_flow() || self.indent >= Some(place.column) {
            return Ok(());
        }
        if self.indents.len() >= self.max_depth {
            return Err(self.too_deep());
        }
        self.indents.push(self.indent);
        self.indent = Some(place.column);
        match free {
            Some(token) => self.replace(token, kind),
            None => self.push(kind, place),
        }
        Ok(())
    }

    fn too_deep(&self) -> YamlError {
        self.cursor.place().error(YamlProblem::TooDeep { limit: self.max_depth })
    }

    /// Something that may be a key starts here.
    fn start_key(&mut self) -> Result<(), YamlError> {
        if !self.key_allowed {
            return Ok(());
        }
        self.drop_key()?;
        let place = self.cursor.place();
        let required = !self.in_flow() && self.indent == Some(place.column);
        let key = PossibleKey { token: self.n_taken + self.tokens.len(), place, required };
        let level = self.keys.len() - 1;
        self.push(Kind::MaybeKey { level }, place);
        self.push(Kind::Nothing, place);
        self.keys[level] = Some(key);
        self.key_allowed = false;
        Ok(())
    }

    /// What may have been the key of this level is none.
    fn drop_key(&mut self) -> Result<(), YamlError> {
        let level = self.keys.len() - 1;
        self.give_up_key(level)
    }

    fn give_up_key(&mut self, level: usize) -> Result<(), YamlError> {
        let Some(key) = self.keys.get_mut(level).and_then(Option::take) else { return Ok(()) };
        if key.required {
            return Err(key
                .place
                .error(YamlProblem::Syntax("this should be a key, but no `:` follows".to_owned())));
        }
        self.replace(key.token, Kind::Nothing);
        Ok(())
    }

    /// Gives up a key that is too far away from here for its `:` to come. Says whether there is none now.
    fn expire_key(&mut self, level: usize) -> Result<bool, YamlError> {
        let here = self.cursor.place();
        let Some(Some(key)) = self.keys.get(level) else { return Ok(true) };
        if key.place.line == here.line && here.index <= key.place.index + LONGEST_KEY {
            return Ok(false);
        }
        self.give_up_key(level)?;
        Ok(true)
    }

    fn replace(&mut self, token: usize, kind: Kind) {
        if let Some(token) = token.checked_sub(self.n_taken).and_then(|index| self.tokens.get_mut(index)) {
            token.kind = kind;
        }
    }
}
