//! Data that would be lost with an object.

use serde_json::Value;

use crate::object::{GroupKind, Manifest};

/// Describes the data that deleting this object would destroy: the claims in a namespace, the instances of a CRD.
/// `claims` counts the `PersistentVolumeClaims` of a namespace; `instances` counts the objects of a kind.
pub fn data_lost_with(
    live: &Manifest,
    claims: impl FnOnce(&str) -> usize,
    instances: impl FnOnce(&GroupKind) -> Option<usize>,
) -> Option<String> {
    match (live.group(), live.kind()) {
        ("", "Namespace") => {
            let n_claims = claims(live.name()?);
            (n_claims > 0).then(|| format!("{n_claims} volume claims in the namespace"))
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let text = |pointer: &str| live.value().pointer(pointer).and_then(Value::as_str);
            let kind = GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?);
            let n_instances = instances(&kind)?;
            (n_instances > 0).then(|| format!("{n_instances} {} objects", kind.kind))
        }
        _ => None,
    }
}
