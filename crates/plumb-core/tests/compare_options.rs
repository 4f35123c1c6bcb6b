//! Compare options, with the meaning that Argo CD documents.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what cannot be made or told fails the test")]
#![expect(clippy::needless_pass_by_value, reason = "`json!` reads better at the call")]

use plumb_core::app::CompareOptions;
use plumb_core::desired::{DesiredObject, ObjectOptions};
use plumb_core::drift::{
    Answers, DriftClass, DryRun, Evidence, Extraneous, Facts, Mutator, Outcome, Previous, Question, Verdict,
    VerdictStatus, judge,
};
use plumb_core::ignore::IgnoreRules;
use plumb_core::object::{GroupKind, Manifest, ObjectKey};
use plumb_core::schema::{KnownType, SchemaSet};
use serde_json::{Value, json};

fn manifest(value: Value) -> Manifest {
    Manifest::new(value).unwrap()
}

fn map(data: Value, annotations: Value) -> Manifest {
    manifest(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": {
        "name": "m", "namespace": "n", "annotations": annotations,
        "managedFields": [{"manager": "argocd-controller", "operation": "Apply", "time": "2026-01-01T00:00:00Z",
            "fieldsV1": {"f:data": {"f:a": {}}}}]}}))
}

fn key() -> ObjectKey {
    ObjectKey::new("", "ConfigMap", Some("n".to_owned()), "m")
}

fn look(desired: Option<&Manifest>, live: &Manifest, options: &str, dry_run: Option<&Manifest>) -> Outcome {
    let key = key();
    let desired = desired.map(|manifest| DesiredObject {
        key: key.clone(),
        manifest: manifest.clone(),
        options: ObjectOptions::default(),
        origin: None,
    });
    let (schemas, rules) = (SchemaSet::default(), IgnoreRules::default());
    let mutators = [Mutator { kind: "MutatingAdmissionPolicy".to_owned(), name: "adder".to_owned() }];
    judge(&Evidence {
        key: &key,
        desired: desired.as_ref(),
        live: Some(live),
        schemas: &schemas,
        rules: &rules,
        options: CompareOptions::parse(options),
        facts: Facts { app: "app", previous: Previous::Same, mutators: &mutators, ..Facts::default() },
        answers: Answers { dry_run: dry_run.map(DryRun::Object), ..Answers::default() },
        now: "2026-02-01T00:00:00Z".parse().unwrap(),
    })
}

fn settled(outcome: Outcome) -> Verdict {
    match outcome {
        Outcome::Settled(verdict) => *verdict,
        Outcome::Ask(questions) => panic!("asks {questions:?}"),
    }
}

#[test]
fn an_extra_object_that_may_be_there_is_out_of_sync_and_its_app_is_not() {
    let annotation = "argocd.argoproj.io/compare-options";
    let mut live = map(json!({"a": "1"}), json!({annotation: "IgnoreExtraneous"})).into_value();
    live["metadata"]["managedFields"] = json!([{
        "manager": "argocd-controller", "operation": "Apply",
        "fieldsV1": {"f:metadata": {"f:annotations": {format!("f:{annotation}"): {}}}},
    }]);
    let live = Manifest::new(live).unwrap();
    let key = live.key().unwrap();
    let (schemas, rules) = (SchemaSet::default(), IgnoreRules::default());
    // What the live object says about itself does not count.
    for is_ignored in [false, true] {
        let verdict = settled(judge(&Evidence {
            key: &key,
            desired: None,
            live: Some(&live),
            schemas: &schemas,
            rules: &rules,
            options: CompareOptions::default(),
            facts: Facts {
                app: "app",
                extraneous: Extraneous { is_ignored, ..Extraneous::default() },
                ..Facts::default()
            },
            answers: Answers::default(),
            now: "2026-02-01T00:00:00Z".parse().unwrap(),
        }));
        assert_eq!(verdict.status, VerdictStatus::OutOfSync);
        assert_eq!(verdict.counts_for_app, !is_ignored);
    }
}

#[test]
fn server_side_diff_asks_and_false_does_not() {
    let object = map(json!({"a": "1"}), json!({}));
    let outcome = look(Some(&object), &object, "ServerSideDiff=true", None);
    assert_eq!(outcome, Outcome::Ask(vec![Question::DryRun]));
    for options in ["", "ServerSideDiff=false", "ServerSideDiff=true,ServerSideDiff=false"] {
        assert_eq!(settled(look(Some(&object), &object, options, None)).status, VerdictStatus::Synced);
    }
}

