//! From an `OpenAPI` v3 document to an arena of nodes.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use serde_json::value::RawValue;

use super::known_defaults::Fills;
use super::node::{ListType, Node, NodeId, NodeShape, Scalar};
use super::wire::{Additional, Contents, Definition, DefinitionHead};
use crate::object::GroupVersionKind;

/// How deep a schema may nest inline. Real ones stay under 40; recursion through `$ref` does not count.
const MAX_DEPTH: usize = 200;

/// The compiled schemas of one group version.
#[derive(Debug, Default)]
pub(crate) struct Document {
    nodes: Vec<Node>,
    pub(super) kinds: BTreeMap<GroupVersionKind, DocumentKind>,
    /// The group version that the document is about (`apps/v1`), by its paths. It also describes kinds of others
    /// that its own kinds contain: `apps/v1` has the claims of a stateful set, which are `v1`.
    pub(super) about: Option<String>,
}

/// One kind of a document.
#[derive(Debug)]
pub(super) struct DocumentKind {
    pub(super) root: NodeId,
    pub(super) has_status: bool,
    pub(super) fingerprint: u64,
    pub(super) text_hash: u64,
    /// One of its fields is a password.
    pub(super) has_password: bool,
}

impl Document {
    pub(super) fn node(&self, id: NodeId) -> &Node {
        static ANY: Node = Node {
            shape: NodeShape::Any,
            default: None,
            type_name: None,
            fills: Fills::NONE,
            embedded: false,
            password: false,
        };
        self.nodes.get(id.0 as usize).unwrap_or(&ANY)
    }

    /// The node of a definition that the document's kinds can reach.
    pub(super) fn named(&self, name: &str) -> Option<NodeId> {
        let at = self.nodes.iter().position(|node| node.type_name.as_deref() == Some(name))?;
        u32::try_from(at).ok().map(NodeId)
    }

    /// Compiles what the document's kinds can reach: all kinds of Kubernetes itself, and custom resources if they are
    /// `wanted`. What is not understood becomes "anything".
    pub(super) fn compile(json: &[u8], wanted: impl Fn(&GroupVersionKind) -> bool) -> Self {
        let contents: Contents<'_> = serde_json::from_slice(json).unwrap_or_default();
        let (about, with_status) = (contents.about(), contents.kinds_with_status());
        let definitions = contents.into_definitions();
        let mut compiler = Compiler {
            definitions: &definitions,
            nodes: vec![Node::default()],
            named: BTreeMap::new(),
            by_hash: HashMap::new(),
        };
        let mut kinds = BTreeMap::new();
        for (name, definition) in &definitions {
            let built_in = name.starts_with("io.k8s.");
            let Some(gvk) = DefinitionHead::kind(definition).filter(|gvk| built_in || wanted(gvk)) else {
                continue;
            };
            let root = compiler.named(name, built_in);
            let has_status = with_status.contains(&gvk);
            let (fingerprint, has_password) = compiler.fingerprint(root, has_status);
            let mut hasher = DefaultHasher::new();
            definition.get().hash(&mut hasher);
            let text_hash = hasher.finish();
            kinds.insert(gvk, DocumentKind { root, has_status, fingerprint, text_hash, has_password });
        }
        let mut nodes = compiler.nodes;
        nodes.shrink_to_fit();
        Self { nodes, kinds, about }
    }
}

struct Compiler<'a> {
    definitions: &'a BTreeMap<String, &'a RawValue>,
    nodes: Vec<Node>,
    named: BTreeMap<&'a str, NodeId>,
    /// Nodes without a name, by their hash. Custom resources repeat the same types in many places.
    by_hash: HashMap<u64, NodeId>,
}

