//! What is deployed: the shape that Flux measures its mean time to production with.

use plumb_testkit::objects;
use serde_json::{Value, json};

/// Where the engine deploys, and where the floor does.
pub(crate) const NAMESPACE: &str = "bench";
pub(crate) const FLOOR_NAMESPACE: &str = "bench-floor";

/// Apps that are measured together.
#[derive(Clone, Copy)]
pub(crate) struct Fleet {
    /// Where they deploy.
    pub(crate) namespace: &'static str,
    /// What their names start with.
    pub(crate) prefix: &'static str,
    /// The value of their label `bench`.
    pub(crate) label: &'static str,
}

/// The apps of the plain bench.
pub(crate) const FLEET: Fleet = Fleet { namespace: NAMESPACE, prefix: "bench", label: "1" };

/// One app: a Deployment without replicas, so that no pod's start is measured, and what goes with it.
pub(crate) fn objects_of(app: usize, cpu: &str) -> Vec<Value> {
    let name = format!("podinfo-{app}");
    let ports = |port: &str| json!([{"name": "http", port: 9898}, {"name": "grpc", port: 9999}]);
    let mut service = objects::service(&name, 9898);
    service["spec"] = json!({"selector": {"app": name}, "ports": ports("port")});
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "serviceAccountName": name,
                    "containers": [{
                        "name": "podinfo",
                        "image": "podinfo:6",
                        "ports": ports("containerPort"),
                        "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
                    }],
                },
            },
        },
    });
    let text = "x".repeat(1500);
    vec![
        objects::service_account(&name),
        objects::config_map(&name, &[("cpu", cpu), ("text", &text)]),
        service,
        deployment,
    ]
}

/// Those of them that an upgrade changes.
pub(crate) fn upgraded(objects: Vec<Value>) -> Vec<Value> {
    objects.into_iter().filter(|object| ["ConfigMap", "Deployment"].contains(&kind(object))).collect()
}

pub(crate) fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

/// The repository's files for all apps.
pub(crate) fn files(n_apps: usize, cpu: &str) -> Vec<(String, String)> {
    (0..n_apps)
        .map(|app| (format!("apps/{app}/all.yaml"), objects::manifests(&objects_of(app, cpu))))
        .collect()
}

/// Ten waves of ten objects.
pub(crate) fn waves() -> Vec<(String, String)> {
    (0..10)
        .map(|wave| {
            let in_wave: Vec<Value> = (0..10)
                .map(|index| {
                    let object = objects::config_map(&format!("w{wave}-{index}"), &[]);
                    objects::annotated(object, "argocd.argoproj.io/sync-wave", &wave.to_string())
                })
                .collect();
            (format!("waves/{wave}.yaml"), objects::manifests(&in_wave))
        })
        .collect()
}

/// An app that syncs and heals by itself.
pub(crate) fn application(fleet: Fleet, name: &str, repo_url: &str, path: &str) -> Value {
    let mut application = objects::application(name, repo_url, path, fleet.namespace);
    application["spec"]["source"]["targetRevision"] = json!("main");
    application["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true, "prune": true}});
    objects::labelled(application, "bench", fleet.label)
}
