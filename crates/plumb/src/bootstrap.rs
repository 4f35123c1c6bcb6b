//! Applying what plumb needs in a cluster.

use plumb_core::object::{Manifest, ObjectKey, has_all};
use plumb_crd::install;
use plumb_kube::{ApplyOptions, ClusterClient, FieldValidation, WritePermit};
use serde_json::Value;

use crate::context::{Context, gate};
use crate::error::CommandError;

/// What a laptop needs: CRDs, the namespace and the default project. What exists is left alone, apart from
/// CRDs, which are brought up to date unless Argo CD installed them.
pub(crate) async fn apply_for_laptop(context: &Context) -> Result<(), CommandError> {
    let client = context.client_of_all_kinds().await?;
    let mut missing = Vec::new();
    for object in plumb_crd::crds().into_iter().chain([install::namespace(context.namespace())]) {
        let manifest = manifest(&object)?;
        let Some(key) = manifest.key() else { continue };
        let found =
            client.get(&key).await.map_err(|error| CommandError::api(format!("look for {key}"), error))?;
        let is_ours = key.name.ends_with(".plumb.dev");
        let is_there = found.is_some_and(|found| !is_ours || has_all(found.value(), &object));
        if !is_there {
            missing.push(object);
        }
    }
    // What the engine says is in its log, in the form that was asked for.
    let log = |key: &ObjectKey| tracing::info!(object = %key, "applied");
    apply_all(&client, &missing, log).await?;
    make_default_project(&client, context.namespace(), log).await?;
    wait_until_served(&client, &ObjectKey::new("plumb.dev", "DriftReport", None, "")).await
}

/// One that is there may permit less, and stays as it is.
pub(crate) async fn make_default_project(
    client: &ClusterClient,
    namespace: &str,
    tell: impl Fn(&ObjectKey),
) -> Result<(), CommandError> {
    let project = install::default_project(namespace);
    let Some(key) = manifest(&project)?.key() else { return Ok(()) };
    wait_until_served(client, &key).await?;
    let found =
        client.get(&key).await.map_err(|error| CommandError::api(format!("look for {key}"), error))?;
    if found.is_none() {
        apply_all(client, &[project], tell).await?;
    }
    Ok(())
}

/// A CRD that was just applied is served a moment later.
async fn wait_until_served(client: &ClusterClient, key: &ObjectKey) -> Result<(), CommandError> {
    for _ in 0..100 {
        let catalog = client
            .discover()
            .await
            .map_err(|error| CommandError::api("ask the API server what it serves", error))?;
        if catalog.kind(&key.group_kind()).is_some() {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    Err(CommandError::new(format!(
        "{} is not served 10 s after its definition was applied",
        key.group_kind()
    ))
    .hint("`kubectl get crd` shows the conditions of the definition"))
}

pub(crate) async fn apply_all(
    client: &ClusterClient,
    objects: &[Value],
    tell: impl Fn(&ObjectKey),
) -> Result<(), CommandError> {
    let gate = gate(client);
    let options = ApplyOptions {
        field_manager: "plumb-install".to_owned(),
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
        tell(&key);
    }
    Ok(())
}

fn manifest(object: &Value) -> Result<Manifest, CommandError> {
    Manifest::new(object.clone()).map_err(|error| CommandError::because("build what is installed", error))
}
