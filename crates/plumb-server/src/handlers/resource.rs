//! Single objects of Applications, and their rendered manifests.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use plumb_api::Status;
use plumb_core::desired::Propagation;
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use plumb_core::secrets::as_stored;
use plumb_crd::application::ResourceStatus;
use plumb_kube::{DeleteOptions, Fence, Gate, Patch};
use serde_json::{Value, json};

use super::mask::{Masks, masks_for, masks_for_one};
use super::tree;
use crate::backend::{delete_with, of_api, patch_with, target};
use crate::call::{Answer, Call, FoundApp};

/// How many objects of one request are read from the cluster at a time.
const READ_AT_ONCE: usize = 16;

/// The rendered manifests.
pub(super) async fn manifests(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?.typed()?;
    let revisions = asked_revisions(&call, &app)?;
    let rendered = call.leader()?.render(app.clone(), revisions).await;
    let rendered =
        rendered.map_err(|why| Status::precondition(format!("cannot generate manifests: {why}")))?;
    let objects = rendered.objects.into_iter().map(|(_, manifest)| manifest).chain(rendered.hooks);
    let objects: Vec<Manifest> = objects.collect();
    let kinds = objects.iter().map(Manifest::gvk).collect();
    let masks = masks_for(&call, &app, kinds, &objects.iter().collect::<Vec<_>>()).await?;
    let texts: Vec<String> = objects
        .into_iter()
        .map(|manifest| masks.hide(as_stored(manifest.into_value())).to_string())
        .collect();
    Ok(Answer::One(json!({
        "manifests": texts,
        "revision": rendered.revisions.first().cloned().unwrap_or_default(),
        "sourceType": rendered.source_types.first().cloned().unwrap_or_default(),
    })))
}

/// The revisions of a request, one per source; none if it asks for the tracked ones.
fn asked_revisions(call: &Call, app: &plumb_crd::Application) -> Result<Vec<String>, Status> {
    let revision = call.text("revision");
    if !revision.is_empty() && app.spec.sources.is_empty() {
        return Ok(vec![revision.to_owned()]);
    }
    let (revisions, positions) = (call.texts("revisions"), call.request.get("sourcePositions"));
    if revisions.is_empty() {
        return Ok(Vec::new());
    }
    let positions = positions.and_then(Value::as_array).cloned().unwrap_or_default();
    let mut all: Vec<String> = app.spec.sources.iter().map(|source| source.target_revision.clone()).collect();
    for (revision, position) in revisions.into_iter().zip(positions) {
        let position = position.as_u64().and_then(|position| usize::try_from(position).ok());
        let place = position.and_then(|position| all.get_mut(position.checked_sub(1)?));
        *place.ok_or_else(|| Status::invalid("source position is out of range"))? = revision;
    }
    Ok(all)
}

/// The objects of an Application: as Git describes them, and as they are.
pub(super) async fn managed(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let typed = app.typed()?;
    let leader = call.leader()?;
    let rendered = leader.last_rendered(typed.clone()).await;
    let rendered =
        rendered.map_err(|why| Status::precondition(format!("cannot generate manifests: {why}")))?;
    let mut wanted: Vec<(ObjectKey, Option<Manifest>)> =
        rendered.objects.into_iter().map(|(key, manifest)| (key, Some(manifest))).collect();
    let extra = typed.status.resources.iter().filter(|resource| !resource.hook).map(ResourceStatus::key);
    let extra: Vec<ObjectKey> = extra.filter(|key| !wanted.iter().any(|(known, _)| known == key)).collect();
    wanted.extend(extra.into_iter().map(|key| (key, None)));
    wanted.retain(|(key, _)| is_asked(&call, key));
    let (leader, app) = (&leader, &typed);
    let read = |(key, desired)| async move {
        let live = leader.live(app, &key, false).await.map_err(Status::unavailable)?;
        Ok::<_, Status>((key, desired, live))
    };
    let read: Vec<_> = wanted.into_iter().map(read).collect();
    let mut shown: Vec<_> = stream::iter(read).buffered(READ_AT_ONCE).try_collect().await?;
    shown.retain(|(_, desired, live)| live.is_some() || desired.is_some());
    let manifests = || shown.iter().flat_map(|(_, desired, live)| desired.iter().chain(live));
    let kinds = manifests().map(Manifest::gvk).collect();
    let masks = masks_for(&call, &typed, kinds, &manifests().collect::<Vec<_>>()).await?;
    let items = shown.into_iter().map(|(key, desired, live)| {
        let is_synced = typed
            .status
            .resources
            .iter()
            .any(|resource| resource.key() == key && resource.status == "Synced");
        let live = live.map(Manifest::into_value);
        item(&masks, &key, desired.map(Manifest::into_value), live.as_ref(), is_synced)
    });
    Ok(Answer::One(json!({"items": items.collect::<Vec<_>>()})))
}

