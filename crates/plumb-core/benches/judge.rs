//! How many objects one CPU core judges per second: recordings of a real cluster, in sync, without questions.

#![expect(clippy::expect_used, reason = "a benchmark that cannot read its input fails")]
#![expect(clippy::disallowed_methods, reason = "it reads the corpus")]

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plumb_core::app::{CompareOptions, IgnoreRule};
use plumb_core::desired::{DesiredObject, ObjectOptions};
use plumb_core::drift::{Answers, Evidence, Facts, Outcome, Previous, VerdictKey, judge};
use plumb_core::ignore::IgnoreRules;
use plumb_core::object::Manifest;
use plumb_core::schema::SchemaSet;
use serde_json::Value;

fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).expect("a readable file")).expect("JSON")
}

fn objects(name: &str) -> Vec<(DesiredObject, Manifest)> {
    let case = read(name);
    let objects = case["apps"][0]["objects"].as_array().expect("objects");
    objects
        .iter()
        .map(|object| {
            let manifest = Manifest::new(object["desired"].clone()).expect("an object");
            let key = manifest.key().expect("a key");
            let options = ObjectOptions::default();
            let desired = DesiredObject { key, manifest, options, origin: None };
            (desired, Manifest::new(object["live"].clone()).expect("an object"))
        })
        .collect()
}

/// Rules as users write them, for objects of all kinds.
fn usual_rules() -> IgnoreRules {
    let rule = IgnoreRule {
        group: "*".to_owned(),
        kind: "*".to_owned(),
        json_pointers: vec!["/spec/replicas".to_owned()],
        jq_path_expressions: [
            ".spec.template.spec.containers[]? | select(.name == \"istio-proxy\")",
            ".spec.template.metadata.annotations[\"kubectl.kubernetes.io/restartedAt\"]?",
            ".webhooks[]?.clientConfig.caBundle",
            ".. | .creationTimestamp?",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..IgnoreRule::default()
    };
    let (rules, problems) = IgnoreRules::compile([rule]);
    assert!(problems.is_empty(), "{problems:?}");
    rules
}

fn bench(criterion: &mut Criterion) {
    let documents = read("schemas.json");
    let schemas = SchemaSet::from_openapi(documents.as_array().expect("documents"));
    let (none, usual) = (IgnoreRules::default(), usual_rules());
    let now = "2026-01-01T00:00:00Z".parse().expect("a time");
    let mut group = criterion.benchmark_group("judge");
    for (name, rules) in [
        "schema-default-deployment-defaults.json",
        "schema-default-claim-templates.json",
        "schema-default-steps-defaults.json",
        "equivalent-value-reprinted.json",
        "equivalent-value-string-data.json",
        "controller-owned-autoscaled.json",
        "rejected-field-exported.json",
        "unclaimed-addition-label-added.json",
    ]
    .map(|name| (name, &none))
    .into_iter()
    .chain([("schema-default-deployment-defaults.json", &usual)])
    {
        let pairs = objects(name);
        group.throughput(Throughput::Elements(u64::try_from(pairs.len()).expect("few")));
        let evidence = |(desired, live): &'_ (DesiredObject, Manifest)| {
            let evidence = Evidence {
                key: &desired.key,
                desired: Some(desired),
                live: Some(live),
                schemas: &schemas,
                rules,
                options: CompareOptions::default(),
                facts: Facts { app: "app", previous: Previous::Same, ..Facts::default() },
                answers: Answers::default(),
                now,
            };
            match judge(black_box(&evidence)) {
                Outcome::Settled(verdict) => verdict.findings.len(),
                Outcome::Ask(_) => usize::MAX,
            }
        };
        assert!(pairs.iter().all(|pair| evidence(pair) != usize::MAX), "{name} asks");
        let id = if rules.fingerprint() == 0 { name.to_owned() } else { format!("{name} with ignore rules") };
        group.bench_function(id, |bencher| bencher.iter(|| pairs.iter().map(evidence).sum::<usize>()));
    }
    let pairs = objects("schema-default-deployment-defaults.json");
    group.throughput(Throughput::Elements(1));
    group.bench_function("key of a verdict", |bencher| {
        bencher.iter(|| {
            let (desired, live) = pairs.first().expect("one");
            black_box(VerdictKey::of(&Evidence {
                key: &desired.key,
                desired: Some(desired),
                live: Some(live),
                schemas: &schemas,
                rules: &none,
                options: CompareOptions::default(),
                facts: Facts::default(),
                answers: Answers::default(),
                now,
            }))
        });
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
