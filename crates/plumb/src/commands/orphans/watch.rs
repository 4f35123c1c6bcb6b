//! Watching what could be harmed by a deletion.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plumb_core::health::HealthStatus;
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use plumb_core::orphans::{Orphan, health_of, worse};
use plumb_kube::{ClusterClient, Selection};
use tokio::time::{Instant, sleep};

use crate::error::CommandError;

/// How often it looks.
const EVERY: Duration = Duration::from_secs(1);
/// An object with finalizers may take this long.
const GONE_WITHIN: Duration = Duration::from_secs(30);
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// What refers to an orphan, and the workloads beside it.
pub(super) struct Watched {
    users: BTreeSet<ObjectKey>,
    namespace: Option<String>,
    before: BTreeMap<ObjectKey, (HealthStatus, String)>,
}

impl Watched {
    /// Notes the health before the deletion.
    pub(super) async fn start(client: &ClusterClient, orphan: &Orphan) -> Result<Self, CommandError> {
        let users = orphan.staying_users().map(|user| user.key.clone()).collect();
        let mut watched = Self { users, namespace: orphan.key.namespace.clone(), before: BTreeMap::new() };
        watched.before = watched.look(client, &orphan.key).await?;
        Ok(watched)
    }

    /// What became worse within this time; nothing if all is well.
    pub(super) async fn trouble(
        &self,
        client: &ClusterClient,
        key: &ObjectKey,
        for_seconds: u64,
    ) -> Result<Vec<String>, CommandError> {
        let end = Instant::now() + Duration::from_secs(for_seconds);
        loop {
            let found = worse(&self.before, &self.look(client, key).await?);
            if !found.is_empty() || Instant::now() >= end || self.before.is_empty() {
                return Ok(found);
            }
            sleep(EVERY.min(end - Instant::now())).await;
        }
    }

    async fn look(
        &self,
        client: &ClusterClient,
        orphan: &ObjectKey,
    ) -> Result<BTreeMap<ObjectKey, (HealthStatus, String)>, CommandError> {
        let mut objects: BTreeMap<ObjectKey, Manifest> = BTreeMap::new();
        for key in &self.users {
            let found = client.get(key).await;
            let found = found.map_err(|error| CommandError::api(format!("read {key}"), error))?;
            objects.extend(found.map(|object| (key.clone(), object)));
        }
        if self.namespace.is_some() {
            let selection = Selection { namespace: self.namespace.clone(), ..Selection::default() };
            for kind in WORKLOADS {
                let gvk = GroupVersionKind::from_api_version("apps/v1", kind);
                let found = client.list(&gvk, &selection).await;
                let found =
                    found.map_err(|error| CommandError::api(format!("list {kind} objects"), error))?;
                objects.extend(found.into_iter().filter_map(|object| Some((object.key()?, object))));
            }
        }
        objects.remove(orphan);
        Ok(health_of(&objects))
    }
}

/// Waits until an object is gone; false if it stays.
pub(super) async fn wait_until_gone(client: &ClusterClient, orphan: &Manifest) -> Result<bool, CommandError> {
    let Some(key) = orphan.key() else { return Ok(true) };
    let end = Instant::now() + GONE_WITHIN;
    loop {
        let found = client.get(&key).await;
        let found = found.map_err(|error| CommandError::api(format!("read {key}"), error))?;
        if found.is_none_or(|found| found.uid() != orphan.uid()) {
            return Ok(true);
        }
        if Instant::now() >= end {
            return Ok(false);
        }
        sleep(EVERY / 4).await;
    }
}
