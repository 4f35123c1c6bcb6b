//! The current projects and settings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::RwLock;
use plumb_core::object::Manifest;
use plumb_core::project::Project;
use plumb_core::tracking::TrackingMethod;
use plumb_crd::settings::{ConfigData, SecretData, TRACKING_METHOD};
use serde_json::Value;
use tokio::sync::watch;
use tracing::warn;

use crate::config::projects::{NoProject, Projects};
use crate::config::settings::{Settings, SettingsSource};

fn config_data(object: &Manifest) -> ConfigData {
    let data = object.value().get("data").and_then(Value::as_object).into_iter().flatten();
    data.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Projects and settings. Cheap to clone; clones share the state.
#[derive(Clone, Default)]
pub(crate) struct ConfigStore(Arc<RwLock<State>>);

#[derive(Default)]
struct State {
    projects: Projects,
    settings: Arc<Settings>,
    source: SettingsSource,
    /// The generation of the current settings, for tasks that wait for a change.
    changes: watch::Sender<u64>,
}

impl State {
    fn read_again(&mut self) {
        let (settings, problems) = Settings::read(&self.source, self.settings.generation + 1);
        for problem in problems {
            warn!(
                place = problem.place,
                reason = problem.reason,
                "cannot read a setting; its default applies"
            );
        }
        for setting in &settings.without_effect {
            // Logged once, not with every change of another setting.
            if !self.settings.without_effect.contains(setting) {
                warn!(place = setting.place, reason = setting.reason, "a setting has no effect");
            }
        }
        let scoped = settings.scoped_repositories();
        let projects_changed = self.settings.global_projects != settings.global_projects
            || self.settings.scoped_repositories() != scoped;
        self.changes.send_replace(settings.generation);
        self.settings = Arc::new(settings);
        if projects_changed {
            self.projects.settle_all(&self.settings.global_projects, scoped);
        }
    }
}

impl ConfigStore {
    pub(crate) fn project(&self, name: &str) -> Result<Arc<Project>, NoProject> {
        self.0.read().projects.get(name)
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.0.read().settings)
    }

    /// Signals a change of the settings.
    pub(crate) fn settings_changes(&self) -> watch::Receiver<u64> {
        self.0.read().changes.subscribe()
    }

    /// Notes a `ConfigMap` with settings, or its deletion with `None`. Returns true if anything changed.
    pub(crate) fn note_config_map(&self, name: &str, object: Option<&Manifest>) -> bool {
        let mut state = self.0.write();
        let data = object.map(config_data);
        if state.source.config_maps.get(name) == data.as_ref() {
            return false;
        }
        match data {
            Some(data) => state.source.config_maps.insert(name.to_owned(), data),
            None => state.source.config_maps.remove(name),
        };
        state.read_again();
        true
    }

    /// Does `argocd-cm` name the tracking method?
    pub(crate) fn names_tracking_method(&self) -> bool {
        let state = self.0.read();
        state.source.config_maps.get("argocd-cm").is_some_and(|data| data.contains_key(TRACKING_METHOD))
    }

    /// Takes this method for the one that `argocd-cm` leaves out.
    pub(crate) fn assume_tracking_method(&self, method: TrackingMethod) {
        let mut state = self.0.write();
        let data = state.source.config_maps.entry("argocd-cm".to_owned()).or_default();
        data.insert(TRACKING_METHOD.to_owned(), method.as_str().to_owned());
        state.read_again();
    }

    /// Notes the Secret of a repository, or its deletion with `None`. Returns true if anything changed.
    pub(crate) fn note_secret(&self, name: &str, secret: Option<SecretData>) -> bool {
        let mut state = self.0.write();
        if state.source.secrets.get(name) == secret.as_ref() {
            return false;
        }
        match secret {
            Some(secret) => state.source.secrets.insert(name.to_owned(), secret),
            None => state.source.secrets.remove(name),
        };
        state.read_again();
        true
    }

    /// The names of all projects.
    pub(crate) fn project_names(&self) -> BTreeSet<String> {
        self.0.read().projects.names()
    }

    /// The labels of a project.
    pub(crate) fn project_labels(&self, name: &str) -> BTreeMap<String, String> {
        self.0.read().projects.labels(name)
    }

    /// Notes a project. Returns the names of the projects whose apps have to run.
    pub(crate) fn note_project(&self, manifest: &Manifest) -> BTreeSet<String> {
        let mut state = self.0.write();
        let State { projects, settings, .. } = &mut *state;
        projects.note(manifest, &settings.global_projects)
    }

    /// Removes a deleted project. Returns the names of the projects whose apps have to run.
    pub(crate) fn forget_project(&self, name: &str) -> BTreeSet<String> {
        let mut state = self.0.write();
        let State { projects, settings, .. } = &mut *state;
        projects.forget(name, &settings.global_projects)
    }
}
