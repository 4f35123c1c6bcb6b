//! Sensitive fields of custom resources: a finding names the field, never its value.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what cannot be made or told fails the test")]

use plumb_core::app::CompareOptions;
use plumb_core::desired::{DesiredObject, ObjectOptions};
use plumb_core::drift::{Answers, Evidence, Facts, Outcome, Previous, Verdict, VerdictStatus, judge};
use plumb_core::ignore::IgnoreRules;
use plumb_core::normalize::without_sensitive_values;
use plumb_core::object::{GroupKind, Manifest, ObjectKey};
use plumb_core::schema::{SchemaSet, SensitiveField};
use serde_json::{Value, json};

/// A kind with a password by its schema, and two texts without a format.
fn schemas(settings: &[&str]) -> SchemaSet {
    let text = json!({"type": "string"});
    let spec = json!({"type": "object", "properties": {
        "password": {"type": "string", "format": "password"},
        "size": text,
        "users": {"type": "array", "items": {"type": "object", "properties": {"name": text, "key": text}}},
    }});
    let document = json!({"paths": {"/apis/example.com/v1/databases": {}}, "components": {"schemas":
        {"com.example.v1.Database": {
            "type": "object", "properties": {"metadata": {"type": "object"}, "spec": spec},
            "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Database"}]}}}});
    let kind = || GroupKind::new("example.com", "Database");
    let fields: Vec<SensitiveField> =
        settings.iter().map(|field| SensitiveField::new(kind(), field).unwrap()).collect();
    SchemaSet::default().with_document(&document).with_sensitive_fields(fields.into())
}

fn database(spec: &Value) -> Manifest {
    let last_applied = json!({"spec": spec}).to_string();
    Manifest::new(json!({"apiVersion": "example.com/v1", "kind": "Database", "spec": spec, "metadata": {
        "name": "d", "namespace": "n",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": last_applied},
        "managedFields": [{"manager": "kubectl-edit", "operation": "Update", "time": "2026-01-01T00:00:00Z",
            "fieldsV1": {"f:spec": {"f:password": {}, "f:size": {}, "f:users": {}}}}]}}))
    .unwrap()
}

fn verdict(schemas: &SchemaSet, desired: &Value, live: &Value) -> Verdict {
    let key = ObjectKey::new("example.com", "Database", Some("n".to_owned()), "d");
    let (desired, live, rules) = (database(desired), database(live), IgnoreRules::default());
    let desired = DesiredObject {
        key: key.clone(),
        manifest: desired,
        options: ObjectOptions::default(),
        origin: None,
    };
    let outcome = judge(&Evidence {
        key: &key,
        desired: Some(&desired),
        live: Some(&live),
        schemas,
        rules: &rules,
        options: CompareOptions::default(),
        facts: Facts { app: "app", previous: Previous::Same, ..Facts::default() },
        answers: Answers::default(),
        now: "2026-02-01T00:00:00Z".parse().unwrap(),
    });
    match outcome {
        Outcome::Settled(verdict) => *verdict,
        Outcome::Ask(questions) => panic!("asks {questions:?}"),
    }
}

#[test]
fn a_finding_names_a_sensitive_field_and_not_its_value() {
    let desired =
        json!({"password": "canary-git", "size": "small", "users": [{"name": "a", "key": "canary-key"}]});
    let live =
        json!({"password": "canary-live", "size": "large", "users": [{"name": "a", "key": "canary-old"}]});
    let found = verdict(&schemas(&["/spec/users/*/key"]), &desired, &live);
    assert_eq!(found.status, VerdictStatus::OutOfSync);
    let told = format!("{:?}", found.findings);
    assert!(!told.contains("canary"), "{told}");
    assert!(told.contains("password") && told.contains("large"), "other fields are shown: {told}");
    // Without the setting the schema still hides the password.
    let told = format!("{:?}", verdict(&schemas(&[]), &desired, &live).findings);
    assert!(!told.contains("canary-live") && told.contains("canary-old"), "{told}");
}

#[test]
fn a_patch_for_git_has_no_mark_instead_of_a_value() {
    let desired = json!({"password": "canary-git", "size": "small", "users": []});
    let patches = |live: &Value| -> Vec<String> {
        let found = verdict(&schemas(&[]), &desired, live);
        found.findings.iter().filter_map(|finding| finding.fix.patch.clone()).collect()
    };
    let edited = patches(&json!({"password": "canary-live", "size": "small", "users": []}));
    let names_it = |patch: &&String| patch.contains("password") || patch.contains("secret value");
    assert_eq!(edited.iter().find(names_it), None);
    let other = patches(&json!({"password": "canary-git", "size": "large", "users": []}));
    assert!(other.iter().any(|patch| patch.contains("large")), "{other:?}");
}

#[test]
fn a_refusal_does_not_quote_the_value_of_a_sensitive_field() {
    let refused =
        "spec.password: Invalid value: \"canary-git\": too short, spec.size: Invalid value: \"small\"";
    let desired = database(&json!({"password": "canary-git", "size": "small", "users": []}));
    let said = without_sensitive_values(refused, [&desired], &schemas(&[]));
    assert_eq!(
        said,
        "spec.password: Invalid value: \"••••\": too short, spec.size: Invalid value: \"small\""
    );
    // The API server quotes as Go does.
    let desired = database(&json!({"password": "canary\"\ngit", "size": "small", "users": []}));
    let refused = r#"spec.password: Invalid value: "canary\"\ngit": too short"#;
    assert_eq!(
        without_sensitive_values(refused, [&desired], &schemas(&[])),
        "spec.password: Invalid value: \"••••\": too short"
    );
}

#[test]
fn equal_sensitive_fields_are_synced() {
    let spec = json!({"password": "canary", "size": "small", "users": []});
    assert_eq!(verdict(&schemas(&[]), &spec, &spec).status, VerdictStatus::Synced);
}
