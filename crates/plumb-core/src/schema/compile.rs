//! From an `OpenAPI` v3 document to an arena of nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value};

use super::known_defaults::Fills;
use super::node::{ListType, Node, NodeId, NodeShape, Scalar};
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

    /// Compiles what the document's kinds can reach. What is not understood becomes "anything".
    pub(super) fn compile(document: &Value) -> Self {
        let empty = Map::new();
        let schemas = document.pointer("/components/schemas").and_then(Value::as_object).unwrap_or(&empty);
        let with_status = kinds_with_status(document);
        let mut compiler = Compiler { schemas, nodes: vec![Node::default()], named: BTreeMap::new() };
        let mut kinds = BTreeMap::new();
        for (name, schema) in schemas {
            let gvks = group_version_kinds(schema);
            // Option types (`DeleteOptions`) belong to every group; they are not objects themselves.
            if gvks.len() != 1 || !has_metadata(schema) {
                continue;
            }
            for gvk in gvks {
                let built_in = name.starts_with("io.k8s.");
                let root = compiler.named(name, built_in);
                let has_status = with_status.contains(&gvk);
                let (fingerprint, has_password) = compiler.fingerprint(root, has_status);
                kinds.insert(gvk, DocumentKind { root, has_status, fingerprint, has_password });
            }
        }
        Self { nodes: compiler.nodes, kinds, about: about(document) }
    }
}

/// `apps/v1` of `/apis/apps/v1/…`, `v1` of `/api/v1/…`.
fn about(document: &Value) -> Option<String> {
    document.get("paths")?.as_object()?.keys().find_map(|path| {
        let mut parts = path.split('/').skip(1);
        match (parts.next()?, parts.next()?, parts.next()?) {
            ("api", version, _) => Some(version.to_owned()),
            ("apis", group, version) => Some(format!("{group}/{version}")),
            _ => None,
        }
    })
}

fn has_metadata(schema: &Value) -> bool {
    let Some(properties) = schema.get("properties") else { return true };
    // Lists have `metadata` too, but of another type; they are never compared.
    properties.get("metadata").is_some() && !is_list_of_objects(properties)
}

fn is_list_of_objects(properties: &Value) -> bool {
    properties
        .pointer("/metadata/allOf/0/$ref")
        .or_else(|| properties.pointer("/metadata/$ref"))
        .and_then(Value::as_str)
        .is_some_and(|reference| reference.ends_with(".ListMeta"))
}

fn group_version_kinds(schema: &Value) -> Vec<GroupVersionKind> {
    let entries = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
    entries.into_iter().flatten().filter_map(group_version_kind).collect()
}

fn group_version_kind(entry: &Value) -> Option<GroupVersionKind> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str);
    Some(GroupVersionKind {
        group: text("group").unwrap_or_default().to_owned(),
        version: text("version")?.to_owned(),
        kind: text("kind")?.to_owned(),
    })
}

/// Kinds whose `status` is a subresource: the server ignores it in ordinary writes.
fn kinds_with_status(document: &Value) -> BTreeSet<GroupVersionKind> {
    let paths = document.get("paths").and_then(Value::as_object);
    paths
        .into_iter()
        .flatten()
        .filter(|(path, _)| path.ends_with("/status"))
        .filter_map(|(_, operations)| {
            operations
                .as_object()?
                .values()
                .find_map(|operation| group_version_kind(operation.get("x-kubernetes-group-version-kind")?))
        })
        .collect()
}

struct Compiler<'a> {
    schemas: &'a Map<String, Value>,
    nodes: Vec<Node>,
    named: BTreeMap<&'a str, NodeId>,
}

impl<'a> Compiler<'a> {
    /// The node of a definition. Its place is taken before it is compiled, so that recursive types end.
    fn named(&mut self, name: &str, built_in: bool) -> NodeId {
        let Some((name, schema)) = self.schemas.get_key_value(name) else { return NodeId(0) };
        if let Some(id) = self.named.get(name.as_str()) {
            return *id;
        }
        let id = self.reserve();
        self.named.insert(name, id);
        let mut node = self.compile(schema, built_in, 0);
        node.type_name = Some(name.as_str().into());
        node.fills = Fills::of_type(name);
        if let Some(scalar) = well_known(name) {
            node.shape = NodeShape::Scalar(scalar);
        }
        self.put(id, node);
        id
    }

