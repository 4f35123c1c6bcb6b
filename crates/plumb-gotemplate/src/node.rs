//! The parsed form of a template, and how messages show it.

use std::fmt;

use crate::format::quote;

/// A list of nodes: the body of a template or of an action.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body(pub(crate) Vec<Node>);

/// A part of a body.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Text(String),
    Action(Pipe),
    If(Branch),
    Range(Branch),
    With(Branch),
    Template { position: usize, name: String, pipe: Option<Pipe> },
    Break,
    Continue,
}

/// `if`, `range` or `with`.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub(crate) pipe: Pipe,
    pub(crate) body: Body,
    pub(crate) otherwise: Option<Body>,
}

/// Commands, each given the result of the one before it.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    pub(crate) position: usize,
    pub(crate) assigns: bool,
    pub(crate) variables: Vec<String>,
    pub(crate) commands: Vec<Command>,
}

/// An operand, or a function with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) position: usize,
    pub(crate) operands: Vec<Operand>,
}

/// An operand with its place in the template.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) position: usize,
    pub(crate) term: Term,
}

/// What an operand is.
#[derive(Clone, Debug)]
pub(crate) enum Term {
    Bool(bool),
    Dot,
    Nil,
    /// `.a.b`.
    Field(Vec<String>),
    /// `$x.a.b`; the name has its dollar sign.
    Variable(Vec<String>),
    Function(String),
    Number(NumberLiteral),
    Text {
        source: String,
        value: Vec<u8>,
    },
    Pipe(Box<Pipe>),
    /// `(…).a.b`.
    Chain(Box<Operand>, Vec<String>),
}

/// A number as written. What it is depends on where it is used.
#[derive(Clone, Debug)]
pub(crate) struct NumberLiteral {
    pub(crate) source: String,
    pub(crate) integer: Option<i64>,
    pub(crate) float: Option<f64>,
    pub(crate) is_complex: bool,
}

impl fmt::Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.variables.is_empty() {
            let sign = if self.assigns { "=" } else { ":=" };
            write!(f, "{} {sign} ", self.variables.join(", "))?;
        }
        for (index, command) in self.commands.iter().enumerate() {
            if index > 0 {
                f.write_str(" | ")?;
            }
            write!(f, "{command}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, operand) in self.operands.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            match &operand.term {
                Term::Pipe(pipe) => write!(f, "({pipe})")?,
                _ => write!(f, "{operand}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.term {
            Term::Bool(truth) => write!(f, "{truth}"),
            Term::Dot => f.write_str("."),
            Term::Nil => f.write_str("nil"),
            Term::Field(names) => names.iter().try_for_each(|name| write!(f, ".{name}")),
            Term::Variable(names) => f.write_str(&names.join(".")),
            Term::Function(name) => f.write_str(name),
            Term::Number(number) => f.write_str(&number.source),
            Term::Text { source, .. } => f.write_str(source),
            Term::Pipe(pipe) => write!(f, "{pipe}"),
            Term::Chain(operand, names) => {
                match &operand.term {
                    Term::Pipe(pipe) => write!(f, "({pipe})")?,
                    _ => write!(f, "{operand}")?,
                }
                names.iter().try_for_each(|name| write!(f, ".{name}"))
            }
        }
    }
}

impl Node {
    /// `{{template "name" pipe}}`, for messages.
    pub(crate) fn show_template(name: &str, pipe: Option<&Pipe>) -> String {
        match pipe {
            Some(pipe) => format!("{{{{template {} {pipe}}}}}", quote(name)),
            None => format!("{{{{template {}}}}}", quote(name)),
        }
    }
}
