//! What works, what differs, and what is missing.

use std::collections::BTreeMap;

use serde_json::Value;

use super::facts::{Finding, Installation, Level, Report};

/// Decides what the move changes.
pub fn check(installation: &Installation) -> Report {
    let mut findings = Vec::new();
    findings.extend(controllers(installation));
    findings.extend(plugins(installation));
    findings.extend(sources(installation));
    findings.extend(application_sets(installation));
    findings.extend(users(installation));
    findings.extend(others(installation));
    for (place, reason) in &installation.without_effect {
        let next = "remove it, or leave it: plumb logs it once";
        findings.push(finding(Level::Differs, place, format!("has no effect: {reason}"), next));
    }
    for what in &installation.unread {
        let next = "run the check with a user who may read it";
        findings.push(finding(Level::Step, "permissions", format!("not checked: {what}"), next));
    }
    findings.sort_by(|a, b| (a.level, &a.subject, &a.what).cmp(&(b.level, &b.subject, &b.what)));
    let mut verdicts = installation.verdicts.clone();
    verdicts.sort_by(|a, b| a.app.cmp(&b.app));
    Report { findings, verdicts }
}

fn finding(level: Level, subject: &str, what: impl Into<String>, next: &str) -> Finding {
    Finding { level, subject: subject.to_owned(), what: what.into(), next: next.to_owned() }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, place: &str) -> &'a [Value] {
    value.pointer(place).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The workload with this component, whatever the release of its chart is called.
fn workload<'a>(installation: &'a Installation, component: &str) -> Option<&'a Value> {
    let label = "/spec/template/metadata/labels/app.kubernetes.io~1name";
    installation.workloads.iter().find(|workload| {
        let labelled = workload.pointer(label).and_then(Value::as_str);
        name(workload) == component || labelled == Some(component) || name(workload).ends_with(component)
    })
}

fn runs(workload: &Value) -> bool {
    workload["spec"]["replicas"].as_u64() != Some(0)
}

/// Two controllers of the same objects would undo each other's changes.
fn controllers(installation: &Installation) -> Vec<Finding> {
    let mut found = Vec::new();
    for (component, what) in [
        ("argocd-application-controller", "reconciles the same Applications as plumb"),
        ("argocd-applicationset-controller", "generates the same Applications as plumb"),
    ] {
        if let Some(object) = workload(installation, component).filter(|object| runs(object)) {
            let kind = object["kind"].as_str().unwrap_or("Deployment").to_lowercase();
            let next = format!("kubectl scale {kind}/{} --replicas=0", name(object));
            found.push(finding(Level::Step, component, what, &next));
        }
    }
    found
}

/// Plugins in sidecars of the repo server.
fn plugins(installation: &Installation) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(server) = workload(installation, "argocd-repo-server") {
        let own = |container: &&Value| {
            matches!(container["name"].as_str(), Some("argocd-repo-server" | "repo-server"))
        };
        for sidecar in list(server, "/spec/template/spec/containers").iter().filter(|one| !own(one)) {
            let plugin = sidecar["name"].as_str().unwrap_or_default();
            let next = "copy its plugin.yaml into the ConfigMap `plumb-plugins`, and its programs into plumb's image";
            found.push(finding(
                if installation.plugins.iter().any(|known| known == plugin) {
                    Level::Works
                } else {
                    Level::Missing
                },
                &format!("plugin {plugin}"),
                "runs in a sidecar of the repo server, which plumb does not use",
                next,
            ));
        }
    }
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
    for source in installation.applications.iter().flat_map(all_sources) {
        if let Some(plugin) = source.get("plugin") {
            let plugin = plugin["name"].as_str().unwrap_or("found by its files");
            *used.entry(plugin.to_owned()).or_default() += 1;
        }
    }
    for (plugin, n_apps) in used {
        let is_known = installation.plugins.contains(&plugin);
        let level = if is_known { Level::Works } else { Level::Missing };
        let what = format!("sources that use it: {n_apps}");
        found.push(finding(
            level,
            &format!("plugin {plugin}"),
            what,
            "declare it in the ConfigMap `plumb-plugins`",
        ));
    }
    found
}

