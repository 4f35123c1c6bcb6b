//! What a change of a project means for its Applications.

use plumb_core::app::App;
use plumb_core::project::{Project, TargetCluster};
use plumb_crd::AppProject;
use plumb_crd::convert::to_project_rules;

use super::served::Leader;

impl Leader {
    /// How many Applications of a project lose a permitted source by a change of it, and how many a permitted destination.
    pub fn lost_by(&self, before: &AppProject, after: &AppProject) -> (usize, usize) {
        let compiled = |project: &AppProject| Project::compile(&to_project_rules(project).0).0;
        let (before, after) = (compiled(before), compiled(after));
        let (mut sources, mut destinations) = (0, 0);
        for known in self.engine.registry.all() {
            let Ok(app) = known.app.as_ref() else { continue };
            if app.project != before.name() {
                continue;
            }
            sources += usize::from(loses_source(&before, &after, app));
            // An Application whose cluster is not registered has a condition that says so.
            if let Some((server, name)) = self.engine.clusters.named(&app.destination.cluster) {
                let project = self.engine.clusters.project(&app.destination.cluster);
                let cluster = TargetCluster { server: &server, name: &name, project: project.as_deref() };
                destinations += usize::from(loses_destination(&before, &after, app, &cluster));
            }
        }
        (sources, destinations)
    }
}

fn loses_source(before: &Project, after: &Project, app: &App) -> bool {
    let permits =
        |project: &Project| app.sources.iter().all(|source| project.permits_source(&source.repo_url));
    permits(before) && !permits(after)
}

fn loses_destination(before: &Project, after: &Project, app: &App, cluster: &TargetCluster<'_>) -> bool {
    let namespace = app.destination.namespace.as_deref().unwrap_or_default();
    before.permits_destination(cluster, namespace) && !after.permits_destination(cluster, namespace)
}

#[cfg(test)]
mod tests {
    use plumb_crd::{Application, to_app};
    use serde_json::json;

    use super::*;

    #[test]
    fn an_app_loses_what_was_permitted_and_is_not_any_more() {
        let project = |repo: &str, namespace: &str| {
            let project = json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "team"},
                "spec": {"sourceRepos": [repo], "destinations": [{"server": "*", "namespace": namespace}]},
            });
            Project::compile(&to_project_rules(&AppProject::from_json(&project).unwrap()).0).0
        };
        let app = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": "argocd"},
            "spec": {"project": "team", "source": {"repoURL": "https://h/shop", "path": "."},
                "destination": {"server": "https://c", "namespace": "shop"}},
        });
        let app = to_app(&Application::from_json(&app).unwrap()).unwrap();
        let cluster = TargetCluster { server: "https://c", name: "c", project: None };
        let check = |before: (&str, &str), after: (&str, &str)| {
            let (before, after) = (project(before.0, before.1), project(after.0, after.1));
            (loses_source(&before, &after, &app), loses_destination(&before, &after, &app, &cluster))
        };
        assert_eq!(check(("*", "*"), ("https://h/*", "shop")), (false, false));
        assert_eq!(check(("*", "*"), ("https://h/other", "shop")), (true, false));
        assert_eq!(check(("*", "*"), ("*", "other")), (false, true));
        assert_eq!(
            check(("https://x", "x"), ("https://y", "y")),
            (false, false),
            "it was not permitted before"
        );
    }
}