    fn reserve(&mut self) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or_default());
        self.nodes.push(Node::default());
        id
    }

    fn put(&mut self, id: NodeId, node: Node) {
        if let Some(place) = self.nodes.get_mut(id.0 as usize) {
            *place = node;
        }
    }

    /// The node of an inline schema or reference.
    fn place(&mut self, schema: &'a Value, built_in: bool, depth: usize) -> NodeId {
        if let Some(name) = bare_reference(schema) {
            return self.named(name, built_in);
        }
        let id = self.reserve();
        let node = self.compile(schema, built_in, depth);
        self.put(id, node);
        id
    }

    fn compile(&mut self, schema: &'a Value, built_in: bool, depth: usize) -> Node {
        if depth > MAX_DEPTH {
            return Node::default();
        }
        let default = default_of(schema, built_in);
        if let Some(name) = reference(schema) {
            let target = self.named(name, built_in);
            // A recursive type would copy a node that is still empty; such fields then accept anything.
            let mut node = self.nodes.get(target.0 as usize).cloned().unwrap_or_default();
            node.default = default.or(node.default);
            return node;
        }
        let embedded = flag(schema, "x-kubernetes-embedded-resource");
        let shape = if let Some(scalar) = scalar_of(schema, built_in) {
            NodeShape::Scalar(scalar)
        } else if schema.get("type").and_then(Value::as_str) == Some("array") {
            let items = schema.get("items").map_or(NodeId(0), |items| self.place(items, built_in, depth + 1));
            NodeShape::List { items, list_type: list_type(schema) }
        } else {
            self.map_shape(schema, built_in, depth)
        };
        let password = schema.get("format").and_then(Value::as_str) == Some("password");
        Node { shape, default, type_name: None, fills: Fills::NONE, embedded, password }
    }

    fn map_shape(&mut self, schema: &'a Value, built_in: bool, depth: usize) -> NodeShape {
        let open = flag(schema, "x-kubernetes-preserve-unknown-fields");
        let properties = schema.get("properties").and_then(Value::as_object);
        let additional = schema.get("additionalProperties");
        let values = additional
            .filter(|additional| additional.is_object())
            .map(|additional| self.place(additional, built_in, depth + 1));
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        if properties.is_none() && values.is_none() && (open || !is_object || built_in) {
            // Built-in free-form objects (`RawExtension`, `FieldsV1`) say only `type: object`.
            return NodeShape::Any;
        }
        let mut fields: Vec<(Box<str>, NodeId)> = Vec::new();
        for (name, property) in properties.into_iter().flatten() {
            let id = self.place(property, built_in, depth + 1);
            fields.push((name.as_str().into(), id));
        }
        fields.sort();
        let open = open || additional == Some(&Value::Bool(true));
        let atomic = schema.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic");
        NodeShape::Map { fields, values, open, atomic }
    }

    /// A number that changes when anything that a comparison can see of this kind changes; and whether one of its fields
    /// is a password.
    fn fingerprint(&self, root: NodeId, has_status: bool) -> (u64, bool) {
        let mut hasher = DefaultHasher::new();
        has_status.hash(&mut hasher);
        let mut seen = BTreeSet::new();
        self.fingerprint_node(root, &mut seen, &mut hasher);
        let is_password = |id: &NodeId| self.nodes.get(id.0 as usize).is_some_and(|node| node.password);
        (hasher.finish(), seen.iter().any(is_password))
    }

    fn fingerprint_node(&self, id: NodeId, seen: &mut BTreeSet<NodeId>, hasher: &mut DefaultHasher) {
        if !seen.insert(id) {
            return;
        }
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

const REFERENCE_PREFIX: &str = "#/components/schemas/";

/// A schema that is a reference and nothing else.
fn bare_reference(schema: &Value) -> Option<&str> {
    schema.get("default").is_none().then(|| reference(schema)).flatten()
}

/// `$ref`, also as the single entry of `allOf` (where the server adds a description or default).
fn reference(schema: &Value) -> Option<&str> {
    let direct = schema.get("$ref");
    let wrapped = || match schema.get("allOf")?.as_array()?.as_slice() {
        [one] => one.get("$ref"),
        _ => None,
    };
    direct.or_else(wrapped)?.as_str()?.strip_prefix(REFERENCE_PREFIX)
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or_default()
}

/// In built-in kinds `default: 0`, `""` and `{}` are the zero value of a Go field, not something that the
/// server fills in.
fn default_of(schema: &Value, built_in: bool) -> Option<Value> {
    let default = schema.get("default")?;
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

fn scalar_of(schema: &Value, built_in: bool) -> Option<Scalar> {
    let format = schema.get("format").and_then(Value::as_str);
    if flag(schema, "x-kubernetes-int-or-string") || format == Some("int-or-string") {
        let pattern = schema.get("pattern").and_then(Value::as_str);
        return Some(if pattern.is_some_and(is_quantity_pattern) {
            Scalar::QuantityText
        } else {
            Scalar::IntOrString
        });
    }
    match (schema.get("type").and_then(Value::as_str)?, format) {
        ("string", Some("date-time")) => Some(Scalar::DateTime),
        ("string", Some("byte")) if built_in => Some(Scalar::Bytes),
        ("string", _) if schema.get("pattern").and_then(Value::as_str).is_some_and(is_quantity_pattern) => {
            Some(Scalar::QuantityText)
        }
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
fn list_type(schema: &Value) -> ListType {
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    match text("x-kubernetes-list-type") {
        Some("set") => ListType::Set,
        Some("map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let keys: Vec<String> =
                keys.into_iter().flatten().filter_map(|key| Some(key.as_str()?.to_owned())).collect();
            if keys.is_empty() { ListType::Atomic } else { ListType::Map(keys) }
        }
        Some(_) => ListType::Atomic,
        None => {
            let merges = text("x-kubernetes-patch-strategy")
                .is_some_and(|strategy| strategy.split(',').any(|part| part == "merge"));
            match (merges, text("x-kubernetes-patch-merge-key")) {
                (true, Some(key)) => ListType::Map(vec![key.to_owned()]),
                (true, None) => ListType::Set,
                (false, _) => ListType::Atomic,
            }
        }
    }
}
