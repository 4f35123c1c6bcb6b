//! `eq`, `ne`, `lt`, `le`, `gt` and `ge`.

use std::cmp::Ordering;

use super::table::{Row, Type};
use crate::budget::Fault;
use crate::format::{print_value, sprintf};
use crate::value::{Scope, Value};

const TWO: &[Type] = &[Type::Any, Type::Any];

pub(super) const ROWS: &[Row] = &[
    ("eq", &[Type::Any], Some(Type::Any), |scope, given| {
        if given.len() < 2 {
            return Err(Fault::new("missing argument for comparison"));
        }
        for other in &given[1..] {
            if equal(scope, &given[0], other)? {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }),
    ("ne", TWO, None, |scope, given| Ok(Value::Bool(!equal(scope, &given[0], &given[1])?))),
    ("lt", TWO, None, |_, given| Ok(Value::Bool(less(&given[0], &given[1])?))),
    ("ge", TWO, None, |_, given| Ok(Value::Bool(!less(&given[0], &given[1])?))),
    ("le", TWO, None, |scope, given| {
        Ok(Value::Bool(less(&given[0], &given[1])? || equal(scope, &given[0], &given[1])?))
    }),
    ("gt", TWO, None, |scope, given| {
        Ok(Value::Bool(!(less(&given[0], &given[1])? || equal(scope, &given[0], &given[1])?)))
    }),
];

/// Values of types that can be compared with each other.
enum Basic<'a> {
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(&'a [u8]),
}

fn basic(value: &Value) -> Option<Basic<'_>> {
    match value {
        Value::Bool(truth) => Some(Basic::Bool(*truth)),
        Value::Float(number) => Some(Basic::Float(*number)),
        Value::Text(text) => Some(Basic::Text(text)),
        other => other.as_integer().map(Basic::Integer),
    }
}

fn equal(scope: &Scope, a: &Value, b: &Value) -> Result<bool, Fault> {
    Ok(match (basic(a), basic(b)) {
        (Some(Basic::Bool(a)), Some(Basic::Bool(b))) => a == b,
        (Some(Basic::Integer(a)), Some(Basic::Integer(b))) => a == b,
        #[expect(clippy::float_cmp, reason = "as in Go")]
        (Some(Basic::Float(a)), Some(Basic::Float(b))) => a == b,
        (Some(Basic::Text(a)), Some(Basic::Text(b))) => a == b,
        (None, None) => return equal_others(scope, a, b),
        _ if matches!(a, Value::Nil) || matches!(b, Value::Nil) => false,
        _ => return Err(incompatible(a, b)),
    })
}

fn equal_others(scope: &Scope, a: &Value, b: &Value) -> Result<bool, Fault> {
    match (a, b) {
        (Value::Nil, Value::Nil) => Ok(true),
        (Value::Nil, _) | (_, Value::Nil) => Ok(false),
        (Value::Time(a), Value::Time(b)) => Ok(a == b),
        (Value::Version(a), Value::Version(b)) => Ok(std::rc::Rc::ptr_eq(a, b)),
        _ if a.kind_name() != b.kind_name() => {
            let shown =
                String::from_utf8_lossy(&sprintf(scope, b"%s", std::slice::from_ref(a))?).into_owned();
            let other = String::from_utf8_lossy(&print_value(scope, b)?).into_owned();
            let (of, other_of) = (a.type_name(), b.type_name());
            Err(Fault(format!("non-comparable types {shown}: {of}, {other_of}: {other}")))
        }
        _ => {
            let shown =
                String::from_utf8_lossy(&sprintf(scope, b"%s", std::slice::from_ref(b))?).into_owned();
            Err(Fault(format!("non-comparable type {shown}: {}", b.type_name())))
        }
    }
}

fn less(a: &Value, b: &Value) -> Result<bool, Fault> {
    let invalid = || Fault::new("invalid type for comparison");
    Ok(match (basic(a).ok_or_else(invalid)?, basic(b).ok_or_else(invalid)?) {
        (Basic::Integer(a), Basic::Integer(b)) => a < b,
        (Basic::Float(a), Basic::Float(b)) => a.partial_cmp(&b) == Some(Ordering::Less),
        (Basic::Text(a), Basic::Text(b)) => a < b,
        (Basic::Bool(_), Basic::Bool(_)) => return Err(invalid()),
        _ => return Err(incompatible(a, b)),
    })
}

fn incompatible(a: &Value, b: &Value) -> Fault {
    Fault(format!("incompatible types for comparison: {} and {}", a.type_name(), b.type_name()))
}
