//! Defaults, emptiness and types.

use super::table::{Row, Type, text};
use crate::convert::deep_equal;
use crate::value::Value;

const ANY: Option<Type> = Some(Type::Any);
const ONE: &[Type] = &[Type::Any];
const NAMED: &[Type] = &[Type::Text, Type::Any];

pub(super) const ROWS: &[Row] = &[
    ("default", ONE, ANY, |_, given| {
        let value = given.get(1).filter(|value| !is_empty(value));
        Ok(value.unwrap_or(&given[0]).clone())
    }),
    ("empty", ONE, None, |_, given| Ok(Value::Bool(is_empty(&given[0])))),
    ("coalesce", &[], ANY, |_, given| {
        Ok(given.iter().find(|value| !is_empty(value)).cloned().unwrap_or(Value::Nil))
    }),
    ("all", &[], ANY, |_, given| Ok(Value::Bool(!given.iter().any(is_empty)))),
    ("any", &[], ANY, |_, given| Ok(Value::Bool(!given.iter().all(is_empty)))),
    ("ternary", &[Type::Any, Type::Any, Type::Bool], None, |_, given| {
        Ok(given[usize::from(!given[2].is_true())].clone())
    }),
    ("typeOf", ONE, None, |_, given| Ok(Value::text(given[0].type_name()))),
    ("kindOf", ONE, None, |_, given| Ok(Value::text(given[0].kind_name()))),
    ("typeIs", NAMED, None, |_, given| Ok(Value::Bool(text(given, 0) == given[1].type_name()))),
    ("kindIs", NAMED, None, |_, given| Ok(Value::Bool(text(given, 0) == given[1].kind_name()))),
    ("typeIsLike", NAMED, None, |_, given| {
        let (wanted, found) = (text(given, 0), given[1].type_name());
        Ok(Value::Bool(wanted == found || format!("*{wanted}") == found))
    }),
    ("deepEqual", &[Type::Any, Type::Any], None, |scope, given| {
        Ok(Value::Bool(deep_equal(scope, &given[0], &given[1], 0)?))
    }),
];

/// Sprig's emptiness: the zero value of a type, and what has no length.
pub(super) fn is_empty(value: &Value) -> bool {
    !value.is_true()
}
