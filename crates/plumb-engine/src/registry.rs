//! The Applications as the cluster holds them, and what a change of one asks for.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use plumb_core::app::{App, AppId, Pause};
use plumb_core::object::Manifest;
use plumb_core::tracking::TRACKING_ANNOTATION;
use plumb_crd::{Application, SpecProblem, Wire, WireError, to_app};
use serde_json::Value;

use crate::merge_patch::merge_patch;
use crate::queue::{Look, Trigger};

/// Asks for a comparison: `normal` or `hard`. Removed when it was done.
pub(crate) const REFRESH_ANNOTATION: &str = "argocd.argoproj.io/refresh";
/// Identifies the request, so that a newer one is not removed with an older one.
pub(crate) const REFRESH_TIMESTAMP_ANNOTATION: &str = "argocd.argoproj.io/refresh-timestamp";

/// What `kubectl apply` leaves behind.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Annotations that change what plumb does with an app.
const MEANINGFUL_ANNOTATIONS: [&str; 6] = [
    Pause::ANNOTATION,
    plumb_core::app::CompareOptions::ANNOTATION,
    "argocd.argoproj.io/deletion-approved",
    "argocd.argoproj.io/skip-reconcile",
    "argocd.argoproj.io/manifest-generate-paths",
    "argocd.argoproj.io/client-side-apply-migration-manager",
];

/// One Application as it was last seen.
#[derive(Debug)]
pub(crate) struct Known {
    /// Its name and namespace.
    pub(crate) id: AppId,
    /// `metadata.resourceVersion`.
    pub(crate) resource_version: String,
    /// Read, or the reason why not.
    pub(crate) wire: Result<Application, WireError>,
    /// Does somebody declare its spec (Git, by app of apps or by `kubectl apply`)? Then no line of it is ours.
    pub(crate) is_declared: bool,
    /// Checked, or everything that is wrong with it. Empty when `wire` is an error.
    pub(crate) app: Result<App, Vec<SpecProblem>>,
}

impl Known {
    /// Reads an Application. Whatever it contains, there is an answer.
    pub(crate) fn of(manifest: &Manifest) -> Option<Self> {
        let id = Application::id_of(manifest.value())?;
        let wire = Application::from_json(manifest.value());
        let app = wire.as_ref().map_err(|_| Vec::new()).and_then(to_app);
        Some(Self {
            id,
            resource_version: manifest.resource_version().unwrap_or_default().to_owned(),
            wire,
            is_declared: is_declared(manifest),
            app,
        })
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

    /// The comparison that an annotation asks for.
    pub(crate) fn requested_refresh(&self) -> Option<Look> {
        let wire = self.wire.as_ref().ok()?;
        match wire.annotation(REFRESH_ANNOTATION)? {
            "hard" => Some(Look::Hard),
            _ => Some(Look::GitNow),
        }
    }
}

/// Does an applying manager own a part of the spec, or does a mark say whose manifest it is?
fn is_declared(manifest: &Manifest) -> bool {
    let managers = manifest.value().pointer("/metadata/managedFields").and_then(Value::as_array);
    let applies = |entry: &Value| entry["operation"] == "Apply" && entry["fieldsV1"].get("f:spec").is_some();
    let marks = [LAST_APPLIED, TRACKING_ANNOTATION];
    managers.into_iter().flatten().any(applies) || marks.iter().any(|key| manifest.annotation(key).is_some())
}

/// All Applications. Cheap to clone; all clones are one registry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry(Arc<RwLock<HashMap<AppId, Arc<Known>>>>);

impl Registry {
    /// Notes what was seen, and says what it asks for.
    pub(crate) fn note(&self, manifest: &Manifest) -> Option<(AppId, Option<Trigger>)> {
        let seen = Arc::new(Known::of(manifest)?);
        let id = seen.id.clone();
        let mut apps = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = apps.insert(id.clone(), Arc::clone(&seen));
        Some((id, asked(before.as_deref(), &seen)))
    }

    /// The Application is gone.
    pub(crate) fn forget(&self, id: &AppId) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    pub(crate) fn get(&self, id: &AppId) -> Option<Arc<Known>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Every Application, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<Known>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The app that a tracking mark means.
    pub(crate) fn by_instance(&self, instance: &str, control_plane_namespace: &str) -> Option<AppId> {
        let (namespace, name) = instance.split_once('_').unwrap_or((control_plane_namespace, instance));
        let id = AppId { namespace: namespace.to_owned(), name: name.to_owned() };
        self.get(&id).map(|_| id)
    }
}

/// What the difference between two states of an Application asks for. Its status is ours: a change there asks
/// for nothing, unless somebody asked to stop the operation.
fn asked(before: Option<&Known>, now: &Known) -> Option<Trigger> {
    if let Some(look) = now.requested_refresh() {
        return Some(Trigger::new(look, "refresh"));
    }
    let Some(before) = before else { return Some(Trigger::new(Look::Git, "new")) };
    let (Ok(old), Ok(new)) = (&before.wire, &now.wire) else {
        let changed = before.wire.as_ref().err() != now.wire.as_ref().err();
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
    let annotated = MEANINGFUL_ANNOTATIONS.iter().any(|key| old.annotation(key) != new.annotation(key));
    let metadata =
        old.is_terminating() != new.is_terminating() || old.metadata.finalizers != new.metadata.finalizers;
    (to_be_stopped || annotated || metadata || old.operation != new.operation)
        .then_some(Trigger::new(Look::Live, "metadata"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn application(change: impl FnOnce(&mut Value)) -> Manifest {
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
        check(|app| app["spec"] = json!([1, 2]), Some("spec"));
    }

    #[test]
    fn a_spec_is_tidied_unless_somebody_declares_it() {
        let loose = |app: &mut Value| {
            app["spec"]["project"] = json!("");
            app["spec"]["syncPolicy"] = json!({});
            app["spec"]["source"]["helm"] = json!({});
        };
        let patch =
            |change: &dyn Fn(&mut Value)| Known::of(&application(|app| change(app))).unwrap().tidied_spec();
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
    fn a_new_app_is_looked_at_and_found_by_its_mark() {
        let registry = Registry::default();
        let (id, trigger) = registry.note(&application(|_| {})).unwrap();
        assert_eq!(trigger.map(|trigger| trigger.reason), Some("new"));
        assert_eq!(registry.by_instance("web", "argocd"), Some(id.clone()));
        assert_eq!(registry.by_instance("argocd_web", "other"), Some(id));
        assert_eq!(registry.by_instance("nobody", "argocd"), None);
    }
}
