//! Actions: which ones an object has, and what an action would change.

use std::collections::BTreeMap;

use plumb_core::object::{Manifest, merge_patch};
use serde_json::{Map, Value};

use crate::convert;
use crate::error::Error;
use crate::sandbox::Sandbox;

/// An action that can be run on an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// Its name.
    pub name: String,
    /// True if it is shown but cannot be run now.
    pub disabled: bool,
    /// The name for users.
    pub display_name: Option<String>,
    /// The class of its icon.
    pub icon_class: Option<String>,
    /// Its parameters.
    pub params: Vec<Param>,
}

/// A parameter of an action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// The default value.
    pub default: Option<String>,
}

/// What an action does with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Create it.
    Create,
    /// Patch it.
    Patch,
}

/// One object that an action patches or creates.
#[derive(Clone, Debug, PartialEq)]
pub struct Impact {
    /// What to do.
    pub operation: Operation,
    /// The object after the action.
    pub object: Value,
}

/// What to send to the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// A new object.
    Create(Value),
    /// Merge patches. For a kind without a `status` subresource, the API server answers the second with "not found";
    /// then it is sent like the first.
    Patch {
        /// Everything but `status`.
        body: Option<Value>,
        /// `status`, for the subresource.
        status: Option<Value>,
    },
}

impl Impact {
    /// What to send to the API server to change the live object to this one; `None`: nothing changes.
    pub fn write(&self, live: &Manifest) -> Option<Write> {
        match self.operation {
            Operation::Create => Some(Write::Create(self.object.clone())),
            Operation::Patch => {
                let mut body = merge_patch(live.value(), &self.object)?;
                let status = body.as_object_mut().and_then(|body| body.remove("status"));
                let status = status.map(|status| serde_json::json!({ "status": status }));
                let body = Some(body).filter(|body| body.as_object().is_some_and(|body| !body.is_empty()));
                Some(Write::Patch { body, status })
            }
        }
    }
}

impl Sandbox {
    /// Runs a discovery script: the available actions, by name.
    pub fn discover(&self, source: &str, object: &Value) -> Result<Vec<Action>, Error> {
        self.run(source, object, &BTreeMap::new(), |answer, limits| {
            match convert::from_lua(&answer, None, limits.answer)? {
                Value::Object(actions) => {
                    let mut found = actions
                        .iter()
                        .map(|(name, entry)| action(name, entry))
                        .collect::<Result<Vec<_>, _>>()?;
                    found.sort_by(|left, right| left.name.cmp(&right.name));
                    Ok(found)
                }
                Value::Array(items) if items.is_empty() => Ok(Vec::new()),
                other => Err(not_a("a table of actions", &other)),
            }
        })
    }

    /// Runs an action script: what it would change. Nothing is changed here.
    pub fn act(
        &self,
        source: &str,
        object: &Value,
        params: &BTreeMap<String, String>,
    ) -> Result<Vec<Impact>, Error> {
        self.run(source, object, params, |answer, limits| {
            let answer = restored(convert::from_lua(&answer, Some(object), limits.answer)?, object);
            match answer {
                Value::Object(map) if is_object(&map) => {
                    Ok(vec![Impact { operation: Operation::Patch, object: Value::Object(map) }])
                }
                Value::Array(items) => items.into_iter().map(|item| impact(item, object)).collect(),
                other => Err(not_a("an object, or a list of operations on objects", &other)),
            }
        })
    }
}

fn action(name: &str, entry: &Value) -> Result<Action, Error> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).map(str::to_owned);
    let is_empty = entry.as_array().is_some_and(Vec::is_empty);
    if !entry.is_object() && !is_empty {
        return Err(not_a("a table for each action", entry));
    }
    let params = entry.get("params").and_then(Value::as_array).into_iter().flatten();
    Ok(Action {
        name: name.to_owned(),
        disabled: match entry.get("disabled") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => return Err(not_a("a boolean in `disabled`", other)),
        },
        display_name: text("displayName"),
        icon_class: text("iconClass"),
        params: params
            .filter_map(|param| {
                let text = |field: &str| param.get(field).and_then(Value::as_str).map(str::to_owned);
                Some(Param { name: text("name")?, default: text("default").or_else(|| text("value")) })
            })
            .collect(),
    })
}

fn impact(mut item: Value, original: &Value) -> Result<Impact, Error> {
    let operation = match item.get("operation").and_then(Value::as_str) {
        Some("create") => Operation::Create,
        Some("patch") => Operation::Patch,
        _ => {
            return Err(not_a(
                "`create` or `patch` as operation",
                item.get("operation").unwrap_or(&Value::Null),
            ));
        }
    };
    let object = item.get_mut("resource").map(Value::take).unwrap_or_default();
    match restored(object, original) {
        Value::Object(map) if is_object(&map) => Ok(Impact { operation, object: Value::Object(map) }),
        other => Err(not_a("an object as resource", &other)),
    }
}

fn is_object(map: &Map<String, Value>) -> bool {
    ["apiVersion", "kind"].iter().all(|field| map.get(*field).is_some_and(Value::is_string))
}

/// Empty lists that are maps in the object become maps again.
fn restored(value: Value, original: &Value) -> Value {
    match (value, original) {
        (Value::Array(items), Value::Object(_)) if items.is_empty() => Value::Object(Map::new()),
        (Value::Object(map), Value::Object(known)) => Value::Object(
            map.into_iter()
                .map(|(key, item)| {
                    let item = match known.get(&key) {
                        Some(known) => restored(item, known),
                        None => item,
                    };
                    (key, item)
                })
                .collect(),
        ),
        (Value::Array(items), Value::Array(known)) => Value::Array(
            items
                .into_iter()
                .enumerate()
                .map(|(index, item)| match known.get(index) {
                    Some(known) => restored(item, known),
                    None => item,
                })
                .collect(),
        ),
        (value, _) => value,
    }
}

fn not_a(expected: &'static str, found: &Value) -> Error {
    let found = match found {
        Value::Null => "nil".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => found.to_string(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a table".to_owned(),
    };
    Error::Answer { expected, found }
}
