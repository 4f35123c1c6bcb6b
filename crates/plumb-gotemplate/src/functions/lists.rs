//! Sprig's functions for lists. Those whose name starts with `must` differ only in how Go reports their errors.

use super::reflection::is_empty;
use super::table::{Row, Type, integer};
use crate::budget::Fault;
use crate::convert::{deep_equal, to_integer};
use crate::value::{Items, Scope, Value};

const ANY: Option<Type> = Some(Type::Any);
const ONE: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];

pub(super) const ROWS: &[Row] = &[
    ("list", &[], ANY, |scope, given| Value::list(scope, given.to_vec())),
    ("tuple", &[], ANY, |scope, given| Value::list(scope, given.to_vec())),
    ("append", TWO, None, append),
    ("push", TWO, None, append),
    ("prepend", TWO, None, prepend),
    ("first", ONE, None, |_, given| {
        Ok(items(&given[0], "find first on")?.first().cloned().unwrap_or(Value::Nil))
    }),
    ("last", ONE, None, |_, given| {
        Ok(items(&given[0], "find last on")?.last().cloned().unwrap_or(Value::Nil))
    }),
    ("rest", ONE, None, rest),
    ("initial", ONE, None, initial),
    ("reverse", ONE, None, reverse),
    ("compact", ONE, None, compact),
    ("uniq", ONE, None, uniq),
    ("without", ONE, ANY, without),
    ("has", TWO, None, has),
    ("slice", ONE, ANY, slice),
    ("concat", &[], ANY, concat),
    ("chunk", &[Type::Int, Type::Any], None, chunk),
];

pub(super) const STRICT_ROWS: &[Row] = &[
    ("mustAppend", TWO, None, append),
    ("mustPush", TWO, None, append),
    ("mustPrepend", TWO, None, prepend),
    ("mustFirst", ONE, None, |_, given| {
        Ok(items(&given[0], "find first on")?.first().cloned().unwrap_or(Value::Nil))
    }),
    ("mustLast", ONE, None, |_, given| {
        Ok(items(&given[0], "find last on")?.last().cloned().unwrap_or(Value::Nil))
    }),
    ("mustRest", ONE, None, rest),
    ("mustInitial", ONE, None, initial),
    ("mustReverse", ONE, None, reverse),
    ("mustCompact", ONE, None, compact),
    ("mustUniq", ONE, None, uniq),
    ("mustWithout", ONE, ANY, without),
    ("mustHas", TWO, None, has),
    ("mustSlice", ONE, ANY, slice),
    ("mustChunk", &[Type::Int, Type::Any], None, chunk),
];

/// The items of a list; `what` is the action in the message about anything else.
fn items<'a>(value: &'a Value, what: &str) -> Result<&'a [Value], Fault> {
    match value {
        Value::List(list) => Ok(&list.items),
        Value::Nil => Err(nil_pointer()),
        other => Err(Fault(format!("Cannot {what} type {}", other.kind_name()))),
    }
}

fn nil_pointer() -> Fault {
    Fault::new("runtime error: invalid memory address or nil pointer dereference")
}

fn append(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let mut list = items(&given[0], "push on")?.to_vec();
    list.push(given[1].clone());
    Value::list(scope, list)
}

fn prepend(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let mut list = vec![given[1].clone()];
    list.extend_from_slice(items(&given[0], "prepend on")?);
    Value::list(scope, list)
}

fn rest(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let list = items(&given[0], "find rest on")?;
    if list.is_empty() {
        return Ok(Value::nil_list(scope, Items::Any));
    }
    Value::list(scope, list.get(1..).unwrap_or_default().to_vec())
}

fn initial(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let list = items(&given[0], "find initial on")?;
    if list.is_empty() {
        return Ok(Value::nil_list(scope, Items::Any));
    }
    Value::list(scope, list.split_last().map(|(_, rest)| rest.to_vec()).unwrap_or_default())
}

fn reverse(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let list = items(&given[0], "find reverse on")?;
    Value::list(scope, list.iter().rev().cloned().collect())
}

fn compact(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let list = items(&given[0], "compact on")?;
    Value::list(scope, list.iter().filter(|item| !is_empty(item)).cloned().collect())
}

fn contains(scope: &Scope, list: &[Value], wanted: &Value) -> Result<bool, Fault> {
    for item in list {
        if deep_equal(scope, wanted, item, 0)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let mut kept = Vec::new();
    for item in items(&given[0], "find uniq on")? {
        if !contains(scope, &kept, item)? {
            kept.push(item.clone());
        }
    }
    Value::list(scope, kept)
}

fn without(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let mut kept = Vec::new();
    for item in items(&given[0], "find without on")? {
        if !contains(scope, &given[1..], item)? {
            kept.push(item.clone());
        }
    }
    Value::list(scope, kept)
}

fn has(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    if matches!(given[1], Value::Nil) {
        return Ok(Value::Bool(false));
    }
    Ok(Value::Bool(contains(scope, items(&given[1], "find has on")?, &given[0])?))
}

fn slice(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let list = match &given[0] {
        Value::List(list) => list,
        Value::Nil => return Err(nil_pointer()),
        other => {
            return Err(Fault(format!("list should be type of slice or array but {}", other.kind_name())));
        }
    };
    if list.items.is_empty() {
        return Ok(Value::Nil);
    }
    let length = i64::try_from(list.items.len()).unwrap_or(i64::MAX);
    let start = given.get(1).map_or(0, to_integer);
    let end = given.get(2).map_or(length, to_integer);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let part = range.and_then(|(start, end)| list.items.get(start..end));
    let part = part.ok_or_else(|| Fault::new("reflect.Value.Slice: slice index out of bounds"))?;
    Value::list_of(scope, list.of, part.to_vec())
}

fn concat(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let mut all = Vec::new();
    for list in given {
        let list = match list {
            Value::List(list) => &list.items,
            Value::Nil => return Err(nil_pointer()),
            other => return Err(Fault(format!("Cannot concat type {} as list", other.kind_name()))),
        };
        scope.step(list.len())?;
        scope.allocate(list.len() * 48)?;
        all.extend_from_slice(list);
    }
    Value::list(scope, all)
}

fn chunk(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let list = items(&given[1], "chunk")?;
    let size = integer(given, 0);
    // Sprig calculates the number of chunks before it makes them; for a negative size it can be zero.
    let is_none = size < 0
        && !list.is_empty()
        && (list.len() - 1).div_ceil(usize::try_from(size.unsigned_abs()).unwrap_or(usize::MAX)) == 1;
    if is_none {
        return Value::list_of(scope, Items::Lists, Vec::new());
    }
    let size = usize::try_from(size).ok().filter(|size| *size > 0);
    let size = size.ok_or_else(|| Fault::new("runtime error: makeslice: len out of range"))?;
    let chunks = list.chunks(size).map(|chunk| Value::list(scope, chunk.to_vec()));
    Value::list_of(scope, Items::Lists, chunks.collect::<Result<_, _>>()?)
}
