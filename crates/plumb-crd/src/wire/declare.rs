//! The macro that declares wire structs.

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
///         /// Further restrictions are added to the schema unchanged.
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