fn all_sources(application: &Value) -> Vec<&Value> {
    let many = list(application, "/spec/sources").iter();
    let one = application["spec"].get("source").into_iter();
    many.chain(one).collect()
}

/// Sources that plumb does not read.
fn sources(installation: &Installation) -> Vec<Finding> {
    let mut found = Vec::new();
    for application in &installation.applications {
        if application["spec"].get("sourceHydrator").is_some_and(|hydrator| !hydrator.is_null()) {
            let what = "uses the source hydrator, which plumb does not have";
            found.push(finding(
                Level::Missing,
                &format!("app {}", name(application)),
                what,
                "render it in CI",
            ));
        }
        let is_remote = |file: &&Value| file.as_str().is_some_and(|file| file.contains("://"));
        for source in all_sources(application) {
            if list(source, "/helm/valueFiles").iter().any(|file| is_remote(&file)) {
                let what = "has value files by URL, which plumb refuses";
                let next = "move the file into a repository, and name it with `$ref`";
                found.push(finding(Level::Missing, &format!("app {}", name(application)), what, next));
            }
        }
    }
    found
}

fn application_sets(installation: &Installation) -> Vec<Finding> {
    let mut found = Vec::new();
    for set in &installation.application_sets {
        let text = set["spec"]["generators"].to_string();
        for (key, what) in [
            ("\"appSecretName\"", "authenticates as a GitHub App"),
            ("\"caRef\"", "names a certificate of its own"),
            ("\"awsCodeCommit\"", "lists repositories of CodeCommit"),
        ] {
            if text.contains(key) {
                let next = "its Applications stay as they are; see docs/applicationsets.md";
                found.push(finding(Level::Missing, &format!("set {}", name(set)), what, next));
            }
        }
    }
    if !installation.application_sets.is_empty() && found.is_empty() {
        let what = format!("sets: {}", installation.application_sets.len());
        found.push(finding(Level::Works, "ApplicationSets", what, "plumb generates their Applications"));
    }
    found
}

/// Who logs in, and how.
fn users(installation: &Installation) -> Vec<Finding> {
    let mut found = Vec::new();
    let is_set = |key: &str| installation.config.get(key).is_some_and(|value| !value.trim().is_empty());
    for key in ["dex.config", "oidc.config"] {
        if is_set(key) {
            let what = "single sign-on is not supported";
            let next = "keep argocd-server for its users, or give them kubeconfigs or local accounts";
            found.push(finding(Level::Missing, &format!("argocd-cm {key}"), what, next));
        }
    }
    let extension = |key: &&String| key.starts_with("extension.config");
    let server = workload(installation, "argocd-server");
    let installs = server.is_some_and(|server| {
        let containers = list(server, "/spec/template/spec/initContainers").iter();
        containers.filter_map(|one| one["name"].as_str()).any(|name| name.contains("extension"))
    });
    if installs || installation.config.keys().any(|key| extension(&key)) {
        let what = "extensions of Argo CD's user interface do not run in plumb's page";
        found.push(finding(Level::Missing, "extensions", what, "keep argocd-server for them"));
    }
    if server.is_some_and(runs) {
        let what = "can go on beside plumb: lists, changes and syncs work, differences and manifests do not";
        found.push(finding(Level::Differs, "argocd-server", what, "plumb serves the same API itself"));
    }
    found
}

