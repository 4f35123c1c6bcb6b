//! Changing a part of an object that other writers change, too.

use plumb_core::object::Manifest;
use plumb_kube::{ClusterClient, Patch, Target};
use serde_json::{Value, json};

use crate::context::{change, key_of};
use crate::error::CommandError;

/// How often a change is tried again after a conflict.
const ATTEMPTS: usize = 5;

/// Changes a spec. `edit` gets the current spec with all its fields. The result is written only if the object has not
/// changed since. Returns whether the spec changed.
pub(crate) async fn edit_spec(
    client: &ClusterClient,
    target: &Target,
    edit: impl Fn(&mut Value) -> Result<(), CommandError>,
) -> Result<bool, CommandError> {
    change_unless_changed(client, target, |before| {
        let mut spec = before.value().get("spec").cloned().unwrap_or_else(|| json!({}));
        edit(&mut spec)?;
        let is_same = Some(&spec) == before.value().get("spec");
        let write = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": before.resource_version()},
            {"op": "replace", "path": "/spec", "value": spec},
        ]);
        Ok((!is_same).then_some(Patch::Json(write)))
    })
    .await
}

/// Changes an annotation. `edit` gets its text and returns the new one. The result is written only if the object has not
/// changed since.
pub(crate) async fn edit_annotation(
    client: &ClusterClient,
    target: &Target,
    annotation: &str,
    edit: impl Fn(Option<&str>) -> Option<String>,
) -> Result<bool, CommandError> {
    change_unless_changed(client, target, |before| {
        let written = before.annotation(annotation);
        let text = edit(written);
        let is_same = text.as_deref() == written;
        let metadata =
            json!({"resourceVersion": before.resource_version(), "annotations": {annotation: text}});
        Ok((!is_same).then(|| Patch::Merge(json!({"metadata": metadata}))))
    })
    .await
}

/// Writes a patch that is made from the object as it was read; if another writer was faster, from the newer object.
async fn change_unless_changed(
    client: &ClusterClient,
    target: &Target,
    patch: impl Fn(&Manifest) -> Result<Option<Patch>, CommandError>,
) -> Result<bool, CommandError> {
    let key = key_of(target);
    for _ in 0..ATTEMPTS {
        let before = read(client, target).await?;
        let Some(patch) = patch(&before)? else { return Ok(false) };
        match change(client, target, &patch).await {
            Ok(_) => return Ok(true),
            Err(error) => {
                let now = read(client, target).await?;
                if now.resource_version() == before.resource_version() {
                    return Err(error);
                }
            }
        }
    }
    Err(CommandError::new(format!("cannot change {key}: another writer keeps changing it")).hint("try again"))
}

async fn read(client: &ClusterClient, target: &Target) -> Result<Manifest, CommandError> {
    let key = key_of(target);
    client
        .get_at(&target.gvk, target.namespace.as_deref(), &target.name)
        .await
        .map_err(|error| CommandError::api(format!("read {key}"), error))?
        .ok_or_else(|| CommandError::new(format!("{key} not found")))
}
