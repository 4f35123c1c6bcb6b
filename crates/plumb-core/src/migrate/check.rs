//! What works, what differs, and what is missing.

use serde_json::Value;

use super::facts::{Finding, Installation, Level, Report, finding};
use super::parts::{all_sources, is_set, list, name, runs, workload, workloads};
use super::plugins::plugins;
use super::registrations::registrations;

/// Decides what the move changes.
pub fn check(installation: &Installation) -> Report {
    let mut findings = Vec::new();
    findings.extend(controllers(installation));
    findings.extend(plugins(installation));
    findings.extend(sources(installation));
    findings.extend(application_sets(installation));
    findings.extend(registrations(&installation.registrations));
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

/// Two controllers of the same objects would undo each other's changes.
fn controllers(installation: &Installation) -> Vec<Finding> {
    let mut found = Vec::new();
    for (component, what) in [
        ("application-controller", "reconciles the same Applications as plumb"),
        ("applicationset-controller", "generates the same Applications as plumb"),
    ] {
        for object in workloads(installation, component).filter(|object| runs(object)) {
            let kind = object["kind"].as_str().unwrap_or("Deployment").to_lowercase();
            let next = format!("kubectl scale {kind}/{} --replicas=0", name(object));
            found.push(finding(Level::Step, name(object), what, &next));
        }
    }
    found
}

/// Sources that plumb does not read.
fn sources(installation: &Installation) -> Vec<Finding> {
    let mut found = Vec::new();
    for application in &installation.applications {
        if application["spec"].get("sourceHydrator").is_some_and(is_set) {
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
        if set["spec"]["generators"].to_string().contains("\"awsCodeCommit\"") {
            let what = "lists repositories of CodeCommit, which plumb cannot ask";
            let next = "name its repositories in a list or Git generator; its Applications stay as they are";
            found.push(finding(Level::Missing, &format!("set {}", name(set)), what, next));
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
    let has = |key: &str| installation.config.get(key).is_some_and(|value| !value.trim().is_empty());
    if has("oidc.config") {
        let what = "users log in at plumb with the same provider";
        found.push(finding(Level::Works, "argocd-cm oidc.config", what, "docs/server.md lists its keys"));
    }
    if has("dex.config") {
        let what = "plumb has no Dex of its own";
        let next = "name the provider, or a Dex of its own, in oidc.config";
        found.push(finding(Level::Missing, "argocd-cm dex.config", what, next));
    }
    let extension = |key: &&String| key.starts_with("extension.config");
    let server = workload(installation, "server");
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
    use crate::migrate::{AppVerdict, Registration, text};
    use expect_test::{Expect, expect};
    use serde_json::json;

    fn check_text(installation: &Installation, expected: &Expect) {
        expected.assert_eq(&text(&check(installation)));
    }

    fn workload(kind: &str, name: &str, replicas: u32, containers: &[&str]) -> Value {
        let container = |name: &&str| match *name {
            "avp" => json!({"name": name, "command": ["/var/run/argocd/argocd-cmp-server"]}),
            _ => json!({"name": name}),
        };
        let containers: Vec<Value> = containers.iter().map(container).collect();
        json!({"kind": kind, "metadata": {"name": name},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": containers}}}})
    }

    fn of_component(component: &str, mut workload: Value) -> Value {
        workload["metadata"]["labels"] =
            json!({"app.kubernetes.io/component": component, "app.kubernetes.io/part-of": "argocd"});
        workload
    }

    fn registration(of: &str, keys: &[&str]) -> Registration {
        Registration { of: of.to_owned(), keys: keys.iter().map(|key| (*key).to_owned()).collect() }
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
                json!({"metadata": {"name": "aws"}, "spec": {"generators": [{"scmProvider": {"awsCodeCommit": {}}}]}}),
            ],
            workloads: vec![
                workload("StatefulSet", "argocd-application-controller", 1, &["x"]),
                of_component("applicationset-controller", workload("Deployment", "cd-sets", 1, &["x"])),
                workload("Deployment", "my-argocd-repo-server", 2, &["repo-server", "avp", "istio-proxy"]),
                // Of another program.
                json!({"kind": "Deployment", "metadata": {"name": "shop",
                    "labels": {"app.kubernetes.io/component": "server"}}}),
            ],
            registrations: vec![
                registration("cluster https://a", &["awsAuthConfig", "tlsClientConfig"]),
                registration("cluster https://b", &["execProviderConfig", "proxyUrl"]),
                registration("repository https://git.example.com/a", &["githubAppPrivateKey", "enableLfs"]),
                registration("repository oci://registry.example.com/b", &["oci", "password", "username"]),
            ],
            config: [
                ("oidc.config", "name: x"),
                ("dex.config", "connectors: []"),
                ("extension.config.a", "x"),
            ]
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
                  argocd-cm dex.config: plumb has no Dex of its own
                      name the provider, or a Dex of its own, in oidc.config
                  cluster https://a: logs in with awsAuthConfig, which plumb does not have
                      use a token, or `execProviderConfig` with a program in plumb's image
                  cluster https://b: is reached through a proxy (proxyUrl), which plumb does not use for clusters
                      let plumb reach it directly
                  extensions: extensions of Argo CD's user interface do not run in plumb's page
                      keep argocd-server for them
                  plugin avp: runs in a sidecar of the repo server, which plumb does not use
                      copy its plugin.yaml into the ConfigMap `plumb-plugins`, and its programs into plumb's image
                  plugin cdk8s: sources that use it: 1
                      declare it in the ConfigMap `plumb-plugins`
                  repository https://git.example.com/a: logs in as a GitHub App, which plumb cannot do for repositories
                      use a token (`username` and `password`) or a deploy key (`sshPrivateKey`)
                  set aws: lists repositories of CodeCommit, which plumb cannot ask
                      name its repositories in a list or Git generator; its Applications stay as they are
                Before plumb starts:
                  argocd-application-controller: reconciles the same Applications as plumb
                      kubectl scale statefulset/argocd-application-controller --replicas=0
                  cd-sets: generates the same Applications as plumb
                      kubectl scale deployment/cd-sets --replicas=0
                  cluster https://b: a program logs in (execProviderConfig), which plumb starts only if allowed
                      start plumb with `--cluster-exec-plugins`, in an image that has the program
                  permissions: not checked: deployments: forbidden
                      run the check with a user who may read it
                What differs:
                  argocd-cm a: has no effect: because
                      remove it, or leave it: plumb logs it once
                  notifications: triggers: 1; plumb writes the status that they read
                      keep argocd-notifications-controller running
                  repository https://git.example.com/a: has large files (enableLfs), which plumb does not fetch
                      keep the files that apps render out of Git LFS
                  repository oci://registry.example.com/b: is an OCI registry, from which plumb reads charts and no other artifacts
                      keep plain manifests in Git or in a chart
                What works:
                  argocd-cm oidc.config: users log in at plumb with the same provider
                      docs/server.md lists its keys
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
    fn what_plumb_does_is_no_obstacle() {
        let sets = ["appSecretName", "caRef"].map(|key| {
            json!({"metadata": {"name": key}, "spec": {"generators": [{"scmProvider": {"gitlab": {key: "x"}}}]}})
        });
        let installation = Installation {
            application_sets: sets.into(),
            applications: vec![
                json!({"metadata": {"name": "web"}, "spec": {"source": {"plugin": {"name": "avp"}}}}),
            ],
            plugins: vec!["avp".to_owned()],
            workloads: vec![of_component(
                "repo-server",
                workload("Deployment", "cd-repo", 1, &["cd", "avp"]),
            )],
            config: [("oidc.config".to_owned(), "name: x".to_owned())].into(),
            registrations: vec![registration("cluster https://a", &["bearerToken"])],
            ..Installation::default()
        };
        assert!(!check(&installation).is_blocked());
        check_text(
            &installation,
            &expect![[r"
            What works:
              ApplicationSets: sets: 2
                  plumb generates their Applications
              argocd-cm oidc.config: users log in at plumb with the same provider
                  docs/server.md lists its keys
              plugin avp: declared in the ConfigMap `plumb-plugins`
                  plumb runs it without the sidecar of the repo server
              plugin avp: sources that use it: 1
                  its programs must be in plumb's image
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
