//! Restoring deleted objects.

use serde_json::{Value, json};

use super::fixture::{key, time};
use crate::app::AppId;
use crate::object::Manifest;
use crate::plan::*;

#[test]
fn a_tombstone_brings_back_what_the_server_does_not_set() {
    let live = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "a", "namespace": "prod", "uid": "1", "resourceVersion": "2", "generation": 3,
            "creationTimestamp": "2026-11-15T12:00:00Z", "deletionTimestamp": "2026-11-15T12:00:00Z",
            "managedFields": [], "labels": {"a": "b"}, "annotations": {"c": "d"},
            "ownerReferences": [{"kind": "Widget"}],
        },
        "data": {"k": "v"}, "status": {"x": 1},
    });
    let tombstone = tombstone(live);
    let wanted = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "a", "namespace": "prod", "labels": {"a": "b"}, "annotations": {"c": "d"},
            "ownerReferences": [{"kind": "Widget"}],
        },
        "data": {"k": "v"},
    });
    assert_eq!(tombstone.restorable().value(), &wanted);
    assert_eq!(tombstone.lost(), None);
    assert_eq!(tombstone.restorable_elsewhere(), None);
    let claim = Tombstone { key: key("PersistentVolumeClaim", "a"), ..tombstone };
    assert!(claim.lost().is_some());
}

/// A tombstone of this live object.
fn tombstone(live: Value) -> Tombstone {
    let live = Manifest::new(live).expect("an object");
    Tombstone {
        app: AppId { namespace: "argocd".to_owned(), name: "shop".to_owned() },
        server: "https://kubernetes.default.svc".to_owned(),
        key: live.key().expect("a name"),
        live: std::sync::Arc::new(live),
        deleted_at: time(super::fixture::STARTED),
        reason: TombstoneReason::Pruned,
        revision: None,
    }
}

#[test]
fn fields_set_by_the_cluster_do_not_prevent_a_restore() {
    // A Job's selector is made from its uid: another one's is refused.
    let job = tombstone(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "once", "labels": {"team": "a", "controller-uid": "1"}},
        "spec": {
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "1"}},
            "template": {"metadata": {"labels": {
                "app": "once", "job-name": "once", "batch.kubernetes.io/controller-uid": "1",
                "batch.kubernetes.io/job-name": "once", "controller-uid": "1",
            }}},
        },
    }));
    let restorable = job.restorable();
    assert_eq!(restorable.value()["metadata"]["labels"], json!({"team": "a"}));
    assert_eq!(restorable.value()["spec"], json!({"template": {"metadata": {"labels": {"app": "once"}}}}));
    let mut by_hand = job.live.value().clone();
    by_hand["spec"]["manualSelector"] = json!(true);
    assert!(tombstone(by_hand.clone()).restorable().value()["spec"]["selector"].is_object());

    let claim = tombstone(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes", "a": "b"}},
        "spec": {"volumeName": "pv-1", "accessModes": ["ReadWriteOnce"]},
    }));
    assert_eq!(claim.volume(), Some("pv-1"));
    assert_eq!(claim.restorable().value()["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(claim.restorable().value()["spec"]["volumeName"], "pv-1");
    let elsewhere = claim.restorable_elsewhere().expect("another volume will do");
    assert_eq!(elsewhere.value()["spec"], json!({"accessModes": ["ReadWriteOnce"]}));

    let service = |address: &str| {
        tombstone(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"},
            "spec": {"type": "LoadBalancer", "clusterIP": address, "clusterIPs": [address],
                "ports": [{"port": 80, "nodePort": 30_000}]},
        }))
    };
    let elsewhere = service("10.0.0.7").restorable_elsewhere().expect("another address will do");
    assert_eq!(elsewhere.value()["spec"], json!({"type": "LoadBalancer", "ports": [{"port": 80}]}));
    assert_eq!(service("None").restorable_elsewhere(), None);
    assert!(service("10.0.0.7").lost().is_some_and(|lost| lost.contains("address")));
}
