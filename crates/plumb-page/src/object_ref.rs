//! One object, as the page names it.

use plumb_core::object::ObjectKey;
use serde_json::{Value, json};

/// Group, kind, namespace and name, as the page reads them.
pub(crate) fn object_ref(key: &ObjectKey) -> Value {
    json!({"group": key.group, "kind": key.kind, "namespace": key.namespace_or_empty(), "name": key.name})
}
