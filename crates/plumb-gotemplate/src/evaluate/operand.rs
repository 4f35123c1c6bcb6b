//! Pipelines, commands, fields and arguments.

use super::state::{At, Evaluation, Got};
use crate::budget::Fault;
use crate::format::quote;
use crate::functions::Type;
use crate::node::{Command, NumberLiteral, Operand, Pipe, Term};
use crate::options::MissingKey;
use crate::value::{Items, Value};

impl<'t> Evaluation<'t> {
    pub(super) fn pipe(&mut self, dot: &Got, pipe: &'t Pipe) -> Result<Got, Fault> {
        self.deeper(|evaluation| {
            evaluation.at = At::Pipe(pipe);
            let mut result = None;
            for command in &pipe.commands {
                let got = evaluation.command(dot, command, result.take())?;
                // Only a value in an interface loses its nil; a function may return a nil of its own type.
                result = Some(got.out_of_interface());
            }
            let result = result.unwrap_or(Got::Missing);
            for name in &pipe.variables {
                if pipe.assigns {
                    evaluation.assign(name, result.clone())?;
                } else {
                    evaluation.variables.push((name, result.clone()));
                }
            }
            Ok(result)
        })
    }

    /// One command. `last` is the result of the command before it, its last argument.
    fn command(&mut self, dot: &Got, command: &'t Command, last: Option<Got>) -> Result<Got, Fault> {
        self.step()?;
        let Some(first) = command.operands.first() else { return Ok(Got::Missing) };
        let arguments = &command.operands[1..];
        match &first.term {
            Term::Field(names) => {
                self.at = At::Operand(first);
                return self.fields(dot, dot.clone(), (first, names), (arguments, last));
            }
            Term::Chain(inner, names) => return self.chain(dot, (first, inner, names), (arguments, last)),
            Term::Function(name) => {
                self.at = At::Operand(first);
                return self.function(dot, name, At::Command(command), (arguments, last));
            }
            Term::Pipe(pipe) => {
                self.not_a_function(first, arguments, last.as_ref())?;
                return self.pipe(dot, pipe);
            }
            Term::Variable(names) => return self.variable_fields(dot, first, names, (arguments, last)),
            Term::Bool(_) | Term::Dot | Term::Nil | Term::Number(_) | Term::Text { .. } => {}
        }
        self.at = At::Operand(first);
        self.not_a_function(first, arguments, last.as_ref())?;
        match &first.term {
            Term::Dot => Ok(dot.clone()),
            Term::Nil => Err(self.error("nil is not a command")),
            _ => self.literal(first),
        }
    }

    fn not_a_function(
        &self,
        first: &Operand,
        arguments: &[Operand],
        last: Option<&Got>,
    ) -> Result<(), Fault> {
        if arguments.is_empty() && last.is_none() {
            return Ok(());
        }
        Err(self.error(format!("can't give argument to non-function {first}")))
    }

    /// A constant where its type is not known.
    fn literal(&mut self, operand: &'t Operand) -> Result<Got, Fault> {
        self.at = At::Operand(operand);
        Ok(Got::plain(match &operand.term {
            Term::Bool(truth) => Value::Bool(*truth),
            Term::Text { value, .. } => Value::text(value),
            Term::Number(number) => self.ideal(number)?,
            _ => return Err(self.error(format!("can't handle {operand}"))),
        }))
    }

    fn ideal(&self, number: &NumberLiteral) -> Result<Value, Fault> {
        if number.is_complex {
            return Err(self.error("complex numbers are not supported"));
        }
        let source = &number.source;
        let is_hex = source.to_ascii_lowercase().starts_with("0x") && !source.contains(['p', 'P']);
        let is_character = source.starts_with('\'');
        match (number.float, number.integer) {
            (Some(float), _) if !is_hex && !is_character && source.contains(['.', 'e', 'E', 'p', 'P']) => {
                Ok(Value::Float(float))
            }
            (_, Some(integer)) => Ok(Value::Int(integer)),
            _ => Err(self.error(format!("{source} overflows int"))),
        }
    }

