//! One Application as it was last seen: whole during a run, and with the long lists of its status compressed
//! between runs.

use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use plumb_core::app::{App, AppId};
use plumb_core::normalize::LAST_APPLIED;
use plumb_core::object::{Manifest, merge_patch};
use plumb_core::tracking::TRACKING_ANNOTATION;
use plumb_crd::annotations::{REFRESH, REFRESH_TIMESTAMP};
use plumb_crd::application::{ApplicationStatus, OperationState, SyncOperationResult};
use plumb_crd::{Application, SpecProblem, Wire, WireError, to_app};
use plumb_kube::PackedJson;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::queue::RefreshDepth;

/// One Application, whole.
#[derive(Debug)]
pub(crate) struct AppSnapshot {
    summary: Arc<AppSummary>,
    /// The parsed Application, or why it cannot be parsed.
    pub(crate) wire: Result<Application, WireError>,
}

/// The part of an Application that is always in memory.
#[derive(Debug)]
pub(crate) struct AppSummary {
    /// Its name and namespace.
    pub(crate) id: AppId,
    /// `metadata.resourceVersion`.
    pub(crate) resource_version: String,
    /// The parsed Application without the long lists of its status, or why it cannot be parsed.
    pub(crate) head: Result<Application, WireError>,
    /// True if the spec is managed elsewhere (Git by app of apps, or `kubectl apply`). plumb then never
    /// changes it.
    pub(super) is_declared: bool,
    /// The checked spec, or all its problems. The list of problems is empty if `head` is an error.
    pub(crate) app: Result<App, Vec<SpecProblem>>,
}

/// A request for a refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefreshRequest {
    kind: String,
    at: Option<String>,
}

/// An Application between two runs.
#[derive(Debug)]
pub(super) struct StoredApp {
    pub(super) summary: Arc<AppSummary>,
    /// The lists that `head` lacks, as a status.
    lists: PackedJson,
    seen_at: Instant,
    /// The whole Application while a run uses it.
    loaded: Mutex<Weak<AppSnapshot>>,
}

impl AppSnapshot {
    /// Reads an Application. Invalid content becomes an error in the snapshot; `None` only if the name or
    /// namespace is missing.
    pub(super) fn of(manifest: &Manifest) -> Option<(Arc<Self>, StoredApp)> {
        let id = Application::id_of(manifest.value())?;
        let mut wire = Application::from_json(manifest.value());
        if let Ok(application) = &mut wire {
            // It is as long as the spec, and plumb does not need it.
            application.metadata.annotations.remove(LAST_APPLIED);
        }
        let app = wire.as_ref().map_err(|_| Vec::new()).and_then(to_app);
        let mut head = wire.clone();
        let lists = head.as_mut().map(|head| take_lists(&mut head.status).write()).unwrap_or_default();
        let summary = Arc::new(AppSummary {
            id,
            resource_version: manifest.resource_version().unwrap_or_default().to_owned(),
            head,
            is_declared: is_declared(manifest),
            app,
        });
        let snapshot = Arc::new(Self { summary: Arc::clone(&summary), wire });
        let loaded = Mutex::new(Arc::downgrade(&snapshot));
        Some((
            snapshot,
            StoredApp { summary, lists: PackedJson::new(&lists), seen_at: Instant::now(), loaded },
        ))
    }

    /// The patch that makes the spec what Argo CD would store: the project is set and empty blocks are
    /// dropped. `None` if nothing changes, or if the spec is managed elsewhere.
    pub(crate) fn tidied_spec(&self) -> Option<Value> {
        let spec = &self.wire.as_ref().ok()?.spec;
        if self.is_declared || self.app.is_err() {
            return None;
        }
        merge_patch(&spec.write(), &spec.normalized().write())
    }
}

impl Deref for AppSnapshot {
    type Target = AppSummary;

    fn deref(&self) -> &AppSummary {
        &self.summary
    }
}

impl AppSummary {
    /// The refresh annotations, which identify a request.
    pub(crate) fn refresh_request(&self) -> Option<RefreshRequest> {
        let head = self.head.as_ref().ok()?;
        let at = head.annotation(REFRESH_TIMESTAMP).map(str::to_owned);
        Some(RefreshRequest { kind: head.annotation(REFRESH)?.to_owned(), at })
    }

    /// The depth of the refresh that an annotation requests.
    pub(crate) fn requested_refresh(&self) -> Option<RefreshDepth> {
        let head = self.head.as_ref().ok()?;
        match head.annotation(REFRESH)? {
            "hard" => Some(RefreshDepth::Hard),
            _ => Some(RefreshDepth::GitNow),
        }
    }
}

impl StoredApp {
    /// True if this state was seen within the last `moment` and the other one is older.
    pub(super) fn is_newer(&self, other: &Self, moment: Duration) -> bool {
        let version = |stored: &Self| stored.summary.resource_version.parse::<u64>().ok();
        version(self).zip(version(other)).is_some_and(|(this, that)| this > that)
            && self.seen_at.elapsed() < moment
    }

    /// The whole Application.
    pub(super) fn load(&self) -> Arc<AppSnapshot> {
        let mut loaded = self.loaded.lock();
        if let Some(snapshot) = loaded.upgrade() {
            return snapshot;
        }
        let snapshot = Arc::new(AppSnapshot { summary: Arc::clone(&self.summary), wire: self.whole() });
        *loaded = Arc::downgrade(&snapshot);
        snapshot
    }

    /// `status.resources` as JSON text; `None` if there are none.
    pub(super) fn resources(&self) -> Option<String> {
        let lists: OnlyResources = self.lists.read()?;
        lists.resources.map(|resources| resources.get().to_owned())
    }

