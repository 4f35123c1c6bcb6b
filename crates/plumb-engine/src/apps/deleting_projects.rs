//! Projects that are being deleted. A project with Argo CD's finalizer is kept until no app refers to it:
//! without its project, an app is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use plumb_core::object::Manifest;
use plumb_core::sync::deletion::CASCADE as FINALIZER;
use serde_json::Value;
use tokio::sync::Notify;

use super::snapshot::AppSummary;

/// The projects that are being deleted and still have the finalizer.
#[derive(Default)]
pub(crate) struct DeletingProjects {
    state: Mutex<State>,
    /// Signals that the finalizer of a project may have to be removed.
    pub(crate) asked: Notify,
}

#[derive(Default)]
struct State {
    /// True once all Applications were listed. Before that, any of them may refer to a project.
    apps_listed: bool,
    projects: BTreeMap<String, Arc<Manifest>>,
}

impl DeletingProjects {
    /// Notes the current state of a project.
    pub(crate) fn note(&self, project: &Manifest) {
        let Some(name) = project.name() else { return };
        if is_held_by_finalizer(project) {
            self.lock().projects.insert(name.to_owned(), Arc::new(project.clone()));
            self.asked.notify_one();
        } else {
            self.lock().projects.remove(name);
        }
    }

    /// Notes that a project was deleted.
    pub(crate) fn forget(&self, name: &str) {
        self.lock().projects.remove(name);
    }

    /// Notes that all Applications were listed.
    pub(crate) fn apps_are_known(&self) {
        self.lock().apps_listed = true;
        self.asked.notify_one();
    }

    /// Notes that an Application was deleted or changed.
    pub(crate) fn reconsider(&self) {
        if !self.lock().projects.is_empty() {
            self.asked.notify_one();
        }
    }

    /// The projects that no app refers to any more.
    pub(crate) fn free(&self, apps: &[Arc<AppSummary>]) -> Vec<Arc<Manifest>> {
        let state = self.lock();
        if !state.apps_listed {
            return Vec::new();
        }
        let is_free = |name: &str| !apps.iter().any(|app| may_refer(app, name));
        state.projects.iter().filter(|(name, _)| is_free(name)).map(|(_, found)| Arc::clone(found)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// True if it is being deleted and has the finalizer.
fn is_held_by_finalizer(project: &Manifest) -> bool {
    project.is_terminating() && finalizers(project).any(|finalizer| finalizer == FINALIZER)
}

pub(crate) fn finalizers(project: &Manifest) -> impl Iterator<Item = &Value> {
    project.value().pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten()
}

/// An app that cannot be read may refer to any project.
fn may_refer(app: &AppSummary, project: &str) -> bool {
    app.head.as_ref().map_or(true, |application| application.project() == project)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apps::registry::Registry;

    fn project(finalizers: &[&str], is_terminating: bool) -> Manifest {
        let mut object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
            "metadata": {"name": "team", "namespace": "argocd", "resourceVersion": "7", "finalizers": finalizers},
        });
        if is_terminating {
            object["metadata"]["deletionTimestamp"] = json!("2026-11-15T19:00:00Z");
        }
        Manifest::new(object).unwrap()
    }

    fn registry(specs: &[Value]) -> Registry {
        let registry = Registry::default();
        for (number, spec) in specs.iter().enumerate() {
            let object = json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "spec": spec,
                "metadata": {"name": format!("app-{number}"), "namespace": "argocd"},
            });
            registry.note(&Manifest::new(object).unwrap());
        }
        registry
    }

    fn check(project: &Manifest, specs: &[Value], is_free: bool) {
        let deleting = DeletingProjects::default();
        deleting.note(project);
        let apps = registry(specs).all();
        assert!(deleting.free(&apps).is_empty(), "not before all apps are listed");
        deleting.apps_are_known();
        assert_eq!(deleting.free(&apps).len(), usize::from(is_free));
    }

    #[test]
    fn a_project_is_released_when_no_app_refers_to_it() {
        let spec = |project: &str| {
            let destination = json!({"server": "https://kubernetes.default.svc"});
            json!({"project": project, "source": {"repoURL": "r", "path": "p"}, "destination": destination})
        };
        let deleting = project(&[FINALIZER], true);
        check(&deleting, &[], true);
        check(&deleting, &[spec("default"), spec("")], true);
        check(&deleting, &[spec("default"), spec("team")], false);
        check(&deleting, &[json!([1, 2])], false);
        check(&project(&[FINALIZER], false), &[], false);
        check(&project(&["another.example.com/finalizer"], true), &[], false);
    }
}
