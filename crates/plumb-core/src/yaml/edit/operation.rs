//! What shall change, as values: no text yet.

use std::fmt;

use serde_json::{Map, Value};

use crate::object::{FieldPath, Segment};

/// One change of a document. Each of them does nothing where its result is there already; only the removal of a list
/// item by its position removes the next one when it is repeated.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Set a field or a list item. Maps on the way that are absent or null are made.
    Set {
        /// Which field.
        path: FieldPath,
        /// Its value.
        value: Value,
    },
    /// Set a field, and say why.
    Explain {
        /// Which field.
        path: FieldPath,
        /// Its value.
        value: Value,
        /// Lines to write above the field, each behind `#`, if it changes and has lines of its own.
        comment: String,
    },
    /// Add an item to the end of a list, unless the list has an equal one. A list that is absent or null is made.
    Append {
        /// Which list.
        path: FieldPath,
        /// The item.
        value: Value,
        /// Lines to write above the item, each behind `#`, if it gets lines of its own.
        comment: Option<String>,
    },
    /// Remove a field or a list item. The map or list around it stays, even if it is empty then.
    Remove {
        /// Which field.
        path: FieldPath,
    },
    /// Give a field another name.
    Rename {
        /// Which field.
        path: FieldPath,
        /// Its new name.
        to: String,
    },
}

/// Why a document has no such place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    /// The path leads through something that has no such parts.
    #[error("{} is {found}, so it has no field or item `{step}`", shown(.place))]
    NoParts {
        /// As far as the path leads.
        place: FieldPath,
        /// What is there.
        found: &'static str,
        /// The next step.
        step: String,
    },
    /// The list is shorter.
    #[error("the list in {} has no item {index}", shown(.place))]
    NoItem {
        /// The list.
        place: FieldPath,
        /// The item.
        index: String,
    },
    /// The new name is taken.
    #[error("{} already has a field `{name}`", shown(.place))]
    Taken {
        /// The map.
        place: FieldPath,
        /// The name.
        name: String,
    },
    /// The document itself cannot be removed or renamed.
    #[error("the path names the whole document")]
    Whole,
}

fn shown(place: &FieldPath) -> String {
    if *place == FieldPath::root() { "the document".to_owned() } else { place.to_string() }
}

impl Operation {
    /// The place that changes.
    pub fn path(&self) -> &FieldPath {
        match self {
            Self::Set { path, .. }
            | Self::Explain { path, .. }
            | Self::Append { path, .. }
            | Self::Remove { path }
            | Self::Rename { path, .. } => path,
        }
    }

    /// The same change of an object that is at this place of the document.
    #[must_use]
    pub fn inside(&self, place: &FieldPath) -> Self {
        let inner = self.path().segments();
        let path = FieldPath::from([place.segments(), inner].concat());
        match self {
            Self::Set { value, .. } => Self::Set { path, value: value.clone() },
            Self::Explain { value, comment, .. } => {
                Self::Explain { path, value: value.clone(), comment: comment.clone() }
            }
            Self::Append { value, comment, .. } => {
                Self::Append { path, value: value.clone(), comment: comment.clone() }
            }
            Self::Remove { .. } => Self::Remove { path },
            Self::Rename { to, .. } => Self::Rename { path, to: to.clone() },
        }
    }

    /// Can a difference at this place come from the change? It is the field itself, or a map around it that the
    /// document lacks. In a list, equal items cannot be told apart, so it is the item or one behind it.
    pub(super) fn concerns(&self, place: &FieldPath, document: &Value) -> bool {
        let path = resolved(self.path(), document);
        if path.starts_with(place) || place.starts_with(&path) {
            return true;
        }
        let (Some(Segment::Index(first)), Some(list)) = (path.segments().last(), path.parent()) else {
            return false;
        };
        place.starts_with(&list)
            && matches!(place.segments().get(list.segments().len()), Some(Segment::Index(at)) if at >= first)
    }

    /// The document after the change.
    pub fn apply(&self, document: &Value) -> Result<Value, PathProblem> {
        let mut changed = document.clone();
        match self {
            Self::Set { path, value } | Self::Explain { path, value, .. } => {
                *place(&mut changed, path)? = value.clone();
            }
            Self::Append { path, value, .. } => {
                let list = place(&mut changed, path)?;
                if list.is_null() {
                    *list = Value::Array(Vec::new());
                }
                match list {
                    Value::Array(items) if items.contains(value) => {}
                    Value::Array(items) => items.push(value.clone()),
                    other => return Err(no_parts(path.segments(), other, "-")),
                }
            }
            Self::Remove { path } => remove(&mut changed, path)?,
            Self::Rename { path, to } => rename(&mut changed, path, to)?,
        }
        Ok(changed)
    }
}

