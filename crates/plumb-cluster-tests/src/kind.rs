//! One kind of the API server.

use std::sync::Arc;

use plumb_core::object::GroupVersionKind;
use serde_json::Value;

/// A kind of objects.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// The name in paths.
    pub plural: String,
    /// True if its objects are in namespaces.
    pub namespaced: bool,
    /// `components.schemas` of its document.
    pub schemas: Arc<Value>,
    /// The name of its own schema in that document.
    pub schema: String,
}

impl Kind {
    /// `apps/v1 Deployment`.
    pub fn name(&self) -> String {
        format!("{} {}", self.gvk.api_version(), self.gvk.kind)
    }

    /// A name for an object of this kind. One object may be served in several versions and groups, so the name contains
    /// them: tests of two kinds must not use the same object.
    pub fn object_name(&self, prefix: &str) -> String {
        let group: String = self.gvk.group.chars().take_while(|c| *c != '.').take(8).collect();
        let words = [prefix, &self.gvk.kind, &group, &self.gvk.version];
        let words: Vec<String> =
            words.iter().filter(|word| !word.is_empty()).map(|word| word.to_lowercase()).collect();
        words.join("-")
    }

    /// True for a kind of Kubernetes itself.
    pub fn is_built_in(&self) -> bool {
        self.schema.starts_with("io.k8s.")
    }

    /// The path of an object of this kind.
    pub fn path_of(&self, object: &Value) -> String {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        format!("{}/{name}", self.collection_of(object))
    }

    /// The path of the collection in the namespace of this object.
    pub fn collection_of(&self, object: &Value) -> String {
        let prefix = if self.gvk.group.is_empty() {
            format!("/api/{}", self.gvk.version)
        } else {
            format!("/apis/{}/{}", self.gvk.group, self.gvk.version)
        };
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let namespace = if self.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
        format!("{prefix}{namespace}/{}", self.plural)
    }
}
