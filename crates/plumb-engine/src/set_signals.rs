//! What happened that concerns sets: collected by the watches, taken by the controller of sets.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use parking_lot::Mutex;
use plumb_core::app::AppId;
use plumb_core::object::Manifest;
use plumb_crd::settings::SecretData;
use serde_json::Value;
use tokio::sync::Notify;

use plumb_appset::ClusterRecord;
use plumb_appset::reconcile::owner_of;

use crate::pushes::push::RepositoryPush;

/// Most pushes that are kept; beyond that, all sets look at Git.
const MOST_PUSHES: usize = 1000;

/// A kind of objects that decide about clusters: API version and plural name.
pub(crate) type DecisionKind = (String, String);

/// What happened since the last look.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an event of its own")]
pub(crate) struct Happened {
    /// A cluster Secret changed.
    pub(crate) clusters: bool,
    /// A project changed.
    pub(crate) projects: bool,
    /// A setting changed.
    pub(crate) settings: bool,
    /// More pushes than are kept.
    pub(crate) any_push: bool,
    pub(crate) pushes: Vec<RepositoryPush>,
    /// Sets with an Application that others changed.
    pub(crate) changed: BTreeSet<AppId>,
    /// Sets with an Application whose status changed.
    pub(crate) progressed: BTreeSet<AppId>,
    /// Kinds with an object that changed.
    pub(crate) decisions: BTreeSet<DecisionKind>,
}

/// What is remembered of an Application.
#[derive(Clone, PartialEq, Eq)]
struct Seen {
    set: AppId,
    content: u64,
    status: u64,
}

/// What metrics tell about a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetFigures {
    /// The reason of the condition `ResourcesUpToDate`.
    pub(crate) update_status: String,
    pub(crate) n_owned: usize,
}

#[derive(Default)]
struct State {
    happened: Happened,
    sets: BTreeMap<AppId, SetFigures>,
    clusters: BTreeMap<String, ClusterRecord>,
    applications: BTreeMap<AppId, Seen>,
    clusters_listed: bool,
    applications_listed: bool,
}

/// What happened that concerns sets.
#[derive(Default)]
pub(crate) struct SetSignals {
    state: Mutex<State>,
    added: Notify,
}

impl SetSignals {
    /// Waits until something happened.
    pub(crate) async fn wait(&self) {
        self.added.notified().await;
    }

    /// What happened since the last call; `None` until clusters and Applications are known.
    pub(crate) fn take(&self) -> Option<Happened> {
        let mut state = self.state.lock();
        let is_ready = state.clusters_listed && state.applications_listed;
        is_ready.then(|| std::mem::take(&mut state.happened))
    }

    /// Notes what a watch reported about a set; `None` if it is gone.
    pub(crate) fn set(&self, id: &AppId, figures: Option<SetFigures>) {
        let mut state = self.state.lock();
        match figures {
            Some(figures) => state.sets.insert(id.clone(), figures),
            None => state.sets.remove(id),
        };
    }

    /// The sets, for metrics.
    pub(crate) fn sets(&self) -> BTreeMap<AppId, SetFigures> {
        self.state.lock().sets.clone()
    }

    /// The registered clusters in the order of their Secrets' names.
    pub(crate) fn clusters(&self) -> Vec<ClusterRecord> {
        self.state.lock().clusters.values().cloned().collect()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.added.notify_one();
    }

    pub(crate) fn projects(&self) {
        self.change(|state| state.happened.projects = true);
    }

    pub(crate) fn settings(&self) {
        self.change(|state| state.happened.settings = true);
    }

    pub(crate) fn decision(&self, kind: &DecisionKind) {
        self.change(|state| {
            state.happened.decisions.insert(kind.clone());
        });
    }

    pub(crate) fn clusters_listed(&self) {
        self.change(|state| state.clusters_listed = true);
    }

    pub(crate) fn applications_listed(&self) {
        self.change(|state| state.applications_listed = true);
    }

    pub(crate) fn pushed(&self, push: &RepositoryPush) {
        self.change(|state| {
            if state.happened.pushes.len() < MOST_PUSHES {
                state.happened.pushes.push(push.clone());
            } else {
                state.happened.any_push = true;
            }
        });
    }

    /// Notes the Secret of a cluster; `None` if it is gone, or describes no cluster.
    pub(crate) fn cluster_secret(&self, name: &str, secret: Option<&SecretData>) {
        let record = secret.map(|secret| {
            let text = |key: &str| secret.get(key).map(|text| text.expose().to_owned()).unwrap_or_default();
            ClusterRecord {
                name: text("name"),
                server: text("server"),
                project: text("project"),
                labels: secret.metadata.labels.clone(),
                annotations: secret.metadata.annotations.clone(),
            }
        });
        let mut state = self.state.lock();
        if state.clusters.get(name) == record.as_ref() {
            return;
        }
        match record {
            Some(record) => state.clusters.insert(name.to_owned(), record),
            None => state.clusters.remove(name),
        };
        state.happened.clusters = true;
        drop(state);
        self.added.notify_one();
    }

