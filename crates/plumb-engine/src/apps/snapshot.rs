//! One Application as it was last seen: whole for a run, and with the long lists of its status packed in between.

use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use plumb_core::app::{App, AppId};
use plumb_core::object::{Manifest, merge_patch};
use plumb_core::tracking::TRACKING_ANNOTATION;
use plumb_crd::annotations::{REFRESH, REFRESH_TIMESTAMP};
use plumb_crd::application::{ApplicationStatus, OperationState, SyncOperationResult};
use plumb_crd::{Application, SpecProblem, Wire, WireError, to_app};
use plumb_kube::PackedJson;
use serde_json::Value;

use crate::queue::RefreshDepth;

/// What `kubectl apply` leaves behind.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// One Application, whole.
#[derive(Debug)]
pub(crate) struct AppSnapshot {
    summary: Arc<AppSummary>,
    /// Read, or the reason why not.
    pub(crate) wire: Result<Application, WireError>,
}

/// What is always at hand of an Application.
#[derive(Debug)]
pub(crate) struct AppSummary {
    /// Its name and namespace.
    pub(crate) id: AppId,
    /// `metadata.resourceVersion`.
    pub(crate) resource_version: String,
    /// Read, without the long lists of its status; or the reason why not.
    pub(crate) head: Result<Application, WireError>,
    /// Does somebody declare its spec (Git, by app of apps or by `kubectl apply`)? Then no line of it is ours.
    pub(super) is_declared: bool,
    /// The checked spec, or everything that is wrong with it. Empty when `head` is an error.
    pub(crate) app: Result<App, Vec<SpecProblem>>,
}

/// A request for a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefreshRequest {
    kind: String,
    at: Option<String>,
}

/// An Application between two runs.
#[derive(Debug)]
pub(super) struct StoredApp {
    pub(super) summary: Arc<AppSummary>,
    /// What the head lacks, as a status of its own.
    lists: PackedJson,
    seen_at: Instant,
    /// The whole while somebody works with it.
    awake: Mutex<Weak<AppSnapshot>>,
}

impl AppSnapshot {
    /// Reads an Application. Whatever it contains, there is an answer.
    pub(super) fn of(manifest: &Manifest) -> Option<(Arc<Self>, StoredApp)> {
        let id = Application::id_of(manifest.value())?;
        let mut wire = Application::from_json(manifest.value());
        if let Ok(application) = &mut wire {
            // As long as the spec, and nobody asks what it says.
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
        let known = Arc::new(Self { summary: Arc::clone(&summary), wire });
        let awake = Mutex::new(Arc::downgrade(&known));
        Some((known, StoredApp { summary, lists: PackedJson::new(&lists), seen_at: Instant::now(), awake }))
    }

    /// The change that makes the spec what Argo CD would store: a project always named, blocks that say nothing
    /// dropped. `None` if there is nothing to change, or if the spec is somebody's to declare.
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
    /// The annotations that ask for a comparison, to tell one request from the next.
    pub(crate) fn refresh_request(&self) -> Option<RefreshRequest> {
        let head = self.head.as_ref().ok()?;
        let at = head.annotation(REFRESH_TIMESTAMP).map(str::to_owned);
        Some(RefreshRequest { kind: head.annotation(REFRESH)?.to_owned(), at })
    }

    /// The comparison that an annotation asks for.
    pub(crate) fn requested_refresh(&self) -> Option<RefreshDepth> {
        let head = self.head.as_ref().ok()?;
        match head.annotation(REFRESH)? {
            "hard" => Some(RefreshDepth::Hard),
            _ => Some(RefreshDepth::GitNow),
        }
    }
}

impl StoredApp {
    /// Is the other an older state than this one, which was seen a moment ago?
    pub(super) fn is_newer(&self, other: &Self, moment: Duration) -> bool {
        let version = |resting: &Self| resting.summary.resource_version.parse::<u64>().ok();
        version(self).zip(version(other)).is_some_and(|(this, that)| this > that)
            && self.seen_at.elapsed() < moment
    }

    /// The whole Application.
    pub(super) fn load(&self) -> Arc<AppSnapshot> {
        let mut awake = self.awake.lock();
        if let Some(known) = awake.upgrade() {
            return known;
        }
        let known = Arc::new(AppSnapshot { summary: Arc::clone(&self.summary), wire: self.whole() });
        *awake = Arc::downgrade(&known);
        known
    }

    fn whole(&self) -> Result<Application, WireError> {
        let mut application = self.summary.head.clone()?;
        // A status without its lists must not be taken for the whole: what it lacks would be written over.
        let lists: Option<Value> = self.lists.read();
        let lists = lists.ok_or_else(|| WireError::unexpected("a status", &Value::Null))?;
        put_lists(&mut application.status, ApplicationStatus::read(&lists)?);
        Ok(application)
    }
}

/// Takes the lists out that grow with the number of objects and of syncs.
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

/// Puts them back.
fn put_lists(status: &mut ApplicationStatus, lists: ApplicationStatus) {
    status.resources = lists.resources;
    status.history = lists.history;
    let results = status.operation_state.as_mut().and_then(|state| state.sync_result.as_mut());
    let taken = lists.operation_state.and_then(|state| state.sync_result);
    if let Some((results, taken)) = results.zip(taken) {
        results.resources = taken.resources;
    }
}

/// Does an applying manager own a part of the spec, or does a mark say whose manifest it is?
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

    fn known(change: impl FnOnce(&mut Value)) -> (Arc<AppSnapshot>, StoredApp) {
        AppSnapshot::of(&application(change)).unwrap()
    }

    #[test]
    fn a_spec_is_tidied_unless_somebody_declares_it() {
        let loose = |app: &mut Value| {
            app["spec"]["project"] = json!("");
            app["spec"]["syncPolicy"] = json!({});
            app["spec"]["source"]["helm"] = json!({});
        };
        let patch = |change: &dyn Fn(&mut Value)| known(|app| change(app)).0.tidied_spec();
        let tidied = patch(&loose).unwrap();
        assert_eq!(tidied["project"], "default");
        assert!(tidied.get("destination").is_none(), "{tidied}");
        assert_eq!(patch(&|_| {}), None, "it is tidy");
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
    fn what_wakes_is_what_went_to_rest() {
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
            let (known, resting) = known(|app| app["status"] = status);
            assert!(Arc::ptr_eq(&resting.load(), &known), "it is still awake");
            let before = known.wire.clone().unwrap();
            drop(known);
            let again = resting.load();
            assert_eq!(*again.wire.as_ref().unwrap(), before);
            assert!(Arc::ptr_eq(&resting.load(), &again), "nobody unpacks twice");
            let head = resting.summary.head.as_ref().unwrap();
            assert!(head.status.resources.is_empty() && head.status.history.is_empty());
            assert_eq!(head.status.sync, before.status.sync, "what is short is at hand");
        }
    }

    #[test]
    fn a_status_that_cannot_be_read_back_is_not_taken_for_an_empty_one() {
        let (known, resting) = known(|_| {});
        drop(known);
        let lost = StoredApp { lists: PackedJson::default(), ..resting };
        assert!(lost.load().wire.is_err());
    }
}
