//! The parts of an `OpenAPI` v3 document that a comparison needs.
//!
//! A document of a few megabytes takes ten times as much once it is parsed as a tree, and two thirds of it are
//! descriptions. So only the table of contents is read at first: the definitions stay text. A definition is
//! parsed when a kind needs it, without what no comparison reads, and dropped once it is compiled.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::object::GroupVersionKind;

/// The table of contents of a document.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Contents<'a> {
    #[serde(borrow)]
    paths: BTreeMap<String, &'a RawValue>,
    #[serde(borrow)]
    components: Components<'a>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Components<'a> {
    #[serde(borrow)]
    schemas: BTreeMap<String, &'a RawValue>,
}

impl<'a> Contents<'a> {
    /// The definitions by name, as text.
    pub(super) fn into_definitions(self) -> BTreeMap<String, &'a RawValue> {
        self.components.schemas
    }

    /// `apps/v1` of `/apis/apps/v1/…`, `v1` of `/api/v1/…`.
    pub(super) fn about(&self) -> Option<String> {
        self.paths.keys().find_map(|path| {
            let mut parts = path.split('/').skip(1);
            match (parts.next()?, parts.next()?, parts.next()?) {
                ("api", version, _) => Some(version.to_owned()),
                ("apis", group, version) => Some(format!("{group}/{version}")),
                _ => None,
            }
        })
    }

    /// Kinds whose `status` is a subresource: the server ignores it in ordinary writes.
    pub(super) fn kinds_with_status(&self) -> BTreeSet<GroupVersionKind> {
        let of_status = self.paths.iter().filter(|(path, _)| path.ends_with("/status"));
        of_status.filter_map(|(_, operations)| kind_of_operations(operations)).collect()
    }
}

fn kind_of_operations(operations: &RawValue) -> Option<GroupVersionKind> {
    #[derive(serde::Deserialize)]
    struct Operation {
        #[serde(rename = "x-kubernetes-group-version-kind")]
        kind: WireKind,
    }
    let operations: BTreeMap<String, &RawValue> = serde_json::from_str(operations.get()).ok()?;
    let read = |operation: &&RawValue| serde_json::from_str::<Operation>(operation.get()).ok();
    operations.values().find_map(read).map(|operation| operation.kind.into())
}

/// What a definition says about itself.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct DefinitionHead<'a> {
    #[serde(rename = "x-kubernetes-group-version-kind")]
    kinds: Vec<WireKind>,
    #[serde(borrow)]
    properties: Option<HeadProperties<'a>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct HeadProperties<'a> {
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

impl DefinitionHead<'_> {
    /// The kind that the definition describes; `None` if it is not an object. Option types (`DeleteOptions`)
    /// belong to every group. Lists have `metadata` too, but of another type; they are never compared.
    pub(super) fn kind(definition: &RawValue) -> Option<GroupVersionKind> {
        let head: DefinitionHead<'_> = serde_json::from_str(definition.get()).ok()?;
        let is_object = head.properties.is_none_or(|properties| {
            let metadata = properties.metadata.map(|metadata| serde_json::from_str(metadata.get()));
            metadata.is_some_and(|metadata: Result<Definition<'_>, _>| {
                !metadata.is_ok_and(|metadata| {
                    metadata.reference().is_some_and(|name| name.ends_with(".ListMeta"))
                })
            })
        });
        let mut kinds = head.kinds.into_iter();
        match (kinds.next(), kinds.next()) {
            (Some(one), None) if is_object => Some(one.into()),
            _ => None,
        }
    }
}

#[derive(serde::Deserialize)]
struct WireKind {
    #[serde(default)]
    group: String,
    version: String,
    kind: String,
}

impl From<WireKind> for GroupVersionKind {
    fn from(wire: WireKind) -> Self {
        Self { group: wire.group, version: wire.version, kind: wire.kind }
    }
}

const REFERENCE_PREFIX: &str = "#/components/schemas/";

/// A definition, or a schema inside one, without descriptions and validations.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Definition<'a> {
    #[serde(rename = "$ref", borrow)]
    reference: Option<Cow<'a, str>>,
    #[serde(rename = "allOf", borrow)]
    all_of: Vec<Reference<'a>>,
    #[serde(rename = "type", borrow)]
    pub(super) of_type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) format: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) pattern: Option<Cow<'a, str>>,
    /// Also null.
    #[serde(deserialize_with = "present")]
    pub(super) default: Option<Value>,
    #[serde(borrow)]
    pub(super) items: Option<Box<Definition<'a>>>,
    #[serde(borrow)]
    pub(super) properties: Option<Properties<'a>>,
    #[serde(rename = "additionalProperties", borrow)]
    pub(super) additional: Additional<'a>,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub(super) preserves_unknown: bool,
    #[serde(rename = "x-kubernetes-int-or-string")]
    pub(super) int_or_string: bool,
    #[serde(rename = "x-kubernetes-embedded-resource")]
    pub(super) embedded: bool,
    #[serde(rename = "x-kubernetes-map-type", borrow)]
    pub(super) map_type: Option<Cow<'a, str>>,
    #[serde(rename = "x-kubernetes-list-type", borrow)]
    pub(super) list_type: Option<Cow<'a, str>>,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    pub(super) list_map_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-patch-strategy", borrow)]
    pub(super) patch_strategy: Option<Cow<'a, str>>,
    #[serde(rename = "x-kubernetes-patch-merge-key", borrow)]
    pub(super) patch_merge_key: Option<Cow<'a, str>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Reference<'a> {
    #[serde(rename = "$ref", borrow)]
    reference: Option<Cow<'a, str>>,
}

impl Definition<'_> {
    /// `$ref`, also as the single entry of `allOf` (where the server adds a description or default).
    pub(super) fn reference(&self) -> Option<&str> {
        let wrapped = || match self.all_of.as_slice() {
            [one] => one.reference.as_deref(),
            _ => None,
        };
        self.reference.as_deref().or_else(wrapped)?.strip_prefix(REFERENCE_PREFIX)
    }

    /// A schema that is a reference and nothing else.
    pub(super) fn bare_reference(&self) -> Option<&str> {
        if self.default.is_none() { self.reference() } else { None }
    }

    pub(super) fn is_type(&self, name: &str) -> bool {
        self.of_type.as_deref() == Some(name)
    }
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The properties of a map, in the order of the document.
#[derive(Default)]
pub(super) struct Properties<'a>(pub(super) Vec<(Box<str>, Definition<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Properties<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Properties<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the properties of a schema")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut found = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    found.push(entry);
                }
                Ok(Properties(found))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// What a map says about keys that it does not name.
#[derive(Default)]
pub(super) enum Additional<'a> {
    #[default]
    Nothing,
    /// Any value.
    Allowed,
    Schema(Box<Definition<'a>>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Additional<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BoolOrSchema;
        impl<'de> Visitor<'de> for BoolOrSchema {
            type Value = Additional<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or a schema")
            }

            fn visit_bool<E>(self, allowed: bool) -> Result<Self::Value, E> {
                Ok(if allowed { Additional::Allowed } else { Additional::Nothing })
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Additional::Nothing)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let schema = Definition::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Additional::Schema(Box::new(schema)))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Additional::Nothing)
            }
        }
        deserializer.deserialize_any(BoolOrSchema)
    }
}
