//! Secrets, and custom resources with sensitive fields, as they are shown: with stars instead of values.

use std::collections::BTreeSet;

use plumb_core::normalize::{change_secret_values, has_secret_values, is_copy_annotation};
use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_core::schema::{SchemaSet, SensitiveField};
use plumb_crd::settings::{ConfigData, Settings};
use plumb_kube::ClusterClient;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::CommandError;
use crate::kinds;

/// Shown instead of a value.
const STARS: &str = "++++++++";

/// What is not shown: values of Secrets, and what the settings say besides.
#[derive(Clone)]
pub(crate) struct Masks {
    annotations: MaskedAnnotations,
    fields: Vec<SensitiveField>,
    /// Of kinds whose schema may mark fields as passwords.
    schemas: SchemaSet,
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
    /// From the settings. If they cannot be read, all annotations are hidden. A server has hidden what its settings name
    /// before it answers, and does not show those settings.
    pub(crate) async fn read(context: &Context, client: &ClusterClient) -> Self {
        if context.door().is_some() {
            return Self::of(&Value::Null);
        }
        match client.get_at(&kinds::config_map(), Some(context.namespace()), "argocd-cm").await {
            Ok(map) => Self::of(map.as_ref().map_or(&Value::Null, |map| &map.value()["data"])),
            Err(_) => Self { annotations: MaskedAnnotations::All, ..Self::of(&Value::Null) },
        }
    }

    /// The same, with what the schemas of these objects' kinds mark as passwords. Without a schema nothing can be shown
    /// with certainty, so a schema that cannot be read is an error.
    pub(crate) async fn with_passwords<'objects>(
        mut self,
        client: &ClusterClient,
        objects: impl IntoIterator<Item = &'objects Manifest>,
    ) -> Result<Self, CommandError> {
        // Kubernetes' own kinds have no such field.
        let is_custom =
            |object: &&Manifest| object.group().contains('.') && !object.group().ends_with(".k8s.io");
        let versions: BTreeSet<&str> =
            objects.into_iter().filter(is_custom).map(Manifest::api_version).collect();
        for version in versions {
            let document = client.fetch_schema(version).await;
            let document = document
                .map_err(|error| CommandError::api(format!("read the schema of {version}"), error))?;
            if let Some(document) = document {
                self.schemas = self.schemas.with_openapi(&document.json, |_| true);
            }
        }
        Ok(self)
    }

    fn of(data: &Value) -> Self {
        let entries = data.as_object().into_iter().flatten();
        let data: ConfigData =
            entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
        let (settings, _) = Settings::read(&data, &ConfigData::new());
        Self {
            annotations: MaskedAnnotations::Named(settings.mask_annotations),
            fields: settings.sensitive_fields,
            schemas: SchemaSet::default(),
        }
    }

    /// An object with stars instead of its sensitive values and their copies.
    pub(crate) fn hide(&self, mut object: Value) -> Value {
        self.hide_fields(&mut object);
        if !has_secret_values(&gvk_of(&object)) {
            return object;
        }
        if let Some(fields) = object.as_object_mut() {
            change_secret_values(fields, &mut |_, _, value| *value = json!(STARS));
        }
        let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        for (name, value) in annotations.into_iter().flatten() {
            if is_copy_annotation(name) || self.covers(name) {
                *value = json!(STARS);
            }
        }
        object
    }

    fn hide_fields(&self, object: &mut Value) {
        let gvk = gvk_of(object);
        let mut is_sensitive = self.schemas.has_sensitive_fields(&gvk);
        self.schemas.change_sensitive(&gvk, object, &mut |value| *value = json!(STARS));
        for field in &self.fields {
            if (&field.kind.group, &field.kind.kind) == (&gvk.group, &gvk.kind) {
                is_sensitive = true;
                field.change(object, &mut |value| *value = json!(STARS));
            }
        }
        if !is_sensitive {
            return;
        }
        let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        let copies = annotations.into_iter().flatten().filter(|(name, _)| is_copy_annotation(name));
        copies.for_each(|(_, copy)| *copy = json!(STARS));
    }

    fn covers(&self, annotation: &str) -> bool {
        match &self.annotations {
            MaskedAnnotations::Named(names) => names.iter().any(|name| name == annotation),
            MaskedAnnotations::All => true,
        }
    }
}

fn gvk_of(object: &Value) -> GroupVersionKind {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    GroupVersionKind::from_api_version(text("apiVersion"), text("kind"))
}

#[cfg(test)]
mod tests {
    use plumb_core::normalize::LAST_APPLIED;

    use super::*;

    #[test]
    fn a_password_of_a_custom_resource_has_stars() {
        let schema = json!({"components": {"schemas": {"io.example.v1.Login": {
            "type": "object",
            "x-kubernetes-group-version-kind": [{"group": "example.io", "version": "v1", "kind": "Login"}],
            "properties": {"metadata": {"type": "object"}, "spec": {"type": "object", "properties": {
                "user": {"type": "string"}, "word": {"type": "string", "format": "password"}}}}}}}});
        let mut masks = Masks::of(&Value::Null);
        let login = json!({"apiVersion": "example.io/v1", "kind": "Login", "spec": {"user": "ann", "word": "hunter2"},
            "metadata": {"annotations": {LAST_APPLIED: "{\"spec\":{\"word\":\"hunter2\"}}"}}});
        assert_eq!(masks.hide(login.clone()), login);
        masks.schemas = masks.schemas.with_document(&schema);
        let shown = masks.hide(login).to_string();
        assert!(!shown.contains("hunter2") && shown.contains("ann"), "{shown}");
    }

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
    fn a_secret_of_a_wrong_shape_has_stars() {
        for fields in [
            json!({"stringdata": {"a": "s3cr3t"}}),
            json!({"data": "s3cr3t"}),
            json!({"stringData": ["s3cr3t"]}),
            json!({"a": "s3cr3t", "kind": "secret"}),
            json!({"metadata": {"name": "a", "stringData": {"a": "s3cr3t"}}}),
            json!({"metadata": {"annotations": {"kapp.k14s.io/original": "s3cr3t"}}}),
        ] {
            let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
            secret.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let shown = Masks::of(&Value::Null).hide(secret).to_string();
            assert!(!shown.contains("s3cr3t") && shown.contains(STARS), "{shown}");
        }
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
        let all = Masks { annotations: MaskedAnnotations::All, ..Masks::of(&Value::Null) };
        assert_eq!(shown(&all, "Secret"), json!({"example.com/token": STARS, "example.com/team": STARS}));
    }
}