/// Does the request mean this object?
fn is_asked(call: &Call, key: &ObjectKey) -> bool {
    let chosen = [
        ("name", key.name.as_str()),
        ("namespace", key.namespace_or_empty()),
        ("group", key.group.as_str()),
        ("kind", key.kind.as_str()),
    ];
    chosen.into_iter().all(|(field, value)| call.text(field).is_empty() || call.text(field) == value)
}

/// One object. The normalized state of an object that is in sync is what Git asks for: that is the live object without the
/// differences that do not count, so that clients which compare by themselves agree with plumb.
fn item(
    masks: &Masks,
    key: &ObjectKey,
    desired: Option<Value>,
    live: Option<&Value>,
    is_synced: bool,
) -> Value {
    let text = |value: &Option<Value>| value.as_ref().map_or_else(|| "null".to_owned(), Value::to_string);
    let version =
        live.and_then(|live| live.pointer("/metadata/resourceVersion")?.as_str()).map(str::to_owned);
    let shown_live = live.cloned().map(|live| masks.hide_beside(without_managed_fields(live), None));
    let shown_desired = desired.map(|desired| masks.hide_beside(as_stored(desired), live));
    let normalized = if is_synced && shown_desired.is_some() { &shown_desired } else { &shown_live };
    let predicted = if is_synced { normalized } else { &shown_desired };
    json!({
        "group": key.group, "kind": key.kind, "namespace": key.namespace_or_empty(), "name": key.name,
        "targetState": text(&shown_desired),
        "liveState": text(&shown_live),
        "normalizedLiveState": text(normalized),
        "predictedLiveState": text(predicted),
        "resourceVersion": version.unwrap_or_default(),
        "modified": !is_synced,
    })
}

