use proptest::prelude::*;
use serde_json::{Value, json};

use super::{CodecError, decode, encode};
use crate::table::Tables;

fn there_and_back(message: &str, value: &Value) -> Value {
    let tables = Tables::get();
    let id = tables.id(message).unwrap();
    decode(tables, id, &encode(tables, id, value).unwrap()).unwrap()
}

#[test]
fn an_application_survives() {
    let app = json!({
        "metadata": {"name": "shop", "namespace": "argocd", "labels": {"a": "b"}, "creationTimestamp": "2026-11-15T19:00:00Z",
            "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}]},
        "spec": {
            "project": "default",
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
            "source": {"repoURL": "r", "path": "p", "helm": {"valuesObject": {"a": {"b": [1, 2.5, null]}}},
                "kustomize": {"replicas": [{"name": "web", "count": 3}, {"name": "db", "count": "50%"}]},
                "plugin": {"parameters": [{"name": "x", "map": {"a": "b"}}, {"name": "y", "array": ["a"]}]}},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": false}, "syncOptions": ["A=b"]},
        },
        "status": {"operationState": {"phase": "Succeeded", "startedAt": "2026-11-15T19:00:00Z",
            "operation": {"sync": {"syncStrategy": {"hook": {"force": true}}}}}},
    });
    assert_eq!(there_and_back("v1alpha1.Application", &app), app);
}

#[test]
fn a_small_message_does_not_become_large() {
    let tables = Tables::get();
    let id = tables.id("application.ApplicationManifestQuery").unwrap();
    // Field 5, packed: a byte for each number.
    let packed = |n: usize| {
        let mut message = vec![(5 << 3) | 2];
        let mut left = n;
        while left >= 0x80 {
            message.push(u8::try_from(left & 0x7f).unwrap() | 0x80);
            left >>= 7;
        }
        message.push(u8::try_from(left).unwrap());
        message.resize(message.len() + n, 1);
        message
    };
    assert!(decode(tables, id, &packed(1_000)).is_ok());
    assert_eq!(decode(tables, id, &packed(1 << 20)), Err(CodecError::TooMany));
    // JSON inside of a message counts, too.
    let app = tables.id("v1alpha1.Application").unwrap();
    let values = json!({"spec": {"source": {"helm": {"valuesObject": {"a": vec![0; 300_000]}}}}});
    assert_eq!(decode(tables, app, &encode(tables, app, &values).unwrap()), Err(CodecError::TooMany));
}

#[test]
fn names_and_nesting_that_differ() {
    let project = json!({"spec": {"destinations": [{"server": "*", "namespace": "*"}]}});
    assert_eq!(there_and_back("v1alpha1.AppProject", &project), project);
    let tree = json!({"nodes": [{"kind": "Pod", "name": "p", "uid": "u", "health": {"status": "Healthy"}}]});
    assert_eq!(there_and_back("v1alpha1.ApplicationTree", &tree), tree);
}

#[test]
fn a_required_field_is_always_written() {
    let tables = Tables::get();
    let id = tables.id("application.LogEntry").unwrap();
    let entry = decode(tables, id, &encode(tables, id, &json!({"content": "x"})).unwrap()).unwrap();
    for field in ["content", "timeStampStr", "podName", "last"] {
        assert!(entry.get(field).is_some(), "{field} in {entry}");
    }
}

#[test]
fn absent_and_empty_differ_where_it_matters() {
    let sync = json!({"name": "shop", "dryRun": false, "revision": ""});
    assert_eq!(there_and_back("application.ApplicationSyncRequest", &sync), sync);
    let spec = json!({"project": "", "destination": {}, "syncPolicy": {"automated": {}}});
    assert_eq!(there_and_back("v1alpha1.ApplicationSpec", &spec), json!({"syncPolicy": {"automated": {}}}));
}

#[test]
fn wrong_values_are_errors() {
    let tables = Tables::get();
    let id = tables.id("application.ApplicationQuery").unwrap();
    let error = encode(tables, id, &json!({"projects": "x"})).unwrap_err();
    assert_eq!(error.to_string(), "projects must be a list");
    assert_eq!(decode(tables, id, &[0x0a, 5, 1]), Err(CodecError::Damaged), "a text that ends too early");
    assert_eq!(decode(tables, id, &[0x0a, 1, 0xff]), Err(CodecError::Damaged), "no UTF-8");
}

#[test]
fn deep_nesting_ends() {
    let tables = Tables::get();
    let id =
        tables.id("v1alpha1.ApplicationSetNestedGenerator").or(tables.id("v1alpha1.ApplicationSetGenerator"));
    let id = id.unwrap();
    let mut value = json!({});
    for _ in 0..200 {
        value = json!({"matrix": {"generators": [value]}});
    }
    assert!(matches!(encode(tables, id, &value), Ok(_) | Err(CodecError::TooDeep)));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let tables = Tables::get();
        for name in ["v1alpha1.Application", "application.ApplicationSyncRequest", "v1alpha1.ApplicationTree"] {
            let id = tables.id(name).unwrap();
            if let Ok(value) = decode(tables, id, &bytes) {
                // What was read can be written again, and then stays the same: required fields are added once.
                let again = decode(tables, id, &encode(tables, id, &value).unwrap()).unwrap();
                prop_assert_eq!(decode(tables, id, &encode(tables, id, &again).unwrap()).unwrap(), again);
            }
        }
    }
}
