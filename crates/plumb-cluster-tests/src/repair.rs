//! Changes an object that the server refuses until the server accepts it. The server's errors say what to change.

use std::collections::BTreeMap;

use anyhow::Result;
use plumb_core::object::{FieldPath, Segment};
use serde_json::Value;

use crate::generate::Generator;
use crate::kind::Kind;
use crate::random::Random;
use crate::server::{Answer, Effect, Server};

/// Most changes to an object before it is abandoned.
const MOST_ROUNDS: usize = 120;

/// An object that the server accepted.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The object that was sent.
    pub desired: Value,
    /// The object that the server returned.
    pub live: Value,
}

/// Applies `object` with as few changes as the server's errors require. The content of `skeleton` stays.
/// Returns the last error if no change helps.
pub async fn until_taken(
    server: &Server,
    kind: &Kind,
    skeleton: &Value,
    mut object: Value,
) -> Result<Result<Taken, String>> {
    let mut strikes: BTreeMap<String, usize> = BTreeMap::new();
    let mut random = Random::of(7, &kind.name());
    let mut complaint = String::new();
    for _ in 0..MOST_ROUNDS {
        let mut answer = server.apply(kind, &object, Effect::Real).await?;
        if answer.is_fine() {
            // A few objects are accepted once and refused afterwards.
            let again = server.apply(kind, &object, Effect::DryRun).await?;
            if again.is_fine() {
                return Ok(Ok(Taken { desired: object, live: answer.body }));
            }
            server.delete(kind, &object).await?;
            answer = again;
        }
        answer.message().clone_into(&mut complaint);
        let before = object.clone();
        for (reason, field, message) in causes(&answer) {
            let path = FieldPath::from_server(&field).segments().to_vec();
            let strike = strikes.entry(field).or_default();
            *strike += 1;
            heed(kind, skeleton, &mut object, &path, &reason, &message, *strike);
        }
        if object == before && !remove_any(skeleton, &mut object, &mut random) {
            break;
        }
    }
    Ok(Err(complaint))
}

fn causes(answer: &Answer) -> Vec<(String, String, String)> {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let causes = answer.body["details"]["causes"].as_array().into_iter().flatten();
    causes.map(|cause| (text(cause, "reason"), text(cause, "field"), text(cause, "message"))).collect()
}

/// Changes the field that one error is about. The first time it tries another value, then it removes the field, then
/// the parent.
fn heed(
    kind: &Kind,
    skeleton: &Value,
    object: &mut Value,
    path: &[Segment],
    reason: &str,
    message: &str,
    strike: usize,
) {
    let at = FieldPath::from(path.to_vec());
    let is_there = at.find(object).is_some();
    if strike == 1 {
        if reason == "FieldValueRequired" && !is_there {
            let value = Generator::new(kind, 3, 0).value_at(path, path.len());
            if let Some(value) = value.filter(|value| *value != Value::Object(serde_json::Map::new())) {
                set(object, path, value);
                return;
            }
        }
        if let Some(value) = proposed(message, at.find(object)) {
            set(object, path, value);
            return;
        }
    }
    let up = path.len().saturating_sub(strike.saturating_sub(2));
    for length in (1..=up).rev() {
        let path = path.get(..length).unwrap_or_default();
        let at = FieldPath::from(path.to_vec());
        if at.find(skeleton).is_none() && remove(object, path) {
            return;
        }
    }
    // The error is about a field that must stay: remove what was added inside it.
    let added = leaves(object)
        .into_iter()
        .rev()
        .find(|leaf| leaf.starts_with(path) && FieldPath::from(leaf.clone()).find(skeleton).is_none());
    if let Some(leaf) = added {
        remove(object, &leaf);
    }
}

/// A value from the message: one of the supported values, or its example.
fn proposed(message: &str, present: Option<&Value>) -> Option<Value> {
    if let Some((_, supported)) = message.split_once("supported values: ") {
        let choices = supported.split('"').skip(1).step_by(2);
        return choices.map(Value::from).find(|choice| Some(choice) != present);
    }
    let (_, example) = message.split_once("(e.g. '")?;
    let (example, _) = example.split_once('\'')?;
    Some(Value::from(example))
        .filter(|example| Some(example) != present && present.is_some_and(Value::is_string))
}

/// Removes something that the skeleton does not have. `false`: there is nothing to remove.
fn remove_any(skeleton: &Value, object: &mut Value, random: &mut Random) -> bool {
    let added: Vec<Vec<Segment>> = leaves(object)
        .into_iter()
        .filter(|leaf| FieldPath::from(leaf.clone()).find(skeleton).is_none())
        .filter(|leaf| leaf.first() != Some(&Segment::Field("metadata".into())))
        .collect();
    let Some(leaf) = added.get(random.below(added.len())) else { return false };
    // The largest part around it that is not in the skeleton, but not the whole object.
    let first = (1..=leaf.len())
        .find(|length| {
            let path = FieldPath::from(leaf.get(..*length).unwrap_or_default().to_vec());
            path.find(skeleton).is_none()
        })
        .unwrap_or(leaf.len());
    let length = (first + 1).min(leaf.len());
    remove(object, leaf.get(..length).unwrap_or_default())
}

/// Every scalar and every empty map or list, with its path.
pub fn leaves(object: &Value) -> Vec<Vec<Segment>> {
    fn walk(value: &Value, path: &mut Vec<Segment>, found: &mut Vec<Vec<Segment>>) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (name, value) in map {
                    path.push(Segment::Field(name.into()));
                    walk(value, path, found);
                    path.pop();
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (index, value) in items.iter().enumerate() {
                    path.push(Segment::Index(index));
                    walk(value, path, found);
                    path.pop();
                }
            }
            _ => found.push(path.clone()),
        }
    }
    let mut found = Vec::new();
    walk(object, &mut Vec::new(), &mut found);
    found
}

/// Sets a value at a path and creates missing maps.
pub fn set(object: &mut Value, path: &[Segment], value: Value) {
    let Some((segment, rest)) = path.split_first() else {
        *object = value;
        return;
    };
    match (segment, object) {
        (Segment::Field(name), Value::Object(map)) => {
            set(
                map.entry(name.clone()).or_insert_with(|| Value::Object(serde_json::Map::new())),
                rest,
                value,
            );
        }
        (Segment::Index(index), Value::Array(items)) => {
            if let Some(item) = items.get_mut(*index) {
                set(item, rest, value);
            }
        }
        _ => {}
    }
}

/// Removes a path. `false`: it did not exist.
pub fn remove(object: &mut Value, path: &[Segment]) -> bool {
    match (path, object) {
        ([Segment::Field(name)], Value::Object(map)) => map.remove(name.as_str()).is_some(),
        ([Segment::Index(index)], Value::Array(items)) => {
            let is_there = *index < items.len();
            if is_there {
                items.remove(*index);
            }
            is_there
        }
        ([Segment::Field(name), rest @ ..], Value::Object(map)) => {
            map.get_mut(name.as_str()).is_some_and(|value| remove(value, rest))
        }
        ([Segment::Index(index), rest @ ..], Value::Array(items)) => {
            items.get_mut(*index).is_some_and(|value| remove(value, rest))
        }
        _ => false,
    }
}
