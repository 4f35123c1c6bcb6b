//! From tokens to nodes. Messages are those of Go.

use std::collections::BTreeMap;

use crate::format::quote;
use crate::lexer::{Keyword, Token, TokenKind, tokens};
use crate::literal::{number, unquote};
use crate::node::{Body, Branch, Command, Node, Operand, Pipe, Term};

/// A template with the templates that it defines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    pub(crate) root: Body,
    pub(crate) defined: BTreeMap<String, Body>,
}

/// What the parser knows about the outside.
pub(crate) struct Known<'a> {
    /// The name of the template in messages.
    pub(crate) name: &'a str,
    /// True if there is such a function.
    pub(crate) is_function: &'a dyn Fn(&str) -> bool,
    /// Deepest nesting of actions and parentheses.
    pub(crate) max_depth: usize,
}

/// Most variables at one place. Each use of a variable looks through them.
const MAX_VARIABLES: usize = 1000;

/// Parses a template. An error is the whole message, with name and line.
pub(crate) fn parse(text: &str, known: &Known<'_>) -> Result<Tree, String> {
    let mut parser = Parser {
        known,
        tokens: tokens(text),
        next: 0,
        furthest: 0,
        variables: vec!["$".to_owned()],
        range_depth: 0,
        depth: 0,
        action_line: 0,
        defined: BTreeMap::new(),
    };
    let mut root = parser.root()?;
    // A body that defines the template's own name takes the place of an empty one.
    if let Some(own) = parser.defined.get(known.name) {
        if !is_empty(&root) && !is_empty(own) {
            return Err(parser.multiple_definition(known.name));
        }
        if is_empty(&root) {
            root = own.clone();
        }
    }
    Ok(Tree { root, defined: parser.defined })
}

struct Parser<'a> {
    known: &'a Known<'a>,
    tokens: Vec<Token>,
    next: usize,
    /// The last token that was looked at: its line is the line of an error.
    furthest: usize,
    variables: Vec<String>,
    range_depth: usize,
    depth: usize,
    action_line: usize,
    defined: BTreeMap<String, Body>,
}

/// How a body ends.
enum Ending {
    End,
    /// `{{else}}`; a keyword that follows is not taken yet.
    Else,
}

impl Ending {
    fn shown(&self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else => "{{else}}",
        }
    }
}

enum Item {
    Node(Node),
    Ending(Ending),
}

