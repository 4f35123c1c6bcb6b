//! Checks a jq expression and turns it into the part of the language that is evaluated.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Pattern, Term};
use jaq_core::ops::{Cmp, Math};
use jaq_core::path::{Opt, Part as TermPart, Path};
use serde_json::Value;

use super::expression::{Comparison, Expression, Function, Part, TextPart};
use super::regex;

/// Longest accepted expression.
const MAX_LENGTH: usize = 2_000;
/// Deepest accepted nesting of brackets.
const MAX_NESTING: usize = 40;
/// Most pipes, signs and keywords, for each of which the parser takes native stack.
const MAX_NESTING_WORDS: usize = 100;

/// So many lists of alternatives do not make an expression costly.
const FEW_COMMAS: usize = 2;
/// Deepest accepted nesting of operators and functions.
const MAX_DEPTH: usize = 120;

/// Words that nest the rest of the expression.
const NESTING_WORDS: [&str; 11] =
    ["if", "elif", "else", "try", "catch", "def", "reduce", "foreach", "label", "as", "break"];

/// A checked expression, and whether its cost can outgrow the object's size.
pub(super) struct Checked {
    pub(super) expression: Expression,
    pub(super) is_costly: bool,
}

/// Checks an expression; the error says what is not allowed.
pub(super) fn check(text: &str) -> Result<Checked, String> {
    check_text(text)?;
    let term = jaq_core::load::parse(text, |parser| parser.term())
        .ok_or_else(|| "it is not a jq expression".to_owned())?;
    let mut reader = Reader::default();
    let expression = reader.read(&term)?;
    let is_costly = reader.is_costly || reader.recursions > 1 || reader.commas > FEW_COMMAS;
    Ok(Checked { expression, is_costly })
}

/// The parser is recursive, so depth is bounded before it runs.
fn check_text(text: &str) -> Result<(), String> {
    if text.len() > MAX_LENGTH {
        return Err(format!("it is longer than {MAX_LENGTH} bytes"));
    }
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(format!("it nests deeper than {MAX_NESTING} brackets"));
        }
    }
    // A minus after a word or a value does not nest, nor does one in a name.
    let before = std::iter::once(' ').chain(text.chars());
    let is_sign = |(before, c): &(char, char)| *c == '|' || (*c == '-' && !before.is_ascii_alphanumeric());
    let signs = before.zip(text.chars()).filter(is_sign).count();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let words = words.filter(|word| NESTING_WORDS.contains(word)).count();
    if signs + words > MAX_NESTING_WORDS {
        return Err(format!("it has more than {MAX_NESTING_WORDS} pipes, signs and keywords"));
    }
    Ok(())
}

#[derive(Default)]
struct Reader<'s> {
    /// The variables in scope, the innermost last.
    variables: Vec<&'s str>,
    recursions: usize,
    /// Lists of alternatives. Each can multiply the outputs.
    commas: usize,
    depth: usize,
    is_costly: bool,
}

type Read<T = Expression> = Result<T, String>;

impl<'s> Reader<'s> {
    fn read(&mut self, term: &Term<&'s str>) -> Read {
        if self.depth == MAX_DEPTH {
            return Err(format!("it nests deeper than {MAX_DEPTH} levels"));
        }
        self.depth += 1;
        let read = self.read_term(term);
        self.depth -= 1;
        read
    }

    fn read_term(&mut self, term: &Term<&'s str>) -> Read {
        Ok(match term {
            Term::Id => Expression::Identity,
            Term::Recurse => {
                self.recursions += 1;
                Expression::Recurse
            }
            Term::Num(digits) => Expression::Literal(number(digits)?),
            Term::Str(format, parts) => self.text(*format, parts)?,
            Term::Arr(items) => {
                self.is_costly = true;
                Expression::Array(items.as_ref().map(|items| self.boxed(items)).transpose()?)
            }
            Term::Obj(entries) => self.object(entries)?,
            Term::Neg(term) => Expression::Negate(self.boxed(term)?),
            Term::BinOp(left, operator, right) => self.binary(left, operator, right)?,
            Term::TryCatch(body, handler) => Expression::Try(
                self.boxed(body)?,
                handler.as_ref().map(|handler| self.boxed(handler)).transpose()?,
            ),
            Term::IfThenElse(branches, otherwise) => {
                let mut read = Vec::new();
                for (condition, then) in branches {
                    read.push((self.read(condition)?, self.read(then)?));
                }
                Expression::If(read, otherwise.as_ref().map(|term| self.boxed(term)).transpose()?)
            }
            Term::Call(name, arguments) => self.call(name, arguments)?,
            Term::Var(name) => {
                let between = self.variables.iter().rev().position(|known| known == name);
                Expression::Variable(between.ok_or_else(|| format!("the variable `{name}` is not defined"))?)
            }
            Term::Path(term, path) => self.path(term, path)?,
            Term::Label(..) | Term::Break(_) | Term::Fold(..) | Term::Def(..) => {
                return Err("definitions and loops are not allowed".to_owned());
            }
        })
    }

