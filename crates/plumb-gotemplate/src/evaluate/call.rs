//! Calls of functions.

use super::state::{At, Evaluation, Got};
use crate::budget::Fault;
use crate::functions::{self, Function, Type};
use crate::node::Operand;
use crate::value::Value;

/// Steps that a look at the whole of an argument costs, for functions that take time but create nothing.
fn size(argument: &Value) -> usize {
    match argument {
        Value::Text(text) => text.len() / 64,
        Value::Raw(raw) => raw.len() / 64,
        Value::List(list) => list.items.len() / 8,
        Value::Map(map) => map.entries().len() / 8,
        Value::Nil
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Int64(_)
        | Value::Uint64(_)
        | Value::Byte(_)
        | Value::Float(_)
        | Value::Time(_)
        | Value::Duration(_)
        | Value::Version(_) => 0,
    }
}

impl<'t> Evaluation<'t> {
    /// Calls a function. `whole` is what messages name if the call itself fails.
    pub(super) fn function(
        &mut self,
        dot: &Got,
        name: &'t str,
        whole: At<'t>,
        given: (&'t [Operand], Option<Got>),
    ) -> Result<Got, Fault> {
        let Some(function) = functions::find(name) else {
            return Err(self.error(format!("\"{name}\" is not a defined function")));
        };
        if matches!(name, "and" | "or") {
            self.count(name, function, &given)?;
            return self.and_or(dot, name == "or", given);
        }
        let callee = given.0.first().map(ToString::to_string);
        let arguments = self.arguments(dot, name, function, given)?;
        let size = arguments.iter().map(size).fold(0, usize::saturating_add);
        self.scope.step(size).map_err(|fault| self.error(fault.0))?;
        let result = match (name, arguments.first()) {
            ("call", Some(Value::Nil)) => Err(Fault::new("call of nil")),
            ("call", Some(value)) => {
                let (callee, of) = (callee.unwrap_or_default(), value.type_name());
                Err(Fault(format!("non-function {callee} of type {of}")))
            }
            _ => (function.call)(self.scope, &arguments),
        };
        match result {
            // Functions that return any value return it in an interface.
            Ok(value) => Ok(Got::Value { interface: matches!(value, Value::Nil), value }),
            Err(fault) => {
                self.at = whole;
                Err(self.error(format!("error calling {name}: {fault}")))
            }
        }
    }

    /// `and` and `or` evaluate no more arguments than they need.
    fn and_or(&mut self, dot: &Got, is_or: bool, given: (&'t [Operand], Option<Got>)) -> Result<Got, Fault> {
        let mut result = Got::Missing;
        for operand in given.0 {
            let value = self.argument(dot, Type::Any, operand)?;
            let is_true = value.is_true();
            result = Got::Value { interface: matches!(value, Value::Nil), value };
            if is_true == is_or {
                return Ok(result);
            }
        }
        Ok(given.1.unwrap_or(result))
    }

    fn count(&self, name: &str, function: &Function, given: &(&[Operand], Option<Got>)) -> Result<(), Fault> {
        let n_fixed = function.parameters.len();
        let n_given = given.0.len() + usize::from(given.1.is_some());
        if function.rest.is_some() && n_given < n_fixed {
            let n_operands = given.0.len();
            let message =
                format!("wrong number of args for {name}: want at least {n_fixed} got {n_operands}");
            return Err(self.error(message));
        }
        if function.rest.is_none() && n_given != n_fixed {
            return Err(self.error(format!("wrong number of args for {name}: want {n_fixed} got {n_given}")));
        }
        Ok(())
    }

    pub(super) fn arguments(
        &mut self,
        dot: &Got,
        name: &str,
        function: &Function,
        (operands, last): (&'t [Operand], Option<Got>),
    ) -> Result<Vec<Value>, Fault> {
        let given = (operands, last);
        self.count(name, function, &given)?;
        let parameter = |index: usize| {
            let fixed = function.parameters.get(index).copied();
            fixed.or(function.rest).unwrap_or(Type::Any)
        };
        let mut arguments = Vec::with_capacity(given.0.len() + 1);
        for (index, operand) in given.0.iter().enumerate() {
            arguments.push(self.argument(dot, parameter(index), operand)?);
        }
        if let Some(last) = given.1 {
            arguments.push(self.checked(last, parameter(arguments.len()))?);
        }
        Ok(arguments)
    }
}
