//! The Applications in the cluster, and the runs that their changes trigger.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use plumb_core::app::{AppId, Pause, PausedObjects};
use plumb_core::object::Manifest;
use plumb_core::sync::OperationPhase;
use plumb_crd::Application;
use plumb_crd::annotations::{DELETION_APPROVED, LINK_PREFIX};
use tokio::sync::broadcast;

use super::snapshot::{AppSnapshot, AppSummary, StoredApp};
use crate::queue::{RefreshDepth, Trigger, TriggerReason};

/// Annotations that change what plumb does with an app.
const MEANINGFUL_ANNOTATIONS: [&str; 7] = [
    Pause::ANNOTATION,
    PausedObjects::ANNOTATION,
    plumb_core::app::CompareOptions::ANNOTATION,
    DELETION_APPROVED,
    "argocd.argoproj.io/skip-reconcile",
    "argocd.argoproj.io/manifest-generate-paths",
    "argocd.argoproj.io/client-side-apply-migration-manager",
];

/// States of an Application arrive from the watch and in the responses to plumb's own writes, in no fixed
/// order. For this time after one state, an older one is ignored as late. Afterwards it is accepted: a
/// cluster that was restored from a backup has lower resource versions.
const LATE: Duration = Duration::from_mins(1);
/// How many deleted Applications are remembered. The response to plumb's last write of one may arrive after
/// its deletion.
const GONE: usize = 256;

/// True if a change of this annotation changes what plumb does with an app or shows about it.
fn is_meaningful(annotation: &str) -> bool {
    MEANINGFUL_ANNOTATIONS.contains(&annotation) || annotation.starts_with(LINK_PREFIX)
}

/// The annotations of an Application that have a meaning for plumb.
fn meaningful(application: &Application) -> impl Iterator<Item = (&String, &String)> {
    application.metadata.annotations.iter().filter(|(key, _)| is_meaningful(key))
}

/// All Applications. Cheap to clone; clones share one registry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry(Arc<RwLock<Apps>>);

/// A change of an Application, for those who follow them.
#[derive(Clone, Debug)]
pub(crate) struct AppChange {
    pub(crate) id: AppId,
    /// The last state of an Application that is gone.
    pub(crate) gone: Option<Arc<AppSnapshot>>,
}

/// How many changes a follower may be behind. One that is further behind is told so, and starts over.
const BEHIND: usize = 1024;

#[derive(Debug, Default)]
struct Apps {
    by_id: HashMap<AppId, StoredApp>,
    /// True once every Application that exists was noted.
    are_listed: bool,
    /// Set while somebody follows the changes.
    followers: Option<broadcast::Sender<AppChange>>,
    /// Uids of deleted Applications and the time of deletion; the latest last.
    gone: VecDeque<(String, Instant)>,
}

impl Registry {
    /// Notes a state of an Application. Returns the current snapshot, and the trigger if the change needs a
    /// run. A newer state that is known already stays. `None` if the object is not an Application, or is a
    /// deleted one.
    pub(crate) fn note(&self, manifest: &Manifest) -> Option<(Arc<AppSnapshot>, Option<Trigger>)> {
        let (snapshot, stored) = AppSnapshot::of(manifest)?;
        let mut apps = self.0.write();
        let is_gone = |uid: &str| apps.gone.iter().any(|(gone, at)| gone == uid && at.elapsed() < LATE);
        if manifest.uid().is_some_and(is_gone) {
            return None;
        }
        if let Some(newer) = apps.by_id.get(&snapshot.id).filter(|current| current.is_newer(&stored, LATE)) {
            return Some((newer.load(), None));
        }
        let before = apps.by_id.insert(snapshot.id.clone(), stored);
        let trigger = trigger_for(before.as_ref().map(|before| &*before.summary), &snapshot);
        apps.tell(|| AppChange { id: snapshot.id.clone(), gone: None });
        Some((snapshot, trigger))
    }

    /// Notes that every Application that exists was noted.
    pub(crate) fn note_listed(&self) {
        self.0.write().are_listed = true;
    }

    /// True once every Application that exists was noted.
    pub(crate) fn are_listed(&self) -> bool {
        self.0.read().are_listed
    }

