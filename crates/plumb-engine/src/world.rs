//! Projects and settings as the cluster holds them now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use plumb_core::object::Manifest;
use plumb_core::project::Project;
use plumb_crd::settings::{ConfigData, SecretData};
use serde_json::Value;
use tracing::warn;

use crate::projects::{NoProject, Projects};
use crate::settings::{Settings, SettingsSource};

/// Where a part of the settings stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingsKind {
    ConfigMap,
    Secret,
}

fn config_data(object: &Manifest) -> ConfigData {
    let data = object.value().get("data").and_then(Value::as_object).into_iter().flatten();
    data.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Projects and settings. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub(crate) struct World(Arc<RwLock<State>>);

#[derive(Default)]
struct State {
    projects: Projects,
    settings: Arc<Settings>,
    source: SettingsSource,
}

impl World {
    pub(crate) fn project(&self, name: &str) -> Result<Arc<Project>, NoProject> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).projects.get(name)
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner).settings)
    }

    /// Notes a `ConfigMap` or Secret that the settings are read from; `None` takes it away. Says whether anything
    /// changed.
    pub(crate) fn note_settings(&self, kind: SettingsKind, name: &str, object: Option<&Manifest>) -> bool {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let changed = match kind {
            SettingsKind::ConfigMap => {
                let data = object.map(config_data);
                let before = state.source.config_maps.get(name);
                let changed = before != data.as_ref();
                match data {
                    Some(data) => state.source.config_maps.insert(name.to_owned(), data),
                    None => state.source.config_maps.remove(name),
                };
                changed
            }
            SettingsKind::Secret => {
                let data =
                    object.and_then(|object| SecretData::read(object.value()).ok()).map(|(data, _)| data);
                match data {
                    Some(data) => state.source.secrets.insert(name.to_owned(), data),
                    None => state.source.secrets.remove(name),
                };
                true
            }
        };
        if !changed {
            return false;
        }
        let generation = state.settings.generation + 1;
        let (settings, problems) = Settings::read(&state.source, generation);
        for problem in problems {
            warn!(
                place = problem.place,
                reason = problem.reason,
                "a setting cannot be read; its default counts"
            );
        }
        let other_projects = state.settings.global_projects != settings.global_projects;
        state.settings = Arc::new(settings);
        if other_projects {
            let State { projects, settings, .. } = &mut *state;
            projects.settle_all(&settings.global_projects);
        }
        true
    }

    /// The labels of a project.
    pub(crate) fn project_labels(&self, name: &str) -> BTreeMap<String, String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).projects.labels(name)
    }

    /// Notes a project; the names of those whose apps have to be looked at.
    pub(crate) fn note_project(&self, manifest: &Manifest) -> BTreeSet<String> {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let State { projects, settings, .. } = &mut *state;
        projects.note(manifest, &settings.global_projects)
    }

    /// A project is gone; the names of those whose apps have to be looked at.
    pub(crate) fn forget_project(&self, name: &str) -> BTreeSet<String> {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let State { projects, settings, .. } = &mut *state;
        projects.forget(name, &settings.global_projects)
    }
}
