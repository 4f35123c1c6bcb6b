//! Secrets, and custom resources with sensitive fields, as they are shown: with stars instead of values.

use plumb_core::normalize::LAST_APPLIED;
use plumb_core::object::GroupVersionKind;
use plumb_core::schema::SensitiveField;
use plumb_crd::settings::{ConfigData, Settings};
use plumb_kube::ClusterClient;
use serde_json::{Value, json};

use crate::context::Context;
use crate::kinds;

/// Shown instead of a value.
const STARS: &str = "++++++++";

/// What is not shown: values of Secrets, and what the settings say besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Masks {
    annotations: MaskedAnnotations,
    fields: Vec<SensitiveField>,
}

/// The annotations of a Secret that are not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
enum MaskedAnnotations {
    /// The annotations that `resource.sensitive.mask.annotations` names.
    Named(Vec<String>),
    /// All annotations.
    All,
}

impl Masks {
    /// From the settings. If they cannot be read, all annotations are hidden.
    pub(crate) async fn read(context: &Context, client: &ClusterClient) -> Self {
        match client.get_at(&kinds::config_map(), Some(context.namespace()), "argocd-cm").await {
            Ok(map) => Self::of(map.as_ref().map_or(&Value::Null, |map| &map.value()["data"])),
            Err(_) => Self { annotations: MaskedAnnotations::All, ..Self::of(&Value::Null) },
        }
    }

    fn of(data: &Value) -> Self {
        let entries = data.as_object().into_iter().flatten();
        let data: ConfigData =
            entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
        let (settings, _) = Settings::read(&data, &ConfigData::new());
        Self {
            annotations: MaskedAnnotations::Named(settings.mask_annotations),
            fields: settings.sensitive_fields,
        }
    }

    /// An object with stars instead of its sensitive values and their copies.
    pub(crate) fn hide(&self, mut object: Value) -> Value {
        self.hide_fields(&mut object);
        let is_secret =
            object.get("kind") == Some(&json!("Secret")) && object.get("apiVersion") == Some(&json!("v1"));
        if !is_secret {
            return object;
        }
        for field in ["data", "stringData"] {
            let values = object.get_mut(field).and_then(Value::as_object_mut);
            values.into_iter().flatten().for_each(|(_, value)| *value = json!(STARS));
        }
        let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        for (name, value) in annotations.into_iter().flatten() {
            if name == LAST_APPLIED || self.covers(name) {
                *value = json!(STARS);
            }
        }
        object
    }

    fn hide_fields(&self, object: &mut Value) {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let gvk = GroupVersionKind::from_api_version(&text("apiVersion"), &text("kind"));
        let mut is_sensitive = false;
        for field in &self.fields {
            if (&field.kind.group, &field.kind.kind) == (&gvk.group, &gvk.kind) {
                is_sensitive = true;
                field.change(object, &mut |value| *value = json!(STARS));
            }
        }
        let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        if let Some(copy) = annotations.and_then(|all| all.get_mut(LAST_APPLIED)).filter(|_| is_sensitive) {
            *copy = json!(STARS);
        }
    }

    fn covers(&self, annotation: &str) -> bool {
        match &self.annotations {
            MaskedAnnotations::Named(names) => names.iter().any(|name| name == annotation),
            MaskedAnnotations::All => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_stars() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "czNjcjN0"}, "metadata":
            {"annotations": {LAST_APPLIED: "{\"data\":{\"a\":\"czNjcjN0\"}}"}}});
        let shown = Masks::of(&Value::Null).hide(secret).to_string();
        assert!(!shown.contains("czNjcjN0") && shown.contains("++++"), "{shown}");
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
        assert_eq!(Masks::of(&Value::Null).hide(map.clone()), map);
    }

    #[test]
    fn sensitive_fields_of_custom_resources_have_stars() {
        let setting = "example.com/Database: [/spec/users/*/password]";
        let masks = Masks::of(&json!({"resource.sensitive.mask.fields": setting}));
        let object = json!({"apiVersion": "example.com/v1", "kind": "Database", "spec":
            {"users": [{"name": "a", "password": "s3cr3t"}]},
            "metadata": {"annotations": {LAST_APPLIED: "{\"spec\":{\"users\":[{\"password\":\"s3cr3t\"}]}}"}}});
        let shown = masks.hide(object);
        assert!(!shown.to_string().contains("s3cr3t"), "{shown}");
        assert_eq!(shown["spec"]["users"][0]["name"], "a");
    }

    #[test]
    fn annotations_of_secrets_have_stars_where_the_settings_say_so() {
        let annotations = json!({"example.com/token": "s3cr3t", "example.com/team": "a"});
        let shown = |masks: &Masks, kind: &str| {
            let object =
                json!({"apiVersion": "v1", "kind": kind, "metadata": {"annotations": annotations.clone()}});
            masks.hide(object)["metadata"]["annotations"].clone()
        };
        let named = Masks::of(&json!({"resource.sensitive.mask.annotations": "example.com/token, other"}));
        assert_eq!(shown(&named, "Secret"), json!({"example.com/token": STARS, "example.com/team": "a"}));
        assert_eq!(shown(&named, "ConfigMap"), annotations);
        assert_eq!(shown(&Masks::of(&Value::Null), "Secret"), annotations);
        let all = Masks { annotations: MaskedAnnotations::All, fields: Vec::new() };
        assert_eq!(shown(&all, "Secret"), json!({"example.com/token": STARS, "example.com/team": STARS}));
    }
}
