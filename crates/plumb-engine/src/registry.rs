//! The Applications as the cluster holds them, and what a change of one asks for.

mod known;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use plumb_core::app::{AppId, Pause};
use plumb_core::object::Manifest;
use plumb_crd::Application;

use crate::links::LINK_PREFIX;
use crate::queue::{Look, Trigger};
use known::Resting;
pub(crate) use known::{Brief, Known};

/// Asks for a comparison: `normal` or `hard`. Removed when it was done.
pub(crate) const REFRESH_ANNOTATION: &str = "argocd.argoproj.io/refresh";
/// Identifies the request, so that a newer one is not removed with an older one.
pub(crate) const REFRESH_TIMESTAMP_ANNOTATION: &str = "argocd.argoproj.io/refresh-timestamp";

/// Annotations that change what plumb does with an app.
const MEANINGFUL_ANNOTATIONS: [&str; 6] = [
    Pause::ANNOTATION,
    plumb_core::app::CompareOptions::ANNOTATION,
    "argocd.argoproj.io/deletion-approved",
    "argocd.argoproj.io/skip-reconcile",
    "argocd.argoproj.io/manifest-generate-paths",
    "argocd.argoproj.io/client-side-apply-migration-manager",
];

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
pub(crate) struct Registry(Arc<RwLock<HashMap<AppId, Resting>>>);

impl Registry {
    /// Notes what was seen, and says what it asks for.
    pub(crate) fn note(&self, manifest: &Manifest) -> Option<(Arc<Known>, Option<Trigger>)> {
        let (known, resting) = Known::of(manifest)?;
        let mut apps = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = apps.insert(known.id.clone(), resting);
        let asked = asked(before.as_ref().map(|before| &*before.brief), &known);
        Some((known, asked))
    }

    /// The Application is gone.
    pub(crate) fn forget(&self, id: &AppId) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    pub(crate) fn get(&self, id: &AppId) -> Option<Arc<Known>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(id).map(Resting::wake)
    }

    /// What is always at hand of an Application.
    pub(crate) fn brief(&self, id: &AppId) -> Option<Arc<Brief>> {
        let apps = self.0.read().unwrap_or_else(PoisonError::into_inner);
        apps.get(id).map(|resting| Arc::clone(&resting.brief))
    }

    /// Every Application, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<Brief>> {
        let apps = self.0.read().unwrap_or_else(PoisonError::into_inner);
        apps.values().map(|resting| Arc::clone(&resting.brief)).collect()
    }

    /// The app that a tracking mark means.
    pub(crate) fn by_instance(&self, instance: &str, control_plane_namespace: &str) -> Option<AppId> {
        let (namespace, name) = instance.split_once('_').unwrap_or((control_plane_namespace, instance));
        let id = AppId { namespace: namespace.to_owned(), name: name.to_owned() };
        let is_known = self.0.read().unwrap_or_else(PoisonError::into_inner).contains_key(&id);
        is_known.then_some(id)
    }
}

/// What the difference between two states of an Application asks for. Its status is ours: a change there asks
/// for nothing, unless somebody asked to stop the operation.
fn asked(before: Option<&Brief>, now: &Brief) -> Option<Trigger> {
    if let Some(look) = now.requested_refresh() {
        return Some(Trigger::new(look, "refresh"));
    }
    let Some(before) = before else { return Some(Trigger::new(Look::Git, "new")) };
    let (Ok(old), Ok(new)) = (&before.head, &now.head) else {
        let changed = before.head.as_ref().err() != now.head.as_ref().err();
        return changed.then_some(Trigger::new(Look::GitNow, "spec"));
    };
    if (&old.spec.source, &old.spec.sources, &old.spec.source_hydrator)
        != (&new.spec.source, &new.spec.sources, &new.spec.source_hydrator)
    {
        return Some(Trigger::new(Look::GitNow, "source"));
    }
    if old.spec != new.spec {
        return Some(Trigger::new(Look::Git, "spec"));
    }
    if old.operation != new.operation && new.operation.is_some() {
        return Some(Trigger::new(Look::GitNow, "operation"));
    }
    let phase = |app: &Application| app.status.operation_state.as_ref().map(|state| state.phase.clone());
    let to_be_stopped = phase(old) != phase(new) && phase(new).as_deref() == Some("Terminating");
    let annotated = !meaningful(old).eq(meaningful(new));
    let metadata =
        old.is_terminating() != new.is_terminating() || old.metadata.finalizers != new.metadata.finalizers;
    (to_be_stopped || annotated || metadata || old.operation != new.operation)
        .then_some(Trigger::new(Look::Live, "metadata"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    pub(super) fn application(change: impl FnOnce(&mut Value)) -> Manifest {
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
        assert_eq!(trigger.map(|trigger| trigger.reason), expected);
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
        check(|app| app["metadata"]["annotations"] = json!({REFRESH_ANNOTATION: "hard"}), Some("refresh"));
        check(|app| app["metadata"]["deletionTimestamp"] = json!("2026-11-15T19:00:00Z"), Some("metadata"));
        check(|app| app["metadata"]["annotations"] = json!({"plumb.dev/pause": "{}"}), Some("metadata"));
        let link = json!({"link.argocd.argoproj.io/wiki": "https://wiki.example.com"});
        check(|app| app["metadata"]["annotations"] = link, Some("metadata"));
        check(|app| app["spec"] = json!([1, 2]), Some("spec"));
    }

    #[test]
    fn a_new_app_is_looked_at_and_found_by_its_mark() {
        let registry = Registry::default();
        let (known, trigger) = registry.note(&application(|_| {})).unwrap();
        let id = known.id.clone();
        assert_eq!(trigger.map(|trigger| trigger.reason), Some("new"));
        assert_eq!(registry.by_instance("web", "argocd"), Some(id.clone()));
        assert_eq!(registry.by_instance("argocd_web", "other"), Some(id));
        assert_eq!(registry.by_instance("nobody", "argocd"), None);
    }
}
