//! One place in a schema.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value};

use super::compile::Document;
use super::known_defaults::{Fills, ServerFill};

/// Position of a node in its document's arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeId(pub(super) u32);

/// One node of the arena.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) shape: NodeShape,
    /// What the server fills in when the field is absent.
    pub(super) default: Option<Value>,
    /// The definition's name, such as `io.k8s.api.core.v1.Container`.
    pub(super) type_name: Option<Box<str>>,
    /// What the server fills into the fields of this type.
    pub(super) fills: Fills,
    /// An embedded object with its own `apiVersion`, `kind` and `metadata`.
    pub(super) embedded: bool,
    /// `format: password`.
    pub(super) password: bool,
}

impl Node {
    /// For a node without a name: equal nodes have equal hashes.
    pub(super) fn hash_of_unnamed(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.shape, &self.default, self.embedded, self.password).hash(&mut hasher);
        hasher.finish()
    }

    /// Do two nodes without a name say the same?
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.type_name.is_none()
            && other.type_name.is_none()
            && (self.embedded, self.password) == (other.embedded, other.password)
            && self.shape == other.shape
            && self.default == other.default
    }
}

/// What a value at this place looks like, as stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum NodeShape {
    /// No schema: anything.
    #[default]
    Any,
    Map {
        /// Sorted by name.
        fields: Vec<(Box<str>, NodeId)>,
        /// Schema of keys that are not named.
        values: Option<NodeId>,
        /// Unknown keys are kept.
        open: bool,
        /// Replaced as a whole.
        atomic: bool,
    },
    List {
        items: NodeId,
        list_type: ListType,
    },
    Scalar(Scalar),
}

/// How a list merges.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListType {
    /// As a whole.
    Atomic,
    /// By value.
    Set,
    /// By these fields of its items.
    Map(Vec<String>),
}

/// The scalars whose spelling matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// Text.
    String,
    /// Text that is a point in time.
    DateTime,
    /// Base64.
    Bytes,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// A number or a text; for custom resources `4` and `"4"` mean the same.
    IntOrString,
    /// A resource quantity; built-in kinds print it in canonical form.
    Quantity,
    /// A custom resource's quantity: same values, but the server keeps the spelling.
    QuantityText,
    /// Text that the settings call a duration.
    Duration,
}

/// A place in a schema.
#[derive(Clone, Copy)]
pub struct Schema<'a> {
    pub(super) document: &'a Document,
    pub(super) id: NodeId,
}

/// What a value at this place looks like.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// Anything.
    Any,
    /// A map, `atomic` when it is replaced as a whole.
    Map {
        /// Replaced as a whole?
        atomic: bool,
    },
    /// A list.
    List {
        /// Schema of the items.
        items: Schema<'a>,
        /// How it merges.
        list_type: &'a ListType,
    },
    /// A scalar.
    Scalar(Scalar),
}

/// What a schema says about one key of a map.
#[derive(Clone, Copy, Debug)]
pub enum Field<'a> {
    /// It is declared.
    Known(Schema<'a>),
    /// Not declared, but kept.
    Open,
    /// Not declared: the server drops or refuses it.
    Unknown,
}

impl<'a> Schema<'a> {
    fn node(self) -> &'a Node {
        self.document.node(self.id)
    }

    fn at(self, id: NodeId) -> Self {
        Self { document: self.document, id }
    }

    /// What a value here looks like.
    pub fn shape(self) -> Shape<'a> {
        match &self.node().shape {
            NodeShape::Any => Shape::Any,
            NodeShape::Map { atomic, .. } => Shape::Map { atomic: *atomic },
            NodeShape::List { items, list_type } => Shape::List { items: self.at(*items), list_type },
            NodeShape::Scalar(scalar) => Shape::Scalar(*scalar),
        }
    }

    /// The schema of the key `name` of a map, where it is declared.
    pub fn known(self, name: &str) -> Option<Self> {
        match self.field(name) {
            Field::Known(schema) => Some(schema),
            Field::Open | Field::Unknown => None,
        }
    }

    /// The key `name` of a map.
    pub fn field(self, name: &str) -> Field<'a> {
        match &self.node().shape {
            NodeShape::Map { fields, values, open, .. } => {
                match fields.binary_search_by(|(field, _)| field.as_ref().cmp(name)) {
                    Ok(at) => fields.get(at).map_or(Field::Open, |(_, id)| Field::Known(self.at(*id))),
                    Err(_) => match values {
                        Some(values) => Field::Known(self.at(*values)),
                        None if *open => Field::Open,
                        None if self.node().embedded && is_object_field(name) => Field::Open,
                        None => Field::Unknown,
                    },
                }
            }
            // Where a list or scalar is declared the server refuses a map; whether the key exists is then not
            // the question.
            NodeShape::Any | NodeShape::List { .. } | NodeShape::Scalar(_) => Field::Open,
        }
    }

    /// The declared keys of a map, with their schemas.
    pub fn fields(self) -> impl Iterator<Item = (&'a str, Schema<'a>)> {
        let fields = match &self.node().shape {
            NodeShape::Map { fields, .. } => fields.as_slice(),
            NodeShape::Any | NodeShape::List { .. } | NodeShape::Scalar(_) => &[],
        };
        fields.iter().map(move |(name, id)| (name.as_ref(), self.at(*id)))
    }

    /// Does the schema say that the value is a secret (`format: password`)?
    pub(super) fn is_password(self) -> bool {
        self.node().password
    }

    /// Is it a map whose keys are free, such as labels?
    pub fn is_free_map(self) -> bool {
        matches!(&self.node().shape, NodeShape::Map { values: Some(_), .. })
    }

    /// What the server fills in here when the field is absent.
    pub fn default(self) -> Option<&'a Value> {
        self.node().default.as_ref()
    }

    /// Is `value` what the API server itself puts into this map's field `name`?
    pub fn server_fill(self, name: &str, value: &Value, siblings: &Map<String, Value>) -> Option<ServerFill> {
        self.node().fills.fill(name, value, siblings)
    }

    /// The definition's name, such as `io.k8s.api.core.v1.Container`.
    pub fn type_name(self) -> Option<&'a str> {
        self.node().type_name.as_deref()
    }
}

fn is_object_field(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

impl fmt::Debug for Schema<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.id.0).field(&self.type_name()).finish()
    }
}
