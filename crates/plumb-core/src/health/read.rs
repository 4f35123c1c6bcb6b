//! Reading fields of an object that may have any shape.
//!
//! Argo CD decodes the kinds of Kubernetes into Go structs, so a field of the wrong type makes the whole object
//! unreadable (`Unknown`), while an absent or null field is the type's zero. These readers keep that: absent and
//! null are `None`, a wrong type is [`Malformed`].

use serde_json::Value;

use super::Health;

/// A field that has the wrong type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    path: String,
    expected: &'static str,
}

impl Malformed {
    fn at(path: &str, expected: &'static str) -> Self {
        Self { path: path.to_owned(), expected }
    }

    /// An object that cannot be read cannot be judged.
    pub(super) fn judge(&self) -> Health {
        Health::unknown(format!("cannot read the object: `{}` is not {}", self.path, self.expected))
    }
}

/// What a reader returns.
pub(super) type Read<T> = Result<T, Malformed>;

/// The value at a dotted path of plain field names; `None` where any step is absent or null.
pub(super) fn at<'value>(value: &'value Value, path: &str) -> Read<Option<&'value Value>> {
    let mut current = value;
    for field in path.split('.') {
        match current {
            Value::Object(map) => match map.get(field) {
                None | Some(Value::Null) => return Ok(None),
                Some(next) => current = next,
            },
            Value::Null => return Ok(None),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(Malformed::at(path, "inside a map"));
            }
        }
    }
    Ok(Some(current))
}

/// The value at a dotted path, if every step is there; wrong types count as absent.
pub(super) fn find<'value>(value: &'value Value, path: &str) -> Option<&'value Value> {
    at(value, path).ok().flatten()
}

/// The text at a dotted path, if it is text.
pub(super) fn find_text<'value>(value: &'value Value, path: &str) -> Option<&'value str> {
    find(value, path)?.as_str()
}

/// A whole number.
pub(super) fn int(value: &Value, path: &str) -> Read<Option<i64>> {
    match at(value, path)? {
        None => Ok(None),
        Some(found) => found.as_i64().map(Some).ok_or_else(|| Malformed::at(path, "a whole number")),
    }
}

/// A text; absent is empty, as in a Go struct.
pub(super) fn text<'value>(value: &'value Value, path: &str) -> Read<&'value str> {
    match at(value, path)? {
        None => Ok(""),
        Some(found) => found.as_str().ok_or_else(|| Malformed::at(path, "a string")),
    }
}

/// A switch; absent is off.
pub(super) fn flag(value: &Value, path: &str) -> Read<bool> {
    match at(value, path)? {
        None => Ok(false),
        Some(found) => found.as_bool().ok_or_else(|| Malformed::at(path, "a boolean")),
    }
}

/// A list; absent is empty.
pub(super) fn list<'value>(value: &'value Value, path: &str) -> Read<&'value [Value]> {
    match at(value, path)? {
        None => Ok(&[]),
        Some(found) => found.as_array().map(Vec::as_slice).ok_or_else(|| Malformed::at(path, "a list")),
    }
}

/// One entry of `status.conditions`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition<'value> {
    pub(super) kind: &'value str,
    pub(super) status: &'value str,
    pub(super) reason: &'value str,
    pub(super) message: &'value str,
}

impl<'value> Condition<'value> {
    /// Reads one entry strictly.
    pub(super) fn read(entry: &'value Value) -> Read<Self> {
        Ok(Self {
            kind: text(entry, "type")?,
            status: text(entry, "status")?,
            reason: text(entry, "reason")?,
            message: text(entry, "message")?,
        })
    }

    pub(super) fn is_true(&self) -> bool {
        self.status == "True"
    }

    pub(super) fn is_false(&self) -> bool {
        self.status == "False"
    }

    /// What the condition says, in the best words it has.
    pub(super) fn words(&self) -> &'value str {
        if self.message.is_empty() { self.reason } else { self.message }
    }
}

/// `status.conditions`, strictly.
pub(super) fn conditions(value: &Value) -> Read<Vec<Condition<'_>>> {
    list(value, "status.conditions")?.iter().map(Condition::read).collect()
}

/// Has the controller seen the newest spec? An absent `observedGeneration` is zero, as in a Go struct.
pub(super) fn is_observed(value: &Value) -> Read<bool> {
    let generation = int(value, "metadata.generation")?.unwrap_or(0);
    Ok(int(value, "status.observedGeneration")?.unwrap_or(0) >= generation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn null_is_absent_and_a_wrong_type_is_malformed() {
        let value = json!({"a": {"n": 1, "none": null, "s": "x", "f": 1.5}});
        assert_eq!(int(&value, "a.n"), Ok(Some(1)));
        assert_eq!(int(&value, "a.none"), Ok(None));
        assert_eq!(int(&value, "a.none.deeper"), Ok(None));
        assert_eq!(int(&value, "b.n"), Ok(None));
        assert!(int(&value, "a.s").is_err());
        assert!(int(&value, "a.f").is_err());
        assert!(int(&value, "a.s.deeper").is_err());
        assert_eq!(text(&value, "a.t"), Ok(""));
        assert!(flag(&value, "a.n").is_err());
    }
}
