//! The entries of `managedFields`, and which of them own a place.

use compact_str::format_compact;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::list_index::ListIndexes;
use crate::object::{FieldPath, Manifest, Segment};
use crate::tracking::FIELD_MANAGER;

/// The record of a client-side apply, as an entry names it.
const LAST_APPLIED_ENTRY: &str = "f:kubectl.kubernetes.io/last-applied-configuration";

/// How an entry came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Anything else.
    Update,
}

/// One entry of `managedFields`.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Who.
    pub manager: &'a str,
    /// How.
    pub operation: Operation,
    /// Through which subresource, if any.
    pub subresource: Option<&'a str>,
    /// When the entry last changed, as written.
    pub time_text: Option<&'a str>,
    /// The version of the kind in whose terms the fields are named.
    pub api_version: Option<&'a str>,
    /// The `FieldsV1` tree.
    pub fields: &'a Map<String, Value>,
    lists: ListIndexes<'a>,
}

impl<'a> Entry<'a> {
    /// When the entry last changed.
    pub fn time(&self) -> Option<Timestamp> {
        self.time_text?.parse().ok()
    }

    /// What plumb (or Argo CD) applied server-side.
    pub fn is_ours(&self) -> bool {
        self.operation == Operation::Apply && self.manager == FIELD_MANAGER && self.subresource.is_none()
    }

    /// A client-side apply of an earlier time: what it owns and Git no longer has would live for ever.
    pub fn is_client_side_apply(&self) -> bool {
        self.operation == Operation::Update
            && self.subresource.is_none()
            && (matches!(self.manager, "kubectl-client-side-apply" | FIELD_MANAGER | "before-first-apply")
                || self.keeps_last_applied())
    }

    /// Does it own the record of a client-side apply? Its writer then uses client-side apply, under any name.
    fn keeps_last_applied(&self) -> bool {
        let way = ["f:metadata", "f:annotations"];
        let annotations = way.iter().try_fold(self.fields, |fields, name| fields.get(*name)?.as_object());
        annotations.is_some_and(|annotations| annotations.contains_key(LAST_APPLIED_ENTRY))
    }

    /// A server-side apply by another tool that delivers whole objects, as plumb does. What it applied before
    /// this app did, and Git does not have, is left over from it.
    pub fn is_other_delivery(&self) -> bool {
        self.operation == Operation::Apply
            && self.subresource.is_none()
            && matches!(
                self.manager,
                "kubectl"
                    | "kustomize-controller"
                    | "helm-controller"
                    | "helm"
                    | "fleet-agent"
                    | "kapp"
                    | "pulumi-kubernetes"
                    | "Terraform"
            )
    }

    /// Reads one entry; `None` if it is not understood.
    pub(super) fn read(value: &'a Value) -> Option<Self> {
        let text = |field: &str| value.get(field).and_then(Value::as_str);
        Some(Self {
            manager: text("manager")?,
            operation: if text("operation")? == "Apply" { Operation::Apply } else { Operation::Update },
            subresource: text("subresource").filter(|subresource| !subresource.is_empty()),
            time_text: text("time"),
            api_version: text("apiVersion"),
            fields: value.get("fieldsV1")?.as_object()?,
            lists: ListIndexes::default(),
        })
    }

    /// Does this entry name exactly this place, which the live object need not have? List items are identified by
    /// what the live object has, so a place inside an item that is not there is not found.
    pub fn names(&self, path: &FieldPath, live: &Value) -> bool {
        let mut fields = self.fields;
        let mut value = Some(live);
        for segment in path.segments() {
            let Some((child, inside)) = self.descend(fields, value, segment) else { return false };
            (fields, value) = (child, inside);
        }
        true
    }

    /// Does this entry name this field, and no other?
    pub fn names_only(&self, path: &FieldPath) -> bool {
        let mut fields = self.fields;
        for segment in path.segments() {
            let Segment::Field(name) = segment else { return false };
            let child = fields.get(format_compact!("f:{name}").as_str()).filter(|_| fields.len() == 1);
            let Some(child) = child.and_then(Value::as_object) else { return false };
            fields = child;
        }
        fields.is_empty()
    }