impl Compiler<'_> {
    /// The node of a definition. Its place is taken before it is compiled, so that recursive types end.
    fn named(&mut self, name: &str, built_in: bool) -> NodeId {
        let Some((name, definition)) = self.definitions.get_key_value(name) else { return NodeId(0) };
        if let Some(id) = self.named.get(name.as_str()) {
            return *id;
        }
        let id = self.add(Node::default());
        self.named.insert(name, id);
        let definition: Definition<'_> = serde_json::from_str(definition.get()).unwrap_or_default();
        let mut node = self.compile(&definition, built_in, 0);
        node.type_name = Some(name.as_str().into());
        node.fills = Fills::of_type(name);
        if let Some(scalar) = well_known(name) {
            node.shape = NodeShape::Scalar(scalar);
        }
        if let Some(place) = self.nodes.get_mut(id.0 as usize) {
            *place = node;
        }
        id
    }

    fn add(&mut self, node: Node) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or_default());
        self.nodes.push(node);
        id
    }

    /// The node of an inline schema or reference.
    fn place(&mut self, schema: &Definition<'_>, built_in: bool, depth: usize) -> NodeId {
        if let Some(name) = schema.bare_reference() {
            return self.named(name, built_in);
        }
        let node = self.compile(schema, built_in, depth);
        if node.type_name.is_some() {
            return self.add(node);
        }
        let hash = node.hash_of_unnamed();
        let known = self.by_hash.get(&hash).copied();
        let is_same = |id: &NodeId| self.nodes.get(id.0 as usize).is_some_and(|other| other.is_same(&node));
        if let Some(id) = known.filter(is_same) {
            return id;
        }
        let id = self.add(node);
        self.by_hash.insert(hash, id);
        id
    }

    fn compile(&mut self, schema: &Definition<'_>, built_in: bool, depth: usize) -> Node {
        if depth > MAX_DEPTH {
            return Node::default();
        }
        let default = default_of(schema, built_in);
        if let Some(name) = schema.reference() {
            let target = self.named(name, built_in);
            // A recursive type would copy a node that is still empty; such fields then accept anything.
            let mut node = self.nodes.get(target.0 as usize).cloned().unwrap_or_default();
            node.default = default.or(node.default);
            return node;
        }
        let shape = if let Some(scalar) = scalar_of(schema, built_in) {
            NodeShape::Scalar(scalar)
        } else if schema.is_type("array") {
            let items = schema.items.as_ref();
            let items = items.map_or(NodeId(0), |items| self.place(items, built_in, depth + 1));
            NodeShape::List { items, list_type: list_type(schema) }
        } else {
            self.map_shape(schema, built_in, depth)
        };
        let password = schema.format.as_deref() == Some("password");
        Node { shape, default, type_name: None, fills: Fills::NONE, embedded: schema.embedded, password }
    }

    fn map_shape(&mut self, schema: &Definition<'_>, built_in: bool, depth: usize) -> NodeShape {
        let open = schema.preserves_unknown;
        let values = match &schema.additional {
            Additional::Schema(values) => Some(self.place(values, built_in, depth + 1)),
            Additional::Nothing | Additional::Allowed => None,
        };
        let is_object = schema.is_type("object");
        if schema.properties.is_none() && values.is_none() && (open || !is_object || built_in) {
            // Built-in free-form objects (`RawExtension`, `FieldsV1`) say only `type: object`.
            return NodeShape::Any;
        }
        let properties = schema.properties.iter().flat_map(|properties| &properties.0);
        let place = |(name, property): &(Box<str>, Definition<'_>)| {
            (name.clone(), self.place(property, built_in, depth + 1))
        };
        let mut fields: Vec<(Box<str>, NodeId)> = properties.map(place).collect();
        fields.sort();
        fields.shrink_to_fit();
        let open = open || matches!(schema.additional, Additional::Allowed);
        let atomic = schema.map_type.as_deref() == Some("atomic");
        NodeShape::Map { fields, values, open, atomic }
    }

    /// A number that changes when anything that a comparison can see of this kind changes; and whether one of its fields
    /// is a password.
    fn fingerprint(&self, root: NodeId, has_status: bool) -> (u64, bool) {
        let mut hasher = DefaultHasher::new();
        has_status.hash(&mut hasher);
        let mut seen = HashMap::new();
        self.fingerprint_node(root, &mut seen, &mut hasher);
        let is_password = |id: &NodeId| self.nodes.get(id.0 as usize).is_some_and(|node| node.password);
        (hasher.finish(), seen.keys().any(is_password))
    }

    /// A node that is used in several places counts once, and each further time as "the same as that one".
    fn fingerprint_node(&self, id: NodeId, seen: &mut HashMap<NodeId, usize>, hasher: &mut DefaultHasher) {
        let position = seen.len();
        if let Some(known) = seen.get(&id) {
            (4_u8, known).hash(hasher);
            return;
        }
        seen.insert(id, position);
        let Some(node) = self.nodes.get(id.0 as usize) else { return };
        node.default.as_ref().map(Value::to_string).hash(hasher);
        (node.embedded, node.password).hash(hasher);
        match &node.shape {
            NodeShape::Any => 0_u8.hash(hasher),
            NodeShape::Map { fields, values, open, atomic } => {
                (1_u8, open, atomic, values.is_some()).hash(hasher);
                for (name, id) in fields {
                    name.hash(hasher);
                    self.fingerprint_node(*id, seen, hasher);
                }
                if let Some(values) = values {
                    self.fingerprint_node(*values, seen, hasher);
                }
            }
            NodeShape::List { items, list_type } => {
                (2_u8, list_type).hash(hasher);
                self.fingerprint_node(*items, seen, hasher);
            }
            NodeShape::Scalar(scalar) => (3_u8, scalar).hash(hasher),
        }
    }
}

