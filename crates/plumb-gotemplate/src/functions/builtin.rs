//! Go's own functions.

use super::table::{Row, Type, new_text};
use crate::budget::Fault;
use crate::format::{sprint, sprintf, sprintln};
use crate::value::{Items, MapData, Scope, Value};

const ANY: Option<Type> = Some(Type::Any);

pub(super) const ROWS: &[Row] = &[
    // These two are evaluated by the caller, which stops at the first argument that decides.
    ("and", &[Type::Any], ANY, |_, _| Ok(Value::Nil)),
    ("or", &[Type::Any], ANY, |_, _| Ok(Value::Nil)),
    // No value is a function, so every call fails; the caller says how.
    ("call", &[Type::Any], ANY, |_, _| Ok(Value::Nil)),
    ("not", &[Type::Any], None, |_, given| Ok(Value::Bool(!given[0].is_true()))),
    ("print", &[], ANY, |scope, given| sprint(scope, given).map(Value::text)),
    ("println", &[], ANY, |scope, given| sprintln(scope, given).map(Value::text)),
    ("printf", &[Type::Text], ANY, |scope, given| {
        sprintf(scope, super::table::bytes(given, 0), &given[1..]).map(Value::text)
    }),
    ("html", &[], ANY, |scope, given| escaped(scope, given, html)),
    ("js", &[], ANY, |scope, given| escaped(scope, given, js)),
    ("urlquery", &[], ANY, |scope, given| escaped(scope, given, super::urls::query_escape)),
    ("index", &[Type::Any], ANY, index),
    ("len", &[Type::Any], None, length),
];

fn escaped(scope: &Scope, given: &[Value], escape: fn(&str) -> String) -> Result<Value, Fault> {
    let text = if let [Value::Text(text)] = given {
        text.to_vec()
    } else {
        let printable = |value: &Value| {
            if matches!(value, Value::Nil) { Value::text("<no value>") } else { value.clone() }
        };
        sprint(scope, &given.iter().map(printable).collect::<Vec<_>>())?
    };
    new_text(scope, escape(&String::from_utf8_lossy(&text)))
}

fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\0' => out.push('\u{fffd}'),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
    }
    out
}

fn js(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '"' => out.push_str("\\\""),
            '<' | '>' | '&' | '=' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04X}", u32::from(character));
            }
            printable if crate::format::is_print(printable) => out.push(printable),
            other => {
                let _ = write!(out, "\\u{:04X}", u32::from(other));
            }
        }
    }
    out
}

fn index(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let mut item = given[0].clone();
    if matches!(item, Value::Nil) {
        return Err(Fault::new("index of untyped nil"));
    }
    for index in &given[1..] {
        scope.step(1)?;
        item = match &item {
            Value::Nil => return Err(Fault::new("index of nil pointer")),
            Value::List(list) => {
                let at = position(index, list.items.len())?;
                let item = list.items.get(at).cloned();
                item.ok_or_else(|| Fault::new("reflect: slice index out of range"))?
            }
            Value::Text(text) => {
                let at = position(index, text.len())?;
                let byte = text.get(at).copied();
                Value::Byte(byte.ok_or_else(|| Fault::new("reflect: string index out of range"))?)
            }
            Value::Map(map) => entry(map, index)?,
            other => return Err(Fault(format!("can't index item of type {}", other.type_name()))),
        };
    }
    Ok(item)
}

fn position(index: &Value, length: usize) -> Result<usize, Fault> {
    let number = match index {
        Value::Nil => return Err(Fault::new("cannot index slice/array with nil")),
        other => other
            .as_integer()
            .ok_or_else(|| Fault(format!("cannot index slice/array with type {}", other.type_name())))?,
    };
    usize::try_from(number)
        .ok()
        .filter(|number| *number <= length)
        .ok_or_else(|| Fault(format!("index out of range: {number}")))
}

fn entry(map: &MapData, index: &Value) -> Result<Value, Fault> {
    let Value::Text(key) = index else {
        return Err(match index {
            Value::Nil => Fault::new("value is nil; should be of type string"),
            other => Fault(format!("value has type {}; should be string", other.type_name())),
        });
    };
    let zero = || if map.of == Items::Text { Value::text("") } else { Value::Nil };
    Ok(map.get(&String::from_utf8_lossy(key)).unwrap_or_else(zero))
}

fn length(_: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let length = match &given[0] {
        Value::Nil => return Err(Fault::new("len of nil pointer")),
        Value::Text(text) => text.len(),
        Value::List(list) => list.items.len(),
        Value::Map(map) => map.entries().len(),
        other => return Err(Fault(format!("len of type {}", other.type_name()))),
    };
    Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}