    fn boxed(&mut self, term: &Term<&'s str>) -> Read<Box<Expression>> {
        self.read(term).map(Box::new)
    }

    fn pair(&mut self, left: &Term<&'s str>, right: &Term<&'s str>) -> Read<Box<[Expression; 2]>> {
        Ok(Box::new([self.read(left)?, self.read(right)?]))
    }

    fn text(&mut self, format: Option<&str>, parts: &[StrPart<&'s str, Term<&'s str>>]) -> Read {
        if let Some(format) = format.filter(|format| *format != "@text") {
            return Err(format!("the format `{format}` is not allowed"));
        }
        let mut known = String::new();
        let mut read = Vec::new();
        for part in parts {
            match part {
                StrPart::Str(text) => known.push_str(text),
                StrPart::Char(c) => known.push(*c),
                StrPart::Term(term) => {
                    read.push(TextPart::Text(std::mem::take(&mut known)));
                    read.push(TextPart::Value(self.read(term)?));
                }
            }
        }
        if read.is_empty() {
            return Ok(Expression::Literal(Value::String(known)));
        }
        self.is_costly = true;
        read.push(TextPart::Text(known));
        Ok(Expression::Text(read))
    }

    fn object(&mut self, entries: &[(Term<&'s str>, Option<Term<&'s str>>)]) -> Read {
        self.is_costly = true;
        let mut read = Vec::new();
        for (key, value) in entries {
            read.push(match (key, value) {
                (Term::Var(name), None) => {
                    let text = Value::String(name.trim_start_matches('$').to_owned());
                    (Expression::Literal(text), self.read(key)?)
                }
                (key, Some(value)) => (self.read(key)?, self.read(value)?),
                (key, None) => {
                    let Expression::Literal(key) = self.read(key)? else {
                        return Err("a key without a value has to be a plain text".to_owned());
                    };
                    let part = (Part::Known(key.clone()), false);
                    (Expression::Literal(key), Expression::Path(Box::new(Expression::Identity), vec![part]))
                }
            });
        }
        Ok(Expression::Object(read))
    }

    fn binary(&mut self, left: &Term<&'s str>, operator: &BinaryOp<&'s str>, right: &Term<&'s str>) -> Read {
        Ok(match operator {
            BinaryOp::Pipe(None) => Expression::Pipe(self.pair(left, right)?),
            BinaryOp::Pipe(Some(Pattern::Var(name))) => {
                self.is_costly = true;
                let left = self.read(left)?;
                self.variables.push(name);
                let right = self.read(right);
                self.variables.pop();
                Expression::Bind(Box::new([left, right?]))
            }
            BinaryOp::Pipe(Some(Pattern::Arr(_) | Pattern::Obj(_))) => {
                return Err("patterns are not allowed".to_owned());
            }
            BinaryOp::Comma => {
                self.commas += 1;
                Expression::Comma(self.chain(left, right, |other| matches!(other, BinaryOp::Comma))?)
            }
            BinaryOp::Alt => Expression::Alternative(self.pair(left, right)?),
            BinaryOp::Or => {
                Expression::Logic(true, self.chain(left, right, |other| matches!(other, BinaryOp::Or))?)
            }
            BinaryOp::And => {
                Expression::Logic(false, self.chain(left, right, |other| matches!(other, BinaryOp::And))?)
            }
            BinaryOp::Cmp(operator) => Expression::Compare(comparison(*operator), self.pair(left, right)?),
            BinaryOp::Math(Math::Add) => {
                self.is_costly = true;
                Expression::Add(self.pair(left, right)?)
            }
            BinaryOp::Math(Math::Sub) => {
                self.is_costly = true;
                Expression::Subtract(self.pair(left, right)?)
            }
            BinaryOp::Math(_) => return Err("only + and - are allowed".to_owned()),
            BinaryOp::Assign | BinaryOp::Update | BinaryOp::UpdateMath(_) | BinaryOp::UpdateAlt => {
                return Err("assignments are not allowed".to_owned());
            }
        })
    }

