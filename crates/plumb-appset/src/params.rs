//! Parameter sets.

use std::collections::BTreeMap;

use plumb_gotemplate::value::Items;
use plumb_gotemplate::{Fault, Scope, Value, float_text};
use serde_json::Value as Json;

/// One set of parameters.
pub type Params = BTreeMap<String, Data>;

/// A value with the type that it has in Go: templates see the difference between a map of strings and a map of anything.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// `nil`.
    Null,
    /// A boolean.
    Bool(bool),
    /// Every number from JSON or YAML.
    Number(f64),
    /// A string.
    Text(String),
    /// A list of anything.
    List(Vec<Data>),
    /// A list of strings.
    Texts(Vec<String>),
    /// A map of anything.
    Map(BTreeMap<String, Data>),
    /// A map of strings.
    TextMap(BTreeMap<String, String>),
    /// A map of JSON that was not decoded.
    RawMap(BTreeMap<String, Json>),
}

impl From<&str> for Data {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Data {
    /// JSON as Go decodes it.
    pub fn from_json(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(truth) => Self::Bool(*truth),
            Json::Number(number) => Self::Number(number.as_f64().unwrap_or(f64::NAN)),
            Json::String(text) => Self::Text(text.clone()),
            Json::Array(items) => Self::List(items.iter().map(Self::from_json).collect()),
            Json::Object(map) => {
                Self::Map(map.iter().map(|(key, value)| (key.clone(), Self::from_json(value))).collect())
            }
        }
    }

    /// The value as JSON.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(truth) => Json::from(*truth),
            #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and below 2^53")]
            Self::Number(number) if number.fract() == 0.0 && number.abs() < 9.0e15 => {
                Json::from(*number as i64)
            }
            Self::Number(number) => Json::from(*number),
            Self::Text(text) => Json::from(text.as_str()),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Texts(items) => items.iter().map(|item| Json::from(item.as_str())).collect(),
            Self::Map(map) => {
                Json::Object(map.iter().map(|(key, item)| (key.clone(), item.to_json())).collect())
            }
            Self::TextMap(map) => {
                Json::Object(map.iter().map(|(key, item)| (key.clone(), Json::from(item.as_str()))).collect())
            }
            Self::RawMap(map) => {
                Json::Object(map.iter().map(|(key, item)| (key.clone(), item.clone())).collect())
            }
        }
    }

    /// The value for a Go template.
    fn to_value(&self, scope: &Scope) -> Result<Value, Fault> {
        Ok(match self {
            Self::Null => Value::Nil,
            Self::Bool(truth) => Value::Bool(*truth),
            Self::Number(number) => Value::Float(*number),
            Self::Text(text) => {
                scope.allocate(text.len())?;
                Value::text(text)
            }
            Self::List(items) => {
                Value::list(scope, items.iter().map(|item| item.to_value(scope)).collect::<Result<_, _>>()?)?
            }
            Self::Texts(items) => Value::texts(scope, items)?,
            Self::Map(map) => map_value(scope, map)?,
            Self::TextMap(map) => {
                let entries = map.iter().map(|(key, text)| (key.clone(), Value::text(text)));
                Value::map_of(scope, Items::Text, entries.collect())?
            }
            Self::RawMap(map) => {
                let raw = |json: &Json| Value::Raw(json.to_string().into());
                let entries = map.iter().map(|(key, json)| (key.clone(), raw(json)));
                Value::map_of(scope, Items::Raw, entries.collect())?
            }
        })
    }

    /// As Go's `%v` prints it.
    pub(crate) fn shown(&self) -> String {
        let joined = |parts: Vec<String>| parts.join(" ");
        match self {
            Self::Null => "<nil>".to_owned(),
            Self::Bool(truth) => truth.to_string(),
            Self::Number(number) => float_text(*number, None, false),
            Self::Text(text) => text.clone(),
            Self::List(items) => format!("[{}]", joined(items.iter().map(Self::shown).collect())),
            Self::Texts(items) => format!("[{}]", items.join(" ")),
            Self::Map(map) => {
                format!(
                    "map[{}]",
                    joined(map.iter().map(|(key, item)| format!("{key}:{}", item.shown())).collect())
                )
            }
            Self::TextMap(map) => {
                format!("map[{}]", joined(map.iter().map(|(key, item)| format!("{key}:{item}")).collect()))
            }
            Self::RawMap(map) => {
                let bytes =
                    |json: &Json| joined(json.to_string().bytes().map(|byte| byte.to_string()).collect());
                let shown = map.iter().map(|(key, json)| format!("{key}:{{[{}]}}", bytes(json)));
                format!("map[{}]", joined(shown.collect()))
            }
        }
    }
}

