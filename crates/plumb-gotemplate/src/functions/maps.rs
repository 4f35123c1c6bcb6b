//! Sprig's functions for maps.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::reflection::is_empty;
use super::table::{Row, Type, text};
use crate::budget::{Fault, MAX_VALUE_DEPTH, too_deep};
use crate::convert::to_text;
use crate::value::{Items, MapData, Scope, Value};

const MAP: &[Type] = &[Type::Map];
const KEYED: &[Type] = &[Type::Map, Type::Text];

pub(super) const ROWS: &[Row] = &[
    ("dict", &[], Some(Type::Any), dict),
    ("get", KEYED, None, |_, given| {
        Ok(map(given, 0)?.get(&text(given, 1)).unwrap_or_else(|| Value::text("")))
    }),
    ("set", &[Type::Map, Type::Text, Type::Any], None, |scope, given| {
        let key = text(given, 1).into_owned();
        scope.allocate(key.len() + 96)?;
        map(given, 0)?.set(key, given[2].clone());
        Ok(given[0].clone())
    }),
    ("unset", KEYED, None, |_, given| {
        map(given, 0)?.unset(&text(given, 1));
        Ok(given[0].clone())
    }),
    ("hasKey", KEYED, None, |_, given| Ok(Value::Bool(map(given, 0)?.get(&text(given, 1)).is_some()))),
    ("pluck", &[Type::Text], Some(Type::Map), |scope, given| {
        let key = text(given, 0);
        let found = (1..given.len()).filter_map(|index| map(given, index).ok()?.get(&key));
        Value::list(scope, found.collect())
    }),
    ("keys", &[], Some(Type::Map), |scope, given| {
        let mut keys = Vec::new();
        for index in 0..given.len() {
            let entries = map(given, index)?.entries();
            scope.allocate(entries.keys().map(|key| key.len() + 48).sum())?;
            keys.extend(entries.keys().cloned());
        }
        Value::texts(scope, keys)
    }),
    ("values", MAP, None, |scope, given| {
        let values = map(given, 0)?.entries().values().cloned().collect();
        Value::list(scope, values)
    }),
    ("pick", MAP, Some(Type::Text), |scope, given| chosen(scope, given, true)),
    ("omit", MAP, Some(Type::Text), |scope, given| chosen(scope, given, false)),
    ("merge", MAP, Some(Type::Map), |scope, given| merge_all(scope, given, false)),
    ("mustMerge", MAP, Some(Type::Map), |scope, given| merge_all(scope, given, false)),
    ("mergeOverwrite", MAP, Some(Type::Map), |scope, given| merge_all(scope, given, true)),
    ("mustMergeOverwrite", MAP, Some(Type::Map), |scope, given| merge_all(scope, given, true)),
    ("dig", &[], Some(Type::Any), dig),
    ("deepCopy", &[Type::Any], None, |scope, given| copied(scope, &given[0])),
    ("mustDeepCopy", &[Type::Any], None, |scope, given| copied(scope, &given[0])),
];

fn map(given: &[Value], index: usize) -> Result<&Rc<MapData>, Fault> {
    match given.get(index) {
        Some(Value::Map(map)) => Ok(map),
        _ => Err(Fault::new("expected a map")),
    }
}

fn dict(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let mut entries = BTreeMap::new();
    for pair in given.chunks(2) {
        let key = String::from_utf8_lossy(&to_text(scope, &pair[0])?).into_owned();
        entries.insert(key, pair.get(1).cloned().unwrap_or_else(|| Value::text("")));
    }
    Value::map(scope, entries)
}

fn chosen(scope: &Scope, given: &[Value], keeps: bool) -> Result<Value, Fault> {
    let names: Vec<_> = (1..given.len()).map(|index| text(given, index)).collect();
    let entries = map(given, 0)?.entries();
    scope.step(entries.len().saturating_mul(names.len()))?;
    let kept = entries.iter().filter(|(key, _)| names.iter().any(|name| name == *key) == keeps);
    let kept = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    drop(entries);
    Value::map(scope, kept)
}

fn merge_all(scope: &Scope, given: &[Value], overwrite: bool) -> Result<Value, Fault> {
    for index in 1..given.len() {
        merge(scope, map(given, 0)?, map(given, index)?, overwrite, 0)?;
    }
    Ok(given[0].clone())
}

/// Merges a map into another in place. Without `overwrite` only keys that are absent or empty are taken.
fn merge(
    scope: &Scope,
    into: &Rc<MapData>,
    from: &Rc<MapData>,
    overwrite: bool,
    depth: usize,
) -> Result<(), Fault> {
    if depth > MAX_VALUE_DEPTH {
        return Err(too_deep());
    }
    if Rc::ptr_eq(into, from) {
        return Ok(());
    }
    let entries: Vec<_> = from.entries().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    scope.step(entries.len())?;
    for (key, value) in entries {
        match (into.get(&key), &value) {
            (Some(Value::Map(old)), Value::Map(new)) if old.of == Items::Any && new.of == Items::Any => {
                merge(scope, &old, new, overwrite, depth + 1)?;
            }
            (Some(old), _) if !overwrite && !is_empty(&old) => {}
            (_, Value::Nil) if !overwrite => {}
            _ => {
                scope.allocate(key.len() + 96)?;
                into.set(key, value);
            }
        }
    }
    Ok(())
}

fn dig(_: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let (Some((Value::Map(_), _)), true) = (given.split_last(), given.len() >= 3) else {
        if given.len() < 3 {
            return Err(Fault::new("dig needs at least three arguments"));
        }
        return Err(not_a_map(&given[given.len() - 1]));
    };
    let (keys, tail) = given.split_at(given.len() - 2);
    let mut current = tail[1].clone();
    for key in keys {
        let Value::Text(key) = key else {
            return Err(Fault(format!("interface conversion: interface {{}} is {}, not string", shown(key))));
        };
        let next = match &current {
            Value::Map(map) if map.of == Items::Any => map.get(&String::from_utf8_lossy(key)),
            other => return Err(not_a_map(other)),
        };
        match next {
            Some(value) => current = value,
            None => return Ok(tail[0].clone()),
        }
    }
    Ok(current)
}

fn shown(value: &Value) -> &'static str {
    if matches!(value, Value::Nil) { "nil" } else { value.type_name() }
}

fn not_a_map(value: &Value) -> Fault {
    Fault(format!("interface conversion: interface {{}} is {}, not map[string]interface {{}}", shown(value)))
}

fn copied(scope: &Scope, value: &Value) -> Result<Value, Fault> {
    if matches!(value, Value::Nil) {
        return Err(Fault::new("reflect: call of reflect.Value.Type on zero Value"));
    }
    deep_copy(scope, value, 0)
}

fn deep_copy(scope: &Scope, value: &Value, depth: usize) -> Result<Value, Fault> {
    scope.step(1)?;
    if depth > MAX_VALUE_DEPTH {
        return Err(too_deep());
    }
    match value {
        Value::List(list) => {
            let items = list.items.iter().map(|item| deep_copy(scope, item, depth + 1));
            Value::list_of(scope, list.of, items.collect::<Result<_, _>>()?)
        }
        Value::Map(map) => {
            let entries: Vec<_> =
                map.entries().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            let entries =
                entries.into_iter().map(|(key, item)| Ok((key, deep_copy(scope, &item, depth + 1)?)));
            Value::map_of(scope, map.of, entries.collect::<Result<_, Fault>>()?)
        }
        other => Ok(other.clone()),
    }
}
