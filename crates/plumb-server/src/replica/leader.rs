//! Where the leader is. The leader publishes it once per term, the others read it where they follow failed logins.

use std::collections::BTreeMap;

use plumb_api::{Code, Status};
use plumb_crd::settings::SecretData;
use serde_json::json;

use super::keys::ReplicaKeys;
use crate::backend::{Backend, Known};
use crate::state::{SECRET, SESSIONS, State};

/// The key of the leader's address.
const LEADER: &str = "leader";
/// How often it is tried again after another replica was faster.
const ATTEMPTS: usize = 5;

/// The keys of the replicas, from the cluster: the watches of the server may not have started yet.
async fn read_keys(backend: &Backend, namespace: &str) -> Result<ReplicaKeys, Status> {
    let secret = backend.get(Known::Secret, namespace, SECRET).await?;
    let data = secret.as_ref().and_then(|secret| SecretData::read(secret.value()).ok());
    let key = data.as_ref().and_then(|(data, _)| data.get("server.secretkey"));
    let keys = key.and_then(|key| ReplicaKeys::derive(key.expose().as_bytes()));
    keys.ok_or_else(|| Status::unavailable("the server has no key yet"))
}

/// Publishes the address of this process, which leads.
pub(crate) async fn publish(backend: &Backend, namespace: &str, address: &str) -> Result<(), Status> {
    let place = read_keys(backend, namespace).await?.place(address);
    for _ in 0..ATTEMPTS {
        let stored = backend.get(Known::ConfigMap, namespace, SESSIONS).await?;
        let known = stored.as_ref().and_then(|stored| stored.value().pointer("/data/leader")?.as_str());
        if known == Some(place.as_str()) {
            return Ok(());
        }
        let written = match &stored {
            None => {
                let labels =
                    json!({"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/name": SESSIONS});
                let object = json!({
                    "apiVersion": "v1", "kind": "ConfigMap", "data": {LEADER: place},
                    "metadata": {"name": SESSIONS, "namespace": namespace, "labels": labels},
                });
                backend.create(object).await
            }
            Some(_) => {
                backend.patch(Known::ConfigMap, namespace, SESSIONS, json!({"data": {LEADER: place}})).await
            }
        };
        match written {
            Ok(_) => return Ok(()),
            Err(status) if matches!(status.code, Code::Aborted | Code::AlreadyExists) => {}
            Err(status) => return Err(status),
        }
    }
    Err(Status::unavailable("other replicas keep changing the address of the leader"))
}

/// The address that the leader published.
pub(crate) fn find_leader(state: &State, keys: &ReplicaKeys) -> Option<String> {
    let sessions: std::sync::Arc<BTreeMap<String, String>> = state.sessions();
    sessions.get(LEADER).and_then(|place| keys.address_of(place)).map(str::to_owned)
}
