//! The trait of wire values, and how fields are read.

use serde_json::{Map, Value};

use super::error::WireError;

/// A value of the wire format.
pub trait Wire: Sized + Default {
    /// What the reader expects, for messages: `a string`.
    const EXPECTED: &'static str;

    /// Reads a value that is present and not `null`.
    fn read(value: &Value) -> Result<Self, WireError>;

    /// The value as JSON.
    fn write(&self) -> Value;

    /// True if the value means the same as an absent field. Such a field is omitted unless it is required.
    fn is_unset(&self) -> bool;

    /// The structural schema, in the form of `apiextensions.k8s.io/v1`.
    fn schema() -> Value;
}

/// Reads one field of a map; absent and `null` give the default.
pub(crate) fn read_field<T: Wire>(map: &Map<String, Value>, key: &str) -> Result<T, WireError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(T::default()),
        Some(value) => T::read(value).map_err(|error| error.inside_field(key)),
    }
}

/// The map inside a value, or an error that names the type it has.
pub(crate) fn read_map(value: &Value) -> Result<&Map<String, Value>, WireError> {
    value.as_object().ok_or_else(|| WireError::unexpected("a map", value))
}
