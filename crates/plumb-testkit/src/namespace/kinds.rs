//! Which API serves a kind, asked once per kind.

use std::collections::HashMap;

use anyhow::{Context, Result};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind},
    discovery::{Scope, pinned_kind},
};
use parking_lot::Mutex;
use serde_json::Value;

pub(super) struct Kinds {
    client: Client,
    known: Mutex<HashMap<GroupVersionKind, (ApiResource, Scope)>>,
}

/// Where an object is.
pub(super) struct Place {
    pub(super) api: Api<DynamicObject>,
    pub(super) name: String,
    /// None for a kind that has no namespaces.
    pub(super) namespace: Option<String>,
}

impl Kinds {
    pub(super) fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// The API and name of an object; one that names no namespace is in the default one.
    pub(super) async fn place(&self, object: &Value, default_namespace: Option<&str>) -> Result<Place> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let name = text("/metadata/name").context("the object has no metadata.name")?.to_owned();
        let kind = text("/kind").context("the object has no kind")?;
        let version = text("/apiVersion").context("the object has no apiVersion")?;
        let namespace = text("/metadata/namespace").or(default_namespace);
        let (api, namespace) = self.api(version, kind, namespace).await?;
        Ok(Place { api, name, namespace })
    }

    /// The API of a kind, in a namespace if it has any.
    pub(super) async fn api(
        &self,
        version: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> Result<(Api<DynamicObject>, Option<String>)> {
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let (resource, scope) = self.resource(&gvk).await?;
        Ok(match scope {
            Scope::Cluster => (Api::all_with(self.client.clone(), &resource), None),
            Scope::Namespaced => {
                let namespace = namespace.with_context(|| format!("{kind} needs a namespace"))?;
                let api = Api::namespaced_with(self.client.clone(), namespace, &resource);
                (api, Some(namespace.to_owned()))
            }
        })
    }

    async fn resource(&self, gvk: &GroupVersionKind) -> Result<(ApiResource, Scope)> {
        let known = self.known.lock().get(gvk).cloned();
        if let Some(found) = known {
            return Ok(found);
        }
        let (resource, capabilities) =
            pinned_kind(&self.client, gvk).await.with_context(|| format!("find the API of {gvk:?}"))?;
        let found = (resource, capabilities.scope);
        self.known.lock().insert(gvk.clone(), found.clone());
        Ok(found)
    }
}
