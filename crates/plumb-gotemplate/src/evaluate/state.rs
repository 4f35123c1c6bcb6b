//! What an evaluation keeps.

use crate::budget::Fault;
use crate::format::quote;
use crate::node::{Command, Node, Operand, Pipe};
use crate::options::MissingKey;
use crate::parser::Tree;
use crate::value::{Scope, Value};

/// The result of an operand.
#[derive(Clone, Debug)]
pub(super) enum Got {
    /// No value at all: a key that is not in the map.
    Missing,
    /// A value. `interface`: Go holds it in an `interface {}`.
    Value { value: Value, interface: bool },
}

impl Got {
    pub(super) fn plain(value: Value) -> Self {
        Self::Value { value, interface: false }
    }

    /// The value outside its interface; nil is nothing.
    pub(super) fn out_of_interface(self) -> Self {
        match self {
            Self::Value { value: Value::Nil, .. } | Self::Missing => Self::Missing,
            Self::Value { value, .. } => Self::plain(value),
        }
    }

    /// The value; nothing is nil.
    pub(super) fn into_value(self) -> Value {
        match self {
            Self::Missing => Value::Nil,
            Self::Value { value, .. } => value,
        }
    }
}

/// The node that a message names.
#[derive(Clone, Copy)]
pub(super) enum At<'t> {
    Start,
    Operand(&'t Operand),
    Command(&'t Command),
    Pipe(&'t Pipe),
    Template { position: usize, name: &'t str, pipe: Option<&'t Pipe> },
}

/// By how many levels each `{{template}}` call raises the limit: a body, an `if` in it, and a pipe.
const LEVELS_OF_A_CALL: usize = 3;

/// One evaluation.
pub(super) struct Evaluation<'t> {
    pub(super) text: &'t str,
    pub(super) tree: &'t Tree,
    pub(super) scope: &'t Scope,
    pub(super) missing_key: MissingKey,
    /// The name in messages.
    pub(super) base_name: &'t str,
    /// The template that is being evaluated.
    pub(super) current_name: &'t str,
    pub(super) variables: Vec<(&'t str, Got)>,
    pub(super) at: At<'t>,
    pub(super) depth: usize,
    /// How many `{{template}}` calls are in each other.
    pub(super) calls: usize,
    pub(super) out: Vec<u8>,
}

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
}

/// Evaluates a template over its parameters.
pub(crate) fn run<'t>(
    (name, text, tree): (&'t str, &'t str, &'t Tree),
    scope: &'t Scope,
    missing_key: MissingKey,
    parameters: &Value,
) -> Result<Vec<u8>, Fault> {
    let dot = Got::plain(parameters.clone());
    let mut evaluation = Evaluation {
        text,
        tree,
        scope,
        missing_key,
        base_name: name,
        current_name: name,
        variables: vec![("$", dot.clone())],
        at: At::Start,
        depth: 0,
        calls: 0,
        out: Vec::new(),
    };
    evaluation.body(&dot, &tree.root)?;
    Ok(evaluation.out)
}

impl Evaluation<'_> {
    /// An error at the current node.
    pub(super) fn error(&self, message: impl AsRef<str>) -> Fault {
        let message = message.as_ref();
        let (position, context) = match self.at {
            At::Start => return Fault(format!("template: {}: {message}", self.base_name)),
            At::Operand(operand) => (operand.position, operand.to_string()),
            At::Command(command) => (command.position, command.to_string()),
            At::Pipe(pipe) => (pipe.position, pipe.to_string()),
            At::Template { position, name, pipe } => (position, Node::show_template(name, pipe)),
        };
        let before = self.text.get(..position).unwrap_or(self.text);
        let line = 1 + before.matches('\n').count();
        let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1);
        let (base, current) = (self.base_name, quote(self.current_name));
        Fault(format!("template: {base}:{line}:{column}: executing {current} at <{context}>: {message}"))
    }

    /// Runs one level deeper, within the limit.
    pub(super) fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        let limit = self.scope.limits().depth + self.calls * LEVELS_OF_A_CALL;
        if self.depth >= limit {
            return Err(self.error(format!("actions and templates are nested deeper than {limit} levels")));
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    /// Takes a step from the budget.
    pub(super) fn step(&self) -> Result<(), Fault> {
        self.scope.step(1).map_err(|fault| self.error(fault.0))
    }

    pub(super) fn variable(&self, name: &str) -> Result<Got, Fault> {
        let found = self.variables.iter().rev().enumerate().find(|(_, (known, _))| *known == name);
        let Some((n_others, (_, got))) = found else {
            return Err(self.error(format!("undefined variable: {name}")));
        };
        // The way to a variable that many others hide takes time.
        self.scope.step(n_others / 32).map_err(|fault| self.error(fault.0))?;
        Ok(got.clone())
    }

    pub(super) fn assign(&mut self, name: &str, got: Got) -> Result<(), Fault> {
        match self.variables.iter_mut().rev().find(|(known, _)| *known == name) {
            Some((_, old)) => {
                *old = got;
                Ok(())
            }
            None => Err(self.error(format!("undefined variable: {name}"))),
        }
    }
}
