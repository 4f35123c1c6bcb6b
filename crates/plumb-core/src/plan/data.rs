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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn namespaces_hold_claims_and_definitions_hold_instances() {
        let definition = json!({"group": "example.com", "names": {"kind": "Widget"}});
        let (crd, none) = ("apiextensions.k8s.io/v1 CustomResourceDefinition", json!({}));
        for (kind, spec, n_claims, n_instances, expected) in [
            ("v1 Namespace", &none, 2, Some(3), Some("2 volume claims in the namespace")),
            ("v1 Namespace", &none, 0, Some(3), None),
            (crd, &definition, 2, Some(3), Some("3 Widget objects")),
            (crd, &definition, 2, Some(0), None),
            // The instances cannot be counted.
            (crd, &definition, 2, None, None),
            (crd, &none, 2, Some(3), None),
            // Other kinds hold no data, or are known by their kind.
            ("v1 ConfigMap", &none, 2, Some(3), None),
            ("v1 PersistentVolumeClaim", &none, 2, Some(3), None),
            // Other groups have kinds of the same names.
            ("example.com/v1 Namespace", &none, 2, Some(3), None),
            ("example.com/v1 CustomResourceDefinition", &definition, 2, Some(3), None),
        ] {
            let case = format!("{kind} {spec} {n_claims} {n_instances:?}");
            let (api_version, kind) = kind.split_once(' ').unwrap();
            let metadata = json!({"name": "shop"});
            let live = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec});
            let claims = |namespace: &str| {
                assert_eq!(namespace, "shop");
                n_claims
            };
            let instances = |kind: &GroupKind| {
                assert_eq!(*kind, GroupKind::new("example.com", "Widget"));
                n_instances
            };
            let lost = data_lost_with(&Manifest::new(live).unwrap(), claims, instances);
            assert_eq!(lost.as_deref(), expected, "{case}");
        }
    }
}