    fn whole(&self) -> Result<Application, WireError> {
        let mut application = self.summary.head.clone()?;
        // A status without its lists must not be used as the whole status: the next write would remove the
        // lists.
        let lists: Option<Value> = self.lists.read();
        let lists = lists.ok_or_else(|| WireError::unexpected("a status", &Value::Null))?;
        put_lists(&mut application.status, ApplicationStatus::read(&lists)?);
        Ok(application)
    }
}

/// The first of the lists, as it was written.
#[derive(Deserialize)]
struct OnlyResources {
    #[serde(default)]
    resources: Option<Box<RawValue>>,
}

/// Takes out the lists that grow with the number of objects and syncs.
fn take_lists(status: &mut ApplicationStatus) -> ApplicationStatus {
    let results = status.operation_state.as_mut().and_then(|state| state.sync_result.as_mut());
    let operation_state = results.map(|results| {
        let resources = std::mem::take(&mut results.resources);
        let result = SyncOperationResult { resources, ..SyncOperationResult::default() };
        Box::new(OperationState { sync_result: Some(Box::new(result)), ..OperationState::default() })
    });
    ApplicationStatus {
        resources: std::mem::take(&mut status.resources),
        history: std::mem::take(&mut status.history),
        operation_state,
        ..ApplicationStatus::default()
    }
}

/// Puts the lists back.
fn put_lists(status: &mut ApplicationStatus, lists: ApplicationStatus) {
    status.resources = lists.resources;
    status.history = lists.history;
    let results = status.operation_state.as_mut().and_then(|state| state.sync_result.as_mut());
    let taken = lists.operation_state.and_then(|state| state.sync_result);
    if let Some((results, taken)) = results.zip(taken) {
        results.resources = taken.resources;
    }
}

/// True if an applying field manager owns part of the spec, or an annotation shows that the object comes from
/// a manifest.
fn is_declared(manifest: &Manifest) -> bool {
    let managers = manifest.value().pointer("/metadata/managedFields").and_then(Value::as_array);
    let applies = |entry: &Value| entry["operation"] == "Apply" && entry["fieldsV1"].get("f:spec").is_some();
    let marks = [LAST_APPLIED, TRACKING_ANNOTATION];
    managers.into_iter().flatten().any(applies) || marks.iter().any(|key| manifest.annotation(key).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apps::registry::tests::application;

    fn read(change: impl FnOnce(&mut Value)) -> (Arc<AppSnapshot>, StoredApp) {
        AppSnapshot::of(&application(change)).unwrap()
    }

    #[test]
    fn a_spec_is_normalized_unless_it_is_managed_elsewhere() {
        let loose = |app: &mut Value| {
            app["spec"]["project"] = json!("");
            app["spec"]["syncPolicy"] = json!({});
            app["spec"]["source"]["helm"] = json!({});
        };
        let patch = |change: &dyn Fn(&mut Value)| read(|app| change(app)).0.tidied_spec();
        let tidied = patch(&loose).unwrap();
        assert_eq!(tidied["project"], "default");
        assert!(tidied.get("destination").is_none(), "{tidied}");
        assert_eq!(patch(&|_| {}), None, "it is normalized already");
        for mark in [LAST_APPLIED, TRACKING_ANNOTATION] {
            let declared = |app: &mut Value| {
                loose(app);
                app["metadata"]["annotations"] = json!({mark: "x"});
            };
            assert_eq!(patch(&declared), None, "{mark}");
        }
        let applied = |app: &mut Value| {
            loose(app);
            app["metadata"]["managedFields"] = json!([{"operation": "Apply", "fieldsV1": {"f:spec": {}}}]);
        };
        assert_eq!(patch(&applied), None);
    }

    #[test]
    fn a_loaded_application_equals_the_stored_one() {
        let result = json!({"group": "", "version": "v1", "kind": "Service", "namespace": "n", "name": "a",
                            "status": "Synced", "message": "service/a configured"});
        let status = json!({
            "resources": [{"kind": "Service", "name": "a", "namespace": "n", "status": "Synced"}],
            "history": [{"id": 3, "revision": "abc", "deployedAt": "2026-11-15T19:00:00Z"}],
            "sync": {"status": "Synced"},
            "operationState": {
                "operation": {"sync": {"revision": "abc"}}, "phase": "Succeeded", "message": "done",
                "startedAt": "2026-11-15T19:00:00Z",
                "syncResult": {"revision": "abc", "resources": [result]},
            },
        });
        for status in [json!({}), json!({"operationState": status["operationState"]}), status] {
            let (snapshot, stored) = read(|app| app["status"] = status);
            assert!(Arc::ptr_eq(&stored.load(), &snapshot), "it is still loaded");
            let before = snapshot.wire.clone().unwrap();
            drop(snapshot);
            let again = stored.load();
            assert_eq!(*again.wire.as_ref().unwrap(), before);
            assert!(Arc::ptr_eq(&stored.load(), &again), "it is decompressed once");
            let head = stored.summary.head.as_ref().unwrap();
            assert!(head.status.resources.is_empty() && head.status.history.is_empty());
            assert_eq!(head.status.sync, before.status.sync, "short fields stay in the summary");
        }
    }

    #[test]
    fn a_status_that_cannot_be_read_back_is_an_error() {
        let (snapshot, stored) = read(|_| {});
        drop(snapshot);
        let lost = StoredApp { lists: PackedJson::default(), ..stored };
        assert!(lost.load().wire.is_err());
    }
}
