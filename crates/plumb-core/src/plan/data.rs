//! Data that would be lost with an object.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::object::{GroupKind, Manifest, ObjectKey};

/// How many apps a message names.
const MOST_NAMED: usize = 3;

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

/// Describes what other apps lose with a namespace. `inside` are the objects in it that are not this app's, each with the
/// app that tracks it, if that app exists and is not being deleted itself. An Application counts without such an app.
pub fn others_lose_with(inside: &[(ObjectKey, Option<String>)]) -> Option<String> {
    let apps: BTreeSet<&str> = inside.iter().filter_map(|(_, app)| app.as_deref()).collect();
    let n_objects = inside.iter().filter(|(_, app)| app.is_some()).count();
    let n_applications = inside.iter().filter(|(key, app)| app.is_none() && is_application(key)).count();
    let named: Vec<&str> = apps.iter().take(MOST_NAMED).copied().collect();
    let more = if apps.len() > MOST_NAMED { " …" } else { "" };
    let objects = (n_objects > 0).then(|| format!("{n_objects} objects of {}{more}", named.join(", ")));
    let applications = (n_applications > 0).then(|| format!("{n_applications} Applications"));
    let parts: Vec<String> = objects.into_iter().chain(applications).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn is_application(key: &ObjectKey) -> bool {
    key.group == "argoproj.io" && matches!(key.kind.as_str(), "Application" | "ApplicationSet")
}

/// Why no app ever deletes this object, if so. `control_plane` is plumb's own namespace, if the object is in plumb's cluster.
pub fn never_deleted(key: &ObjectKey, control_plane: Option<&str>) -> Option<&'static str> {
    let is_namespace = key.group.is_empty() && key.kind == "Namespace";
    match key.name.as_str() {
        _ if !is_namespace => None,
        "default" | "kube-system" | "kube-public" | "kube-node-lease" => {
            Some("the namespace is Kubernetes' own")
        }
        name if control_plane == Some(name) => Some("plumb itself runs in the namespace"),
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

    #[test]
    fn others_lose_their_objects_and_applications_with_a_namespace() {
        let inside = |lines: &[(&str, &str)]| -> Vec<(ObjectKey, Option<String>)> {
            let key = |kind: &str| match kind {
                "Application" | "ApplicationSet" => {
                    ObjectKey::new("argoproj.io", kind, Some("a".to_owned()), "x")
                }
                _ => ObjectKey::new("", kind, Some("a".to_owned()), "x"),
            };
            lines
                .iter()
                .map(|(kind, app)| (key(kind), (!app.is_empty()).then(|| (*app).to_owned())))
                .collect()
        };
        for (lines, expected) in [
            (vec![], None),
            (vec![("ConfigMap", ""), ("Secret", "")], None),
            (vec![("ConfigMap", "shop"), ("Secret", "shop")], Some("2 objects of shop")),
            (vec![("ConfigMap", "b"), ("Secret", "a")], Some("2 objects of a, b")),
            (vec![("Pod", "a"), ("Pod", "b"), ("Pod", "c"), ("Pod", "d")], Some("4 objects of a, b, c …")),
            (vec![("Application", ""), ("ApplicationSet", "")], Some("2 Applications")),
            (vec![("Application", "root"), ("Application", "")], Some("1 objects of root, 1 Applications")),
        ] {
            assert_eq!(others_lose_with(&inside(&lines)).as_deref(), expected, "{lines:?}");
        }
    }

    #[test]
    fn namespaces_of_the_control_planes_are_never_deleted() {
        for (key, control_plane, expected) in [
            (ObjectKey::of_namespace("argocd"), Some("argocd"), true),
            (ObjectKey::of_namespace("argocd"), None, false),
            (ObjectKey::of_namespace("shop"), Some("argocd"), false),
            (ObjectKey::of_namespace("kube-system"), None, true),
            (ObjectKey::of_namespace("default"), Some("argocd"), true),
            (ObjectKey::new("", "ConfigMap", Some("kube-system".to_owned()), "kube-system"), None, false),
            (ObjectKey::new("example.com", "Namespace", None, "kube-system"), None, false),
        ] {
            assert_eq!(never_deleted(&key, control_plane).is_some(), expected, "{key} {control_plane:?}");
        }
    }
}
