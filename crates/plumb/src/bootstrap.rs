//! Applying what plumb needs in a cluster.

use plumb_core::object::{Manifest, ObjectKey, has_all};
use plumb_crd::install;
use plumb_kube::{ApplyOptions, ClusterClient, FieldValidation, WritePermit};
use serde_json::Value;

use crate::context::{Context, gate};
use crate::error::CommandError;

/// The field manager of what `plumb install` applies.
pub(crate) const INSTALL_MANAGER: &str = "plumb-install";

/// Applies what a laptop needs: CRDs, the namespace and the default project. Existing objects are not changed, except
/// plumb's own CRDs, which are updated.
pub(crate) async fn apply_for_laptop(context: &Context) -> Result<(), CommandError> {
    let client = context.client_of_all_kinds().await?;
    let mut missing = Vec::new();
    for object in plumb_crd::crds().into_iter().chain([install::namespace(context.namespace())]) {
        let manifest = manifest(&object)?;
        let Some(key) = manifest.key() else { continue };
        let found =
            client.get(&key).await.map_err(|error| CommandError::api(format!("read {key}"), error))?;
        let is_ours = key.name.ends_with(".plumb.dev");
        let is_there = found.is_some_and(|found| !is_ours || has_all(found.value(), &object));
        if !is_there {
            missing.push(object);
        }
    }
    // `plumb run` logs in the format that the user chose, so this must not print.
    let log = |key: &ObjectKey| tracing::info!(object = %key, "applied");
    apply_all(&client, &missing, log).await?;
    make_default_project(&client, context.namespace(), log).await?;
    wait_until_served(&client, &ObjectKey::new("plumb.dev", "DriftReport", None, "")).await
}

/// Creates the default project, unless the namespace had one before: an operator may have deleted it. An existing one is not
/// changed: it may permit less.
pub(crate) async fn make_default_project(
    client: &ClusterClient,
    namespace: &str,
    report: impl Fn(&ObjectKey),
) -> Result<(), CommandError> {
    let project = install::default_project(namespace);
    let Some(key) = manifest(&project)?.key() else { return Ok(()) };
    wait_until_served(client, &key).await?;
    let state = ObjectKey::new("", "ConfigMap", Some(namespace.to_owned()), install::STATE_CONFIG_MAP);
    let state =
        client.get(&state).await.map_err(|error| CommandError::api(format!("read {state}"), error))?;
    if state.is_some_and(|state| install::had_default_project(state.value())) {
        return Ok(());
    }
    let found = client.get(&key).await.map_err(|error| CommandError::api(format!("read {key}"), error))?;
    if found.is_none() {
        apply_all(client, &[project], report).await?;
    }
    // At once: from here on a missing project is one that an operator deleted.
    apply_all(client, &[install::state_config_map(namespace)], |_| ()).await
}

/// Waits for the API server to serve a kind: it takes a moment after its CRD was applied.
async fn wait_until_served(client: &ClusterClient, key: &ObjectKey) -> Result<(), CommandError> {
    for _ in 0..100 {
        let catalog = client
            .discover()
            .await
            .map_err(|error| CommandError::api("discover the kinds of the API server", error))?;
        if catalog.kind(&key.group_kind()).is_some() {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    Err(CommandError::new(format!("{} is not served 10 s after its CRD was applied", key.group_kind()))
        .hint("`kubectl get crd -o yaml` shows the conditions of the CRD"))
}

pub(crate) async fn apply_all(
    client: &ClusterClient,
    objects: &[Value],
    report: impl Fn(&ObjectKey),
) -> Result<(), CommandError> {
    let gate = gate(client);
    let options = ApplyOptions {
        field_manager: INSTALL_MANAGER.to_owned(),
        force: true,
        field_validation: FieldValidation::Strict,
        subresource: None,
    };
    for object in objects {
        let manifest = manifest(object)?;
        let Some(key) = manifest.key() else { continue };
        wait_until_served(client, &key).await?;
        let permit = WritePermit::requested_by_user(key.clone());
        gate.apply(&permit, &manifest, &options)
            .await
            .map_err(|error| CommandError::write(format!("apply {key}"), error))?;
        report(&key);
    }
    Ok(())
}

fn manifest(object: &Value) -> Result<Manifest, CommandError> {
    Manifest::new(object.clone())
        .map_err(|error| CommandError::because("build the objects to install", error))
}
