//! Carries out what was decided for a set.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use plumb_appset::reconcile::{Failure, Write};
use plumb_core::app::AppId;
use plumb_core::object::{GroupVersionKind, Manifest, merge_patch};
use plumb_crd::application_set::ApplicationSetStatus;
use plumb_crd::wire::Wire as _;
use plumb_crd::{Application, ApplicationSet};
use plumb_kube::{ApiError, OwnWrite, Patch, PatchOptions, Reason, Target, WriteError};
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::events::event::{AppEvent, PendingEvent, Reason as EventReason};

const MANAGER: &str = "argocd-applicationset-controller";

/// Most writes of one set at the same time. All sets and apps together have far fewer slots.
const AT_ONCE: usize = 64;
/// The first runs of new Applications wait at most this long for the others to be created.
const HOLD: Duration = Duration::from_secs(10);

fn target(api_version: &str, kind: &str, id: &AppId) -> Target {
    Target {
        gvk: GroupVersionKind::from_api_version(api_version, kind),
        namespace: Some(id.namespace.clone()),
        name: id.name.clone(),
    }
}

fn options(subresource: Option<&str>) -> PatchOptions {
    PatchOptions { field_manager: Some(MANAGER.to_owned()), subresource: subresource.map(str::to_owned) }
}

/// What became of the writes.
#[derive(Default)]
pub(super) struct Written {
    /// The first failure in the order of the names.
    pub(super) failure: Option<Failure>,
    /// How many requests succeeded.
    pub(super) n_done: usize,
    /// Applications that changed in the meantime: decide again soon.
    pub(super) late: BTreeSet<String>,
}

/// Carries out the writes. `existing` is updated with the answers. As in Argo CD, nothing is deleted after a failure:
/// a new name may stand for an old one. `late` has the Applications for which the run before was late.
pub(super) async fn carry_out(
    engine: &Engine,
    set: &ApplicationSet,
    writes: &[Write],
    late: &BTreeSet<String>,
    existing: &mut BTreeMap<String, Value>,
) -> Written {
    let mut written = Written::default();
    let (deletions, others): (Vec<Write>, Vec<Write>) =
        writes.iter().cloned().partition(|write| matches!(write, Write::Delete { .. }));
    for batch in [others, deletions] {
        if written.failure.is_some() {
            break;
        }
        send(engine, set, batch, late, existing, &mut written).await;
    }
    written
}

/// Sends some writes at a time.
async fn send(
    engine: &Engine,
    set: &ApplicationSet,
    writes: Vec<Write>,
    late: &BTreeSet<String>,
    existing: &mut BTreeMap<String, Value>,
    written: &mut Written,
) {
    let namespace = &set.metadata.namespace;
    let requests = writes.into_iter().map(|write| async move {
        let result = one(engine, namespace, &write).await;
        (write, result)
    });
    let set_id = AppId { namespace: namespace.clone(), name: set.metadata.name.clone() };
    let hold = engine.first_runs.hold(&set_id, &engine.queue);
    let mut sending = pin!(stream::iter(requests).buffered(AT_ONCE).collect());
    let in_time = tokio::time::timeout(HOLD, &mut sending).await;
    drop(hold);
    let results: Vec<(Write, Result<Option<Manifest>, WriteError>)> = match in_time {
        Ok(results) => results,
        Err(_) => sending.await,
    };
    for (write, result) in results {
        let name = write.name();
        if result.is_ok() {
            tell(engine, set, &write);
        }
        match result {
            Ok(Some(manifest)) => {
                written.n_done += 1;
                engine.set_signals.written(&manifest);
                existing.insert(name.to_owned(), manifest.value().clone());
            }
            Ok(None) => {
                written.n_done += 1;
                note_deletion(existing, name);
            }
            // For the second time the watch cannot be meant: an object exists that plumb does not see.
            Err(error) if is_late(&write, &error) && !late.contains(name) => {
                written.late.insert(name.to_owned());
            }
            Err(error) => {
                let reason = match write {
                    Write::Create { .. } => "CreateApplicationError",
                    Write::Patch { .. } => "UpdateApplicationError",
                    Write::Delete { .. } => "DeleteApplicationError",
                };
                let message = format!("cannot write Application {name}: {error}");
                written.failure.get_or_insert(Failure { reason, message });
            }
        }
    }
}

