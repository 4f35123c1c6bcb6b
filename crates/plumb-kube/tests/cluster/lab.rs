//! A namespace to work in.

use std::path::Path;
use std::time::Duration;

use plumb_core::desired::Propagation;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::tracking::TrackingSettings;
use plumb_kube::{
    ApplyOptions, ClusterClient, Connection, DeleteOptions, DeletePermit, Fence, Gate, LiveOptions,
    LiveStore, Target, WritePermit, owner_by,
};
use serde_json::{Value, json};

pub(crate) struct Lab {
    pub(crate) client: ClusterClient,
    pub(crate) gate: Gate,
    pub(crate) namespace: String,
}

/// A client with its catalog and an empty namespace; without a cluster `None`, after printing that the test
/// is skipped.
pub(crate) async fn lab(test: &str) -> Option<Lab> {
    #[expect(clippy::disallowed_methods, reason = "tests have no configuration but this variable")]
    let Ok(kubeconfig) = std::env::var("PLUMB_TEST_KUBECONFIG") else {
        println!("skipped: PLUMB_TEST_KUBECONFIG is not set");
        return None;
    };
    let connection = Connection::from_kubeconfig(Path::new(&kubeconfig), None).await.unwrap();
    let client = connection.client().unwrap();
    client.discover().await.unwrap();
    let gate = Gate::new(client.clone(), Fence::of_command(), None);
    let namespace = format!("kube-{test}-{}", std::process::id());
    let lab = Lab { client, gate, namespace };
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": lab.namespace}});
    lab.apply(object).await;
    Some(lab)
}

impl Lab {
    /// Follows the cluster, complete.
    pub(crate) async fn store(&self) -> LiveStore {
        let options = LiveOptions::new(owner_by(TrackingSettings::default()));
        let store = LiveStore::start(self.client.clone(), options);
        within(30, store.wait_complete()).await;
        store
    }

    pub(crate) async fn apply(&self, object: Value) -> Manifest {
        apply(&self.gate, object).await
    }

    pub(crate) async fn delete(&self, object: &Manifest) {
        let permit = DeletePermit::requested_by_user(object.key().unwrap(), object.uid().unwrap());
        self.gate.delete(&permit, &Target::of(object).unwrap(), &at_once()).await.unwrap();
    }

    pub(crate) fn key(&self, group: &str, kind: &str, name: &str) -> ObjectKey {
        ObjectKey::new(group, kind, Some(self.namespace.clone()), name)
    }

    /// A `ConfigMap`, with the mark of `app` if given.
    pub(crate) fn config_map(&self, name: &str, app: Option<&str>, text: &str) -> Value {
        let namespace = &self.namespace;
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace}, "data": {"text": text}});
        if let Some(app) = app {
            object["metadata"]["annotations"] =
                json!({"argocd.argoproj.io/tracking-id": format!("{app}:/ConfigMap:{namespace}/{name}")});
        }
        object
    }
}

/// Without waiting for the garbage collector.
pub(crate) fn at_once() -> DeleteOptions {
    DeleteOptions { propagation: Propagation::Background, ..DeleteOptions::default() }
}

pub(crate) async fn apply(gate: &Gate, object: Value) -> Manifest {
    let manifest = Manifest::new(object).unwrap();
    let permit = WritePermit::requested_by_user(manifest.key().unwrap());
    gate.apply(&permit, &manifest, &ApplyOptions::default()).await.unwrap().manifest
}

/// Fails the test when it takes longer than a real server could.
pub(crate) async fn within<T>(seconds: u64, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(seconds), work).await.expect("it took too long")
}