/// A parameter set for a Go template.
pub(crate) fn map_value(scope: &Scope, map: &BTreeMap<String, Data>) -> Result<Value, Fault> {
    let entries = map.iter().map(|(key, item)| Ok((key.clone(), item.to_value(scope)?)));
    Value::map(scope, entries.collect::<Result<_, Fault>>()?)
}

/// Memory that an entry takes besides its text, about.
const ITEM_BYTES: usize = 64;

/// Memory that a parameter set takes, about.
pub(crate) fn weight(params: &BTreeMap<String, Data>) -> usize {
    params.iter().map(|(key, data)| key.len() + weight_of(data)).sum()
}

fn weight_of(data: &Data) -> usize {
    let inside: usize = match data {
        Data::Null | Data::Bool(_) | Data::Number(_) => 0,
        Data::Text(text) => text.len(),
        Data::List(items) => items.iter().map(weight_of).sum(),
        Data::Texts(items) => items.iter().map(|item| item.len() + ITEM_BYTES).sum(),
        Data::Map(map) => weight(map),
        Data::TextMap(map) => map.iter().map(|(key, text)| key.len() + text.len() + ITEM_BYTES).sum(),
        Data::RawMap(map) => {
            map.iter().map(|(key, json)| key.len() + json.to_string().len() + ITEM_BYTES).sum()
        }
    };
    inside + ITEM_BYTES
}

/// Nested maps and lists as keys with dots: `a.b.0`. Empty ones vanish; lists of strings stay whole.
pub(crate) fn flatten(params: &Params) -> BTreeMap<String, String> {
    let mut flat = BTreeMap::new();
    for (key, data) in params {
        flatten_into(key, data, &mut flat);
    }
    flat
}

fn flatten_into(key: &str, data: &Data, flat: &mut BTreeMap<String, String>) {
    match data {
        Data::List(items) => {
            for (index, item) in items.iter().enumerate() {
                flatten_into(&format!("{key}.{index}"), item, flat);
            }
        }
        Data::Map(map) => {
            for (inner, item) in map {
                flatten_into(&format!("{key}.{inner}"), item, flat);
            }
        }
        Data::TextMap(map) => {
            flat.extend(map.iter().map(|(inner, item)| (format!("{key}.{inner}"), item.clone())));
        }
        Data::RawMap(map) => {
            for (inner, item) in map {
                flat.insert(format!("{key}.{inner}"), Data::from_json(item).shown());
            }
        }
        Data::Null | Data::Bool(_) | Data::Number(_) | Data::Text(_) | Data::Texts(_) => {
            flat.insert(key.to_owned(), data.shown());
        }
    }
}

/// The same for parameters that a generator of texts gives.
pub(crate) fn flattened(params: &Params) -> Params {
    flatten(params).into_iter().map(|(key, text)| (key, Data::Text(text))).collect()
}

/// Merges maps deeply; values of `over` win. A map of strings cannot take other values: the error names the key.
pub(crate) fn merge(into: &mut BTreeMap<String, Data>, over: &BTreeMap<String, Data>) -> Result<(), String> {
    for (key, data) in over {
        match (into.get_mut(key), data) {
            (Some(Data::Map(old)), Data::Map(new)) => merge(old, new)?,
            (Some(Data::Map(old)), Data::TextMap(new)) => {
                old.extend(new.iter().map(|(key, text)| (key.clone(), Data::Text(text.clone()))));
            }
            (Some(Data::TextMap(old)), Data::TextMap(new)) => {
                old.extend(new.iter().map(|(key, text)| (key.clone(), text.clone())));
            }
            (Some(Data::TextMap(_)), Data::Map(new)) if !new.is_empty() => {
                return Err(format!("cannot merge \"{key}\": it is a map of strings, and the other is not"));
            }
            (Some(Data::TextMap(_)), Data::Map(_)) => {}
            _ => {
                into.insert(key.clone(), data.clone());
            }
        }
    }
    Ok(())
}