    /// Notes an Application that a watch reported.
    pub(crate) fn application(&self, manifest: &Manifest) {
        let Some((id, seen)) = seen(manifest) else { return };
        let mut state = self.state.lock();
        let before = state.applications.insert(id, seen.clone());
        match before {
            // A new one is the set's own work, or a list.
            None => return,
            Some(before) if before == seen => return,
            Some(before) => {
                if before.content != seen.content || before.set != seen.set {
                    state.happened.changed.insert(seen.set.clone());
                    state.happened.changed.insert(before.set);
                }
                state.happened.progressed.insert(seen.set);
            }
        }
        drop(state);
        self.added.notify_one();
    }

    /// The set that generated an Application.
    pub(crate) fn set_of(manifest: &Manifest) -> Option<AppId> {
        let name = owner_of(manifest.value())?.to_owned();
        Some(AppId { namespace: manifest.namespace()?.to_owned(), name })
    }

    /// Notes an Application as the set itself wrote it: this is nothing new.
    pub(crate) fn written(&self, manifest: &Manifest) {
        if let Some((id, seen)) = seen(manifest) {
            self.state.lock().applications.insert(id, seen);
        }
    }

    pub(crate) fn application_gone(&self, id: &AppId) {
        self.change(|state| {
            if let Some(before) = state.applications.remove(id) {
                state.happened.changed.insert(before.set);
            }
        });
    }
}

fn seen(manifest: &Manifest) -> Option<(AppId, Seen)> {
    let value = manifest.value();
    let namespace = manifest.namespace()?.to_owned();
    let id = AppId { namespace: namespace.clone(), name: manifest.name()?.to_owned() };
    let set = AppId { namespace, name: owner_of(value)?.to_owned() };
    let metadata = &value["metadata"];
    let content = [
        &value["spec"],
        &metadata["labels"],
        &metadata["annotations"],
        &metadata["finalizers"],
        &metadata["ownerReferences"],
        &metadata["deletionTimestamp"],
    ];
    let status = &value["status"];
    let progress = [
        &status["sync"]["status"],
        &status["sync"]["revision"],
        &status["sync"]["revisions"],
        &status["health"]["status"],
        &status["operationState"]["phase"],
        &status["operationState"]["startedAt"],
        &value["operation"],
    ];
    Some((id, Seen { set, content: hash(&content), status: hash(&progress) }))
}

fn hash(values: &[&Value]) -> u64 {
    let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
    BuildHasherDefault::<DefaultHasher>::default().hash_one(texts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn application(change: impl FnOnce(&mut Value)) -> Manifest {
        let mut value = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "web", "namespace": "argocd", "ownerReferences": [{
                "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "teams", "controller": true,
            }]},
            "spec": {"project": "default"},
        });
        change(&mut value);
        Manifest::new(value).unwrap()
    }

    fn ready() -> SetSignals {
        let signals = SetSignals::default();
        assert!(signals.take().is_none(), "nothing is known yet");
        signals.clusters_listed();
        signals.applications_listed();
        signals
    }

    #[test]
    fn only_changes_by_others_concern_a_set() {
        let signals = ready();
        let teams = AppId { namespace: "argocd".to_owned(), name: "teams".to_owned() };
        let concerns = |manifest: &Manifest| {
            signals.application(manifest);
            let happened = signals.take().unwrap();
            (happened.changed.contains(&teams), happened.progressed.contains(&teams))
        };
        assert_eq!(concerns(&application(|_| {})), (false, false), "it is new");
        assert_eq!(concerns(&application(|_| {})), (false, false), "nothing changed");
        let status = |app: &mut Value| app["status"] = json!({"sync": {"status": "Synced"}});
        assert_eq!(concerns(&application(status)), (false, true));
        let edited = |app: &mut Value| app["spec"] = json!({"project": "other"});
        assert_eq!(concerns(&application(edited)), (true, true));
        let own = application(|app| app["spec"] = json!({"project": "third"}));
        signals.written(&own);
        assert_eq!(concerns(&own), (false, false), "the set wrote it");
        signals.application_gone(&AppId { namespace: "argocd".to_owned(), name: "web".to_owned() });
        assert!(signals.take().unwrap().changed.contains(&teams));
    }
}
