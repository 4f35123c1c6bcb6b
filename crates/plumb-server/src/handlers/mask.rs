//! Objects as they leave: values of Secrets and of sensitive fields are stars.

use std::collections::{BTreeMap, BTreeSet};

use plumb_api::Status;
use plumb_core::normalize::{change_secret_values, has_secret_values, is_copy_annotation};
use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_core::schema::SchemaSet;
use plumb_crd::Application;
use plumb_crd::settings::{ConfigData, Settings};
use serde_json::{Value, json};

use crate::call::Call;

/// Shown instead of a value.
const STARS: &str = "++++++++";

/// What is not shown.
pub(super) struct Masks {
    settings: Settings,
    /// Say which fields of custom resources are passwords.
    schemas: SchemaSet,
}

/// What is not shown of objects of these kinds. The cluster of the Application says which of their fields are passwords,
/// and so do definitions among the objects, which the cluster may not have yet.
pub(super) async fn masks_for(
    call: &Call,
    app: &Application,
    kinds: BTreeSet<GroupVersionKind>,
    definitions: &[&Manifest],
) -> Result<Masks, Status> {
    let schemas = call.leader()?.custom_schemas(app, kinds).await.map_err(Status::unavailable)?;
    let schemas = SchemaSet::clone(&schemas).with_crds(definitions.iter().copied());
    Ok(Masks { schemas, ..Masks::of(&call.shared.state.config()) })
}

/// The same for one object.
pub(super) async fn masks_for_one(
    call: &Call,
    app: &Application,
    object: &Manifest,
) -> Result<Masks, Status> {
    masks_for(call, app, BTreeSet::from([object.gvk()]), &[]).await
}

impl Masks {
    fn of(config: &BTreeMap<String, String>) -> Self {
        let (settings, _) = Settings::read(config, &ConfigData::new());
        Self { settings, schemas: SchemaSet::default() }
    }

    /// Can the text of an error about an object of this kind quote a value that is not shown?
    pub(super) fn covers(&self, gvk: &GroupVersionKind) -> bool {
        let is_named =
            |kind: &plumb_core::object::GroupKind| (&kind.group, &kind.kind) == (&gvk.group, &gvk.kind);
        has_secret_values(gvk)
            || self.settings.sensitive_fields.iter().any(|field| is_named(&field.kind))
            || self.schemas.has_sensitive_fields(gvk)
    }

    /// An object with stars instead of its sensitive values. Its own kind decides, not what the caller says.
    pub(super) fn hide(&self, object: Value) -> Value {
        self.hide_beside(object, None)
    }

    /// The same; a value that differs from the one of the other object has more stars, so that the difference shows.
    pub(super) fn hide_beside(&self, mut object: Value, other: Option<&Value>) -> Value {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let gvk = GroupVersionKind::from_api_version(&text("apiVersion"), &text("kind"));
        let mut is_sensitive = self.schemas.has_sensitive_fields(&gvk);
        self.schemas.change_sensitive(&gvk, &mut object, &mut |value| *value = json!(STARS));
        for field in &self.settings.sensitive_fields {
            if (&field.kind.group, &field.kind.kind) == (&gvk.group, &gvk.kind) {
                is_sensitive = true;
                field.change(&mut object, &mut |value| *value = json!(STARS));
            }
        }
        let is_secret = has_secret_values(&gvk);
        if let Some(fields) = object.as_object_mut().filter(|_| is_secret) {
            change_secret_values(fields, &mut |field, key, value| {
                let other = other.and_then(|other| other.get(field));
                let other = if let Some(key) = key { other.and_then(|other| other.get(key)) } else { other };
                let differs = other.is_some_and(|other| other != value);
                *value = if differs { json!(format!("{STARS}++++")) } else { json!(STARS) };
            });
        }
        let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        for (name, value) in annotations.into_iter().flatten() {
            let is_masked = is_secret && self.settings.mask_annotations.contains(name);
            if is_masked || ((is_secret || is_sensitive) && is_copy_annotation(name)) {
                *value = json!(STARS);
            }
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use plumb_core::normalize::LAST_APPLIED;
    use plumb_core::secrets::as_stored;

    use super::*;

    #[test]
    fn a_password_of_a_custom_resource_leaves_as_stars() {
        let schema =
            json!({"type": "object", "properties": {"word": {"type": "string", "format": "password"}}});
        let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "vaults.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"kind": "Vault", "plural": "vaults"}, "versions": [{"name": "v1", "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}}}]}});
        let crd = Manifest::new(crd).unwrap();
        let masks = Masks { schemas: SchemaSet::default().with_crds([&crd]), ..Masks::of(&BTreeMap::new()) };
        let vault = |kind: &str| {
            json!({"apiVersion": "example.com/v1", "kind": kind, "spec": {"word": "czNjcjN0"},
                "metadata": {"annotations": {LAST_APPLIED: "czNjcjN0"}}})
        };
        assert!(!masks.hide(vault("Vault")).to_string().contains("czNjcjN0"));
        assert!(masks.hide(vault("Other")).to_string().contains("czNjcjN0"));
        assert!(masks.covers(&GroupVersionKind::from_api_version("example.com/v1", "Vault")));
        assert!(masks.covers(&GroupVersionKind::from_api_version("v1", "Secret")));
        assert!(!masks.covers(&GroupVersionKind::from_api_version("v1", "ConfigMap")));
    }

    #[test]
    fn a_secret_leaves_without_its_values() {
        let secret = |value: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": value},
                "metadata": {"annotations": {LAST_APPLIED: value, "x": "y"}}})
        };
        let masks = Masks::of(&BTreeMap::new());
        let shown = masks.hide(secret("czNjcjN0")).to_string();
        assert!(!shown.contains("czNjcjN0") && shown.contains("\"x\":\"y\""), "{shown}");
        let same = masks.hide_beside(secret("a"), Some(&secret("a")));
        let other = masks.hide_beside(secret("a"), Some(&secret("b")));
        assert_ne!(same["data"], other["data"]);
    }

    #[test]
    fn a_secret_of_a_wrong_shape_leaves_without_its_values() {
        for fields in [
            json!({"stringdata": {"a": "s3cr3t"}}),
            json!({"data": "s3cr3t"}),
            json!({"stringData": ["s3cr3t"]}),
            json!({"metadata": {"annotations": {"objectset.rio.cattle.io/applied": "s3cr3t"}}}),
        ] {
            let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
            secret.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let masks = Masks::of(&BTreeMap::new());
            let shown = masks.hide(as_stored(secret)).to_string();
            assert!(!shown.contains("s3cr3t") && shown.contains(STARS), "{shown}");
        }
    }

    #[test]
    fn texts_of_a_secret_are_compared_as_they_are_stored() {
        let written =
            json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "x"}, "data": {"b": "eQ=="}});
        let stored = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA==", "b": "eQ=="}});
        assert_eq!(as_stored(written), stored);
        let masks = Masks::of(&BTreeMap::new());
        let other = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eg==", "b": "eQ=="}});
        let shown = masks.hide_beside(stored, Some(&other));
        assert_eq!(shown["data"], json!({"a": "++++++++++++", "b": "++++++++"}));
    }
}
