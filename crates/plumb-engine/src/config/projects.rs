//! The `AppProjects` in the cluster, each with the rules that global projects add to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plumb_core::object::Manifest;
use plumb_core::project::{Project, ProjectProblem, ProjectRules};
use plumb_crd::AppProject;
use plumb_crd::convert::to_project_rules;
use plumb_crd::settings::GlobalProject;
use tracing::warn;

/// All projects.
#[derive(Default)]
pub(crate) struct Projects {
    entries: BTreeMap<String, ProjectEntry>,
    /// The repositories whose Secrets name a project, by that project.
    scoped: ScopedRepositories,
}

/// The addresses of repositories that are registered for one project alone, by the name of the project.
pub(super) type ScopedRepositories = BTreeMap<String, Vec<String>>;

struct ProjectEntry {
    labels: BTreeMap<String, String>,
    /// The project's own rules, or why they cannot be read.
    rules: Result<ProjectRules, String>,
    /// Compiled with the rules of global projects.
    compiled: Option<Arc<Project>>,
}

/// Why a project cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoProject {
    /// No project has this name.
    Missing,
    /// It cannot be read, so it permits nothing.
    Unreadable(String),
}

impl Projects {
    pub(crate) fn get(&self, name: &str) -> Result<Arc<Project>, NoProject> {
        let entry = self.entries.get(name).ok_or(NoProject::Missing)?;
        match (&entry.compiled, &entry.rules) {
            (Some(project), _) => Ok(Arc::clone(project)),
            (None, Err(reason)) => Err(NoProject::Unreadable(reason.clone())),
            (None, Ok(_)) => Err(NoProject::Missing),
        }
    }

    /// The names of all projects.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.entries.keys().cloned().collect()
    }

    /// The labels of a project.
    pub(crate) fn labels(&self, name: &str) -> BTreeMap<String, String> {
        self.entries.get(name).map(|entry| entry.labels.clone()).unwrap_or_default()
    }

    /// Notes a project. Returns the names of all projects whose rules may have changed.
    pub(crate) fn note(&mut self, manifest: &Manifest, global: &[GlobalProject]) -> BTreeSet<String> {
        let Some(name) = manifest.name().map(str::to_owned) else { return BTreeSet::new() };
        let entry = match AppProject::from_json(manifest.value()) {
            Ok(wire) => {
                let (rules, problems) = to_project_rules(&wire);
                log_problems(&name, &problems);
                ProjectEntry { labels: wire.metadata.labels.clone(), rules: Ok(rules), compiled: None }
            }
            Err(error) => {
                warn!(project = name, %error, "cannot read project; it permits nothing");
                ProjectEntry { labels: BTreeMap::new(), rules: Err(error.to_string()), compiled: None }
            }
        };
        self.entries.insert(name.clone(), entry);
        self.compile_affected(&name, global)
    }

    /// Removes a deleted project. Returns the names of all projects whose rules may have changed.
    pub(crate) fn forget(&mut self, name: &str, global: &[GlobalProject]) -> BTreeSet<String> {
        self.entries.remove(name);
        self.compile_affected(name, global)
    }

    /// Compiles all projects again, after a change of the settings.
    pub(super) fn settle_all(&mut self, global: &[GlobalProject], scoped: ScopedRepositories) {
        self.scoped = scoped;
        let names: Vec<String> = self.entries.keys().cloned().collect();
        for name in names {
            self.compile(&name, global);
        }
    }

    fn compile_affected(&mut self, name: &str, global: &[GlobalProject]) -> BTreeSet<String> {
        let mut affected = BTreeSet::from([name.to_owned()]);
        let is_global = global.iter().any(|global| global.project == name);
        if is_global {
            let concerns = |entry: &ProjectEntry, other: &str| {
                global.iter().any(|global| global.project == name && global.concerns(other, &entry.labels))
            };
            let others = self.entries.iter().filter(|(other, entry)| concerns(entry, other));
            affected.extend(others.map(|(other, _)| other.clone()).collect::<Vec<_>>());
        }
        for name in &affected {
            self.compile(name, global);
        }
        affected
    }

    fn compile(&mut self, name: &str, global: &[GlobalProject]) {
        let Some(entry) = self.entries.get(name) else { return };
        let Ok(rules) = &entry.rules else { return };
        let mut rules = rules.clone();
        for global in global.iter().filter(|global| global.concerns(name, &entry.labels)) {
            if let Some(Ok(added)) = self.entries.get(&global.project).map(|entry| &entry.rules) {
                rules = rules.with_global(added);
            }
        }
        rules.scoped_repositories = self.scoped.get(name).cloned().unwrap_or_default();
        let (project, problems) = Project::compile(&rules);
        log_problems(name, &problems);
        if let Some(entry) = self.entries.get_mut(name) {
            entry.compiled = Some(Arc::new(project));
        }
    }
}

