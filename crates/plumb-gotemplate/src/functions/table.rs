//! The table of all functions, and the types of their parameters.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::budget::Fault;
use crate::value::{Items, Scope, Value};

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Any,
    Text,
    Int,
    Bool,
    Float,
    /// `map[string]interface {}`.
    Map,
    Time,
    Duration,
    Version,
}

impl Type {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Text => "string",
            Self::Int => "int",
            Self::Bool => "bool",
            Self::Float => "float64",
            Self::Map => "map[string]interface {}",
            Self::Time => "time.Time",
            Self::Duration => "time.Duration",
            Self::Version => "*semver.Version",
        }
    }

    pub(crate) fn can_be_nil(self) -> bool {
        matches!(self, Self::Any | Self::Map | Self::Version)
    }

    pub(crate) fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::Text => matches!(value, Value::Text(_)),
            Self::Int => matches!(value, Value::Int(_)),
            Self::Bool => matches!(value, Value::Bool(_)),
            Self::Float => matches!(value, Value::Float(_)),
            Self::Map => matches!(value, Value::Map(map) if map.of == Items::Any),
            Self::Time => matches!(value, Value::Time(_)),
            Self::Duration => matches!(value, Value::Duration(_)),
            Self::Version => matches!(value, Value::Version(_)),
        }
    }
}

/// The code of a function. It gets as many arguments as the parameters say, of their types.
pub(crate) type Call = fn(&Scope, &[Value]) -> Result<Value, Fault>;

/// A function.
pub(crate) struct Function {
    pub(crate) parameters: &'static [Type],
    /// The type of all further arguments.
    pub(crate) rest: Option<Type>,
    pub(crate) call: Call,
}

/// A row of a table: name, types of the parameters, type of further arguments, code.
pub(super) type Row = (&'static str, &'static [Type], Option<Type>, Call);

static FUNCTIONS: LazyLock<HashMap<&'static str, Function>> = LazyLock::new(|| {
    let tables: [&[Row]; 19] = [
        super::builtin::ROWS,
        super::compare::ROWS,
        super::case::ROWS,
        super::dates::ROWS,
        super::encoding::ROWS,
        super::lists::ROWS,
        super::lists::STRICT_ROWS,
        super::maps::ROWS,
        super::names::ROWS,
        super::numbers::ROWS,
        super::paths::ROWS,
        super::random::ROWS,
        super::reflection::ROWS,
        super::refused::ROWS,
        super::regexes::ROWS,
        super::texts::ROWS,
        super::urls::ROWS,
        super::versions::ROWS,
        super::wrap::ROWS,
    ];
    let rows = tables.into_iter().flatten();
    rows.map(|(name, parameters, rest, call)| (*name, Function { parameters, rest: *rest, call: *call }))
        .collect()
});

/// The function of this name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.get(name)
}

/// The bytes of an argument that is a string.
pub(super) fn bytes(arguments: &[Value], index: usize) -> &[u8] {
    match arguments.get(index) {
        Some(Value::Text(text)) => text,
        _ => &[],
    }
}

/// An argument that is a string, with invalid UTF-8 replaced.
pub(super) fn text(arguments: &[Value], index: usize) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes(arguments, index))
}

/// An argument that is an integer.
pub(super) fn integer(arguments: &[Value], index: usize) -> i64 {
    match arguments.get(index) {
        Some(Value::Int(number) | Value::Int64(number)) => *number,
        _ => 0,
    }
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// A new string, paid for.
pub(super) fn new_text(scope: &Scope, text: impl AsRef<[u8]>) -> Result<Value, Fault> {
    let text = text.as_ref();
    scope.allocate(text.len())?;
    scope.step(text.len() / 64)?;
    Ok(Value::text(text))
}
