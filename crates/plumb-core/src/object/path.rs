//! A place inside an object.

use std::fmt;

use compact_str::CompactString;
use serde_json::Value;

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// A key of a map. There are many, all short.
    Field(CompactString),
    /// A position in a list.
    Index(usize),
}

/// A place inside an object, from its root. Printed as a JSON pointer (RFC 6901).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<Segment>);

impl FieldPath {
    /// The whole object.
    pub fn root() -> Self {
        Self::default()
    }

    /// Reads a place as the API server names it in an error: `spec.template.spec.containers[0].image`. Keys in
    /// brackets (`annotations[a/b]`) are fields, and so are those of list items (`containers[name="c"]`), which
    /// [`FieldPath::with_positions`] turns into positions. `<nil>` names no specific place.
    pub fn from_server(field: &str) -> Self {
        if field == "<nil>" {
            return Self::root();
        }
        let mut segments = Vec::new();
        let mut rest = field;
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('[') {
                let Some((key, after)) = inner.split_once(']') else { break };
                segments.push(key.parse().map_or_else(|_| Segment::Field(key.into()), Segment::Index));
                rest = after;
            } else {
                rest = rest.strip_prefix('.').unwrap_or(rest);
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                let (name, after) = rest.split_at(end);
                if name.is_empty() {
                    break;
                }
                segments.push(Segment::Field(name.into()));
                rest = after;
            }
        }
        Self(segments)
    }

    /// This place with list items that are named by their keys (`name="c"`, `port=80,protocol="TCP"`) given by their
    /// positions in `value`. A list that has no such item is as far as it goes.
    #[must_use]
    pub fn with_positions(&self, value: &Value) -> Self {
        let mut place = Self::root();
        let mut inside = Some(value);
        for segment in &self.0 {
            let next = match (segment, inside) {
                (Segment::Field(keys), Some(Value::Array(items))) if keys.contains('=') => {
                    let Some(at) = items.iter().position(|item| has_keys(item, keys)) else { return place };
                    Segment::Index(at)
                }
                (segment, _) => segment.clone(),
            };
            inside = inside.and_then(|value| match &next {
                Segment::Field(name) => value.get(name.as_str()),
                Segment::Index(index) => value.get(*index),
            });
            place.push(next);
        }
        place
    }

    /// Reads a JSON pointer. Digits become positions only where the value that is walked later is a list, so
    /// they are kept as fields here and [`FieldPath::find`] resolves them against what it meets.
    pub fn from_pointer(pointer: &str) -> Self {
        let segments = pointer
            .split('/')
            .skip(1)
            .map(|part| Segment::Field(part.replace("~1", "/").replace("~0", "~").into()))
            .collect();
        Self(segments)
    }

    /// The steps from the root.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// This place's key `name`.
    #[must_use]
    pub fn field(&self, name: impl Into<CompactString>) -> Self {
        let mut segments = self.0.clone();
        segments.push(Segment::Field(name.into()));
        Self(segments)
    }

    /// This place's item at `index`.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        let mut segments = self.0.clone();
        segments.push(Segment::Index(index));
        Self(segments)
    }

    /// Adds a step in place; the counterpart of [`FieldPath::pop`] for walks that must not allocate per step.
    pub fn push(&mut self, segment: Segment) {
        self.0.push(segment);
    }

    /// Takes the last step off.
    pub fn pop(&mut self) -> Option<Segment> {
        self.0.pop()
    }

    /// The place that holds this one; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        let (_, rest) = self.0.split_last()?;
        Some(Self(rest.to_vec()))
    }

    /// Is this place `ancestor`, or inside it?
    pub fn starts_with(&self, ancestor: &Self) -> bool {
        self.0.starts_with(&ancestor.0)
    }

    /// The value at this place.
    pub fn find<'value>(&self, value: &'value Value) -> Option<&'value Value> {
        self.0.iter().try_fold(value, |value, segment| match (segment, value) {
            (Segment::Field(name), Value::Object(map)) => map.get(name.as_str()),
            (Segment::Field(name), Value::Array(items)) => items.get(name.parse::<usize>().ok()?),
            (Segment::Index(index), Value::Array(items)) => items.get(*index),
            (Segment::Field(_) | Segment::Index(_), _) => None,
        })
    }
}

/// Does a list item have these keys, as the server writes them in an error? One that the item leaves out has its
/// default, whatever that is.
fn has_keys(item: &Value, keys: &str) -> bool {
    keys.split(',').all(|key| {
        let Some((name, text)) = key.split_once('=') else { return false };
        // As JSON, so that a text has its quotes.
        let written = item.get(name).map(Value::to_string);
        written.is_none_or(|written| written == text)
    })
}

impl From<Vec<Segment>> for FieldPath {
    fn from(segments: Vec<Segment>) -> Self {
        Self(segments)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.0 {
            match segment {
                Segment::Field(name) => write!(f, "/{}", name.replace('~', "~0").replace('/', "~1"))?,
                Segment::Index(index) => write!(f, "/{index}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_of_the_server_become_pointers() {
        for (field, expected) in [
            ("spec.maxUnavailable", "/spec/maxUnavailable"),
            ("spec.template.spec.containers[0].image", "/spec/template/spec/containers/0/image"),
            ("metadata.annotations[a/b.c]", "/metadata/annotations/a~1b.c"),
            ("", ""),
            ("..x", ""),
            ("<nil>", ""),
        ] {
            assert_eq!(FieldPath::from_server(field).to_string(), expected, "{field}");
        }
    }

    #[test]
    fn items_that_the_server_names_by_their_keys_get_their_positions() {
        let value = json!({"c": [{"name": "a"}, {"name": "b", "ports": [{"p": 80}, {"p": 81, "q": "UDP"}]}]});
        for (field, expected) in [
            ("c[name=\"b\"].ports", "/c/1/ports"),
            ("c[name=\"b\"].ports[p=81,q=\"UDP\"].x", "/c/1/ports/1/x"),
            ("c[name=\"b\"].ports[p=80,q=\"TCP\"]", "/c/1/ports/0"),
            ("c[name=\"z\"].ports", "/c"),
            ("c[0].ports", "/c/0/ports"),
        ] {
            assert_eq!(FieldPath::from_server(field).with_positions(&value).to_string(), expected, "{field}");
        }
    }

    #[test]
    fn a_pointer_is_printed_as_it_was_read() {
        for pointer in ["", "/spec/replicas", "/metadata/annotations/a~1b~0c", "/spec/containers/0/image"] {
            assert_eq!(FieldPath::from_pointer(pointer).to_string(), pointer);
        }
    }

    #[test]
    fn digits_find_list_items() {
        let value = json!({"a": [{"b": 1}, {"b": 2}]});
        assert_eq!(FieldPath::from_pointer("/a/1/b").find(&value), Some(&json!(2)));
        assert_eq!(FieldPath::root().field("a").index(0).field("b").find(&value), Some(&json!(1)));
        assert_eq!(FieldPath::from_pointer("/a/x").find(&value), None);
    }
}
