//! Reading, writing and waiting.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PropagationPolicy};
use serde_json::{Value, json};

use super::kinds::Kinds;
use super::test_namespace::{MANAGER, TestNamespace};
use crate::record::Recording;
use crate::wait::{self, LIMIT, Seen, Selection};

impl TestNamespace {
    /// Server-side apply as `plumb-test`, forced.
    pub async fn apply(&self, object: &Value) -> Result<Value> {
        self.apply_as(MANAGER, object).await
    }

    /// Server-side apply as the named field manager, forced.
    pub async fn apply_as(&self, manager: &str, object: &Value) -> Result<Value> {
        let place = self.kinds.place(object, Some(&self.name)).await?;
        if place.namespace.is_none() {
            self.remember_cluster_wide(object);
        }
        let params = PatchParams::apply(manager).force();
        let live = place.api.patch(&place.name, &params, &Patch::Apply(object)).await;
        to_value(live.with_context(|| format!("apply {} as {manager}", describe(object)))?)
    }

    /// Merge patch as the named field manager: what a client does that edits.
    pub async fn patch_as(&self, manager: &str, object: &Value, patch: &Value) -> Result<Value> {
        let place = self.kinds.place(object, Some(&self.name)).await?;
        let live = place.api.patch(&place.name, &as_manager(manager), &Patch::Merge(patch)).await;
        to_value(live.with_context(|| format!("patch {} as {manager}", describe(object)))?)
    }

    /// Merge patch of the status as the named field manager: what a controller does.
    pub async fn patch_status_as(&self, manager: &str, object: &Value, status: &Value) -> Result<Value> {
        let place = self.kinds.place(object, Some(&self.name)).await?;
        let patch = Patch::Merge(json!({"status": status}));
        let live = place.api.patch_status(&place.name, &as_manager(manager), &patch).await;
        to_value(live.with_context(|| format!("patch the status of {} as {manager}", describe(object)))?)
    }

    /// Sets the replicas through the scale subresource: what an autoscaler does.
    pub async fn scale_as(&self, manager: &str, object: &Value, replicas: u32) -> Result<()> {
        let place = self.kinds.place(object, Some(&self.name)).await?;
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let scaled = place.api.patch_scale(&place.name, &as_manager(manager), &patch).await;
        scaled.with_context(|| format!("scale {} as {manager}", describe(object)))?;
        Ok(())
    }

    /// The live object, if it exists.
    pub async fn get(&self, object: &Value) -> Result<Option<Value>> {
        let place = self.kinds.place(object, Some(&self.name)).await?;
        let live =
            place.api.get_opt(&place.name).await.with_context(|| format!("get {}", describe(object)))?;
        live.map(to_value).transpose()
    }

    /// What the server answers to a path that belongs to no object: its schemas, its health.
    pub async fn read(&self, path: &str) -> Result<String> {
        let request = http::Request::get(path).body(Vec::new())?;
        Ok(self.client().request_text(request).await?)
    }

    /// All objects of a kind with these labels (all if empty), in this namespace if it has any.
    pub async fn list(&self, version: &str, kind: &str, labels: &str) -> Result<Seen> {
        self.wait_list(version, kind, labels, "can be listed", |_| true).await
    }

    /// Asks for the deletion; its end is another fact to wait for.
    pub async fn delete(&self, object: &Value) -> Result<()> {
        delete(&self.kinds, object, Some(&self.name)).await
    }

    /// Waits until the object exists and the check holds, and returns it as it then is.
    pub async fn wait(&self, object: &Value, what: &str, check: impl Fn(&Value) -> bool) -> Result<Value> {
        self.wait_within(LIMIT, object, what, check).await
    }

    /// [`wait`](Self::wait) with a limit of its own.
    pub async fn wait_within(
        &self,
        limit: Duration,
        object: &Value,
        what: &str,
        check: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let place = self.kinds.place(object, Some(&self.name)).await?;
        let selection = Selection::Name(place.name.clone());
        let mut seen =
            wait::until(&place.api, &selection, limit, what, |seen| seen.values().any(&check)).await?;
        seen.remove(&place.name).with_context(|| format!("{} is gone", describe(object)))
    }

    /// Waits until the object does not exist.
    pub async fn wait_gone(&self, object: &Value) -> Result<()> {
        let place = self.kinds.place(object, Some(&self.name)).await?;
        let selection = Selection::Name(place.name);
        wait::until(&place.api, &selection, LIMIT, "is gone", Seen::is_empty).await.map(drop)
    }

    /// Records all objects of a kind from now on, those that go again too.
    pub async fn record(&self, version: &str, kind: &str) -> Result<Recording> {
        let (api, _) = self.kinds.api(version, kind, Some(&self.name)).await?;
        Ok(Recording::start(api))
    }

    /// Waits until the check holds for all objects of a kind with these labels (all if empty).
    pub async fn wait_list(
        &self,
        version: &str,
        kind: &str,
        labels: &str,
        what: &str,
        check: impl Fn(&Seen) -> bool,
    ) -> Result<Seen> {
        let (api, _) = self.kinds.api(version, kind, Some(&self.name)).await?;
        wait::until(&api, &Selection::Labels(labels.to_owned()), LIMIT, what, check).await
    }
}

pub(super) async fn delete(kinds: &Kinds, object: &Value, namespace: Option<&str>) -> Result<()> {
    let place = kinds.place(object, namespace).await?;
    let params =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..Default::default() };
    match place.api.delete(&place.name, &params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error).with_context(|| format!("delete {}", describe(object))),
    }
}

fn as_manager(manager: &str) -> PatchParams {
    PatchParams { field_manager: Some(manager.to_owned()), ..Default::default() }
}

fn to_value(object: DynamicObject) -> Result<Value> {
    serde_json::to_value(object).context("read the server's answer")
}

fn describe(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("?");
    format!("{} {}", text("/kind"), text("/metadata/name"))
}