    /// A chain of one operator becomes one list, so that a long one is not deeper than a short one.
    fn chain(
        &mut self,
        left: &Term<&'s str>,
        right: &Term<&'s str>,
        is_same: impl Fn(&BinaryOp<&'s str>) -> bool,
    ) -> Read<Vec<Expression>> {
        let mut operands = vec![right];
        let mut first = left;
        while let Term::BinOp(left, operator, right) = first
            && is_same(operator)
        {
            operands.push(right);
            first = left;
        }
        operands.push(first);
        operands.into_iter().rev().map(|operand| self.read(operand)).collect()
    }

    fn call(&mut self, name: &str, arguments: &[Term<&'s str>]) -> Read {
        match (name, arguments) {
            ("true", []) => return Ok(Expression::Literal(Value::Bool(true))),
            ("false", []) => return Ok(Expression::Literal(Value::Bool(false))),
            ("null", []) => return Ok(Expression::Literal(Value::Null)),
            ("recurse", []) => {
                self.recursions += 1;
                return Ok(Expression::Recurse);
            }
            _ => {}
        }
        let function = Function::named(name, arguments.len())
            .ok_or_else(|| format!("the function `{name}/{}` is not allowed", arguments.len()))?;
        let mut read = Vec::new();
        for argument in arguments {
            read.push(self.read(argument)?);
        }
        let known = known_pattern(&read).filter(|_| function == Function::Test);
        if let Some((pattern, flags)) = known
            && regex::compile(pattern, flags).is_none()
        {
            return Err(format!("`{pattern}` is not a regular expression, or it is too large"));
        }
        self.is_costly |= !function.is_cheap() && known.is_none();
        Ok(Expression::Call(function, read))
    }

    fn path(&mut self, term: &Term<&'s str>, path: &Path<Term<&'s str>>) -> Read {
        let from = self.boxed(term)?;
        let mut parts = Vec::new();
        for (part, optional) in &path.0 {
            let part = match part {
                TermPart::Index(index) => match self.read(index)? {
                    Expression::Literal(known) => Part::Known(known),
                    index => {
                        self.is_costly = true;
                        Part::At(index)
                    }
                },
                TermPart::Range(None, None) => Part::All,
                TermPart::Range(from, to) => {
                    self.is_costly = true;
                    let from = from.as_ref().map(|from| self.read(from)).transpose()?;
                    Part::Slice(from, to.as_ref().map(|to| self.read(to)).transpose()?)
                }
            };
            parts.push((part, matches!(optional, Opt::Optional)));
        }
        Ok(Expression::Path(from, parts))
    }
}

/// The pattern and the flags, if both are written out.
fn known_pattern(arguments: &[Expression]) -> Option<(&str, &str)> {
    match arguments {
        [Expression::Literal(Value::String(pattern))] => Some((pattern, "")),
        [Expression::Literal(Value::String(pattern)), Expression::Literal(Value::String(flags))] => {
            Some((pattern, flags))
        }
        _ => None,
    }
}

fn number(digits: &str) -> Result<Value, String> {
    if let Ok(int) = digits.parse::<i64>() {
        return Ok(Value::from(int));
    }
    if let Ok(int) = digits.parse::<u64>() {
        return Ok(Value::from(int));
    }
    let float = digits.parse().ok().and_then(serde_json::Number::from_f64);
    float.map(Value::Number).ok_or_else(|| format!("`{digits}` is not a number"))
}

fn comparison(operator: Cmp) -> Comparison {
    match operator {
        Cmp::Lt => Comparison::Less,
        Cmp::Le => Comparison::LessOrEqual,
        Cmp::Gt => Comparison::Greater,
        Cmp::Ge => Comparison::GreaterOrEqual,
        Cmp::Eq => Comparison::Equal,
        Cmp::Ne => Comparison::NotEqual,
    }
}
