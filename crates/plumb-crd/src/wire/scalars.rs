//! Simple types of the wire format.

use std::collections::BTreeMap;

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Map, Value, json};

use super::{Wire, WireError};

impl Wire for String {
    const EXPECTED: &'static str = "a string";

    fn read(value: &Value) -> Result<Self, WireError> {
        value.as_str().map(str::to_owned).ok_or_else(|| WireError::unexpected(Self::EXPECTED, value))
    }

    fn write(&self) -> Value {
        Value::from(self.as_str())
    }

    fn is_unset(&self) -> bool {
        self.is_empty()
    }

    fn schema() -> Value {
        json!({"type": "string"})
    }
}

impl Wire for bool {
    const EXPECTED: &'static str = "true or false";

    fn read(value: &Value) -> Result<Self, WireError> {
        value.as_bool().ok_or_else(|| WireError::unexpected(Self::EXPECTED, value))
    }

    fn write(&self) -> Value {
        Value::from(*self)
    }

    fn is_unset(&self) -> bool {
        !*self
    }

    fn schema() -> Value {
        json!({"type": "boolean"})
    }
}

impl Wire for i64 {
    const EXPECTED: &'static str = "a whole number";

    fn read(value: &Value) -> Result<Self, WireError> {
        value
            .as_i64()
            .or_else(|| whole(value.as_f64()?))
            .ok_or_else(|| WireError::unexpected(Self::EXPECTED, value))
    }

    fn write(&self) -> Value {
        Value::from(*self)
    }

    fn is_unset(&self) -> bool {
        *self == 0
    }

    fn schema() -> Value {
        json!({"type": "integer", "format": "int64"})
    }
}

/// `3.0` is a whole number too: some YAML writers print `3` so.
fn whole(number: f64) -> Option<i64> {
    let fits = number.fract() == 0.0 && number.abs() < 9.0e15;
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and below 2^53")]
    fits.then_some(number as i64)
}

impl Wire for Timestamp {
    const EXPECTED: &'static str = "a time such as 2026-11-15T19:00:00Z";

    fn read(value: &Value) -> Result<Self, WireError> {
        let text = value.as_str().ok_or_else(|| WireError::unexpected(Self::EXPECTED, value))?;
        text.parse().map_err(|_| WireError::malformed(Self::EXPECTED, text))
    }

    fn write(&self) -> Value {
        Value::from(format_time(*self))
    }

    fn is_unset(&self) -> bool {
        *self == Self::UNIX_EPOCH
    }

    fn schema() -> Value {
        json!({"type": "string", "format": "date-time"})
    }
}

/// The time without fractions of a second, as it is after being written and read again.
pub fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// RFC 3339 in UTC, whole seconds: the only form in which Kubernetes writes a time.
pub fn format_time(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl<T: Wire> Wire for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn read(value: &Value) -> Result<Self, WireError> {
        T::read(value).map(Some)
    }

    fn write(&self) -> Value {
        self.as_ref().map_or(Value::Null, Wire::write)
    }

    fn is_unset(&self) -> bool {
        self.is_none()
    }

    fn schema() -> Value {
        T::schema()
    }
}

impl<T: Wire> Wire for Box<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn read(value: &Value) -> Result<Self, WireError> {
        T::read(value).map(Self::new)
    }

    fn write(&self) -> Value {
        self.as_ref().write()
    }

    fn is_unset(&self) -> bool {
        self.as_ref().is_unset()
    }

    fn schema() -> Value {
        T::schema()
    }
}

impl<T: Wire> Wire for Vec<T> {
    const EXPECTED: &'static str = "a list";

    fn read(value: &Value) -> Result<Self, WireError> {
        let items = value.as_array().ok_or_else(|| WireError::unexpected(Self::EXPECTED, value))?;
        let read_item = |(index, item): (usize, &Value)| match item {
            Value::Null => Ok(T::default()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                T::read(item).map_err(|error| error.inside_index(index))
            }
        };
        items.iter().enumerate().map(read_item).collect()
    }

    fn write(&self) -> Value {
        self.iter().map(Wire::write).collect()
    }

    fn is_unset(&self) -> bool {
        self.is_empty()
    }

    fn schema() -> Value {
        json!({"type": "array", "items": T::schema()})
    }
}

impl<T: Wire> Wire for BTreeMap<String, T> {
    const EXPECTED: &'static str = "a map";

    fn read(value: &Value) -> Result<Self, WireError> {
        let map = super::read_map(value)?;
        map.keys().map(|key| Ok((key.clone(), super::read_field(map, key)?))).collect()
    }

    fn write(&self) -> Value {
        Value::Object(self.iter().map(|(key, value)| (key.clone(), value.write())).collect())
    }

    fn is_unset(&self) -> bool {
        self.is_empty()
    }

    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": T::schema()})
    }
}

/// A number or a string, as Kubernetes' `IntOrString`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntOrString {
    /// Written as a number.
    Int(i64),
    /// Written as a string.
    String(String),
}

impl Default for IntOrString {
    fn default() -> Self {
        Self::Int(0)
    }
}

impl Wire for IntOrString {
    const EXPECTED: &'static str = "a number or a string";

    fn read(value: &Value) -> Result<Self, WireError> {
        match value {
            Value::String(text) => Ok(Self::String(text.clone())),
            Value::Number(_) => i64::read(value).map(Self::Int),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                Err(WireError::unexpected(Self::EXPECTED, value))
            }
        }
    }

    fn write(&self) -> Value {
        match self {
            Self::Int(number) => Value::from(*number),
            Self::String(text) => Value::from(text.as_str()),
        }
    }

    fn is_unset(&self) -> bool {
        *self == Self::default()
    }

    fn schema() -> Value {
        json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true})
    }
}

/// A map that is preserved unchanged: Helm treats nulls in it as values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawMap(pub Map<String, Value>);

impl Wire for RawMap {
    const EXPECTED: &'static str = "a map";

    fn read(value: &Value) -> Result<Self, WireError> {
        super::read_map(value).cloned().map(Self)
    }

    fn write(&self) -> Value {
        Value::Object(self.0.clone())
    }

    fn is_unset(&self) -> bool {
        self.0.is_empty()
    }

    fn schema() -> Value {
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    }
}

/// Any value, preserved unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Raw(pub Value);

impl Wire for Raw {
    const EXPECTED: &'static str = "any value";

    fn read(value: &Value) -> Result<Self, WireError> {
        Ok(Self(value.clone()))
    }

    fn write(&self) -> Value {
        self.0.clone()
    }

    fn is_unset(&self) -> bool {
        self.0.is_null()
    }

    fn schema() -> Value {
        json!({"x-kubernetes-preserve-unknown-fields": true})
    }
}