fn log_problems(project: &str, problems: &[ProjectProblem]) {
    for problem in problems {
        let ProjectProblem { field, reason } = problem;
        warn!(project, field, reason, "cannot read part of a project; that part permits nothing");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_core::object::GroupKind;
    use serde_json::{Value, json};

    fn project(name: &str, labels: &Value, spec: &Value) -> Manifest {
        Manifest::new(json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
            "metadata": {"name": name, "namespace": "argocd", "labels": labels}, "spec": spec,
        }))
        .unwrap()
    }

    fn global() -> Vec<GlobalProject> {
        let config = std::collections::BTreeMap::from([(
            "globalProjects".to_owned(),
            "- labelSelector:\n    matchExpressions:\n    - {key: tier, operator: In, values: [prod]}\n  projectName: base\n".to_owned(),
        )]);
        plumb_crd::settings::Settings::read(&config, &std::collections::BTreeMap::new()).0.global_projects
    }

    fn permits(projects: &Projects, name: &str, kind: &str) -> bool {
        projects.get(name).unwrap().permits_kind(&GroupKind::new("", kind), "x", false)
    }

    #[test]
    fn a_global_project_adds_rules_to_the_projects_that_it_selects() {
        let mut projects = Projects::default();
        let global = global();
        projects.note(&project("team", &json!({"tier": "prod"}), &json!({})), &global);
        projects.note(&project("other", &json!({}), &json!({})), &global);
        assert!(!permits(&projects, "team", "Namespace"));
        let base = json!({"clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}]});
        let affected = projects.note(&project("base", &json!({"tier": "prod"}), &base), &global);
        assert_eq!(affected.into_iter().collect::<Vec<_>>(), ["base", "team"]);
        assert!(permits(&projects, "team", "Namespace") && !permits(&projects, "other", "Namespace"));
        projects.settle_all(&[], ScopedRepositories::new());
        assert!(!permits(&projects, "team", "Namespace"), "the setting is gone");
        projects.settle_all(&global, ScopedRepositories::new());
        projects.forget("base", &global);
        assert!(!permits(&projects, "team", "Namespace"), "the global project is gone");
    }

    #[test]
    fn an_empty_list_of_a_global_project_takes_nothing_away() {
        let mut projects = Projects::default();
        let global = global();
        projects.note(&project("team", &json!({"tier": "prod"}), &json!({})), &global);
        projects.note(&project("base", &json!({}), &json!({"namespaceResourceWhitelist": []})), &global);
        let permits =
            |kind: &str| projects.get("team").unwrap().permits_kind(&GroupKind::new("", kind), "x", true);
        assert!(permits("ConfigMap"), "as in Argo CD");
        let base = json!({"namespaceResourceWhitelist": [{"group": "", "kind": "Service"}]});
        projects.note(&project("base", &json!({}), &base), &global);
        let permits =
            |kind: &str| projects.get("team").unwrap().permits_kind(&GroupKind::new("", kind), "x", true);
        assert!(permits("Service") && !permits("ConfigMap"), "a list with entries counts");
    }

    #[test]
    fn a_repository_of_a_project_is_permitted_for_that_project_alone() {
        let mut projects = Projects::default();
        let global = global();
        for (name, labels) in [("team", json!({"tier": "prod"})), ("other", json!({})), ("base", json!({}))] {
            projects.note(&project(name, &labels, &json!({})), &global);
        }
        let url = "https://host/team/app.git";
        let permits = |projects: &Projects| -> Vec<&str> {
            let names = ["team", "other", "base"].into_iter();
            names.filter(|name| projects.get(name).unwrap().permits_source(url)).collect()
        };
        let scoped = |name: &str| ScopedRepositories::from([(name.to_owned(), vec![url.to_owned()])]);
        assert!(permits(&projects).is_empty());
        projects.settle_all(&global, scoped("team"));
        assert_eq!(permits(&projects), ["team"]);
        // A project that is read again keeps it, and a global project does not pass its own on.
        projects.note(&project("team", &json!({"tier": "prod"}), &json!({"sourceRepos": []})), &global);
        assert_eq!(permits(&projects), ["team"]);
        projects.settle_all(&global, scoped("base"));
        assert_eq!(permits(&projects), ["base"]);
        projects.settle_all(&global, ScopedRepositories::new());
        assert!(permits(&projects).is_empty());
    }

    #[test]
    fn an_invalid_project_is_reported() {
        let mut projects = Projects::default();
        projects.note(&project("broken", &json!({}), &json!({"sourceRepos": {"a": 1}})), &[]);
        assert!(matches!(projects.get("broken"), Err(NoProject::Unreadable(_))));
        assert_eq!(projects.get("none").err(), Some(NoProject::Missing));
    }
}
