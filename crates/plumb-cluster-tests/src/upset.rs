//! Changes that may happen to an object, in Git and in the cluster.

use plumb_core::object::{FieldPath, Segment};
use serde_json::{Value, json};

use crate::change;
use crate::kind::Kind;
use crate::random::Random;
use crate::repair::{leaves, remove, set};

/// The other writers: users more often than programs.
const WRITERS: [&str; 5] =
    ["kubectl-edit", "kubectl-patch", "kubectl-edit", "some-operator", "kubectl-client-side-apply"];

/// One change.
#[derive(Clone, Debug)]
pub enum Upset {
    /// Another writer patches the live object.
    Patch {
        /// Who.
        writer: &'static str,
        /// A JSON patch.
        patch: Value,
    },
    /// Git changes.
    Commit(Value),
    /// The object in Git is applied.
    Sync,
}

/// Generates the next change of one object.
#[derive(Debug)]
pub struct Upsets<'a> {
    kind: &'a Kind,
    random: Random,
    /// Another object of the same kind, as a source of fields.
    other: Value,
}

impl<'a> Upsets<'a> {
    /// The same seed generates the same changes.
    pub fn new(kind: &'a Kind, seed: u64, other: Value) -> Self {
        Self { kind, random: Random::of(seed, &kind.name()), other }
    }

    /// The next change; `None` if none was found.
    pub fn next(&mut self, desired: &Value, live: &Value) -> Option<Upset> {
        match self.random.below(10) {
            0..4 => {
                let writer = *WRITERS.get(self.random.below(WRITERS.len()))?;
                Some(Upset::Patch { writer, patch: self.patch(live)? })
            }
            4..7 => self.commit(desired, live).map(Upset::Commit),
            _ => Some(Upset::Sync),
        }
    }

    fn patch(&mut self, live: &Value) -> Option<Value> {
        let own = content(live);
        let leaf = self.one_of(&own)?;
        match self.random.below(6) {
            0 | 1 => {
                let values = change::alternatives(self.kind, live, &leaf);
                Some(change::replace(&leaf, &self.one_of(&values)?))
            }
            2 => Some(change::remove(&self.shortened(leaf))),
            3 => {
                let (path, value) = self.addition(live)?;
                Some(json!([{"op": "add", "path": pointer(&path), "value": value}]))
            }
            4 => {
                let (path, items) = self.list(live)?;
                Some(change::replace(&path, &Value::Array(items)))
            }
            _ => {
                let value = format!("v{}", self.random.below(3));
                let patch =
                    json!([{"op": "add", "path": "/metadata/labels/example.com~1added", "value": value}]);
                live.pointer("/metadata/labels").map(|_| patch)
            }
        }
    }

    fn commit(&mut self, desired: &Value, live: &Value) -> Option<Value> {
        let own = content(desired);
        let leaf = self.one_of(&own)?;
        let mut next = desired.clone();
        match self.random.below(8) {
            0 | 1 => {
                let values = change::alternatives(self.kind, desired, &leaf);
                set(&mut next, &leaf, self.one_of(&values)?);
            }
            2 => {
                remove(&mut next, &self.shortened(leaf));
            }
            3 => {
                let (path, value) = self.addition(desired)?;
                insert(&mut next, &path, value);
            }
            4 => {
                let (path, items) = self.list(desired)?;
                set(&mut next, &path, Value::Array(items));
            }
            5 => set(&mut next, &leaf, Value::Null),
            // Git sets a field that the server defaulted, or an empty value.
            6 => {
                let filled: Vec<Vec<Segment>> =
                    content(live).into_iter().filter(|path| !own.contains(path)).collect();
                let path = self.one_of(&filled)?;
                let value = FieldPath::from(path.clone()).find(live)?.clone();
                set(&mut next, &path, if self.random.chance(70) { value } else { zero(&value) });
            }
            _ => {
                let value = FieldPath::from(leaf.clone()).find(desired)?;
                set(&mut next, &leaf, respelled(value)?);
            }
        }
        (next != *desired).then_some(next)
    }

