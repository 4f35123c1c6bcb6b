use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;
use crate::wire::Wire as _;

/// An Application with every field of the contract set.
pub(crate) fn complete() -> Value {
    serde_json::from_str(include_str!("complete.json")).expect("JSON")
}

fn minimal() -> Value {
    json!({
        "metadata": {"name": "a", "namespace": "argocd"},
        "spec": {
            "project": "default",
            "destination": {"server": "https://kubernetes.default.svc"},
            "source": {"repoURL": "https://git.example.com/a.git", "path": "."},
        },
    })
}

/// Puts `value` at a JSON pointer of the minimal Application and shows the error.
fn check_error(pointer: &str, value: Value, expected: &Expect) {
    let mut object = minimal();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let mut place = &mut object;
    for step in parent.split('/').skip(1) {
        place = match place {
            Value::Array(items) => &mut items[step.parse::<usize>().expect("an index")],
            other => &mut other[step],
        };
    }
    place[key] = value;
    let error = Application::from_json(&object).expect_err("must be refused");
    expected.assert_eq(&error.to_string());
    assert_eq!(Application::id_of(&object).map(|id| id.to_string()), Some("argocd/a".to_owned()));
}

#[test]
fn every_field_survives_reading_and_writing() {
    let object = complete();
    let application = Application::from_json(&object).expect("readable");
    assert_eq!(application.unreadable_status, []);
    pretty_assert_eq(&application.to_json(), &object);
}

