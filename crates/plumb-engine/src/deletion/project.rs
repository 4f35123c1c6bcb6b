//! Projects that are being deleted. One with Argo CD's finalizer stays until no app refers to it: its apps would
//! be refused by a project that is gone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plumb_core::object::Manifest;
use plumb_core::sync::deletion::CASCADE as FINALIZER;
use plumb_kube::{OwnWrite, Patch, PatchOptions, Target, WriteError};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tracing::{info, warn};

use crate::apps::snapshot::Brief;
use crate::engine::Engine;
use crate::runtime::gauges::project_of;

/// After trouble with the API server it is tried again then.
const RETRY_DELAY: Duration = Duration::from_secs(3);
const LONGEST_DELAY: Duration = Duration::from_mins(5);

/// The projects that are being deleted and wait for us.
#[derive(Default)]
pub(crate) struct Leaving {
    state: Mutex<State>,
    asked: Notify,
}

#[derive(Default)]
struct State {
    /// Were all Applications seen once? Before that, none is known not to refer to a project.
    apps_known: bool,
    projects: BTreeMap<String, Arc<Manifest>>,
}

impl Leaving {
    /// Notes a project as it is now.
    pub(crate) fn note(&self, project: &Manifest) {
        let Some(name) = project.name() else { return };
        if waits(project) {
            self.lock().projects.insert(name.to_owned(), Arc::new(project.clone()));
            self.asked.notify_one();
        } else {
            self.lock().projects.remove(name);
        }
    }

    /// A project is gone.
    pub(crate) fn forget(&self, name: &str) {
        self.lock().projects.remove(name);
    }

    /// All Applications are known now.
    pub(crate) fn apps_are_known(&self) {
        self.lock().apps_known = true;
        self.asked.notify_one();
    }

    /// An Application is gone, or changed.
    pub(crate) fn reconsider(&self) {
        if !self.lock().projects.is_empty() {
            self.asked.notify_one();
        }
    }

    /// The projects that no app refers to any more.
    fn free(&self, apps: &[Arc<Brief>]) -> Vec<Arc<Manifest>> {
        let state = self.lock();
        if !state.apps_known {
            return Vec::new();
        }
        let is_free = |name: &str| !apps.iter().any(|app| may_refer(app, name));
        state.projects.iter().filter(|(name, _)| is_free(name)).map(|(_, found)| Arc::clone(found)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Is it being deleted, and does it wait for us?
fn waits(project: &Manifest) -> bool {
    project.is_terminating() && finalizers(project).any(|finalizer| finalizer == FINALIZER)
}

fn finalizers(project: &Manifest) -> impl Iterator<Item = &Value> {
    project.value().pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten()
}

/// An app that cannot be read may refer to any project.
fn may_refer(app: &Brief, project: &str) -> bool {
    app.head.as_ref().map_or(true, |application| project_of(application) == project)
}

/// Lets projects go once no app refers to them.
pub(crate) async fn let_go(engine: Arc<Engine>) {
    let mut delay = RETRY_DELAY;
    loop {
        engine.leaving.asked.notified().await;
        for project in engine.leaving.free(&engine.registry.all()) {
            let name = project.name().unwrap_or_default();
            match without_finalizer(&engine, &project).await {
                Ok(()) => {
                    delay = RETRY_DELAY;
                    info!(project = name, "no app refers to it: its deletion goes on");
                }
                Err(error) if error.api().is_some_and(plumb_kube::ApiError::is_not_found) => {}
                Err(error) => {
                    warn!(project = name, %error, "its deletion cannot go on yet");
                    tokio::time::sleep(delay).await;
                    delay = (delay * 2).min(LONGEST_DELAY);
                    engine.leaving.asked.notify_one();
                }
            }
        }
    }
}

async fn without_finalizer(engine: &Engine, project: &Manifest) -> Result<(), WriteError> {
    let Some(target) = Target::of(project) else { return Ok(()) };
    engine.home.gate.write_own(&release(target, project)).await.map(drop)
}

/// Takes our finalizer away, if the project is still what was looked at.
fn release(target: Target, project: &Manifest) -> OwnWrite {
    let others: Vec<&Value> = finalizers(project).filter(|finalizer| **finalizer != FINALIZER).collect();
    let patch = json!({"metadata": {"finalizers": others, "resourceVersion": project.resource_version()}});
    let options =
        PatchOptions { field_manager: Some("argocd-application-controller".to_owned()), subresource: None };
    OwnWrite::Patch { target, patch: Patch::Merge(patch), options }
}

#[cfg(test)]
mod tests {
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
        let leaving = Leaving::default();
        leaving.note(project);
        let apps = registry(specs).all();
        assert!(leaving.free(&apps).is_empty(), "not before all apps are known");
        leaving.apps_are_known();
        assert_eq!(leaving.free(&apps).len(), usize::from(is_free));
    }

    #[test]
    fn a_project_goes_when_no_app_refers_to_it() {
        let spec = |project: &str| {
            let destination = json!({"server": "https://kubernetes.default.svc"});
            json!({"project": project, "source": {"repoURL": "r", "path": "p"}, "destination": destination})
        };
        let leaving = project(&[FINALIZER], true);
        check(&leaving, &[], true);
        check(&leaving, &[spec("default"), spec("")], true);
        check(&leaving, &[spec("default"), spec("team")], false);
        check(&leaving, &[json!([1, 2])], false);
        check(&project(&[FINALIZER], false), &[], false);
        check(&project(&["another.example.com/finalizer"], true), &[], false);
    }

    #[test]
    fn finalizers_of_others_stay() {
        let project = project(&["a.example.com/one", FINALIZER], true);
        let OwnWrite::Patch { patch: Patch::Merge(patch), .. } =
            release(Target::of(&project).unwrap(), &project)
        else {
            panic!("a patch");
        };
        let wanted = json!({"metadata": {"finalizers": ["a.example.com/one"], "resourceVersion": "7"}});
        assert_eq!(patch, wanted);
    }
}
