//! The namespace itself: made for one test, deleted with it.

use std::{
    path::Path,
    process,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use kube::Client;
use parking_lot::Mutex;
use serde_json::Value;

use super::access;
use super::kinds::Kinds;
use crate::objects;
use crate::shared::{SharedCluster, client_for, shared_cluster};

/// The user agent and field manager of what a test itself does, unless it says otherwise.
pub(super) const MANAGER: &str = "plumb-test";

/// A namespace of one test in the shared cluster. Dropping it deletes it, and the cluster-wide
/// objects that the test applied through it.
///
/// Objects are JSON values. Where a method takes an object to name one, `apiVersion`, `kind` and
/// `metadata.name` are enough, so the value that was applied will do. An object of a namespaced
/// kind that names no namespace is in this one.
pub struct TestNamespace {
    pub(super) name: String,
    cluster: &'static SharedCluster,
    client: Client,
    pub(super) kinds: Kinds,
    cluster_wide: Mutex<Vec<Value>>,
}

impl TestNamespace {
    /// Makes a namespace in the shared cluster, which is started if need be, and waits until pods
    /// can be created in it.
    pub async fn new() -> Result<Self> {
        let cluster = tokio::task::spawn_blocking(shared_cluster).await.context("start the cluster")??;
        Self::in_cluster(cluster).await
    }

    /// The same in a cluster that the test chose.
    pub async fn in_cluster(cluster: &'static SharedCluster) -> Result<Self> {
        let client = client_for(cluster.kubeconfig(), MANAGER).await?;
        let test = Self {
            name: unique_name(),
            cluster,
            kinds: Kinds::new(client.clone()),
            client,
            cluster_wide: Mutex::default(),
        };
        test.apply(&objects::namespace(&test.name)).await?;
        test.wait(&objects::service_account("default"), "exists", |_| true).await?;
        Ok(test)
    }

    /// Its name, which no other test has.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The cluster it is in.
    pub fn cluster(&self) -> &'static SharedCluster {
        self.cluster
    }

    /// A client of this test's runtime that may do everything.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A kubeconfig that may do everything.
    pub fn kubeconfig(&self) -> &Path {
        self.cluster.kubeconfig()
    }

    pub(super) fn remember_cluster_wide(&self, object: &Value) {
        self.cluster_wide.lock().push(object.clone());
    }
}

impl Drop for TestNamespace {
    /// Asks for the deletion and does not wait for its end. The test's runtime may be gone or
    /// busy, so this uses one of its own.
    fn drop(&mut self) {
        let objects = std::mem::take(self.cluster_wide.get_mut());
        let kubeconfig = self.cluster.kubeconfig().to_path_buf();
        let deletion = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let kinds = Kinds::new(client_for(&kubeconfig, MANAGER).await?);
                for object in objects.iter().rev() {
                    // A failed clean-up must not hide the test's own result.
                    let _ = access::delete(&kinds, object, None).await;
                }
                anyhow::Ok(())
            })
        });
        let _ = deletion.join();
    }
}

/// Names are never used again, in no process: the cluster may be one that lives on.
fn unique_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis());
    format!("test-{now:x}-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
