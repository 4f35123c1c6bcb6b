//! Marking an object that exists as an app's own, without any other change.

use serde_json::{Map, Value, json};

use super::{ADOPTED_ANNOTATION, TrackedBy, TrackingSettings, is_crd, mark, tracked_by};
use crate::object::Manifest;

/// How an existing object becomes an app's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adoption {
    /// By this merge patch: the tracking mark, for exactly this version of the object.
    Mark(Value),
    /// It is the app's own already.
    Done,
    /// Another app owns it.
    OwnedBy(String),
}

/// How an app (its instance name) adopts a live object. `is_app` tells whether an app of this instance name exists: the
/// mark of one that is gone holds nobody back. `default_namespace` is the destination's.
pub fn adoption(
    live: &Manifest,
    app: &str,
    default_namespace: Option<&str>,
    settings: &TrackingSettings,
    is_app: impl Fn(&str) -> bool,
) -> Adoption {
    match tracked_by(live, app, settings) {
        TrackedBy::Ours | TrackedBy::AppliedCrd => return Adoption::Done,
        TrackedBy::Other { app } if is_app(&app) => return Adoption::OwnedBy(app),
        TrackedBy::Other { .. } | TrackedBy::Copied { .. } | TrackedBy::NoApp => {}
    }
    // CRDs carry no mark: that plumb wrote one makes it adopted. The annotation is what plumb writes.
    let marked = if is_crd(live) {
        live.clone().with_annotation(ADOPTED_ANNOTATION, app)
    } else {
        mark(live.clone(), app, default_namespace, settings)
    };
    let mut metadata = Map::new();
    for field in ["annotations", "labels"] {
        let of = |manifest: &Manifest| manifest.value().pointer(&format!("/metadata/{field}")).cloned();
        let (before, after) = (of(live).unwrap_or_default(), of(&marked).unwrap_or_default());
        let changed = changed(before.as_object(), after.as_object());
        if !changed.is_empty() {
            metadata.insert(field.to_owned(), Value::Object(changed));
        }
    }
    metadata.insert("resourceVersion".to_owned(), json!(live.resource_version()));
    metadata.insert("uid".to_owned(), json!(live.uid()));
    Adoption::Mark(json!({ "metadata": metadata }))
}

/// A merge patch from one map to another.
fn changed(before: Option<&Map<String, Value>>, after: Option<&Map<String, Value>>) -> Map<String, Value> {
    let value = |map: Option<&Map<String, Value>>, name: &String| map.and_then(|map| map.get(name)).cloned();
    let names = before.into_iter().chain(after).flat_map(Map::keys);
    names
        .filter(|name| value(before, name) != value(after, name))
        .map(|name| (name.clone(), value(after, name).unwrap_or_default()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracking::TrackingMethod;

    fn live(kind: &str, annotations: &Value) -> Manifest {
        let api_version = if kind == "CustomResourceDefinition" { "apiextensions.k8s.io/v1" } else { "v1" };
        Manifest::new(
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "web",
            "uid": "u", "resourceVersion": "7", "annotations": annotations}}),
        )
        .expect("an object")
    }

    fn adopted(live: &Manifest, settings: &TrackingSettings) -> Adoption {
        adoption(live, "shop", Some("web"), settings, |app| app == "other")
    }

    #[test]
    fn an_object_that_no_app_owns_gets_the_mark_and_nothing_else() {
        let settings = TrackingSettings::default();
        let expected = json!({"metadata": {"resourceVersion": "7", "uid": "u",
            "annotations": {"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:web/a"}}});
        assert_eq!(
            adopted(&live("ConfigMap", &json!({"b": "c"})), &settings),
            Adoption::Mark(expected.clone())
        );
        let of_gone = json!({"argocd.argoproj.io/tracking-id": "gone:/ConfigMap:web/a"});
        assert_eq!(adopted(&live("ConfigMap", &of_gone), &settings), Adoption::Mark(expected));
        let by_label = TrackingSettings { method: TrackingMethod::Label, ..TrackingSettings::default() };
        let expected = json!({"metadata": {"resourceVersion": "7", "uid": "u",
            "labels": {"app.kubernetes.io/instance": "shop"}}});
        assert_eq!(adopted(&live("ConfigMap", &json!({})), &by_label), Adoption::Mark(expected));
    }

    #[test]
    fn an_object_of_another_app_is_left_alone() {
        let settings = TrackingSettings::default();
        let of = |app: &str| json!({"argocd.argoproj.io/tracking-id": format!("{app}:/ConfigMap:web/a")});
        assert_eq!(
            adopted(&live("ConfigMap", &of("other")), &settings),
            Adoption::OwnedBy("other".to_owned())
        );
        assert_eq!(adopted(&live("ConfigMap", &of("shop")), &settings), Adoption::Done);
    }

    /// An engine that prunes by marks would delete a marked CRD, and every custom object with it.
    #[test]
    fn a_crd_gets_no_tracking_mark() {
        let expected = json!({"metadata": {"resourceVersion": "7", "uid": "u",
            "annotations": {"plumb.dev/adopted-by": "shop"}}});
        let crd = live("CustomResourceDefinition", &json!({}));
        assert_eq!(adopted(&crd, &TrackingSettings::default()), Adoption::Mark(expected));
    }
}
