//! The apps: a repository with a folder for each. Each app has 20 live objects when it is healthy.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::measure::Bench;

/// Several apps share a namespace, as the apps of a team do.
const APPS_PER_NAMESPACE: usize = 50;

/// A repository of many apps.
pub(super) struct Workload {
    repository: PathBuf,
    n_apps: usize,
}

impl Workload {
    /// Writes and commits the repository.
    pub(super) fn new(repository: &Path, n_apps: usize) -> Result<Self> {
        for app in 0..n_apps {
            let folder = repository.join(name(app));
            std::fs::create_dir_all(&folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
            std::fs::write(folder.join("all.yaml"), manifests(app)).context("cannot write manifests")?;
        }
        for arguments in [
            &["init", "--quiet", "--initial-branch", "main"][..],
            &["add", "."],
            &[
                "-c",
                "user.name=bench",
                "-c",
                "user.email=bench@example.com",
                "commit",
                "--quiet",
                "-m",
                "apps",
            ],
        ] {
            let status = Command::new("git")
                .args(arguments)
                .current_dir(repository)
                .status()
                .context("cannot run git")?;
            ensure!(status.success(), "git {} failed", arguments.join(" "));
        }
        Ok(Self { repository: repository.to_path_buf(), n_apps })
    }

    /// Creates the namespaces and the Applications.
    pub(super) fn apply(&self, bench: &Bench) -> Result<()> {
        let namespaces = (0..self.n_apps.div_ceil(APPS_PER_NAMESPACE)).map(|at| {
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("team-{at:02}")}})
        });
        let url = format!("file://{}", self.repository.display());
        let applications = (0..self.n_apps).map(|app| {
            json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": {"name": name(app), "namespace": "argocd"},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": url, "path": name(app), "targetRevision": "main"},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace(app)},
                    "syncPolicy": {"automated": {"prune": true}},
                },
            })
        });
        let list: Vec<Value> = namespaces.chain(applications).collect();
        let file = self.repository.with_extension("json");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": list});
        std::fs::write(&file, list.to_string()).context("cannot write the Applications")?;
        bench.kubectl(&["create", "--validate=false"], Some(&file)).map(drop)
    }

    /// Edits one object of each of the first `n_edits` apps.
    pub(super) fn edit(&self, bench: &Bench, n_edits: usize) -> Result<()> {
        for app in 0..n_edits.min(self.n_apps) {
            let (namespace, map) = (namespace(app), format!("{}-0", name(app)));
            let arguments =
                ["patch", "configmap", &map, "--namespace", &namespace, "--type=merge", "--patch", EDIT];
            bench.kubectl(&arguments, None)?;
        }
        Ok(())
    }
}

const EDIT: &str = r#"{"data":{"key-0":"edited by a person"}}"#;

/// The apps with an unexpected status. Edited apps must be `OutOfSync`.
pub(super) fn wrong_statuses(bench: &Bench, n_edits: usize) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (app, sync, health) in statuses(bench)? {
        let edited = (0..n_edits).any(|edited| name(edited) == app);
        let expected = if edited { "OutOfSync" } else { "Synced" };
        if sync != expected || health != "Healthy" {
            wrong.push(format!("{app} ({sync}, {health})"));
        }
    }
    Ok(wrong)
}

/// How many apps are synced and healthy.
pub(super) fn count_well(bench: &Bench) -> Result<usize> {
    let statuses = statuses(bench)?;
    Ok(statuses.iter().filter(|(_, sync, health)| sync == "Synced" && health == "Healthy").count())
}

fn statuses(bench: &Bench) -> Result<Vec<(String, String, String)>> {
    const COLUMNS: &str = "custom-columns=N:.metadata.name,S:.status.sync.status,H:.status.health.status";
    let arguments = ["get", "applications", "--namespace", "argocd", "--no-headers", "--output", COLUMNS];
    let output = bench.kubectl(&arguments, None)?;
    let text = String::from_utf8_lossy(&output);
    Ok(text
        .lines()
        .filter_map(|line| {
            let mut columns = line.split_whitespace().map(str::to_owned);
            Some((columns.next()?, columns.next()?, columns.next()?))
        })
        .collect())
}

fn name(app: usize) -> String {
    format!("app-{app:04}")
}

fn namespace(app: usize) -> String {
    format!("team-{:02}", app / APPS_PER_NAMESPACE)
}

/// 17 objects. The Deployment controller adds a `ReplicaSet` and two Pods.
fn manifests(app: usize) -> String {
    let name = name(app);
    let mut objects = vec![
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"serviceAccountName": name, "containers": [{
            "name": "main", "image": "registry.example/team/service:1.2.3",
            "ports": [{"containerPort": 8080, "name": "http"}],
            "env": [{"name": "LOG_LEVEL", "value": "info"},
                    {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": format!("{name}-0"), "key": "key"}}}],
            "envFrom": [{"configMapRef": {"name": format!("{name}-0")}}],
            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
            "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}},
        }]}}}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
               "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name},
               "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
               "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace(app)}]}),
    ];
    for at in 0..8 {
        let data: Value =
            (0..6).map(|key| (format!("key-{key}"), json!(format!("value {key} of {name}")))).collect();
        objects.push(json!({"apiVersion": "v1", "kind": "ConfigMap",
                            "metadata": {"name": format!("{name}-{at}"), "labels": {"app": name}}, "data": data}));
    }
    for at in 0..4 {
        objects
            .push(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("{name}-{at}")},
                            "stringData": {"key": format!("not so secret {at}")}}));
    }
    let mut text = String::new();
    for object in objects {
        let _ = writeln!(text, "---\n{object}");
    }
    text
}