    /// The changes from now on.
    pub(crate) fn follow(&self) -> broadcast::Receiver<AppChange> {
        let mut apps = self.0.write();
        apps.followers.get_or_insert_with(|| broadcast::channel(BEHIND).0).subscribe()
    }

    /// Removes a deleted Application.
    pub(crate) fn forget(&self, id: &AppId, uid: &str) {
        let mut apps = self.0.write();
        if let Some(last) = apps.by_id.remove(id) {
            apps.tell(|| AppChange { id: id.clone(), gone: Some(last.load()) });
        }
        apps.gone.push_back((uid.to_owned(), Instant::now()));
        if apps.gone.len() > GONE {
            apps.gone.pop_front();
        }
    }

    pub(crate) fn get(&self, id: &AppId) -> Option<Arc<AppSnapshot>> {
        self.0.read().by_id.get(id).map(StoredApp::load)
    }

    /// `status.resources` of an Application as JSON text, without reading the rest of it.
    pub(crate) fn resources(&self, id: &AppId) -> Option<String> {
        self.0.read().by_id.get(id).and_then(StoredApp::resources)
    }

    /// The part of an Application that is always in memory.
    pub(crate) fn summary(&self, id: &AppId) -> Option<Arc<AppSummary>> {
        let apps = self.0.read();
        apps.by_id.get(id).map(|stored| Arc::clone(&stored.summary))
    }

    /// Every Application, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<AppSummary>> {
        let apps = self.0.read();
        apps.by_id.values().map(|stored| Arc::clone(&stored.summary)).collect()
    }

    /// The app with this name in tracking labels and annotations.
    pub(crate) fn by_instance(&self, instance: &str, control_plane_namespace: &str) -> Option<AppId> {
        let (namespace, name) = instance.split_once('_').unwrap_or((control_plane_namespace, instance));
        let id = AppId { namespace: namespace.to_owned(), name: name.to_owned() };
        let exists = self.0.read().by_id.contains_key(&id);
        exists.then_some(id)
    }
}

impl Apps {
    /// Tells the followers of a change. Without followers it costs nothing.
    fn tell(&mut self, change: impl FnOnce() -> AppChange) {
        match &self.followers {
            Some(followers) if followers.receiver_count() > 0 => drop(followers.send(change())),
            Some(_) => self.followers = None,
            None => {}
        }
    }
}

/// The trigger for a change of an Application. plumb writes the status itself, so a change there triggers
/// nothing, unless a user requested to stop the operation or removed the status (as `kubectl replace` does).
fn trigger_for(before: Option<&AppSummary>, now: &AppSummary) -> Option<Trigger> {
    if let Some(depth) = now.requested_refresh() {
        return Some(Trigger::new(depth, TriggerReason::Refresh));
    }
    let Some(before) = before else { return Some(Trigger::new(RefreshDepth::Git, TriggerReason::New)) };
    let (Ok(old), Ok(new)) = (&before.head, &now.head) else {
        let changed = before.head.as_ref().err() != now.head.as_ref().err();
        return changed.then_some(Trigger::new(RefreshDepth::GitNow, TriggerReason::Spec));
    };
    if (&old.spec.source, &old.spec.sources, &old.spec.source_hydrator)
        != (&new.spec.source, &new.spec.sources, &new.spec.source_hydrator)
    {
        return Some(Trigger::new(RefreshDepth::GitNow, TriggerReason::Source));
    }
    if old.spec != new.spec {
        return Some(Trigger::new(RefreshDepth::Git, TriggerReason::Spec));
    }
    if old.operation != new.operation && new.operation.is_some() {
        return Some(Trigger::new(RefreshDepth::GitNow, TriggerReason::Operation));
    }
    let phase = |app: &Application| app.status.operation_state.as_ref().and_then(|state| state.phase());
    let stop_requested = phase(old) != phase(new) && phase(new) == Some(OperationPhase::Terminating);
    let status_removed = old.status.reconciled_at.is_some() && new.status.reconciled_at.is_none();
    let annotations_changed = !meaningful(old).eq(meaningful(new));
    let metadata_changed =
        old.is_terminating() != new.is_terminating() || old.metadata.finalizers != new.metadata.finalizers;
    (stop_requested
        || status_removed
        || annotations_changed
        || metadata_changed
        || old.operation != new.operation)
        .then_some(Trigger::live(TriggerReason::Metadata))
}