/// Programs that work with the status of Applications.
fn others(installation: &Installation) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(config) = &installation.notifications {
        let n_triggers = config.keys().filter(|key| key.starts_with("trigger.")).count();
        let what = format!("triggers: {n_triggers}; plumb writes the status that they read");
        let next = "keep argocd-notifications-controller running";
        found.push(finding(Level::Differs, "notifications", what, next));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::{AppVerdict, text};
    use expect_test::{Expect, expect};
    use serde_json::json;

    fn check_text(installation: &Installation, expected: &Expect) {
        expected.assert_eq(&text(&check(installation)));
    }

    fn workload(kind: &str, name: &str, replicas: u32, containers: &[&str]) -> Value {
        let containers: Vec<Value> = containers.iter().map(|name| json!({"name": name})).collect();
        json!({"kind": kind, "metadata": {"name": name},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": containers}}}})
    }

    #[test]
    fn everything_that_does_not_work_is_named() {
        let installation = Installation {
            applications: vec![
                json!({"metadata": {"name": "web"}, "spec": {"source": {"plugin": {"name": "cdk8s"}}}}),
                json!({"metadata": {"name": "far"}, "spec": {"sources": [{"helm": {"valueFiles": ["https://x/v.yaml"]}}]}}),
                json!({"metadata": {"name": "dry"}, "spec": {"sourceHydrator": {"drySource": {}}}}),
            ],
            application_sets: vec![
                json!({"metadata": {"name": "pulls"}, "spec": {"generators": [{"pullRequest": {"github": {"appSecretName": "x"}}}]}}),
            ],
            workloads: vec![
                workload("StatefulSet", "argocd-application-controller", 1, &["x"]),
                workload("Deployment", "my-argocd-repo-server", 2, &["repo-server", "avp"]),
            ],
            config: [("oidc.config", "name: x"), ("extension.config.a", "x")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            notifications: Some([("trigger.a".to_owned(), String::new())].into()),
            without_effect: vec![("argocd-cm a".to_owned(), "because".to_owned())],
            unread: vec!["deployments: forbidden".to_owned()],
            ..Installation::default()
        };
        assert!(check(&installation).is_blocked());
        check_text(
            &installation,
            &expect![[r"
                What does not work with plumb:
                  app dry: uses the source hydrator, which plumb does not have
                      render it in CI
                  app far: has value files by URL, which plumb refuses
                      move the file into a repository, and name it with `$ref`
                  argocd-cm oidc.config: single sign-on is not supported
                      keep argocd-server for its users, or give them kubeconfigs or local accounts
                  extensions: extensions of Argo CD's user interface do not run in plumb's page
                      keep argocd-server for them
                  plugin avp: runs in a sidecar of the repo server, which plumb does not use
                      copy its plugin.yaml into the ConfigMap `plumb-plugins`, and its programs into plumb's image
                  plugin cdk8s: sources that use it: 1
                      declare it in the ConfigMap `plumb-plugins`
                  set pulls: authenticates as a GitHub App
                      its Applications stay as they are; see docs/applicationsets.md
                Before plumb starts:
                  argocd-application-controller: reconciles the same Applications as plumb
                      kubectl scale statefulset/argocd-application-controller --replicas=0
                  permissions: not checked: deployments: forbidden
                      run the check with a user who may read it
                What differs:
                  argocd-cm a: has no effect: because
                      remove it, or leave it: plumb logs it once
                  notifications: triggers: 1; plumb writes the status that they read
                      keep argocd-notifications-controller running
            "]],
        );
    }

    #[test]
    fn an_installation_without_specials_has_only_steps_and_verdicts() {
        let verdict = |app: &str, before: &str, after: &str, why: &str| AppVerdict {
            app: app.to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
            why: why.to_owned(),
        };
        let installation = Installation {
            workloads: vec![
                workload("StatefulSet", "argocd-application-controller", 0, &["x"]),
                workload("Deployment", "argocd-repo-server", 1, &["argocd-repo-server"]),
            ],
            verdicts: vec![
                verdict("argocd/web", "OutOfSync", "Synced", "2 explained"),
                verdict("argocd/a", "Synced", "OutOfSync", "LiveEdit"),
                verdict("argocd/b", "Synced", "Synced", ""),
            ],
            ..Installation::default()
        };
        assert!(!check(&installation).is_blocked());
        check_text(
            &installation,
            &expect![[r"
                Apps: 1 keep their sync status, 2 change it
                  argocd/a: Synced -> OutOfSync (LiveEdit)
                  argocd/web: OutOfSync -> Synced (2 explained)
            "]],
        );
    }

    #[test]
    fn a_controller_that_is_scaled_down_and_a_declared_plugin_are_no_obstacle() {
        let installation = Installation {
            applications: vec![
                json!({"metadata": {"name": "web"}, "spec": {"source": {"plugin": {"name": "avp"}}}}),
            ],
            plugins: vec!["avp".to_owned()],
            ..Installation::default()
        };
        assert!(!check(&installation).is_blocked());
    }
}
