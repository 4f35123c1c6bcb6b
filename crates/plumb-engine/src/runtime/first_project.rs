//! The project `default`, which permits everything.
//!
//! Argo CD creates it at each start if it does not exist. An operator who deletes it to close the installation would get it
//! back, so plumb creates it only in a namespace that never had it, and records that.

use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use plumb_crd::AppProject;
use plumb_crd::install::{STATE_CONFIG_MAP, default_project, had_default_project, state_config_map};
use plumb_kube::{ApiError, ClusterClient, Gate, OwnWrite, Reason, Selection};
use serde_json::Value;
use tracing::{info, warn};

/// Creates the project in a namespace without any project. An existing one stays as it is, whatever it permits.
pub(super) async fn create(client: &ClusterClient, gate: &Gate, namespace: &str) {
    match had_one(client, namespace).await {
        Ok(true) => return,
        Ok(false) => {}
        Err(error) => {
            return warn!(%error, "cannot tell whether the project `default` existed; it is not created");
        }
    }
    let gvk = GroupVersionKind::from_api_version(AppProject::API_VERSION, AppProject::KIND);
    let selection = Selection { namespace: Some(namespace.to_owned()), ..Selection::default() };
    match client.list(&gvk, &selection).await {
        // The operator has chosen the projects.
        Ok(projects) if !projects.is_empty() => {}
        Ok(_) => match put(gate, default_project(namespace)).await {
            Ok(()) => info!("created the project `default`, which permits everything"),
            Err(error) => return warn!(error, "cannot create the project `default`"),
        },
        Err(error) => return warn!(%error, "cannot list projects; the project `default` is not created"),
    }
    if let Err(error) = put(gate, state_config_map(namespace)).await {
        warn!(error, "cannot record that the project `default` existed");
    }
}

/// True if the record says that the namespace had the project before.
async fn had_one(client: &ClusterClient, namespace: &str) -> Result<bool, ApiError> {
    let key = ObjectKey::new("", "ConfigMap", Some(namespace.to_owned()), STATE_CONFIG_MAP);
    Ok(client.get(&key).await?.is_some_and(|state| had_default_project(state.value())))
}

async fn put(gate: &Gate, object: Value) -> Result<(), String> {
    let manifest = Manifest::new(object).map_err(|error| error.to_string())?;
    let create = OwnWrite::Create { manifest, field_manager: "plumb".to_owned() };
    match gate.write_own(&create).await {
        Ok(_) => Ok(()),
        Err(error) if error.api().and_then(ApiError::reason) == Some(&Reason::AlreadyExists) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