/// In built-in kinds `default: 0`, `""` and `{}` are the zero value of a Go field, not something that the
/// server fills in.
fn default_of(schema: &Definition<'_>, built_in: bool) -> Option<Value> {
    let default = schema.default.as_ref()?;
    let is_zero = match default {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    };
    (!(built_in && is_zero)).then(|| default.clone())
}

fn well_known(name: &str) -> Option<Scalar> {
    match name {
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => Some(Scalar::Quantity),
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => Some(Scalar::IntOrString),
        "io.k8s.apimachinery.pkg.apis.meta.v1.Time" | "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime" => {
            Some(Scalar::DateTime)
        }
        _ => None,
    }
}

fn scalar_of(schema: &Definition<'_>, built_in: bool) -> Option<Scalar> {
    let (format, pattern) = (schema.format.as_deref(), schema.pattern.as_deref());
    if schema.int_or_string || format == Some("int-or-string") {
        return Some(if pattern.is_some_and(is_quantity_pattern) {
            Scalar::QuantityText
        } else {
            Scalar::IntOrString
        });
    }
    match (schema.of_type.as_deref()?, format) {
        ("string", Some("date-time")) => Some(Scalar::DateTime),
        ("string", Some("byte")) if built_in => Some(Scalar::Bytes),
        ("string", _) if pattern.is_some_and(is_quantity_pattern) => Some(Scalar::QuantityText),
        ("string", _) => Some(Scalar::String),
        ("integer", _) => Some(Scalar::Integer),
        ("number", _) => Some(Scalar::Number),
        ("boolean", _) => Some(Scalar::Boolean),
        _ => None,
    }
}

/// The pattern that controller-gen writes for `resource.Quantity`, or one that was derived from it.
fn is_quantity_pattern(pattern: &str) -> bool {
    pattern.contains("KMGTPE") && pattern.contains("numkMGTPE")
}

/// As the server reads it: `x-kubernetes-list-type`, or else the merge key of the older extension.
fn list_type(schema: &Definition<'_>) -> ListType {
    match schema.list_type.as_deref() {
        Some("set") => ListType::Set,
        Some("map") if schema.list_map_keys.is_empty() => ListType::Atomic,
        Some("map") => ListType::Map(schema.list_map_keys.clone()),
        Some(_) => ListType::Atomic,
        None => {
            let strategy = schema.patch_strategy.as_deref();
            let merges = strategy.is_some_and(|strategy| strategy.split(',').any(|part| part == "merge"));
            match (merges, &schema.patch_merge_key) {
                (true, Some(key)) => ListType::Map(vec![key.clone().into_owned()]),
                (true, None) => ListType::Set,
                (false, _) => ListType::Atomic,
            }
        }
    }
}
