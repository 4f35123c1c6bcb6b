//! What should not be in Git.

use serde_json::Value;

use crate::desired::DesiredSet;
use crate::object::{Manifest, ObjectKey};

/// Secrets that Git has with their values. One without values is filled by a controller.
pub fn plain_secrets(desired: &DesiredSet) -> Vec<ObjectKey> {
    let has_values = |manifest: &Manifest| {
        let of = |field: &str| manifest.value().get(field).and_then(Value::as_object);
        ["data", "stringData"].into_iter().filter_map(of).any(|values| !values.is_empty())
    };
    let is_plain = |key: &ObjectKey, manifest: &Manifest| {
        key.group.is_empty() && key.kind == "Secret" && has_values(manifest)
    };
    let objects = desired.objects.iter();
    objects.filter(|(key, object)| is_plain(key, &object.manifest)).map(|(key, _)| key.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::{DesiredContext, KindFilter, RenderedManifest, Scopes, build};
    use crate::tracking::TrackingSettings;
    use serde_json::json;

    #[test]
    fn only_values_in_git_are_named() {
        let secret = |name: &str, rest: &Value| {
            let mut value = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
            if let (Some(value), Some(rest)) = (value.as_object_mut(), rest.as_object()) {
                value.extend(rest.clone());
            }
            RenderedManifest { value, origin: None }
        };
        let sealed = RenderedManifest {
            value: json!({"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret", "metadata": {"name": "s"},
                "spec": {"encryptedData": {"a": "b"}}}),
            origin: None,
        };
        let rendered = vec![
            secret("plain", &json!({"data": {"a": "b"}})),
            secret("text", &json!({"stringData": {"a": "b"}})),
            secret("empty", &json!({"data": {}})),
            secret("token", &json!({"type": "kubernetes.io/service-account-token"})),
            sealed,
        ];
        let desired = build(
            rendered,
            &DesiredContext {
                app: "shop",
                destination_namespace: Some("web"),
                destination_server: "",
                scopes: &Scopes::built_in(),
                tracking: &TrackingSettings::default(),
                filter: &KindFilter::default(),
            },
        );
        let names: Vec<String> = plain_secrets(&desired).into_iter().map(|key| key.name.clone()).collect();
        assert_eq!(names, ["plain", "text"]);
    }
}
