//! How many health scripts a second run on one core. The aim is 20,000.

#![expect(clippy::expect_used, reason = "a benchmark has no callers")]

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plumb_core::object::Manifest;
use plumb_lua::{Limits, Scripts};
use serde_json::json;

/// A script of the usual shape: a loop over the conditions.
const SCRIPT: &str = r#"
hs = {}
if obj.status ~= nil and obj.status.conditions ~= nil then
  for i, condition in ipairs(obj.status.conditions) do
    if condition.type == "Issuing" and condition.status == "True" then
      hs.status = "Progressing"
      hs.message = condition.message
      return hs
    end
  end
  for i, condition in ipairs(obj.status.conditions) do
    if condition.type == "Ready" and condition.status == "False" then
      hs.status = "Degraded"
      hs.message = condition.message
      return hs
    end
    if condition.type == "Ready" and condition.status == "True" then
      hs.status = "Healthy"
      hs.message = condition.message
      return hs
    end
  end
end
hs.status = "Progressing"
hs.message = "Waiting for certificate"
return hs
"#;

fn health(criterion: &mut Criterion) {
    let object = Manifest::new(json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {
            "name": "web", "namespace": "shop", "generation": 1, "uid": "b2d0c9f5-0d5c-4f0b-9a53-2f4a5ed0f2c1",
            "resourceVersion": "123456", "labels": {"app": "web", "team": "shop"},
            "annotations": {"argocd.argoproj.io/tracking-id": "shop:cert-manager.io/Certificate:shop/web"},
        },
        "spec": {
            "secretName": "web-tls", "dnsNames": ["shop.example.com", "www.shop.example.com"],
            "issuerRef": {"name": "letsencrypt", "kind": "ClusterIssuer", "group": "cert-manager.io"},
            "privateKey": {"rotationPolicy": "Always"}, "usages": ["digital signature", "key encipherment"],
        },
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "Ready", "message": "Certificate is up to date",
                 "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"},
            ],
            "notAfter": "2026-04-01T00:00:00Z", "notBefore": "2026-01-01T00:00:00Z", "revision": 1,
        },
    }))
    .expect("an object");
    let key = "resource.customizations.health.cert-manager.io_Certificate";
    let data = BTreeMap::from([(key.to_owned(), SCRIPT.to_owned())]);
    let (scripts, _) = Scripts::parse(&data, Limits::default());
    let mut group = criterion.benchmark_group("lua");
    group.throughput(Throughput::Elements(1));
    group.bench_function("health", |bencher| bencher.iter(|| scripts.health(black_box(&object))));
    group.finish();
}

criterion_group!(benches, health);
criterion_main!(benches);