fn pretty_assert_eq(left: &Value, right: &Value) {
    let print = |value: &Value| serde_json::to_string_pretty(&sorted(value)).expect("JSON");
    assert!(left == right, "{}\n--- is not ---\n{}", print(left), print(right));
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> =
                map.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            Value::Object(sorted.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[test]
fn an_error_names_the_field_and_what_belongs_there() {
    check_error("/spec", json!([]), &expect!["spec: expected a map, found a list"]);
    check_error("/spec/project", json!(7), &expect!["spec.project: expected a string, found the number 7"]);
    check_error(
        "/spec/source/helm",
        json!({"parameters": [{"name": "a"}, {"name": {}}]}),
        &expect!["spec.source.helm.parameters[1].name: expected a string, found a map"],
    );
    check_error(
        "/spec/source/helm",
        json!({"valuesObject": "a: 1"}),
        &expect!["spec.source.helm.valuesObject: expected a map, found a string"],
    );
    check_error(
        "/spec/syncPolicy",
        json!({"automated": {"prune": "true"}}),
        &expect!["spec.syncPolicy.automated.prune: expected true or false, found a string"],
    );
    check_error(
        "/spec/revisionHistoryLimit",
        json!(1.5),
        &expect!["spec.revisionHistoryLimit: expected a whole number, found the number 1.5"],
    );
    check_error(
        "/metadata/deletionTimestamp",
        json!("yesterday"),
        &expect![[
            r#"metadata.deletionTimestamp: expected a time such as 2026-11-15T19:00:00Z, found "yesterday""#
        ]],
    );
    check_error("/operation", json!("sync"), &expect!["operation: expected a map, found a string"]);
}

#[test]
fn absent_null_and_empty_mean_the_same() {
    let mut spelled_out = minimal();
    spelled_out["spec"]["source"]["helm"] = Value::Null;
    spelled_out["spec"]["source"]["chart"] = json!("");
    spelled_out["spec"]["sources"] = json!([]);
    spelled_out["spec"]["info"] = Value::Null;
    spelled_out["operation"] = Value::Null;
    spelled_out["status"] = json!({"summary": {}, "health": {}, "sourceHydrator": {}, "history": null});
    assert_eq!(Application::from_json(&spelled_out), Application::from_json(&minimal()));
}

#[test]
fn unknown_fields_are_passed_over() {
    let mut object = minimal();
    object["spec"]["source"]["fromTheFuture"] = json!({"a": 1});
    object["status"] = json!({"fromTheFuture": 1});
    assert_eq!(Application::from_json(&object), Application::from_json(&minimal()));
}

#[test]
fn one_broken_field_of_status_does_not_cost_the_others() {
    let mut object = complete();
    object["status"]["health"] = json!("fine");
    object["status"]["conditions"] = json!([{"type": 1}]);
    let application = Application::from_json(&object).expect("readable");
    let mut errors: Vec<String> = application.unreadable_status.iter().map(ToString::to_string).collect();
    errors.sort();
    assert_eq!(
        errors,
        [
            "status.conditions[0].type: expected a string, found the number 1",
            "status.health: expected a map, found a string",
        ]
    );
    assert_eq!(application.status.sync.status, "OutOfSync");
    assert_eq!(application.status.history.len(), 1);
    assert_eq!(application.status.health, HealthStatus::default());

    object["status"] = json!("soup");
    let application = Application::from_json(&object).expect("readable");
    assert_eq!(application.status, ApplicationStatus::default());
    assert_eq!(application.unreadable_status.len(), 1);
}

#[test]
fn required_fields_are_written_when_empty() {
    let status = ApplicationStatus {
        conditions: vec![Condition::default()],
        history: vec![RevisionHistory::default()],
        operation_state: Some(Box::new(OperationState {
            sync_result: Some(Box::new(SyncOperationResult {
                resources: vec![ResourceResult::default()],
                ..SyncOperationResult::default()
            })),
            ..OperationState::default()
        })),
        sync: SyncStatus {
            compared_to: ComparedTo { source: Some(Box::default()), ..ComparedTo::default() },
            ..SyncStatus::default()
        },
        ..ApplicationStatus::default()
    };
    let expected = json!({
        "conditions": [{"type": "", "message": ""}],
        "history": [{"id": 0, "deployedAt": "1970-01-01T00:00:00Z"}],
        "operationState": {
            "operation": {},
            "phase": "",
            "startedAt": "1970-01-01T00:00:00Z",
            "syncResult": {
                "revision": "",
                "resources": [{"group": "", "version": "", "kind": "", "namespace": "", "name": ""}],
            },
        },
        "sync": {"status": "", "comparedTo": {"source": {"repoURL": ""}, "destination": {}}},
    });
    pretty_assert_eq(&status.write(), &expected);
}

#[test]
fn times_are_written_in_whole_seconds_of_utc() {
    let condition = Condition {
        last_transition_time: Some("2026-11-15T21:00:00.987654321+02:00".parse().expect("a time")),
        ..Condition::default()
    };
    assert_eq!(condition.write()["lastTransitionTime"], json!("2026-11-15T19:00:00Z"));
}

#[test]
fn a_spec_is_normalised_as_argo_cd_stores_it() {
    let mut object = minimal();
    object["spec"]["project"] = json!("");
    object["spec"]["syncPolicy"] = json!({"syncOptions": []});
    object["spec"]["source"]["helm"] = json!({});
    object["spec"]["source"]["directory"] = json!({"jsonnet": {}});
    let spec = Application::from_json(&object).expect("readable").spec.normalized();
    assert_eq!(spec, Application::from_json(&minimal()).expect("readable").spec);
    object["spec"]["source"]["directory"] = json!({"include": "*.yaml"});
    let spec = Application::from_json(&object).expect("readable").spec.normalized();
    assert!(spec.source.is_some_and(|source| source.directory.is_some()), "a glob says something");
}

/// Replaces every value of the complete Application, one after the other, with every sort of wrong value.
#[test]
fn no_value_in_any_place_can_do_harm() {
    let poison = [
        Value::Null,
        json!(true),
        json!(-1),
        json!(1e308),
        json!(u64::MAX),
        json!(""),
        json!("\u{0}\u{feff}\u{202e}"),
        json!([]),
        json!([null, 1, "a", [], {}]),
        json!({}),
        json!({"": {"": null}}),
    ];
    let mut object = complete();
    let mut pointers = Vec::new();
    collect_pointers(&object, String::new(), &mut pointers);
    assert!(pointers.len() > 250, "only {} places", pointers.len());
    for pointer in &pointers {
        for value in &poison {
            let healthy = std::mem::replace(object.pointer_mut(pointer).expect("a place"), value.clone());
            match Application::from_json(&object) {
                Ok(application) => {
                    let _ = crate::to_app(&application);
                    let _ = application.operation.as_ref().map(crate::to_operation);
                    check_round_trip(&application);
                }
                Err(error) => assert!(
                    pointer.is_empty() || !error.path().is_empty(),
                    "{pointer} {value}: the error names no field"
                ),
            }
            *object.pointer_mut(pointer).expect("a place") = healthy;
        }
    }
}

/// What we write, we read as the same.
fn check_round_trip(application: &Application) {
    assert_eq!(ApplicationSpec::read(&application.spec.write()).as_ref(), Ok(&application.spec));
    if application.unreadable_status.is_empty() {
        assert_eq!(ApplicationStatus::read(&application.status.write()).as_ref(), Ok(&application.status));
    }
}

fn collect_pointers(value: &Value, pointer: String, pointers: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect_pointers(value, format!("{pointer}/{key}"), pointers);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                collect_pointers(value, format!("{pointer}/{index}"), pointers);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    pointers.push(pointer);
}
