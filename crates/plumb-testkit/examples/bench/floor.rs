//! What no engine can be faster than: the writes themselves.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Api, Client};
use plumb_testkit::wait::{self, Selection};
use serde_json::{Value, json};

use crate::Bench;
use crate::phases::LIMIT;
use crate::workload::{FLOOR_NAMESPACE, kind};

/// The API of a kind in a namespace, without asking the server: every kind here has a plain plural.
pub(crate) fn api(client: &Client, namespace: &str, object: &Value) -> Api<DynamicObject> {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind(object)));
    match kind(object) {
        "Namespace" | "CustomResourceDefinition" => Api::all_with(client.clone(), &resource),
        _ => Api::namespaced_with(client.clone(), namespace, &resource),
    }
}

/// Applies objects server-side, as many at a time as the engine does.
pub(crate) async fn apply(bench: &Bench, namespace: &str, objects: Vec<Value>) -> Result<()> {
    let params = PatchParams::apply("plumb-bench").force();
    stream::iter(objects)
        .map(|object| {
            let params = params.clone();
            async move {
                let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                api(&bench.client, namespace, &object)
                    .patch(&name, &params, &Patch::Apply(&object))
                    .await
                    .map(drop)
                    .with_context(|| format!("apply {} {name}", kind(&object)))
            }
        })
        .buffer_unordered(bench.args.concurrency)
        .try_collect()
        .await
}

/// What the work takes without any engine.
#[derive(Clone, Copy)]
pub(crate) struct Floor {
    /// The bare writes.
    pub(crate) written: Duration,
    /// Until the deployment controller is through with them, too. No engine can say earlier that all is well.
    pub(crate) rolled_out: Duration,
}

/// How long the bare writes take, and what controllers make of them. The end is waited for, so that it is not in
/// the engine's way.
pub(crate) async fn measure(bench: &Bench, objects: Vec<Value>) -> Result<Floor> {
    let start = Instant::now();
    apply(bench, FLOOR_NAMESPACE, objects).await?;
    let written = start.elapsed();
    rolled_out(bench).await?;
    Ok(Floor { written, rolled_out: start.elapsed() })
}

/// Until the deployment controller is through with everything.
pub(crate) async fn rolled_out(bench: &Bench) -> Result<()> {
    let any = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}});
    let deployments = api(&bench.client, FLOOR_NAMESPACE, &any);
    let is_seen = |deployment: &Value| {
        let progress = deployment["status"]["conditions"].as_array().into_iter().flatten();
        deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]
            && progress.into_iter().any(|condition| condition["reason"] == "NewReplicaSetAvailable")
    };
    let all = Selection::Labels(String::new());
    wait::until(&deployments, &all, LIMIT, "are rolled out", |seen| seen.values().all(is_seen)).await?;
    Ok(())
}