    /// Does this entry own the place, or something above it as a whole?
    pub fn owns(&self, path: &FieldPath, live: &Value) -> bool {
        // An empty node below the root is a leaf that covers what is inside; an empty root owns nothing.
        if self.fields.is_empty() {
            return false;
        }
        let mut fields = self.fields;
        let mut value = Some(live);
        for segment in path.segments() {
            if fields.is_empty() {
                return true;
            }
            let Some((child, inside)) = self.descend(fields, value, segment) else { return false };
            (fields, value) = (child, inside);
        }
        true
    }

    /// One step down: what the entry says about the child, and the child itself where the live object has it. Positions
    /// may come as fields, as JSON pointers write them.
    fn descend<'v>(
        &self,
        fields: &'a Map<String, Value>,
        value: Option<&'v Value>,
        segment: &Segment,
    ) -> Option<(&'a Map<String, Value>, Option<&'v Value>)> {
        let (child, inside) = match (value, segment) {
            (Some(Value::Array(items)), segment) => {
                let index = match segment {
                    Segment::Field(name) => name.parse().ok()?,
                    Segment::Index(index) => *index,
                };
                (self.item_of(fields, items, index), items.get(index))
            }
            (value, Segment::Field(name)) => (
                fields.get(format_compact!("f:{name}").as_str()),
                value.and_then(|value| value.get(name.as_str())),
            ),
            (_, Segment::Index(_)) => (None, None),
        };
        Some((child?.as_object()?, inside))
    }

    /// The subtree of the list item at `index`.
    fn item_of(&self, fields: &'a Map<String, Value>, items: &[Value], index: usize) -> Option<&'a Value> {
        let item = items.get(index)?;
        // Most lists are keyed by the names of their items alone, so the element can be spelled and looked up.
        if let Some(name) = item.get("name").and_then(Value::as_str).filter(|name| is_plain(name))
            && let Some(subtree) = fields.get(format_compact!("k:{{\"name\":\"{name}\"}}").as_str())
        {
            return Some(subtree);
        }
        if let Some(list) = self.lists.of(self.fields, fields) {
            return list.find(item, index);
        }
        let mut elements = fields.iter();
        elements.find(|(element, _)| element_is(element, item, index)).map(|(_, subtree)| subtree)
    }
}

/// Is it written in JSON as it is?
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Does a path element (`k:{"name":"c"}`, `v:"a"`, `i:0`) mean this list item? A key field that the live item
/// lacks may have its default value, so it does not exclude a match; an item without any key matches empty keys.
pub(super) fn element_is(element: &str, item: &Value, index: usize) -> bool {
    if let Some(keys) = element.strip_prefix("k:") {
        let Ok(Value::Object(keys)) = serde_json::from_str::<Value>(keys) else { return false };
        let is_bare = item.as_object().is_some_and(Map::is_empty);
        keys.iter().all(|(name, key)| item.get(name).is_none_or(|value| value == key))
            && (keys.keys().any(|name| item.get(name).is_some())
                || (is_bare && keys.values().all(|key| key == "")))
    } else if let Some(value) = element.strip_prefix("v:") {
        serde_json::from_str::<Value>(value).is_ok_and(|value| value == *item)
    } else {
        element.strip_prefix("i:").and_then(|text| text.parse::<usize>().ok()) == Some(index)
    }
}

/// All entries of one live object.
#[derive(Clone, Debug)]
pub struct Owners<'a> {
    live: &'a Value,
    entries: Vec<Entry<'a>>,
}

impl<'a> Owners<'a> {
    /// Reads `metadata.managedFields`.
    pub fn of(live: &'a Manifest) -> Self {
        Self::of_value(live.value())
    }

    /// The same of an object that need not be a valid manifest.
    pub(super) fn of_value(value: &'a Value) -> Self {
        let entries = value.get("metadata").and_then(|metadata| metadata.get("managedFields"));
        let entries =
            entries.and_then(Value::as_array).into_iter().flatten().filter_map(Entry::read).collect();
        Self { live: value, entries }
    }

    /// The entries in their original order.
    pub fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }

    /// No field has an owner: `managedFields` was removed, or never written.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What plumb (or Argo CD) applied server-side.
    pub fn ours(&self) -> Option<&Entry<'a>> {
        self.entries.iter().find(|entry| entry.is_ours())
    }

    /// The entries that own a place of the live object.
    pub fn of_place(&self, path: &FieldPath) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter().filter(move |entry| entry.owns(path, self.live))
    }

    /// The live object.
    pub fn live(&self) -> &'a Value {
        self.live
    }
}
