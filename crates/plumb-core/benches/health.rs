//! How many judgements a second on one core. The aim is 100,000 for the kinds of Kubernetes.

#![expect(clippy::expect_used, reason = "a benchmark stops where it cannot go on")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plumb_core::health::assess;
use plumb_core::object::Manifest;
use serde_json::{Value, json};

fn object(api_version: &str, kind: &str, spec: &Value, status: &Value) -> Manifest {
    Manifest::new(json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": "web", "namespace": "shop", "generation": 3, "uid": "b2d0c9f5-0d5c-4f0b-9a53-2f4a5ed0f2c1",
            "labels": {"app": "web", "team": "shop"},
            "annotations": {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web"},
        },
        "spec": spec,
        "status": status,
    }))
    .expect("an object")
}

fn health(criterion: &mut Criterion) {
    let built_in = [
        object(
            "apps/v1",
            "Deployment",
            &json!({"replicas": 3, "progressDeadlineSeconds": 600}),
            &json!({
                "observedGeneration": 3, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 2,
                "conditions": [
                    {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": "Deployment does not have minimum availability."},
                    {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated", "message": "ReplicaSet is progressing."},
                ],
            }),
        ),
        object(
            "v1",
            "Pod",
            &json!({"restartPolicy": "Always", "containers": [{"name": "main"}]}),
            &json!({
                "phase": "Running",
                "conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"}],
                "containerStatuses": [{"name": "main", "ready": true, "restartCount": 0, "state": {"running": {}}}],
            }),
        ),
        object("v1", "Service", &json!({"type": "ClusterIP"}), &json!({"loadBalancer": {}})),
        object(
            "batch/v1",
            "Job",
            &json!({}),
            &json!({"conditions": [{"type": "Complete", "status": "True"}]}),
        ),
    ];
    let conditions = json!({"conditions": [
        {"type": "Ready", "status": "False", "reason": "Provisioning", "message": "waiting for the database"},
        {"type": "DatabaseReady", "status": "False", "reason": "Creating"},
    ]});
    let taught = object("cert-manager.io/v1", "Certificate", &json!({}), &conditions);
    let untaught = object("example.com/v1", "Thing", &json!({}), &conditions);

    let mut group = criterion.benchmark_group("health");
    group.throughput(Throughput::Elements(built_in.len() as u64));
    group.bench_function("built-in kinds", |bencher| {
        bencher.iter(|| {
            for object in &built_in {
                black_box(assess(black_box(object)));
            }
        });
    });
    group.throughput(Throughput::Elements(1));
    group.bench_function("a rule", |bencher| bencher.iter(|| assess(black_box(&taught))));
    group.bench_function("the general reading", |bencher| bencher.iter(|| assess(black_box(&untaught))));
    group.finish();
}

criterion_group!(benches, health);
criterion_main!(benches);
