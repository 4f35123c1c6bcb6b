//! One description per wire type: how it is read, written and checked by the API server.
//!
//! The structs of this crate are declared with the `wire!` macro, which gives each of them the four
//! functions of [`Wire`] from one list of fields. Reader, writer and the schema of the custom resource
//! definition can therefore not disagree.

mod error;
mod scalars;

use serde_json::{Map, Value};

pub use error::{WireError, describe};
pub use scalars::{IntOrString, Raw, RawMap, format_time};

/// A value that stands on the wire.
pub trait Wire: Sized + Default {
    /// What the reader expects, for messages: `a string`.
    const EXPECTED: &'static str;

    /// Reads a value that is present and not `null`.
    fn read(value: &Value) -> Result<Self, WireError>;

    /// The value as JSON.
    fn write(&self) -> Value;

    /// Is it what "absent" means too? Such a field is left out unless it is required.
    fn is_unset(&self) -> bool;

    /// The structural schema, as `apiextensions.k8s.io/v1` wants it.
    fn schema() -> Value;
}

/// Reads one field of a map; absent and `null` give the default.
pub(crate) fn read_field<T: Wire>(map: &Map<String, Value>, key: &str) -> Result<T, WireError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(T::default()),
        Some(value) => T::read(value).map_err(|error| error.inside_field(key)),
    }
}

/// The map inside a value, or an error that says what was there instead.
pub(crate) fn read_map(value: &Value) -> Result<&Map<String, Value>, WireError> {
    value.as_object().ok_or_else(|| WireError::unexpected("a map", value))
}

/// Declares wire structs.
///
/// ```text
/// wire! {
///     /// What it is.
///     pub struct Name {
///         /// What the field means; becomes the schema's description.
///         "nameOnTheWire" rust_name: Type,
///         /// A required field is always written.
///         "other" other: String = required,
///         /// Further restrictions go into the schema as they stand.
///         "short" short: String where {"maxLength": 255},
///     }
/// }
/// ```
macro_rules! wire {
    ($(
        $(#[doc = $doc:literal])*
        $visibility:vis struct $name:ident {
            $(
                $(#[doc = $field_doc:literal])*
                $key:literal $field:ident : $type:ty $(= $required:ident)? $(where $restriction:tt)?
            ),* $(,)?
        }
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        $visibility struct $name {
            $(
                $(#[doc = $field_doc])*
                pub $field: $type,
            )*
        }

        impl $crate::wire::Wire for $name {
            const EXPECTED: &'static str = "a map";

            fn read(value: &serde_json::Value) -> Result<Self, $crate::wire::WireError> {
                let map = $crate::wire::read_map(value)?;
                Ok(Self { $($field: $crate::wire::read_field(map, $key)?,)* })
            }

            fn write(&self) -> serde_json::Value {
                let mut map = serde_json::Map::new();
                $(
                    let required = $crate::wire::is_required!($($required)?);
                    if required || !$crate::wire::Wire::is_unset(&self.$field) {
                        map.insert($key.to_owned(), $crate::wire::Wire::write(&self.$field));
                    }
                )*
                serde_json::Value::Object(map)
            }

            fn is_unset(&self) -> bool {
                *self == Self::default()
            }

            fn schema() -> serde_json::Value {
                let mut properties = serde_json::Map::new();
                let mut required: Vec<&str> = Vec::new();
                $(
                    let schema = <$type as $crate::wire::Wire>::schema();
                    $(let schema = $crate::wire::restrict(schema, serde_json::json!($restriction));)?
                    let description = concat!($($field_doc,)* "");
                    properties.insert($key.to_owned(), $crate::wire::described(schema, description));
                    if $crate::wire::is_required!($($required)?) {
                        required.push($key);
                    }
                )*
                $crate::wire::object_schema(properties, &required)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(&$crate::wire::Wire::write(self), serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = <serde_json::Value as serde::Deserialize>::deserialize(deserializer)?;
                <Self as $crate::wire::Wire>::read(&value).map_err(serde::de::Error::custom)
            }
        }
    )*};
}
pub(crate) use wire;

macro_rules! is_required {
    () => {
        false
    };
    (required) => {
        true
    };
}
pub(crate) use is_required;

/// An object's schema from its parts.
pub(crate) fn object_schema(properties: Map<String, Value>, required: &[&str]) -> Value {
    let mut schema = serde_json::json!({"type": "object"});
    schema["properties"] = Value::Object(properties);
    if !required.is_empty() {
        schema["required"] = required.iter().copied().collect();
    }
    schema
}

/// A schema with the field's documentation.
pub(crate) fn described(mut schema: Value, description: &str) -> Value {
    let description = description.trim();
    if !description.is_empty() {
        schema["description"] = Value::from(description);
    }
    schema
}

/// A schema with further restrictions.
pub(crate) fn restrict(mut schema: Value, restriction: Value) -> Value {
    if let (Some(schema), Value::Object(restriction)) = (schema.as_object_mut(), restriction) {
        schema.extend(restriction);
    }
    schema
}
