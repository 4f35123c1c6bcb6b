use serde_json::{Value, json};

use super::mark::short_label;
use super::*;
use crate::object::Manifest;

fn manifest(value: Value) -> Manifest {
    Manifest::new(value).unwrap()
}

fn config_map(annotations: &Value, labels: &Value) -> Manifest {
    manifest(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "prod", "annotations": annotations, "labels": labels},
    }))
}

fn by(method: TrackingMethod) -> TrackingSettings {
    TrackingSettings { method, ..TrackingSettings::default() }
}

#[test]
fn ids_are_read_as_they_are_written() {
    for text in [
        "web:apps/Deployment:prod/web",
        "web:/ConfigMap:prod/a",
        "team_web:rbac.authorization.k8s.io/ClusterRole:prod/system:reader:x",
        "web:batch/Job:prod/",
        ":/:/",
    ] {
        assert_eq!(text.parse::<TrackingId>().map(|id| id.to_string()).as_deref(), Ok(text));
    }
    for text in
        ["", "web", "web:apps/Deployment", "web:apps:prod/web", "web:a/b/c:prod/web", "web:a/b:prod/x/y"]
    {
        assert_eq!(text.parse::<TrackingId>(), Err(NotATrackingId), "{text}");
    }
}

#[test]
fn a_mark_is_read_back_as_ours() {
    for method in [TrackingMethod::Annotation, TrackingMethod::Label, TrackingMethod::AnnotationAndLabel] {
        let settings = by(method);
        let marked = mark(config_map(&Value::Null, &Value::Null), "web", Some("elsewhere"), &settings);
        assert_eq!(tracked_by(&marked, "web", &settings), TrackedBy::Ours, "{method}");
        assert_eq!(
            tracked_by(&marked, "db", &settings),
            TrackedBy::Other { app: "web".to_owned() },
            "{method}"
        );
        assert_eq!(mark(marked.clone(), "web", Some("elsewhere"), &settings), marked, "{method}");
    }
}

#[test]
fn a_cluster_scoped_object_carries_the_destination_namespace() {
    let role = manifest(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:x"},
    }));
    let marked = mark(role, "web", Some("prod"), &TrackingSettings::default());
    assert_eq!(
        marked.annotation(TRACKING_ANNOTATION),
        Some("web:rbac.authorization.k8s.io/ClusterRole:prod/system:x")
    );
    assert_eq!(tracked_by(&marked, "web", &TrackingSettings::default()), TrackedBy::Ours);
}

#[test]
fn a_copied_mark_is_not_a_mark() {
    let copied = "web:serving.example.com/ConfigMap:prod/a";
    let live = config_map(&json!({TRACKING_ANNOTATION: copied}), &Value::Null);
    assert_eq!(
        tracked_by(&live, "web", &TrackingSettings::default()),
        TrackedBy::Copied { id: copied.parse().unwrap() }
    );
    let moved = config_map(&json!({TRACKING_ANNOTATION: "web:/ConfigMap:test/a"}), &Value::Null);
    assert!(matches!(tracked_by(&moved, "web", &TrackingSettings::default()), TrackedBy::Copied { .. }));
}

#[test]
fn installations_do_not_see_each_other() {
    let here = TrackingSettings { installation_id: Some("here".to_owned()), ..TrackingSettings::default() };
    let marked = mark(config_map(&Value::Null, &Value::Null), "web", None, &here);
    assert_eq!(tracked_by(&marked, "web", &here), TrackedBy::Ours);
    assert_eq!(tracked_by(&marked, "web", &TrackingSettings::default()), TrackedBy::NoApp);

    // Without an installation of its own, the mark of another one goes.
    let unmarked = mark(marked, "web", None, &TrackingSettings::default());
    assert_eq!(unmarked.annotation(INSTALLATION_ANNOTATION), None);
    assert_eq!(tracked_by(&unmarked, "web", &here), TrackedBy::NoApp);
}

#[test]
fn the_label_beside_an_annotation_is_shortened_and_decides_nothing() {
    let settings = by(TrackingMethod::AnnotationAndLabel);
    let app = format!("{}---{}", "a".repeat(61), "b".repeat(20));
    let marked = mark(config_map(&Value::Null, &Value::Null), &app, None, &settings);
    assert_eq!(marked.label(TrackingSettings::DEFAULT_LABEL_KEY), Some("a".repeat(61).as_str()));
    assert_eq!(tracked_by(&marked, &app, &settings), TrackedBy::Ours);

    let labelled = config_map(&Value::Null, &json!({TrackingSettings::DEFAULT_LABEL_KEY: "web"}));
    assert_eq!(tracked_by(&labelled, "web", &settings), TrackedBy::NoApp);
    assert_eq!(short_label(&"é".repeat(40)), None);
}

#[test]
fn the_legacy_label_reaches_pod_templates() {
    let settings = TrackingSettings { label_key: LEGACY_LABEL.to_owned(), ..by(TrackingMethod::Label) };
    let deployment = manifest(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"template": {"spec": {}}},
    }));
    let marked = mark(deployment, "web", None, &settings);
    assert_eq!(marked.value().pointer("/spec/template/metadata/labels"), Some(&json!({LEGACY_LABEL: "web"})));
}

#[test]
fn a_crd_is_adopted_by_being_written() {
    let settings = TrackingSettings::default();
    let crd = |managed_fields: Value| {
        manifest(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "makers.example.com", "managedFields": managed_fields},
        }))
    };
    let installed = crd(json!([{"manager": "kubectl-client-side-apply", "operation": "Update"}]));
    assert_eq!(mark(installed.clone(), "web", None, &settings), installed);
    assert_eq!(tracked_by(&installed, "web", &settings), TrackedBy::NoApp);

    for operation in ["Apply", "Update"] {
        let synced = crd(json!([{"manager": FIELD_MANAGER, "operation": operation}]));
        assert_eq!(tracked_by(&synced, "web", &settings), TrackedBy::AppliedCrd);
    }
    let touched = crd(json!([{"manager": FIELD_MANAGER, "operation": "Update", "subresource": "status"}]));
    assert_eq!(tracked_by(&touched, "web", &settings), TrackedBy::NoApp);
}

#[test]
fn marks_that_are_no_text_are_no_marks() {
    for annotation in [json!(5), json!(null), json!({}), json!([])] {
        let live = config_map(&json!({TRACKING_ANNOTATION: annotation}), &json!("no map"));
        assert_eq!(owner_of(&live, &TrackingSettings::default()), None);
        assert_eq!(owner_of(&live, &by(TrackingMethod::Label)), None);
    }
}
