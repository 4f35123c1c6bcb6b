//! The Applications as the cluster holds them, and what a change of one asks for.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use plumb_core::app::{AppId, Pause};
use plumb_core::object::Manifest;
use plumb_crd::Application;
use plumb_crd::annotations::{DELETION_APPROVED, LINK_PREFIX};

use super::snapshot::StoredApp;
use super::snapshot::{AppSnapshot, AppSummary};
use crate::queue::{RefreshDepth, Trigger, TriggerReason};

/// Annotations that change what plumb does with an app.
const MEANINGFUL_ANNOTATIONS: [&str; 6] = [
    Pause::ANNOTATION,
    plumb_core::app::CompareOptions::ANNOTATION,
    DELETION_APPROVED,
    "argocd.argoproj.io/skip-reconcile",
    "argocd.argoproj.io/manifest-generate-paths",
    "argocd.argoproj.io/client-side-apply-migration-manager",
];

/// The watch and the answers to our own writes tell of the same Application, in no order. For so long after one of
/// them an older state is a late word. Afterwards it is taken as it is: a cluster that was restored from a backup
/// counts its versions from there.
const LATE: Duration = Duration::from_mins(1);
/// How many Applications that are gone are remembered: the answer to our last write of one may come after its end.
const GONE: usize = 256;

/// Does a change of this annotation change what plumb does with an app, or says of it?
fn is_meaningful(annotation: &str) -> bool {
    MEANINGFUL_ANNOTATIONS.contains(&annotation) || annotation.starts_with(LINK_PREFIX)
}

/// The annotations of an Application that have a meaning for plumb.
fn meaningful(application: &Application) -> impl Iterator<Item = (&String, &String)> {
    application.metadata.annotations.iter().filter(|(key, _)| is_meaningful(key))
}

/// All Applications. Cheap to clone; all clones are one registry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry(Arc<RwLock<Apps>>);

#[derive(Debug, Default)]
struct Apps {
    by_id: HashMap<AppId, StoredApp>,
    /// Uids, and since when; the latest last.
    gone: VecDeque<(String, Instant)>,
}

impl Registry {
    /// Notes what was seen, and says what it asks for. What is newer already stays; `None` for what is no
    /// Application (any more).
    pub(crate) fn note(&self, manifest: &Manifest) -> Option<(Arc<AppSnapshot>, Option<Trigger>)> {
        let (known, resting) = AppSnapshot::of(manifest)?;
        let mut apps = self.0.write();
        let is_gone = |uid: &str| apps.gone.iter().any(|(gone, at)| gone == uid && at.elapsed() < LATE);
        if manifest.uid().is_some_and(is_gone) {
            return None;
        }
        if let Some(newer) = apps.by_id.get(&known.id).filter(|present| present.is_newer(&resting, LATE)) {
            return Some((newer.load(), None));
        }
        let before = apps.by_id.insert(known.id.clone(), resting);
        let asked = asked(before.as_ref().map(|before| &*before.summary), &known);
        Some((known, asked))
    }

    /// The Application is gone.
    pub(crate) fn forget(&self, id: &AppId, uid: &str) {
        let mut apps = self.0.write();
        apps.by_id.remove(id);
        apps.gone.push_back((uid.to_owned(), Instant::now()));
        if apps.gone.len() > GONE {
            apps.gone.pop_front();
        }
    }

    pub(crate) fn get(&self, id: &AppId) -> Option<Arc<AppSnapshot>> {
        self.0.read().by_id.get(id).map(StoredApp::load)
    }

    /// What is always at hand of an Application.
    pub(crate) fn summary(&self, id: &AppId) -> Option<Arc<AppSummary>> {
        let apps = self.0.read();
        apps.by_id.get(id).map(|resting| Arc::clone(&resting.summary))
    }

    /// Every Application, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<AppSummary>> {
        let apps = self.0.read();
        apps.by_id.values().map(|resting| Arc::clone(&resting.summary)).collect()
    }

    /// The app that a tracking mark means.
    pub(crate) fn by_instance(&self, instance: &str, control_plane_namespace: &str) -> Option<AppId> {
        let (namespace, name) = instance.split_once('_').unwrap_or((control_plane_namespace, instance));
        let id = AppId { namespace: namespace.to_owned(), name: name.to_owned() };
        let is_known = self.0.read().by_id.contains_key(&id);
        is_known.then_some(id)
    }
}

/// What the difference between two states of an Application asks for. Its status is ours: a change there asks
/// for nothing, unless somebody asked to stop the operation, or took it away (a `kubectl replace` does).
fn asked(before: Option<&AppSummary>, now: &AppSummary) -> Option<Trigger> {
    if let Some(look) = now.requested_refresh() {
        return Some(Trigger::new(look, TriggerReason::Refresh));
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
    let phase = |app: &Application| app.status.operation_state.as_ref().map(|state| state.phase.clone());
    let to_be_stopped = phase(old) != phase(new) && phase(new).as_deref() == Some("Terminating");
    let is_wiped = old.status.reconciled_at.is_some() && new.status.reconciled_at.is_none();
    let annotated = !meaningful(old).eq(meaningful(new));
    let metadata =
        old.is_terminating() != new.is_terminating() || old.metadata.finalizers != new.metadata.finalizers;
    (to_be_stopped || is_wiped || annotated || metadata || old.operation != new.operation)
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
    fn our_own_status_asks_for_nothing() {
        check(|_| {}, None);
        check(
            |app| app["status"] = json!({"sync": {"status": "Synced", "comparedTo": {"destination": {}}}}),
            None,
        );
        check(|app| app["metadata"]["annotations"] = json!({"notes": "x"}), None);
    }

    #[test]
    fn what_a_person_changes_is_looked_at() {
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
    fn a_status_that_somebody_took_away_is_written_anew() {
        let registry = Registry::default();
        registry
            .note(&application(|app| app["status"] = json!({"reconciledAt": "2026-11-15T19:00:00Z"})))
            .unwrap();
        let (_, trigger) = registry.note(&application(|_| {})).unwrap();
        assert_eq!(trigger.map(|trigger| trigger.reason.name()), Some("metadata"));
    }

    #[test]
    fn late_words_change_nothing() {
        let at = |version: &str| application(|app| app["metadata"]["resourceVersion"] = json!(version));
        let registry = Registry::default();
        registry.note(&at("9"));
        registry.note(&at("12"));
        let (known, trigger) = registry.note(&at("10")).unwrap();
        assert_eq!((known.resource_version.as_str(), trigger), ("12", None));
        assert_eq!(registry.get(&known.id).unwrap().resource_version, "12");

        // The answer to a write that comes after the end does not bring the app back; one of the same name does.
        registry.forget(&known.id, "u");
        assert!(registry.note(&at("13")).is_none());
        assert!(registry.get(&known.id).is_none());
        let anew = application(|app| app["metadata"]["uid"] = json!("another"));
        assert!(registry.note(&anew).is_some());
    }

    #[test]
    fn a_new_app_is_looked_at_and_found_by_its_mark() {
        let registry = Registry::default();
        let (known, trigger) = registry.note(&application(|_| {})).unwrap();
        let id = known.id.clone();
        assert_eq!(trigger.map(|trigger| trigger.reason.name()), Some("new"));
        assert_eq!(registry.by_instance("web", "argocd"), Some(id.clone()));
        assert_eq!(registry.by_instance("argocd_web", "other"), Some(id));
        assert_eq!(registry.by_instance("nobody", "argocd"), None);
    }
}