/// Tells in events what was done.
fn tell(engine: &Engine, set: &ApplicationSet, write: &Write) {
    let reasons: &[EventReason] = match write {
        Write::Create { .. } => &[EventReason::Created],
        Write::Patch { .. } => &[EventReason::Changed],
        Write::Delete { release: None, .. } => &[EventReason::Deleted],
        Write::Delete { release: Some(_), .. } => &[EventReason::Released, EventReason::Deleted],
    };
    for reason in reasons {
        let event = AppEvent::of_generated(*reason, write.name());
        engine.outbox.put(PendingEvent::of_set(set, event));
    }
}

/// The watch has not yet reported what made the write unnecessary.
fn is_late(write: &Write, error: &WriteError) -> bool {
    let reason = error.api().and_then(ApiError::reason);
    match write {
        Write::Create { .. } => reason == Some(&Reason::AlreadyExists),
        Write::Patch { .. } => error.api().is_some_and(ApiError::is_not_found),
        Write::Delete { .. } => {
            error.api().is_some_and(ApiError::is_not_found) || reason == Some(&Reason::Conflict)
        }
    }
}

fn note_deletion(existing: &mut BTreeMap<String, Value>, name: &str) {
    let Some(live) = existing.get_mut(name) else { return };
    if live["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty()) {
        live["metadata"]["deletionTimestamp"] = Value::from(jiff::Timestamp::now().to_string());
    } else {
        existing.remove(name);
    }
}

async fn one(engine: &Engine, namespace: &str, write: &Write) -> Result<Option<Manifest>, WriteError> {
    let id = AppId { namespace: namespace.to_owned(), name: write.name().to_owned() };
    match write {
        Write::Create { object, .. } => {
            let unknown = |_| WriteError::Api(ApiError::UnknownKind { kind: Application::KIND.to_owned() });
            let manifest = Manifest::new(object.clone()).map_err(unknown)?;
            let create = OwnWrite::CreateGenerated { manifest, field_manager: MANAGER.to_owned() };
            Ok(engine.home.gate.write_own(&create).await?.map(|applied| applied.manifest))
        }
        Write::Patch { patch, .. } => patch_application(engine, &id, patch.clone()).await,
        Write::Delete { uid, release, .. } => {
            if let Some(release) = release {
                patch_application(engine, &id, release.clone()).await?;
            }
            delete(engine, &id, uid).await?;
            Ok(None)
        }
    }
}

pub(super) async fn patch_application(
    engine: &Engine,
    id: &AppId,
    patch: Value,
) -> Result<Option<Manifest>, WriteError> {
    let target = target(Application::API_VERSION, Application::KIND, id);
    let write = OwnWrite::Patch { target, patch: Patch::Merge(patch), options: options(None) };
    Ok(engine.home.gate.write_own(&write).await?.map(|applied| applied.manifest))
}

pub(super) async fn delete(engine: &Engine, id: &AppId, uid: &str) -> Result<(), WriteError> {
    let target = target(Application::API_VERSION, Application::KIND, id);
    engine.home.gate.write_own(&OwnWrite::DeleteGenerated { target, uid: uid.to_owned() }).await?;
    Ok(())
}

/// Changes the set itself: its finalizers, its annotations.
pub(super) async fn patch_set(engine: &Engine, id: &AppId, patch: Value) -> Result<(), WriteError> {
    let target = target(ApplicationSet::API_VERSION, ApplicationSet::KIND, id);
    let write = OwnWrite::Patch { target, patch: Patch::Merge(patch), options: options(None) };
    engine.home.gate.write_own(&write).await?;
    Ok(())
}

/// Writes the conditions of a set that plumb cannot read.
pub(super) async fn write_conditions(
    engine: &Engine,
    id: &AppId,
    conditions: Value,
) -> Result<(), WriteError> {
    let target = target(ApplicationSet::API_VERSION, ApplicationSet::KIND, id);
    let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
    let write = OwnWrite::Patch { target, patch, options: options(Some("status")) };
    engine.home.gate.write_own(&write).await?;
    Ok(())
}

/// Writes the status, if it changed.
pub(super) async fn write_status(
    engine: &Engine,
    set: &ApplicationSet,
    status: &ApplicationSetStatus,
) -> Result<bool, WriteError> {
    let Some(patch) = merge_patch(&set.status.write(), &status.write()) else { return Ok(false) };
    let id = AppId { namespace: set.metadata.namespace.clone(), name: set.metadata.name.clone() };
    let target = target(ApplicationSet::API_VERSION, ApplicationSet::KIND, &id);
    let patch = Patch::Merge(json!({"status": patch}));
    let write = OwnWrite::Patch { target, patch, options: options(Some("status")) };
    engine.home.gate.write_own(&write).await?;
    Ok(true)
}