#[cfg(test)]
pub(crate) mod tests {
    use plumb_crd::annotations::REFRESH;

    use super::*;
    use serde_json::{Value, json};

    pub(crate) fn application(change: impl FnOnce(&mut Value)) -> Manifest {
        let mut value = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "web", "namespace": "argocd", "uid": "u", "resourceVersion": "1"},
            "spec": {"project": "default", "source": {"repoURL": "https://example.com/r.git", "path": "a"},
                     "destination": {"server": "https://kubernetes.default.svc", "namespace": "web"}},
        });
        change(&mut value);
        Manifest::new(value).unwrap()
    }

    fn check(change: impl FnOnce(&mut Value), expected: Option<&str>) {
        let registry = Registry::default();
        registry.note(&application(|_| {}));
        let (_, trigger) = registry.note(&application(change)).unwrap();
        assert_eq!(trigger.map(|trigger| trigger.reason.name()), expected);
    }

    #[test]
    fn a_status_change_triggers_nothing() {
        check(|_| {}, None);
        check(
            |app| app["status"] = json!({"sync": {"status": "Synced", "comparedTo": {"destination": {}}}}),
            None,
        );
        check(|app| app["metadata"]["annotations"] = json!({"notes": "x"}), None);
    }

    #[test]
    fn a_change_by_a_user_triggers_a_run() {
        check(|app| app["spec"]["source"]["path"] = json!("b"), Some("source"));
        check(|app| app["spec"]["syncPolicy"] = json!({"automated": {}}), Some("spec"));
        check(|app| app["operation"] = json!({"sync": {}}), Some("operation"));
        check(|app| app["metadata"]["annotations"] = json!({REFRESH: "hard"}), Some("refresh"));
        check(|app| app["metadata"]["deletionTimestamp"] = json!("2026-11-15T19:00:00Z"), Some("metadata"));
        check(|app| app["metadata"]["annotations"] = json!({"plumb.dev/pause": "{}"}), Some("metadata"));
        let link = json!({"link.argocd.argoproj.io/wiki": "https://wiki.example.com"});
        check(|app| app["metadata"]["annotations"] = link, Some("metadata"));
        check(|app| app["spec"] = json!([1, 2]), Some("spec"));
    }

    #[test]
    fn a_removed_status_triggers_a_run() {
        let registry = Registry::default();
        registry
            .note(&application(|app| app["status"] = json!({"reconciledAt": "2026-11-15T19:00:00Z"})))
            .unwrap();
        let (_, trigger) = registry.note(&application(|_| {})).unwrap();
        assert_eq!(trigger.map(|trigger| trigger.reason.name()), Some("metadata"));
    }

    #[test]
    fn late_states_are_ignored() {
        let at = |version: &str| application(|app| app["metadata"]["resourceVersion"] = json!(version));
        let registry = Registry::default();
        registry.note(&at("9"));
        registry.note(&at("12"));
        let (snapshot, trigger) = registry.note(&at("10")).unwrap();
        assert_eq!((snapshot.resource_version.as_str(), trigger), ("12", None));
        assert_eq!(registry.get(&snapshot.id).unwrap().resource_version, "12");

        // A response that arrives after the deletion does not restore the app. A new app of the same name is
        // noted.
        registry.forget(&snapshot.id, "u");
        assert!(registry.note(&at("13")).is_none());
        assert!(registry.get(&snapshot.id).is_none());
        let recreated = application(|app| app["metadata"]["uid"] = json!("another"));
        assert!(registry.note(&recreated).is_some());
    }

    #[test]
    fn a_new_app_triggers_a_run_and_is_found_by_its_tracking_name() {
        let registry = Registry::default();
        let (snapshot, trigger) = registry.note(&application(|_| {})).unwrap();
        let id = snapshot.id.clone();
        assert_eq!(trigger.map(|trigger| trigger.reason.name()), Some("new"));
        assert_eq!(registry.by_instance("web", "argocd"), Some(id.clone()));
        assert_eq!(registry.by_instance("argocd_web", "other"), Some(id));
        assert_eq!(registry.by_instance("missing", "argocd"), None);
    }
}
