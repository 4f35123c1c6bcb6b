//! The least that an upgrade asks of the API server, whatever engine does it: the requests for a look, the applies of
//! what changed, the rollouts, and one status for each app. Sent bare, in less order than an engine has to keep: no
//! status waits for its rollout.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::Bench;
use crate::floor::{self, rolled_out};
use crate::phases::{applications, refresh};
use crate::workload::{self, FLOOR_NAMESPACE};

/// Copies the engine's Applications, statuses included, to where no engine looks, and measures.
pub(crate) async fn measure(bench: &Bench, cpu: &str) -> Result<Duration> {
    let copies = copy(bench).await?;
    let api = applications_apart(bench);
    let start = Instant::now();
    stream::iter(copies.iter().enumerate())
        .map(|(app, copy)| upgrade_one(bench, &api, app, copy, cpu))
        .buffer_unordered(bench.args.concurrency)
        .try_collect::<()>()
        .await?;
    rolled_out(bench).await?;
    let took = start.elapsed();
    let labels = ListParams::default().labels("bench=1");
    api.delete_collection(&kube::api::DeleteParams::default(), &labels).await.context("remove the copies")?;
    Ok(took)
}

fn applications_apart(bench: &Bench) -> Api<DynamicObject> {
    let any = plumb_testkit::objects::application("", "", "", "");
    floor::api(&bench.client, FLOOR_NAMESPACE, &any)
}

async fn copy(bench: &Bench) -> Result<Vec<Value>> {
    let of_engine = applications(bench).list(&ListParams::default().labels("bench=1")).await?;
    let api = applications_apart(bench);
    let mut copies = Vec::new();
    for application in of_engine {
        let (name, data) = (application.metadata.name.unwrap_or_default(), application.data);
        let copy = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "namespace": FLOOR_NAMESPACE, "labels": {"bench": "1"}},
            "spec": data["spec"], "status": data["status"],
        });
        api.create(&PostParams::default(), &serde_json::from_value(copy.clone())?)
            .await
            .context("copy an Application")?;
        copies.push(copy);
    }
    Ok(copies)
}

async fn upgrade_one(
    bench: &Bench,
    api: &Api<DynamicObject>,
    app: usize,
    copy: &Value,
    cpu: &str,
) -> Result<()> {
    let name = copy["metadata"]["name"].as_str().unwrap_or_default();
    let patch = async |patch: &Value| {
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.context("write an Application")
    };
    patch(&refresh()).await?;
    floor::apply(bench, FLOOR_NAMESPACE, workload::upgraded(workload::objects_of(app, cpu))).await?;
    patch(&next_status(copy)).await?;
    Ok(())
}

/// The status after one more sync, of another commit.
fn next_status(copy: &Value) -> Value {
    let before = copy["status"]["sync"]["revision"].as_str().unwrap_or_default();
    let after: String = before.chars().rev().collect();
    let text = copy["status"].to_string().replace(before, &after);
    let mut status: Value = serde_json::from_str(&text).unwrap_or_default();
    let earlier = copy["status"]["history"].as_array().cloned().unwrap_or_default();
    if let Some(history) = status["history"].as_array_mut() {
        history.splice(0..0, earlier);
    }
    json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": null}}, "status": status})
}
