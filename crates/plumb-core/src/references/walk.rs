//! Collecting references while walking an object.

use serde_json::Value;

use crate::object::{FieldPath, ObjectKey};

/// One object that names another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The named object. It need not exist.
    pub to: ObjectKey,
    /// The field that names it.
    pub field: FieldPath,
    /// What happens without it.
    pub need: Need,
}

/// What happens to an object if the one that it names does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// It cannot be created, or does not become healthy.
    Blocks,
    /// It exists, and a part of it does not work.
    Works,
    /// The field says that it may be absent.
    Optional,
}

/// The references of one object that have been found so far.
pub(super) struct Found<'object> {
    pub(super) namespace: Option<&'object str>,
    pub(super) references: Vec<Reference>,
}

/// A place in the object, with what is there.
#[derive(Clone)]
pub(super) struct At<'object> {
    pub(super) path: FieldPath,
    pub(super) value: &'object Value,
}

impl<'object> At<'object> {
    pub(super) fn root(value: &'object Value) -> Self {
        Self { path: FieldPath::root(), value }
    }

    /// A field; null if it is not there.
    pub(super) fn get(&self, name: &str) -> Self {
        const ABSENT: &Value = &Value::Null;
        Self { path: self.path.field(name), value: self.value.get(name).unwrap_or(ABSENT) }
    }

    /// A field of a field of a field.
    pub(super) fn below(&self, names: &[&str]) -> Self {
        names.iter().fold(self.clone(), |at, name| at.get(name))
    }

    /// The items of a list.
    pub(super) fn items(&self) -> impl Iterator<Item = At<'object>> + use<'object> {
        let path = self.path.clone();
        let items = self.value.as_array().into_iter().flatten().enumerate();
        items.map(move |(index, value)| At { path: path.index(index), value })
    }

    pub(super) fn text(&self) -> Option<&'object str> {
        self.value.as_str().filter(|text| !text.is_empty())
    }
}

impl<'object> Found<'object> {
    pub(super) fn push(&mut self, to: ObjectKey, field: FieldPath, need: Need) {
        self.references.push(Reference { to, field, need });
    }

    /// The name of an object of the core group in the same namespace.
    pub(super) fn core(&mut self, kind: &str, name: &At<'object>, need: Need) {
        self.local("", kind, name, need);
    }

    /// The name of an object in the same namespace.
    pub(super) fn local(&mut self, group: &str, kind: &str, name: &At<'object>, need: Need) {
        if let Some(text) = name.text() {
            let key = ObjectKey::new(group, kind, self.namespace.map(str::to_owned), text);
            self.push(key, name.path.clone(), need);
        }
    }

    /// The name of an object of the cluster.
    pub(super) fn cluster(&mut self, group: &str, kind: &str, name: &At<'object>, need: Need) {
        if let Some(text) = name.text() {
            self.push(ObjectKey::new(group, kind, None, text), name.path.clone(), need);
        }
    }

    /// A map with `name` and perhaps `namespace`.
    pub(super) fn named(&mut self, group: &str, kind: &str, at: &At<'object>, need: Need) {
        let name = at.get("name");
        if let Some(text) = name.text() {
            let namespace = at.get("namespace").text().or(self.namespace).map(str::to_owned);
            self.push(ObjectKey::new(group, kind, namespace, text), name.path, need);
        }
    }

    /// A map with `name`, and perhaps a kind, a group or API version and a namespace of its own.
    pub(super) fn referent(&mut self, at: &At<'object>, (group, kind): (&str, &str), need: Need) {
        let name = at.get("name");
        let Some(text) = name.text() else { return };
        let of_version = at.get("apiVersion").text();
        let of_version = of_version.map(|text| text.rsplit_once('/').map_or("", |(group, _)| group));
        let own_kind = at.get("kind").text();
        let default_group = if own_kind.is_none_or(|own| own == kind) { group } else { "" };
        let group = at.get("group").value.as_str().or(of_version).unwrap_or(default_group);
        let kind = own_kind.unwrap_or(kind);
        let namespace =
            if is_of_cluster(kind) { None } else { at.get("namespace").text().or(self.namespace) };
        self.push(ObjectKey::new(group, kind, namespace.map(str::to_owned), text), name.path, need);
    }
}

/// Names of kinds that live in the cluster, in every API group that has them.
pub(super) fn is_of_cluster(kind: &str) -> bool {
    kind.starts_with("Cluster")
        || matches!(
            kind,
            "CSIDriver"
                | "CustomResourceDefinition"
                | "GatewayClass"
                | "IngressClass"
                | "Namespace"
                | "Node"
                | "PersistentVolume"
                | "PriorityClass"
                | "RuntimeClass"
                | "StorageClass"
                | "VolumeSnapshotClass"
        )
}

/// True unless `optional: true`.
pub(super) fn need_of(at: &At<'_>) -> Need {
    if at.get("optional").value == &Value::Bool(true) { Need::Optional } else { Need::Blocks }
}
