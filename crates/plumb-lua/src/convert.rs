//! Converts objects to Lua and back.

use mlua::{Lua, Table, Value as LuaValue};
use serde_json::{Map, Number, Value};

use crate::error::{Error, Limit};

/// Deepest nesting. No Kubernetes object nests deeper; a table that contains itself does.
const MAX_DEPTH: usize = 100;

/// JSON as Lua tables: lists start at 1, null is nil, every number is a double.
pub(crate) fn to_lua(lua: &Lua, value: &Value) -> mlua::Result<LuaValue> {
    Ok(match value {
        Value::Null => LuaValue::Nil,
        Value::Bool(flag) => LuaValue::Boolean(*flag),
        Value::Number(number) => LuaValue::Number(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => LuaValue::String(lua.create_string(text)?),
        Value::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for (index, item) in items.iter().enumerate() {
                table.raw_set(index + 1, to_lua(lua, item)?)?;
            }
            LuaValue::Table(table)
        }
        Value::Object(map) => {
            let table = lua.create_table_with_capacity(0, map.len())?;
            for (key, item) in map {
                if !item.is_null() {
                    table.raw_set(key.as_str(), to_lua(lua, item)?)?;
                }
            }
            LuaValue::Table(table)
        }
    })
}

/// A Lua value as JSON. Lua has one kind of table: an empty one is a map where the `original` has a map in the
/// same place, else a list.
pub(crate) fn from_lua(
    value: &LuaValue,
    original: Option<&Value>,
    max_values: usize,
) -> Result<Value, Error> {
    Reader { n_left: max_values }.value(value, original, 0)
}

struct Reader {
    n_left: usize,
}

impl Reader {
    fn value(&mut self, value: &LuaValue, original: Option<&Value>, depth: usize) -> Result<Value, Error> {
        let too_large = Error::Limit { limit: Limit::Size };
        if depth > MAX_DEPTH {
            return Err(too_large);
        }
        self.n_left = self.n_left.checked_sub(1).ok_or(too_large)?;
        match value {
            LuaValue::Nil => Ok(Value::Null),
            LuaValue::Boolean(flag) => Ok(Value::Bool(*flag)),
            LuaValue::Integer(number) => Ok(Value::from(*number)),
            LuaValue::Number(number) => number_of(*number),
            LuaValue::String(text) => Ok(Value::String(text.to_string_lossy())),
            LuaValue::Table(table) => self.table(table, original, depth),
            other => Err(unexpected(other.type_name())),
        }
    }

    fn table(&mut self, table: &Table, original: Option<&Value>, depth: usize) -> Result<Value, Error> {
        let unreadable = |error: mlua::Error| unexpected(&error.to_string());
        let mut items: Vec<(usize, Value)> = Vec::new();
        let mut map = Map::new();
        for pair in table.pairs::<LuaValue, LuaValue>() {
            let (key, item) = pair.map_err(unreadable)?;
            match key {
                LuaValue::String(key) => {
                    let key = key.to_string_lossy();
                    let inner = original.and_then(|original| original.get(&key));
                    map.insert(key, self.value(&item, inner, depth + 1)?);
                }
                LuaValue::Integer(index) => {
                    let index =
                        usize::try_from(index).map_err(|_| unexpected("a table with a negative index"))?;
                    let inner = original.and_then(|original| original.get(index.wrapping_sub(1)));
                    items.push((index, self.value(&item, inner, depth + 1)?));
                }
                other => return Err(unexpected(&format!("a table with a {} as key", other.type_name()))),
            }
        }
        match (items.is_empty(), map.is_empty()) {
            (true, true) if original.is_some_and(Value::is_object) => Ok(Value::Object(map)),
            (true, true) => Ok(Value::Array(Vec::new())),
            (true, false) => Ok(Value::Object(map)),
            (false, true) => {
                items.sort_by_key(|(index, _)| *index);
                let is_whole = items.iter().enumerate().all(|(position, (index, _))| position + 1 == *index);
                if is_whole {
                    Ok(Value::Array(items.into_iter().map(|(_, item)| item).collect()))
                } else {
                    Err(unexpected("a list with holes"))
                }
            }
            (false, false) => Err(unexpected("a table that is both a list and a map")),
        }
    }
}

/// Whole numbers become integers again: Kubernetes refuses `3.0` for an integer field.
fn number_of(number: f64) -> Result<Value, Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is whole and within the exact range of a double"
        )]
        return Ok(Value::from(number as i64));
    }
    Number::from_f64(number).map(Value::Number).ok_or_else(|| unexpected("a number that is not finite"))
}

fn unexpected(found: &str) -> Error {
    Error::Answer { expected: "data", found: found.to_owned() }
}
