//! Where a Secret has values. Everything counts as a value that is not known to be something else: what is at a wrong
//! place, or has a wrong shape, is in Git all the same.

use serde_json::{Map, Value};

use super::kept::{LAST_APPLIED, is_kept_metadata};
use crate::object::GroupVersionKind;

/// Is it a core Secret, or meant to be one? Case does not count, because `kind: secret` holds values, too.
pub fn has_secret_values(gvk: &GroupVersionKind) -> bool {
    gvk.group.is_empty() && gvk.kind.eq_ignore_ascii_case("Secret")
}

/// An annotation in which a tool keeps a copy of the whole object.
pub fn is_copy_annotation(name: &str) -> bool {
    name == LAST_APPLIED
        || name.ends_with("/last-applied-configuration")
        || matches!(
            name,
            "kapp.k14s.io/original"
                | "kapp.k14s.io/original-diff"
                | "objectset.rio.cattle.io/applied"
                | "banzaicloud.com/last-applied"
        )
}

/// Calls `change` with each value of a Secret, and with its place: a field of the object, and the key in it. Copies in
/// annotations are not among them.
pub fn change_secret_values(
    object: &mut Map<String, Value>,
    change: &mut dyn FnMut(&str, Option<&str>, &mut Value),
) {
    for (field, value) in object.iter_mut().filter(|(_, value)| !value.is_null()) {
        match (field.as_str(), value) {
            ("data" | "stringData", Value::Object(values)) => {
                let values = values.iter_mut().filter(|(_, value)| !value.is_null());
                values.for_each(|(key, value)| change(field, Some(key), value));
            }
            ("metadata", Value::Object(metadata)) => {
                let values = metadata.iter_mut().filter(|(name, value)| !is_metadata(name, value));
                values.for_each(|(name, value)| change(field, Some(name), value));
            }
            ("apiVersion" | "kind" | "type", Value::String(_)) | ("immutable", Value::Bool(_)) => {}
            (_, value) => change(field, None, value),
        }
    }
}

fn is_metadata(name: &str, value: &Value) -> bool {
    match name {
        "labels" | "annotations" => value.is_object() || value.is_null(),
        "name" | "namespace" | "generateName" | "finalizers" | "ownerReferences" => true,
        _ => value.is_null() || is_kept_metadata(name),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_known_is_a_value() {
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
            "metadata": {"name": "a", "uid": "1", "labels": {"a": "b"}, "stringData": {"a": "x"}},
            "data": {"a": "eA==", "none": null}, "stringData": {"b": "x"},
            "stringdata": {"c": "x"}, "password": "x", "nothing": null});
        let mut places = Vec::new();
        change_secret_values(secret.as_object_mut().unwrap(), &mut |field, key, value| {
            places.push(key.map_or_else(|| field.to_owned(), |key| format!("{field}.{key}")));
            *value = json!("*");
        });
        places.sort();
        assert_eq!(places, ["data.a", "metadata.stringData", "password", "stringData.b", "stringdata"]);
        assert!(!secret.to_string().contains("\"x\"") && !secret.to_string().contains("eA=="), "{secret}");

        for shape in [json!("x"), json!(["x"]), json!(7), json!(true)] {
            let mut secret = json!({"kind": "Secret", "data": shape, "stringData": shape, "type": [shape], "metadata":
                {"annotations": shape}});
            let mut n_values = 0;
            change_secret_values(secret.as_object_mut().unwrap(), &mut |_, _, _| n_values += 1);
            assert_eq!(n_values, 4, "{secret}");
        }
    }
}