/// The place of a field, made if it is absent.
fn place<'value>(document: &'value mut Value, path: &FieldPath) -> Result<&'value mut Value, PathProblem> {
    let mut at = document;
    for (depth, segment) in path.segments().iter().enumerate() {
        if at.is_null() && matches!(segment, Segment::Field(_)) {
            *at = Value::Object(Map::new());
        }
        let way = path.segments().get(..depth).unwrap_or_default();
        at = match at {
            Value::Object(map) => match segment {
                Segment::Field(name) => map.entry(name.to_string()).or_insert(Value::Null),
                Segment::Index(_) => return Err(no_parts(way, &Value::Object(Map::new()), &step(segment))),
            },
            Value::Array(items) => {
                let item = position(segment).and_then(|index| items.get_mut(index));
                item.ok_or_else(|| PathProblem::NoItem {
                    place: FieldPath::from(way.to_vec()),
                    index: step(segment),
                })?
            }
            other => return Err(no_parts(way, other, &step(segment))),
        };
    }
    Ok(at)
}

/// The map or list around a field, and the last step to it; `None` if the field is not there.
fn around<'value, 'path>(
    document: &'value mut Value,
    path: &'path FieldPath,
) -> Result<Option<(&'value mut Value, &'path Segment)>, PathProblem> {
    let Some((last, way)) = path.segments().split_last() else { return Err(PathProblem::Whole) };
    if path.find(document).is_none() {
        return Ok(None);
    }
    let mut at = Some(document);
    for segment in way {
        at = at.and_then(|at| match at {
            Value::Object(map) => map.get_mut(&step(segment)),
            Value::Array(items) => position(segment).and_then(|index| items.get_mut(index)),
            _ => None,
        });
    }
    Ok(at.map(|at| (at, last)))
}

fn remove(document: &mut Value, path: &FieldPath) -> Result<(), PathProblem> {
    match around(document, path)? {
        Some((Value::Object(map), last)) => {
            map.remove(&step(last));
        }
        Some((Value::Array(items), last)) => {
            if let Some(index) = position(last).filter(|index| *index < items.len()) {
                items.remove(index);
            }
        }
        Some(_) | None => {}
    }
    Ok(())
}

fn rename(document: &mut Value, path: &FieldPath, to: &str) -> Result<(), PathProblem> {
    let Some((around, last)) = around(document, path)? else { return Ok(()) };
    let way = || path.parent().unwrap_or_default();
    match around {
        Value::Object(map) if map.contains_key(to) => {
            Err(PathProblem::Taken { place: way(), name: to.to_owned() })
        }
        Value::Object(map) => {
            let value = map.remove(&step(last)).unwrap_or_default();
            map.insert(to.to_owned(), value);
            Ok(())
        }
        other => Err(no_parts(way().segments(), other, &step(last))),
    }
}

/// The path with list positions as such.
fn resolved(path: &FieldPath, document: &Value) -> FieldPath {
    let mut found = FieldPath::root();
    let mut inside = Some(document);
    for segment in path.segments() {
        let next = match (inside, position(segment)) {
            (Some(Value::Array(_)), Some(index)) => Segment::Index(index),
            _ => segment.clone(),
        };
        inside = inside.and_then(|value| match &next {
            Segment::Field(name) => value.get(name.as_str()),
            Segment::Index(index) => value.get(*index),
        });
        found.push(next);
    }
    found
}

fn position(segment: &Segment) -> Option<usize> {
    match segment {
        Segment::Field(name) => name.parse().ok(),
        Segment::Index(index) => Some(*index),
    }
}

fn step(segment: &Segment) -> String {
    match segment {
        Segment::Field(name) => name.to_string(),
        Segment::Index(index) => index.to_string(),
    }
}

fn no_parts(way: &[Segment], found: &Value, step: &str) -> PathProblem {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    };
    PathProblem::NoParts { place: FieldPath::from(way.to_vec()), found, step: step.to_owned() }
}

/// The change as an instruction for a person.
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set { path, value } | Self::Explain { path, value, .. } => {
                write!(f, "set {path} to {value}")
            }
            Self::Append { path, value, .. } => write!(f, "add to the list {path}: {value}"),
            Self::Remove { path } => write!(f, "remove {path}"),
            Self::Rename { path, to } => write!(f, "rename {path} to `{to}`"),
        }
    }
}
