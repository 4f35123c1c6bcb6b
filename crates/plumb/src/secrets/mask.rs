//! Secrets as they are shown: with stars instead of values.

use plumb_core::normalize::LAST_APPLIED;
use plumb_crd::settings::{ConfigData, Settings};
use plumb_kube::ClusterClient;
use serde_json::{Value, json};

use crate::context::Context;
use crate::kinds;

/// Shown instead of a value.
const STARS: &str = "++++++++";

/// The annotations of a Secret that are not shown, besides its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Masks {
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
            Err(_) => Self::All,
        }
    }

    fn of(data: &Value) -> Self {
        let entries = data.as_object().into_iter().flatten();
        let data: ConfigData =
            entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
        Self::Named(Settings::read(&data, &ConfigData::new()).0.mask_annotations)
    }

    /// A Secret with stars instead of its values and their copies; any other object unchanged.
    pub(crate) fn hide(&self, mut object: Value) -> Value {
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

    fn covers(&self, annotation: &str) -> bool {
        match self {
            Self::Named(names) => names.iter().any(|name| name == annotation),
            Self::All => true,
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
        let shown = Masks::Named(Vec::new()).hide(secret).to_string();
        assert!(!shown.contains("czNjcjN0") && shown.contains("++++"), "{shown}");
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
        assert_eq!(Masks::All.hide(map.clone()), map);
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
        assert_eq!(
            shown(&Masks::All, "Secret"),
            json!({"example.com/token": STARS, "example.com/team": STARS})
        );
    }
}