    fn chain(
        &mut self,
        dot: &Got,
        (whole, inner, names): (&'t Operand, &'t Operand, &'t [String]),
        given: (&'t [Operand], Option<Got>),
    ) -> Result<Got, Fault> {
        self.at = At::Operand(whole);
        let receiver = self.operand(dot, inner)?;
        self.fields(dot, receiver, (whole, names), given)
    }

    fn variable_fields(
        &mut self,
        dot: &Got,
        operand: &'t Operand,
        names: &'t [String],
        given: (&'t [Operand], Option<Got>),
    ) -> Result<Got, Fault> {
        self.at = At::Operand(operand);
        let Some((variable, fields)) = names.split_first() else { return Ok(Got::Missing) };
        let value = self.variable(variable)?;
        if fields.is_empty() {
            self.not_a_function(operand, given.0, given.1.as_ref())?;
            return Ok(value);
        }
        self.fields(dot, value, (operand, fields), given)
    }

    /// `.a.b.c` of a value. Only the last name can be given arguments. `whole` is what messages name if a call itself fails.
    fn fields(
        &mut self,
        dot: &Got,
        receiver: Got,
        (whole, names): (&'t Operand, &'t [String]),
        (arguments, last): (&'t [Operand], Option<Got>),
    ) -> Result<Got, Fault> {
        let mut receiver = receiver;
        let mut last = last;
        for (index, name) in names.iter().enumerate() {
            self.step()?;
            let is_last = index + 1 == names.len();
            let given = if is_last { (arguments, last.take()) } else { (&arguments[..0], None) };
            receiver = self.field(dot, receiver, (whole, name), given)?;
        }
        Ok(receiver)
    }

    fn field(
        &mut self,
        dot: &Got,
        receiver: Got,
        (whole, name): (&'t Operand, &'t str),
        given: (&'t [Operand], Option<Got>),
    ) -> Result<Got, Fault> {
        let (value, interface) = match receiver {
            Got::Missing if self.missing_key == MissingKey::Error => {
                return Err(self.error(format!("nil data; no entry for key {}", quote(name))));
            }
            Got::Missing => return Ok(Got::Missing),
            Got::Value { value, interface } => (value, interface),
        };
        let type_name = if interface { "interface {}" } else { value.type_name() };
        match &value {
            Value::Nil => Err(self.error(format!("nil pointer evaluating {type_name}.{name}"))),
            Value::Map(map) => {
                if !given.0.is_empty() || given.1.is_some() {
                    return Err(self.error(format!("{name} is not a method but has arguments")));
                }
                match (map.get(name), self.missing_key) {
                    (Some(value), _) => Ok(Got::Value { value, interface: map.of == Items::Any }),
                    (None, MissingKey::Invalid) => Ok(Got::Missing),
                    (None, MissingKey::Zero) => Ok(match map.of {
                        Items::Text => Got::plain(Value::text("")),
                        Items::Any | Items::Int | Items::Lists | Items::Raw => {
                            Got::Value { value: Value::Nil, interface: true }
                        }
                    }),
                    (None, MissingKey::Error) => {
                        Err(self.error(format!("map has no entry for key {}", quote(name))))
                    }
                }
            }
            _ => match crate::functions::method(&value, name) {
                Some(method) => {
                    let arguments = self.arguments(dot, name, method, given)?;
                    let mut all = vec![value.clone()];
                    all.extend(arguments);
                    (method.call)(self.scope, &all).map(Got::plain).map_err(|fault| {
                        self.at = At::Operand(whole);
                        self.error(format!("error calling {name}: {fault}"))
                    })
                }
                None => Err(self.error(format!("can't evaluate field {name} in type {type_name}"))),
            },
        }
    }

    /// An operand whose type does not matter.
    pub(super) fn operand(&mut self, dot: &Got, operand: &'t Operand) -> Result<Got, Fault> {
        self.step()?;
        self.at = At::Operand(operand);
        match &operand.term {
            Term::Dot => Ok(dot.clone()),
            Term::Nil => Ok(Got::Missing),
            Term::Field(names) => self.fields(dot, dot.clone(), (operand, names), (&[], None)),
            Term::Variable(names) => self.variable_fields(dot, operand, names, (&[], None)),
            Term::Pipe(pipe) => self.pipe(dot, pipe),
            Term::Function(name) => self.function(dot, name, At::Operand(operand), (&[], None)),
            Term::Chain(inner, names) => self.chain(dot, (operand, inner, names), (&[], None)),
            Term::Bool(_) | Term::Number(_) | Term::Text { .. } => self.literal(operand),
        }
    }

    /// An argument of a function whose parameter has this type.
    pub(super) fn argument(&mut self, dot: &Got, of: Type, operand: &'t Operand) -> Result<Value, Fault> {
        match &operand.term {
            Term::Bool(_) | Term::Number(_) | Term::Text { .. } => {
                self.step()?;
                self.constant(of, operand)
            }
            Term::Nil if !of.can_be_nil() => {
                self.at = At::Operand(operand);
                Err(self.error(format!("cannot assign nil to {}", of.name())))
            }
            _ => {
                let got = self.operand(dot, operand)?;
                self.checked(got, of)
            }
        }
    }

    /// A constant where the type is known: `1` can be a `float64`, `1.0` an `int`.
    fn constant(&mut self, of: Type, operand: &'t Operand) -> Result<Value, Fault> {
        self.at = At::Operand(operand);
        let expected = |what: &str| format!("expected {what}; found {operand}");
        match (of, &operand.term) {
            (Type::Any, _) => self.literal(operand).map(Got::into_value),
            (Type::Bool, Term::Bool(truth)) => Ok(Value::Bool(*truth)),
            (Type::Bool, _) => Err(self.error(expected("bool"))),
            (Type::Text, Term::Text { value, .. }) => Ok(Value::text(value)),
            (Type::Text, _) => Err(self.error(expected("string"))),
            (Type::Int, Term::Number(number)) if number.integer.is_some() => {
                Ok(Value::Int(number.integer.unwrap_or_default()))
            }
            (Type::Duration, Term::Number(number)) if number.integer.is_some() => {
                Ok(Value::Duration(number.integer.unwrap_or_default()))
            }
            (Type::Int | Type::Duration, _) => Err(self.error(expected("integer"))),
            (Type::Float, Term::Number(number)) if number.float.is_some() => {
                Ok(Value::Float(number.float.unwrap_or_default()))
            }
            (Type::Float, _) => Err(self.error(expected("float"))),
            (Type::Map | Type::Time | Type::Version, _) => {
                Err(self.error(format!("can't handle {operand} for arg of type {}", of.name())))
            }
        }
    }

    /// A value where a parameter has this type.
    pub(super) fn checked(&self, got: Got, of: Type) -> Result<Value, Fault> {
        let (value, interface) = match got {
            Got::Missing if of.can_be_nil() => return self.nil_of(of),
            Got::Missing => return Err(self.error(format!("invalid value; expected {}", of.name()))),
            Got::Value { value, interface } => (value, interface),
        };
        if of.accepts(&value) {
            return Ok(value);
        }
        let found = if interface && matches!(value, Value::Nil) { "interface {}" } else { value.type_name() };
        Err(self.error(format!("wrong type for value; expected {}; got {found}", of.name())))
    }

    /// The nil of a type. A nil map can be read like an empty one.
    fn nil_of(&self, of: Type) -> Result<Value, Fault> {
        let made = match of {
            Type::Map => Value::map(self.scope, std::collections::BTreeMap::new()),
            Type::Any
            | Type::Text
            | Type::Int
            | Type::Bool
            | Type::Float
            | Type::Time
            | Type::Duration
            | Type::Version => Ok(Value::Nil),
        };
        made.map_err(|fault| self.error(fault.0))
    }
}
