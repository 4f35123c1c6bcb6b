//! Whether anyone but plumb wrote an object.

use serde_json::Value;

use crate::object::Manifest;
use crate::tracking::FIELD_MANAGER;

/// True if a writer other than plumb's apply is on record, subresources left out, or if the object has no record at all.
pub fn has_other_writers(live: &Manifest) -> bool {
    let managers = live.value().pointer("/metadata/managedFields").and_then(Value::as_array);
    managers.is_none_or(|entries| {
        entries.iter().any(|entry| {
            entry["subresource"].as_str().is_none_or(str::is_empty)
                && !(entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply")
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_writers_of_the_object_itself_count() {
        let check = |managed: serde_json::Value, expected: bool| {
            let metadata = json!({"name": "web", "managedFields": managed});
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            assert_eq!(has_other_writers(&Manifest::new(object).unwrap()), expected, "{managed}");
        };
        let ours = json!({"manager": FIELD_MANAGER, "operation": "Apply"});
        check(json!([ours]), false);
        check(json!([ours, {"manager": "kubelet", "operation": "Update", "subresource": "status"}]), false);
        check(json!([ours, {"manager": "kubectl-edit", "operation": "Update"}]), true);
        check(json!([{"manager": FIELD_MANAGER, "operation": "Update"}]), true);
        check(json!(null), true);
    }
}
