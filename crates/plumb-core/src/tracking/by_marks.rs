//! How objects are marked, where no setting says it: the marks tell.

use std::collections::BTreeMap;

use super::{INSTALLATION_ANNOTATION, TRACKING_ANNOTATION, TrackingId, TrackingMethod};
use crate::object::Manifest;

/// The method by which these objects are marked. Without the setting, Argo CD before 3.0 tracks by label and later ones by
/// annotation. It is the label if no object has the annotation, and labels name apps.
pub fn method_by_marks<'objects>(
    objects: impl IntoIterator<Item = &'objects Manifest>,
    label_key: &str,
    is_app: impl Fn(&str) -> bool,
) -> TrackingMethod {
    let mut method = TrackingMethod::Annotation;
    for object in objects {
        if object.annotation(TRACKING_ANNOTATION).is_some() {
            return TrackingMethod::Annotation;
        }
        if object.label(label_key).is_some_and(&is_app) {
            method = TrackingMethod::Label;
        }
    }
    method
}

/// The installation that marked most of the objects of these apps; `None` if most marks name none.
pub fn installation_by_marks<'objects>(
    objects: impl IntoIterator<Item = &'objects Manifest>,
    is_app: impl Fn(&str) -> bool,
) -> Option<String> {
    let mut marks: BTreeMap<&str, usize> = BTreeMap::new();
    for object in objects {
        let id: Option<TrackingId> =
            object.annotation(TRACKING_ANNOTATION).and_then(|mark| mark.parse().ok());
        if id.is_some_and(|id| is_app(&id.app)) {
            *marks.entry(object.annotation(INSTALLATION_ANNOTATION).unwrap_or_default()).or_default() += 1;
        }
    }
    let (installation, _) = marks.into_iter().rev().max_by_key(|(_, n_objects)| *n_objects)?;
    (!installation.is_empty()).then(|| installation.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(labels: &Value, annotations: &Value) -> Manifest {
        let metadata = json!({"name": "a", "labels": labels, "annotations": annotations});
        Manifest::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
            .expect("an object")
    }

    #[test]
    fn marks_tell_the_method() {
        let method = |objects: &[Manifest]| {
            method_by_marks(objects, "app.kubernetes.io/instance", |name| name == "shop")
        };
        let labelled = object(&json!({"app.kubernetes.io/instance": "shop"}), &json!({}));
        let of_a_release = object(&json!({"app.kubernetes.io/instance": "release"}), &json!({}));
        let annotated = object(&json!({}), &json!({TRACKING_ANNOTATION: "shop:/ConfigMap:team/a"}));
        assert_eq!(method(std::slice::from_ref(&labelled)), TrackingMethod::Label);
        assert_eq!(method(&[of_a_release]), TrackingMethod::Annotation);
        assert_eq!(method(&[labelled, annotated]), TrackingMethod::Annotation);
        assert_eq!(method(&[]), TrackingMethod::Annotation);
    }

    #[test]
    fn marks_tell_the_installation() {
        let marked = |app: &str, installation: Value| {
            let mark = format!("{app}:/ConfigMap:team/a");
            object(&json!({}), &json!({TRACKING_ANNOTATION: mark, INSTALLATION_ANNOTATION: installation}))
        };
        let found = |objects: &[Manifest]| installation_by_marks(objects, |name| name == "shop");
        let (ours, foreign) = (marked("shop", json!("east")), marked("other", json!("west")));
        assert_eq!(found(&[foreign.clone(), foreign.clone(), ours.clone()]).as_deref(), Some("east"));
        assert_eq!(found(&[foreign]), None);
        let plain = marked("shop", Value::Null);
        assert_eq!(found(&[plain.clone(), plain, ours]), None);
    }
}
