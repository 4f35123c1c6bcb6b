//! No object, whatever its shape, makes a judgement panic or differ from itself: random JSON in the fields that
//! rules read, for kinds that have rules and for kinds that have none.

#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test reads its data and says what it expects"
)]

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use plumb_core::health::{
    Event, HealthHistory, HealthRecord, LogTail, Node, ProgressLimits, assess, chain, essence,
    expected_secret, explained, general_reading, looping_since, since, standing, stuck, webhook_services,
};
use plumb_core::object::Manifest;
use proptest::prelude::*;
use serde_json::{Map, Value};

/// Names that rules and readers look for, so that random objects reach deep into them.
const FIELDS: &[&str] = &[
    "status",
    "spec",
    "conditions",
    "type",
    "reason",
    "message",
    "phase",
    "state",
    "health",
    "replicas",
    "readyReplicas",
    "updatedReplicas",
    "availableReplicas",
    "observedGeneration",
    "generation",
    "parents",
    "ancestors",
    "ingress",
    "loadBalancer",
    "containerStatuses",
    "waiting",
    "terminated",
    "lastState",
    "exitCode",
    "restartPolicy",
    "updateStrategy",
    "rollingUpdate",
    "partition",
    "paused",
    "suspend",
    "environments",
    "active",
    "proposed",
    "dry",
    "sha",
    "statuses",
    "lastTransitionTime",
    "restartCount",
    "name",
    "annotations",
    "labels",
    "finalizers",
    "deletionTimestamp",
    "creationTimestamp",
    "metadata",
    "webhooks",
    "clientConfig",
    "service",
    "secretName",
    "target",
    "scale",
    "statusReplicas",
    "compliant",
    "stageStatus",
    "error",
];

const TEXTS: &[&str] = &[
    "True",
    "False",
    "Unknown",
    "",
    "Ready",
    "Available",
    "Progressing",
    "Failed",
    "Synced",
    "Running",
    "Pending",
    "Error",
    "0/3",
    "3/0",
    "-1",
    "2026-01-01T00:00:00Z",
    "not a time",
    "NotReady",
    "ClusterRollingUpgrading",
    "é",
    "ÄÖÜ-_/.",
    "9223372036854775807",
    "Always",
    "RollingUpdate",
    "x\u{0}y",
];

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(TEXTS).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 96, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((prop::sample::select(FIELDS), inner), 0..8).prop_map(|entries| {
                Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

/// Every kind that has a rule, and those of Kubernetes.
fn known_kinds() -> Vec<(String, String)> {
    let built_in = [
        ("apps/v1", "Deployment StatefulSet DaemonSet ReplicaSet"),
        ("v1", "Pod Service PersistentVolumeClaim PersistentVolume Namespace Node ConfigMap"),
        ("batch/v1", "Job CronJob"),
        ("networking.k8s.io/v1", "Ingress"),
        ("autoscaling/v1", "HorizontalPodAutoscaler"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("policy/v1", "PodDisruptionBudget"),
        ("apiregistration.k8s.io/v1", "APIService"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
        ("argoproj.io/v1alpha1", "Workflow"),
        ("example.com/v1", "Thing"),
    ];
    let mut kinds: Vec<(String, String)> = built_in
        .into_iter()
        .flat_map(|(version, kinds)| kinds.split(' ').map(move |kind| (version.to_owned(), kind.to_owned())))
        .collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/health/rules");
    for entry in fs::read_dir(folder).expect("the rules are there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "rules") {
            continue;
        }
        let mut group = String::new();
        for line in fs::read_to_string(path).expect("a text").lines() {
            if let Some(groups) = line.strip_prefix("group ") {
                group = groups.split(' ').next().unwrap_or_default().replace('*', "some");
            } else if let Some(names) = line.strip_prefix("kind ") {
                kinds
                    .extend(names.split(' ').map(|kind| (format!("{group}/v1"), kind.replace('*', "Thing"))));
            }
        }
    }
    kinds.sort();
    kinds
}

fn object(kind: &(String, String), metadata: Value, spec: Value, status: Value) -> Manifest {
    let metadata = match metadata {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    let mut whole = Map::new();
    whole.insert("apiVersion".to_owned(), Value::from(kind.0.as_str()));
    whole.insert("kind".to_owned(), Value::from(kind.1.as_str()));
    whole.insert("metadata".to_owned(), Value::Object(metadata));
    whole.insert("webhooks".to_owned(), spec.clone());
    whole.insert("spec".to_owned(), spec);
    whole.insert("status".to_owned(), status);
    Manifest::new(Value::Object(whole)).expect("an object")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn judging_is_total_and_the_same_twice(
        kind in prop::sample::select(known_kinds()),
        metadata in any_value(),
        spec in any_value(),
        status in any_value(),
        seconds in -1_000_000_000_i64..4_000_000_000,
    ) {
        let object = object(&kind, metadata, spec, status);
        let now = Timestamp::from_second(seconds).expect("in range");
        let health = assess(&object);
        prop_assert_eq!(&health, &assess(&object));
        let _ = (standing(&object), general_reading(&object), expected_secret(&object), webhook_services(&object));
        let mut node = Node::leaf(&object);
        node.children = vec![Node::leaf(&object)];
        let (reason, message) = kind.clone();
        node.events = vec![Event { is_warning: true, reason, message, count: 2, first: Some(now) }];
        node.logs = vec![LogTail { container: String::new(), lines: vec![object.value().to_string()] }];
        let causes = chain(&node);
        let _ = (causes.iter().map(ToString::to_string).collect::<String>(), essence(&causes));
        if let Some(health) = health {
            let known = since(&object, &health, HealthHistory::default(), now).with_events(&node.events);
            prop_assert!(known.at <= now);
            let noted = HealthRecord::next(None, &object, &health, &known, now);
            let again = since(&object, &health, HealthHistory { record: noted.as_ref(), last_look: None }, now);
            prop_assert!(noted.is_none() || again.at == known.at, "what was noted is believed");
            prop_assert!(looping_since(&object, now).is_none_or(|at| at <= now));
            if let Some(stuck) = stuck(&node, &health, known, &ProgressLimits::default(), now) {
                prop_assert!(stuck.for_so_long > stuck.normal);
                let _ = stuck.to_string();
            }
            let shown = explained(health.clone(), &node, &chain(&node), true);
            prop_assert_eq!(shown.status, health.status);
        }
    }
}
