//! Bodies and control actions.

use super::state::{At, Evaluation, Flow, Got};
use crate::budget::{Fault, MAX_CALLS};
use crate::format::{print_value, quote};
use crate::node::{Body, Branch, Node, Pipe};
use crate::value::{Items, Value};

impl<'t> Evaluation<'t> {
    pub(super) fn body(&mut self, dot: &Got, body: &'t Body) -> Result<Flow, Fault> {
        self.deeper(|evaluation| {
            for node in &body.0 {
                let flow = evaluation.node(dot, node)?;
                if flow != Flow::Next {
                    return Ok(flow);
                }
            }
            Ok(Flow::Next)
        })
    }

    fn node(&mut self, dot: &Got, node: &'t Node) -> Result<Flow, Fault> {
        self.step()?;
        match node {
            Node::Text(text) => self.write(text.as_bytes())?,
            Node::Action(pipe) => {
                let got = self.pipe(dot, pipe)?;
                if pipe.variables.is_empty() {
                    self.print(got)?;
                }
            }
            Node::If(branch) => return self.if_or_with(dot, branch, false),
            Node::With(branch) => return self.if_or_with(dot, branch, true),
            Node::Range(branch) => return self.range(dot, branch),
            Node::Template { position, name, pipe } => self.template(dot, *position, name, pipe.as_ref())?,
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn write(&mut self, text: &[u8]) -> Result<(), Fault> {
        self.scope.allocate(text.len()).map_err(|fault| self.error(fault.0))?;
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn print(&mut self, got: Got) -> Result<(), Fault> {
        match got.out_of_interface() {
            Got::Missing => self.write(b"<no value>"),
            Got::Value { value: Value::Text(text), .. } => self.write(&text),
            Got::Value { value, .. } => {
                let text = print_value(self.scope, &value).map_err(|fault| self.error(fault.0))?;
                self.write(&text)
            }
        }
    }

    fn if_or_with(&mut self, dot: &Got, branch: &'t Branch, is_with: bool) -> Result<Flow, Fault> {
        let n_variables = self.variables.len();
        let got = self.pipe(dot, &branch.pipe)?;
        let is_true = got.clone().into_value().is_true();
        let flow = match (&branch.otherwise, is_true) {
            (_, true) => self.body(if is_with { &got } else { dot }, &branch.body)?,
            (Some(otherwise), false) => self.body(dot, otherwise)?,
            (None, false) => Flow::Next,
        };
        self.variables.truncate(n_variables);
        Ok(flow)
    }

    fn range(&mut self, dot: &Got, branch: &'t Branch) -> Result<Flow, Fault> {
        let n_variables = self.variables.len();
        let over = self.pipe(dot, &branch.pipe)?.into_value();
        let rounds = self.rounds(&over, branch)?;
        let mut flow = Flow::Next;
        if rounds.is_empty()
            && let Some(otherwise) = &branch.otherwise
        {
            flow = self.body(dot, otherwise)?;
        }
        let inside = self.variables.len();
        for (index, item) in rounds {
            self.step()?;
            self.loop_variables(&branch.pipe, index, &item)?;
            let round = self.body(&item, &branch.body)?;
            self.variables.truncate(inside);
            if round == Flow::Break {
                break;
            }
        }
        self.variables.truncate(n_variables);
        Ok(flow)
    }

    /// What a range goes over: index or key, and item.
    fn rounds(&mut self, over: &Value, branch: &Branch) -> Result<Vec<(Got, Got)>, Fault> {
        let held =
            |of: Items, value: &Value| Got::Value { value: value.clone(), interface: of == Items::Any };
        let rounds = match over {
            Value::Nil => Vec::new(),
            Value::List(list) => {
                self.take_steps(list.items.len())?;
                let index = |index: usize| Got::plain(Value::Int(i64::try_from(index).unwrap_or(i64::MAX)));
                let items = list.items.iter().enumerate();
                items.map(|(at, item)| (index(at), held(list.of, item))).collect()
            }
            Value::Map(map) => {
                let entries = map.entries();
                self.take_steps(entries.len())?;
                entries
                    .iter()
                    .map(|(key, value)| (Got::plain(Value::text(key)), held(map.of, value)))
                    .collect()
            }
            Value::Int(end) | Value::Int64(end) | Value::Duration(end) => {
                let item = |at: i64| match over {
                    Value::Int64(_) => Value::Int64(at),
                    Value::Duration(_) => Value::Duration(at),
                    _ => Value::Int(at),
                };
                self.count_rounds(over, usize::try_from(*end).unwrap_or(0), branch)?;
                (0..*end).map(|at| (Got::Missing, Got::plain(item(at)))).collect()
            }
            Value::Uint64(end) => {
                self.count_rounds(over, usize::try_from(*end).unwrap_or(usize::MAX), branch)?;
                (0..*end).map(|at| (Got::Missing, Got::plain(Value::Uint64(at)))).collect()
            }
            Value::Byte(end) => {
                self.count_rounds(over, usize::from(*end), branch)?;
                (0..*end).map(|at| (Got::Missing, Got::plain(Value::Byte(at)))).collect()
            }
            other => {
                let shown = self.shown(other)?;
                return Err(self.error(format!("range can't iterate over {shown}")));
            }
        };
        Ok(rounds)
    }

    /// Takes what the rounds over a number cost. They have no index.
    fn count_rounds(&self, over: &Value, count: usize, branch: &Branch) -> Result<(), Fault> {
        if branch.pipe.variables.len() > 1 {
            let shown = self.shown(over)?;
            return Err(self.error(format!("can't use {shown} to iterate over more than one variable")));
        }
        self.take_steps(count)?;
        let bytes = count.saturating_mul(size_of::<(Got, Got)>());
        self.scope.allocate(bytes).map_err(|fault| self.error(fault.0))
    }

    fn take_steps(&self, n: usize) -> Result<(), Fault> {
        self.scope.step(n).map_err(|fault| self.error(fault.0))
    }

    fn shown(&self, value: &Value) -> Result<String, Fault> {
        let text = print_value(self.scope, value).map_err(|fault| self.error(fault.0))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn loop_variables(&mut self, pipe: &'t Pipe, index: Got, item: &Got) -> Result<(), Fault> {
        let values = match pipe.variables.len() {
            0 => return Ok(()),
            1 => vec![item.clone()],
            _ => vec![index, item.clone()],
        };
        for (name, value) in pipe.variables.iter().zip(values) {
            self.assign(name, value)?;
        }
        Ok(())
    }

    fn template(
        &mut self,
        dot: &Got,
        position: usize,
        name: &'t str,
        pipe: Option<&'t Pipe>,
    ) -> Result<(), Fault> {
        self.at = At::Template { position, name, pipe };
        let tree = self.tree;
        let body = if name == self.base_name { Some(&tree.root) } else { tree.defined.get(name) };
        let Some(body) = body else {
            return Err(self.error(format!("template {} not defined", quote(name))));
        };
        if self.calls >= MAX_CALLS {
            return Err(self.error(format!("exceeded maximum template depth ({MAX_CALLS})")));
        }
        let dot = match pipe {
            Some(pipe) => self.pipe(dot, pipe)?,
            None => Got::Missing,
        };
        self.calls += 1;
        let variables = std::mem::replace(&mut self.variables, vec![("$", dot.clone())]);
        let outer = std::mem::replace(&mut self.current_name, name);
        let result = self.body(&dot, body);
        self.calls -= 1;
        self.current_name = outer;
        self.variables = variables;
        result.map(|_| ())
    }
}