    /// A field of the other object that this one lacks, if it has the parent map or list.
    fn addition(&mut self, object: &Value) -> Option<(Vec<Segment>, Value)> {
        let at = |path: &[Segment], value: &'_ Value| FieldPath::from(path.to_vec()).find(value).cloned();
        let mut found = Vec::new();
        for leaf in content(&self.other) {
            for length in 1..=leaf.len() {
                let Some(path) = leaf.get(..length) else { break };
                let parent = leaf.get(..length - 1).and_then(|parent| at(parent, object));
                if at(path, object).is_none() {
                    if matches!(parent, Some(Value::Object(_) | Value::Array(_)))
                        && let Some(value) = at(path, &self.other)
                    {
                        found.push((path.to_vec(), value));
                    }
                    break;
                }
            }
        }
        found.dedup_by(|one, other| one.0 == other.0);
        self.one_of(&found)
    }

    /// A list of the object with its items in another order, with one duplicated, or with one removed.
    fn list(&mut self, object: &Value) -> Option<(Vec<Segment>, Vec<Value>)> {
        let mut found: Vec<(Vec<Segment>, Vec<Value>)> = Vec::new();
        for leaf in content(object) {
            for length in 1..leaf.len() {
                let path = leaf.get(..length)?.to_vec();
                if let Some(Value::Array(items)) = FieldPath::from(path.clone()).find(object)
                    && !found.iter().any(|(known, _)| *known == path)
                {
                    found.push((path, items.clone()));
                }
            }
        }
        let (path, mut items) = self.one_of(&found)?;
        match self.random.below(3) {
            0 if items.len() > 1 => items.reverse(),
            1 if items.len() > 1 => {
                items.remove(self.random.below(items.len()));
            }
            _ => items.push(items.first()?.clone()),
        }
        Some((path, items))
    }

    /// The path itself, or one of its parents.
    fn shortened(&mut self, mut path: Vec<Segment>) -> Vec<Segment> {
        while path.len() > 2 && self.random.chance(25) {
            path.pop();
        }
        path
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> Option<T> {
        choices.get(self.random.below(choices.len())).cloned()
    }
}

/// Everything but identity, tracking and fields that only the server sets.
pub fn content(object: &Value) -> Vec<Vec<Segment>> {
    let is_content = |path: &Vec<Segment>| {
        let name = |at: usize| match path.get(at) {
            Some(Segment::Field(name)) => name.as_str(),
            Some(Segment::Index(_)) | None => "",
        };
        match name(0) {
            "apiVersion" | "kind" | "status" => false,
            "metadata" => matches!(name(1), "labels" | "annotations" | "finalizers"),
            _ => true,
        }
    };
    leaves(object).into_iter().filter(is_content).collect()
}

fn insert(object: &mut Value, path: &[Segment], value: Value) {
    let Some((Segment::Index(_), parent)) = path.split_last() else {
        set(object, path, value);
        return;
    };
    if let Some(Value::Array(items)) = FieldPath::from(parent.to_vec()).find(object) {
        let items = items.iter().cloned().chain([value]).collect();
        set(object, parent, Value::Array(items));
    }
}

fn zero(value: &Value) -> Value {
    match value {
        Value::Bool(_) => json!(false),
        Value::Number(_) => json!(0),
        Value::String(_) => json!(""),
        Value::Array(_) => json!([]),
        Value::Object(_) => json!({}),
        Value::Null => Value::Null,
    }
}

/// Another spelling of the value, which may or may not mean the same.
fn respelled(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) => Some(json!(number.to_string())),
        Value::String(text) => {
            let (digits, unit) =
                text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
            let number: u64 = digits.parse().ok()?;
            match unit {
                "" => Some(json!(number)),
                "Gi" => Some(json!(format!("{}Mi", number * 1024))),
                "m" if number.is_multiple_of(1000) => Some(json!((number / 1000).to_string())),
                "h" => Some(json!(format!("{number}h0m0s"))),
                _ => Some(json!(format!("{number}.0{unit}"))),
            }
        }
        Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn pointer(path: &[Segment]) -> String {
    FieldPath::from(path.to_vec()).to_string()
}