#[test]
fn what_admission_would_add_counts_only_on_request() {
    let object = map(json!({"a": "1"}), json!({}));
    let predicted = map(json!({"a": "1", "added": "2"}), json!({}));
    let plain = settled(look(Some(&object), &object, "ServerSideDiff=true", Some(&predicted)));
    assert_eq!(plain.status, VerdictStatus::Synced);
    let options = "ServerSideDiff=true,IncludeMutationWebhook=true";
    let with = settled(look(Some(&object), &object, options, Some(&predicted)));
    assert_eq!(with.status, VerdictStatus::OutOfSync);
    let finding = with.findings.iter().find(|finding| finding.counts).unwrap();
    assert_eq!(finding.class, DriftClass::Behind);
    assert_eq!(finding.fields.iter().map(ToString::to_string).collect::<Vec<_>>(), ["/data/added"]);
    assert!(finding.evidence[0].contains("adder"), "{finding:?}");
    let same = settled(look(Some(&object), &object, options, Some(&object)));
    assert_eq!(same.status, VerdictStatus::Synced);
}

/// What a walk says about two specs of a custom resource, with these known types.
fn respelled(known: &[(&str, &str)], desired: &Value, live: &Value) -> (Vec<String>, Vec<String>) {
    let documents: Value = serde_json::from_str(include_str!("../corpus/schemas.json")).unwrap();
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let own = json!({"paths": {"/apis/example.com/v1/tenants": {}}, "components": {"schemas": {"com.example.v1.Tenant": {
        "type": "object", "properties": {"metadata": {"type": "object"}, "spec": open},
        "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Tenant"}]}}}});
    let kind = GroupKind { group: "example.com".to_owned(), kind: "Tenant".to_owned() };
    let known: Vec<KnownType> =
        known.iter().map(|(field, name)| KnownType::new(kind.clone(), field, name)).collect();
    let schemas = SchemaSet::from_openapi(documents.as_array().unwrap())
        .with_document(&own)
        .with_known_types(known.into());
    let object = |spec: &Value| {
        manifest(
            json!({"apiVersion": "example.com/v1", "kind": "Tenant", "metadata": {"name": "t"}, "spec": spec}),
        )
    };
    let (desired, live) = (object(desired), object(live));
    let found = plumb_core::compare::compare(
        &desired,
        &live,
        schemas.kind(&desired.gvk()),
        plumb_core::compare::Aside::default(),
    );
    let paths =
        |paths: Vec<&plumb_core::object::FieldPath>| paths.into_iter().map(ToString::to_string).collect();
    (
        paths(found.forgiven.iter().map(|forgiven| &forgiven.path).collect()),
        paths(found.differences.iter().map(|difference| &difference.path).collect()),
    )
}

#[test]
fn known_types_tell_which_texts_mean_the_same() {
    let desired = json!({"cpu": "1000m", "every": "60m", "pod": {"containers": [
        {"name": "c", "image": "1000m", "resources": {"limits": {"cpu": "1000m"}}}]}});
    let live = json!({"cpu": "1", "every": "1h", "pod": {"containers": [
        {"name": "c", "image": "1", "resources": {"limits": {"cpu": 1}}}]}});
    let (same, different) = respelled(&[], &desired, &live);
    assert_eq!(same.len(), 0);
    assert_eq!(different.len(), 4, "{different:?}");
    let known =
        [("spec.cpu", "core/Quantity"), ("spec.every", "meta/v1/Duration"), ("spec.pod", "core/v1/PodSpec")];
    let (same, different) = respelled(&known, &desired, &live);
    assert_eq!(same, ["/spec/cpu", "/spec/every", "/spec/pod/containers/0/resources/limits/cpu"]);
    assert_eq!(different, ["/spec/pod/containers/0/image"], "an image is no quantity");
    let (same, _) =
        respelled(&[("spec.pod.containers.resources.limits", "core/v1/ResourceList")], &desired, &live);
    assert_eq!(same, ["/spec/pod/containers/0/resources/limits/cpu"]);
}