impl Parser<'_> {
    fn error(&self, message: impl AsRef<str>) -> String {
        let line = self.tokens.get(self.furthest).map_or(1, |token| token.line);
        format!("template: {}:{line}: {}", self.known.name, message.as_ref())
    }

    fn multiple_definition(&self, name: &str) -> String {
        self.error(format!("template: multiple definition of template {}", quote(name)))
    }

    fn unexpected(&self, token: &Token, context: &str) -> String {
        if token.kind != TokenKind::Error {
            return self.error(format!("unexpected {} in {context}", token.shown()));
        }
        let mut extra = String::new();
        if self.action_line != 0 && self.action_line != token.line {
            extra = format!(" in action started at {}:{}", self.known.name, self.action_line);
            if token.text.ends_with(" action") {
                extra = extra[" in action".len()..].to_owned();
            }
        }
        self.error(format!("{}{extra}", token.text))
    }

    /// The token at an index; the last one is repeated.
    fn token(&mut self, index: usize) -> Token {
        let index = index.min(self.tokens.len().saturating_sub(1));
        self.furthest = self.furthest.max(index);
        self.tokens[index].clone()
    }

    fn peek(&mut self) -> Token {
        self.token(self.next)
    }

    fn take(&mut self) -> Token {
        let token = self.token(self.next);
        self.next = (self.next + 1).min(self.tokens.len());
        token
    }

    fn skip_space(&mut self) {
        while self.peek().kind == TokenKind::Space {
            self.next += 1;
        }
    }

    fn peek_non_space(&mut self) -> Token {
        self.skip_space();
        self.peek()
    }

    fn take_non_space(&mut self) -> Token {
        self.skip_space();
        self.take()
    }

    fn expect_right_delim(&mut self, context: &str) -> Result<Token, String> {
        let token = self.take_non_space();
        if token.kind == TokenKind::RightDelim { Ok(token) } else { Err(self.unexpected(&token, context)) }
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        if self.depth >= self.known.max_depth {
            let limit = self.known.max_depth;
            return Err(self.error(format!("actions and parentheses are nested deeper than {limit} levels")));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn root(&mut self) -> Result<Body, String> {
        let mut body = Body::default();
        while self.peek().kind != TokenKind::Eof {
            if self.peek().kind == TokenKind::LeftDelim {
                let start = self.next;
                self.take();
                if self.take_non_space().kind == TokenKind::Keyword(Keyword::Define) {
                    self.definition()?;
                    continue;
                }
                self.next = start;
            }
            match self.text_or_action()? {
                Item::Node(node) => body.0.push(node),
                Item::Ending(ending) => return Err(self.error(format!("unexpected {}", ending.shown()))),
            }
        }
        Ok(body)
    }

    fn definition(&mut self) -> Result<(), String> {
        const CONTEXT: &str = "define clause";
        let token = self.take_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        self.expect_right_delim(CONTEXT)?;
        let body = self.separate_body(CONTEXT)?;
        self.define(name, body)
    }

    /// A body with variables and loops of its own.
    fn separate_body(&mut self, context: &str) -> Result<Body, String> {
        let variables = std::mem::replace(&mut self.variables, vec!["$".to_owned()]);
        let range_depth = std::mem::take(&mut self.range_depth);
        let (body, ending) = self.deeper(Self::body)?;
        self.variables = variables;
        self.range_depth = range_depth;
        match ending {
            Ending::End => Ok(body),
            Ending::Else => Err(self.error(format!("unexpected {{{{else}}}} in {context}"))),
        }
    }

    fn define(&mut self, name: String, body: Body) -> Result<(), String> {
        match self.defined.get(&name) {
            Some(old) if !is_empty(old) && !is_empty(&body) => return Err(self.multiple_definition(&name)),
            Some(old) if !is_empty(old) => {}
            _ => {
                self.defined.insert(name, body);
            }
        }
        Ok(())
    }

    fn body(&mut self) -> Result<(Body, Ending), String> {
        let mut body = Body::default();
        while self.peek_non_space().kind != TokenKind::Eof {
            match self.text_or_action()? {
                Item::Node(node) => body.0.push(node),
                Item::Ending(ending) => return Ok((body, ending)),
            }
        }
        Err(self.error("unexpected EOF"))
    }

    fn text_or_action(&mut self) -> Result<Item, String> {
        let token = self.take_non_space();
        match token.kind {
            TokenKind::Text => Ok(Item::Node(Node::Text(token.text))),
            TokenKind::LeftDelim => {
                self.action_line = token.line;
                let item = self.action();
                self.action_line = 0;
                item
            }
            _ => Err(self.unexpected(&token, "input")),
        }
    }

    fn action(&mut self) -> Result<Item, String> {
        let start = self.next;
        let token = self.take_non_space();
        let TokenKind::Keyword(keyword) = token.kind else {
            self.next = start;
            return Ok(Item::Node(Node::Action(self.pipeline("command", TokenKind::RightDelim)?)));
        };
        Ok(Item::Node(match keyword {
            Keyword::Block => self.block()?,
            Keyword::Break | Keyword::Continue => self.loop_control(keyword)?,
            Keyword::Else => {
                let next = self.peek_non_space().kind;
                if !matches!(next, TokenKind::Keyword(Keyword::If | Keyword::With)) {
                    self.expect_right_delim("else")?;
                }
                return Ok(Item::Ending(Ending::Else));
            }
            Keyword::End => {
                self.expect_right_delim("end")?;
                return Ok(Item::Ending(Ending::End));
            }
            Keyword::If => Node::If(self.branch("if")?),
            Keyword::Range => Node::Range(self.branch("range")?),
            Keyword::With => Node::With(self.branch("with")?),
            Keyword::Template => self.template_call()?,
            Keyword::Dot | Keyword::Nil | Keyword::Define => {
                self.next = start;
                Node::Action(self.pipeline("command", TokenKind::RightDelim)?)
            }
        }))
    }

    fn loop_control(&mut self, keyword: Keyword) -> Result<Node, String> {
        let (shown, node) = match keyword {
            Keyword::Break => ("{{break}}", Node::Break),
            _ => ("{{continue}}", Node::Continue),
        };
        self.expect_right_delim(shown)?;
        if self.range_depth == 0 {
            return Err(self.error(format!("{shown} outside {{{{range}}}}")));
        }
        Ok(node)
    }

    fn block(&mut self) -> Result<Node, String> {
        const CONTEXT: &str = "block clause";
        let token = self.take_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, TokenKind::RightDelim)?;
        let body = self.separate_body(CONTEXT)?;
        self.define(name.clone(), body)?;
        Ok(Node::Template { position: token.position, name, pipe: Some(pipe) })
    }

    fn template_call(&mut self) -> Result<Node, String> {
        const CONTEXT: &str = "template clause";
        let token = self.take_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let pipe = if self.peek_non_space().kind == TokenKind::RightDelim {
            self.take();
            None
        } else {
            Some(self.pipeline(CONTEXT, TokenKind::RightDelim)?)
        };
        Ok(Node::Template { position: token.position, name, pipe })
    }

    fn template_name(&mut self, token: &Token, context: &str) -> Result<String, String> {
        match token.kind {
            TokenKind::String | TokenKind::RawString => {
                let name = unquote(&token.text).ok_or_else(|| self.error("invalid syntax"))?;
                Ok(String::from_utf8_lossy(&name).into_owned())
            }
            _ => Err(self.unexpected(token, context)),
        }
    }

    fn branch(&mut self, context: &str) -> Result<Branch, String> {
        self.deeper(|parser| {
            let n_variables = parser.variables.len();
            let branch = parser.branch_inside(context);
            parser.variables.truncate(n_variables);
            branch
        })
    }

    fn branch_inside(&mut self, context: &str) -> Result<Branch, String> {
        let pipe = self.pipeline(context, TokenKind::RightDelim)?;
        let is_range = usize::from(context == "range");
        self.range_depth += is_range;
        let (body, ending) = self.body()?;
        self.range_depth -= is_range;
        let otherwise = match ending {
            Ending::End => None,
            Ending::Else => Some(self.otherwise(context)?),
        };
        Ok(Branch { pipe, body, otherwise })
    }

    /// What follows an `else`. `{{else if}}` is a branch of its own that shares the `{{end}}`.
    fn otherwise(&mut self, context: &str) -> Result<Body, String> {
        let next = self.peek().kind;
        if context == "if" && next == TokenKind::Keyword(Keyword::If) {
            self.take();
            return Ok(Body(vec![Node::If(self.branch("if")?)]));
        }
        if context == "with" && next == TokenKind::Keyword(Keyword::With) {
            self.take();
            return Ok(Body(vec![Node::With(self.branch("with")?)]));
        }
        let (body, ending) = self.body()?;
        match ending {
            Ending::End => Ok(body),
            Ending::Else => Err(self.error("expected end; found {{else}}")),
        }
    }

    fn pipeline(&mut self, context: &str, end: TokenKind) -> Result<Pipe, String> {
        let position = self.peek_non_space().position;
        let mut pipe = Pipe { position, assigns: false, variables: Vec::new(), commands: Vec::new() };
        self.declarations(context, &mut pipe)?;
        loop {
            let token = self.peek_non_space();
            match token.kind {
                kind if kind == end => {
                    self.take();
                    self.check(&pipe, context)?;
                    return Ok(pipe);
                }
                TokenKind::Bool
                | TokenKind::CharConstant
                | TokenKind::Complex
                | TokenKind::Keyword(Keyword::Dot | Keyword::Nil)
                | TokenKind::Field
                | TokenKind::Identifier
                | TokenKind::Number
                | TokenKind::RawString
                | TokenKind::String
                | TokenKind::Variable
                | TokenKind::LeftParen => pipe.commands.push(self.command()?),
                _ => return Err(self.unexpected(&token, context)),
            }
        }
    }

    /// `$x :=`, `$x =`, and in a range `$i, $x :=`.
    fn declarations(&mut self, context: &str, pipe: &mut Pipe) -> Result<(), String> {
        loop {
            let start = self.next;
            let variable = self.peek_non_space();
            if variable.kind != TokenKind::Variable {
                return Ok(());
            }
            self.take();
            let next = self.peek_non_space();
            match next.kind {
                TokenKind::Assign | TokenKind::Declare => {
                    pipe.assigns = next.kind == TokenKind::Assign;
                    self.take();
                    pipe.variables.push(variable.text.clone());
                    if pipe.assigns && self.variables.contains(&variable.text) {
                        return Ok(());
                    }
                    return self.know(variable.text);
                }
                TokenKind::Char if next.text == "," => {
                    self.take();
                    pipe.variables.push(variable.text.clone());
                    self.know(variable.text)?;
                    if context != "range" || pipe.variables.len() >= 2 {
                        return Err(self.error(format!("too many declarations in {context}")));
                    }
                    let after = self.peek_non_space().kind;
                    if !matches!(after, TokenKind::Variable | TokenKind::RightDelim | TokenKind::RightParen) {
                        return Err(self.error("range can only initialize variables"));
                    }
                }
                _ => {
                    self.next = start;
                    return Ok(());
                }
            }
        }
    }

    fn know(&mut self, variable: String) -> Result<(), String> {
        if self.variables.len() >= MAX_VARIABLES {
            return Err(
                self.error(format!("a template has more than {MAX_VARIABLES} variables at one place"))
            );
        }
        self.variables.push(variable);
        Ok(())
    }

    fn check(&self, pipe: &Pipe, context: &str) -> Result<(), String> {
        if pipe.commands.is_empty() {
            return Err(self.error(format!("missing value for {context}")));
        }
        for (index, command) in pipe.commands.iter().enumerate().skip(1) {
            let first = command.operands.first().map(|operand| &operand.term);
            if matches!(
                first,
                Some(Term::Bool(_) | Term::Dot | Term::Nil | Term::Number(_) | Term::Text { .. })
            ) {
                let stage = index + 1;
                return Err(self.error(format!("non executable command in pipeline stage {stage}")));
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Result<Command, String> {
        let position = self.peek_non_space().position;
        let mut operands = Vec::new();
        loop {
            self.skip_space();
            if let Some(operand) = self.operand()? {
                operands.push(operand);
            }
            let start = self.next;
            let token = self.take();
            match token.kind {
                TokenKind::Space => {}
                TokenKind::RightDelim | TokenKind::RightParen => {
                    self.next = start;
                    break;
                }
                TokenKind::Pipe => break,
                _ => return Err(self.unexpected(&token, "operand")),
            }
        }
        if operands.is_empty() {
            return Err(self.error("empty command"));
        }
        Ok(Command { position, operands })
    }

    fn operand(&mut self) -> Result<Option<Operand>, String> {
        let Some(operand) = self.term()? else { return Ok(None) };
        let first = self.peek();
        if first.kind != TokenKind::Field {
            return Ok(Some(operand));
        }
        let mut names = Vec::new();
        while self.peek().kind == TokenKind::Field {
            names.extend(field_names(&self.take().text));
        }
        // Messages show the place of the second name.
        let position = first.position;
        let term = match operand.term {
            Term::Field(mut before) => {
                before.extend(names);
                Term::Field(before)
            }
            Term::Variable(mut before) => {
                before.extend(names);
                Term::Variable(before)
            }
            Term::Bool(_) | Term::Dot | Term::Nil | Term::Number(_) | Term::Text { .. } => {
                let shown = quote(&operand.to_string());
                return Err(self.error(format!("unexpected . after term {shown}")));
            }
            Term::Function(_) | Term::Pipe(_) | Term::Chain(..) => Term::Chain(Box::new(operand), names),
        };
        Ok(Some(Operand { position, term }))
    }

    fn term(&mut self) -> Result<Option<Operand>, String> {
        let start = self.next;
        let token = self.take_non_space();
        let term = match token.kind {
            TokenKind::Identifier => {
                if !(self.known.is_function)(&token.text) {
                    return Err(self.error(format!("function {} not defined", quote(&token.text))));
                }
                Term::Function(token.text)
            }
            TokenKind::Keyword(Keyword::Dot) => Term::Dot,
            TokenKind::Keyword(Keyword::Nil) => Term::Nil,
            TokenKind::Variable => {
                if !self.variables.contains(&token.text) {
                    return Err(self.error(format!("undefined variable {}", quote(&token.text))));
                }
                Term::Variable(vec![token.text])
            }
            TokenKind::Field => Term::Field(field_names(&token.text).collect()),
            TokenKind::Bool => Term::Bool(token.text == "true"),
            TokenKind::CharConstant | TokenKind::Complex | TokenKind::Number => {
                Term::Number(number(&token).map_err(|message| self.error(message))?)
            }
            TokenKind::LeftParen => {
                let pipe =
                    self.deeper(|parser| parser.pipeline("parenthesized pipeline", TokenKind::RightParen))?;
                Term::Pipe(Box::new(pipe))
            }
            TokenKind::String | TokenKind::RawString => {
                let value = unquote(&token.text).ok_or_else(|| self.error("invalid syntax"))?;
                Term::Text { source: token.text, value }
            }
            _ => {
                self.next = start;
                return Ok(None);
            }
        };
        Ok(Some(Operand { position: token.position, term }))
    }
}

fn field_names(text: &str) -> impl Iterator<Item = String> {
    text.split('.').filter(|name| !name.is_empty()).map(str::to_owned)
}

/// True if a body has nothing but blanks.
fn is_empty(body: &Body) -> bool {
    body.0.iter().all(|node| matches!(node, Node::Text(text) if text.trim().is_empty()))
}