pub(super) fn without_managed_fields(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// The object of the request, which must be in the tree of the Application.
pub(super) fn in_tree(call: &Call, app: &FoundApp) -> Result<(ObjectKey, GroupVersionKind), Status> {
    let namespace = Some(call.text("namespace")).filter(|namespace| !namespace.is_empty());
    let (group, kind, name) = (call.text("group"), call.text("kind"), call.text("resourceName"));
    let key = ObjectKey::new(group, kind, namespace.map(str::to_owned), name);
    let nodes = tree::nodes(call, app)?;
    let node = nodes.iter().find(|node| node.node.key == key).ok_or_else(|| {
        Status::invalid(format!("{kind} {group} {name} not found as part of application {}", app.name))
    })?;
    let version = node.node.version.clone();
    let gvk = GroupVersionKind { group: group.to_owned(), version, kind: kind.to_owned() };
    Ok((key, gvk))
}

pub(super) async fn live(call: &Call, app: &FoundApp, key: &ObjectKey) -> Result<Manifest, Status> {
    let nodes = tree::nodes(call, app)?;
    let is_child = nodes.iter().any(|node| node.node.key == *key && !node.parents.is_empty());
    let live = call.leader()?.live(&app.typed()?, key, is_child).await.map_err(Status::unavailable)?;
    live.ok_or_else(|| Status::not_found(format!("{key} not found")))
}

/// One live object.
pub(super) async fn get(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let (key, _) = in_tree(&call, app)?;
    let live = live(&call, app, &key).await?;
    let masks = masks_for_one(&call, &app.typed()?, &live).await?;
    Ok(Answer::One(json!({"manifest": masks.hide(live.into_value()).to_string()})))
}

/// Patches one live object.
pub(super) async fn patch(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let (key, gvk) = in_tree(&call, app)?;
    if let Some(why) = call.leader()?.denies(&app.typed()?, &key) {
        return Err(Status::new(plumb_api::Code::PermissionDenied, why));
    }
    let what = format!("failed to patch {} {}/{}", key.kind, key.namespace_or_empty(), key.name);
    let patch = read_patch(call.text("patch"), call.text("patchType"))
        .map_err(|why| Status::invalid(format!("{what}: {why}")))?;
    let masks = masks_for(&call, &app.typed()?, BTreeSet::from([gvk.clone()]), &[]).await?;
    let (client, runtime) = acting_client_of(&call, app)?;
    let target = target(&gvk, key.namespace_or_empty(), &key.name);
    let written = runtime.spawn(async move {
        let gate = Gate::new(client, Fence::of_command(), None);
        patch_with(&gate, &target, &patch).await
    });
    let written = written.await.map_err(|_| Status::unavailable("the request was aborted"))?;
    // The error of such an object may quote its values.
    let written = written.map_err(|status| {
        let why = if masks.covers(&gvk) { String::new() } else { format!(": {}", status.message) };
        Status::new(status.code, format!("{what}{why}"))
    })?;
    Ok(Answer::One(json!({"manifest": masks.hide(written.into_value()).to_string()})))
}

/// The patch of a request.
fn read_patch(text: &str, patch_type: &str) -> Result<Patch, String> {
    let patch: Value =
        serde_json::from_str(text).map_err(|error| format!("cannot read the patch: {error}"))?;
    let (fits, patch) = match patch_type {
        "application/json-patch+json" => (patch.is_array(), Patch::Json(patch)),
        "application/merge-patch+json" | "" => (patch.is_object(), Patch::Merge(patch)),
        "application/strategic-merge-patch+json" => (patch.is_object(), Patch::Strategic(patch)),
        other => return Err(format!("patch type {other} is not supported")),
    };
    if fits { Ok(patch) } else { Err("the patch does not have the form of its type".to_owned()) }
}

/// Deletes one live object.
pub(super) async fn delete(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let (key, _) = in_tree(&call, app)?;
    if let Some(why) = call.leader()?.denies(&app.typed()?, &key) {
        return Err(Status::new(plumb_api::Code::PermissionDenied, why));
    }
    let (force, orphan) = (call.flag("force") == Some(true), call.flag("orphan") == Some(true));
    let propagation = match (force, orphan) {
        (_, true) => Propagation::Orphan,
        (true, false) => Propagation::Background,
        (false, false) => Propagation::Foreground,
    };
    let options =
        DeleteOptions { propagation, grace_seconds: force.then_some(0), ..DeleteOptions::default() };
    let object = live(&call, app, &key).await?;
    let (client, runtime) = acting_client_of(&call, app)?;
    let deleted = runtime.spawn(async move {
        let gate = Gate::new(client, Fence::of_command(), None);
        delete_with(&gate, &object, &options).await
    });
    deleted.await.map_err(|_| Status::unavailable("the request was aborted"))??;
    Ok(Answer::One(json!({})))
}

pub(super) fn client_of(
    call: &Call,
    app: &FoundApp,
) -> Result<(plumb_kube::ClusterClient, tokio::runtime::Handle), Status> {
    let away = || Status::unavailable("the cluster of the application is not connected");
    call.leader()?.cluster_client(&app.typed()?).ok_or_else(away)
}

/// The client that writes for the app: as the service account of its project, if syncs impersonate one.
pub(super) fn acting_client_of(
    call: &Call,
    app: &FoundApp,
) -> Result<(plumb_kube::ClusterClient, tokio::runtime::Handle), Status> {
    client_of(call, app)?;
    let acting = call.leader()?.acting_client(&app.typed()?);
    acting.map_err(|why| Status::new(plumb_api::Code::PermissionDenied, why))
}

/// The events of the Application, or of one of its objects.
pub(super) async fn events(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let uid = call.text("resourceUID");
    if uid.is_empty() {
        let uid = app.value.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
        let events = call.shared.backend.client.events_of(uid, Some(&app.namespace)).await;
        return Ok(shown_events(events.map_err(|error| of_api(&error))?));
    }
    let nodes = tree::nodes(&call, app)?;
    let (name, namespace) = (call.text("resourceName"), call.text("resourceNamespace"));
    let is_asked = |key: &ObjectKey| key.name == name && key.namespace_or_empty() == namespace;
    if !nodes.iter().any(|node| node.node.uid.to_string() == uid && is_asked(&node.node.key)) {
        return Err(Status::invalid(format!("{name} not found as part of application {}", app.name)));
    }
    let (client, runtime) = client_of(&call, app)?;
    let (uid, place) = (uid.to_owned(), (!namespace.is_empty()).then(|| namespace.to_owned()));
    let events = runtime.spawn(async move { client.events_of(&uid, place.as_deref()).await });
    let events = events.await.map_err(|_| Status::unavailable("the request was aborted"))?;
    Ok(shown_events(events.map_err(|error| of_api(&error))?))
}

pub(super) fn shown_events(events: Vec<Manifest>) -> Answer {
    let items: Vec<Value> =
        events.into_iter().map(|event| without_managed_fields(event.into_value())).collect();
    Answer::One(json!({"items": items}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_what_its_type_says() {
        let read = |text: &str, kind: &str| read_patch(text, &format!("application/{kind}+json"));
        assert_eq!(read("{}", "merge-patch"), Ok(Patch::Merge(json!({}))));
        assert_eq!(read("{}", "strategic-merge-patch"), Ok(Patch::Strategic(json!({}))));
        assert_eq!(read("[]", "json-patch"), Ok(Patch::Json(json!([]))));
        assert_eq!(read_patch("{}", ""), Ok(Patch::Merge(json!({}))));
        for (text, kind) in
            [("[]", "merge-patch"), ("{}", "json-patch"), ("[]", "strategic-merge-patch"), ("{}", "x")]
        {
            assert!(read(text, kind).is_err(), "{text} {kind}");
        }
    }
}
