//! The demo's Git repository: the files in `demo/`, the plain apps and the Applications.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Apps without a fault.
const PLAIN: [&str; 32] = [
    "cert-manager",
    "cilium",
    "coredns",
    "crowdsec",
    "csi-nfs",
    "descheduler",
    "external-dns",
    "falco",
    "goldilocks",
    "homepage",
    "immich",
    "jellyfin",
    "keda",
    "kured",
    "kyverno",
    "loki",
    "longhorn",
    "metallb",
    "metrics-server",
    "minio",
    "node-problem-detector",
    "nats",
    "paperless",
    "policy-reporter",
    "reflector",
    "reloader",
    "renovate",
    "tempo",
    "traefik",
    "trivy-operator",
    "velero",
    "zitadel",
];

/// Apps with a planted fault: folders of `demo/repo/apps`.
const TROUBLED: [&str; 20] = [
    "argo-rollouts",
    "ghost",
    "gitea",
    "gpu-operator",
    "grafana-alerting",
    "infisical",
    "langfuse",
    "litellm",
    "n8n",
    "open-webui",
    "openclaw",
    "paperclip",
    "sympozium",
    "sympozium-extras",
    "tekton-dashboard",
    "tekton-pipelines",
    "umami",
    "vcluster-experiments",
    "victoria-metrics",
    "vk-remote",
];

/// Apps that a set generates, one for each folder of `tenants`.
const TENANTS: [&str; 3] = ["tenant-blue", "tenant-green", "tenant-red"];

/// The number of apps, the root app included.
pub(super) const N_APPS: usize = PLAIN.len() + TROUBLED.len() + TENANTS.len() + 1;

/// A Git repository on this machine.
#[derive(Debug)]
pub(super) struct Repository {
    folder: PathBuf,
}

impl Repository {
    /// Creates it in `folder`. The first commit has the files that a later commit removes.
    pub(super) fn create(folder: &Path, demo: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let repository = Self { folder: folder.to_path_buf() };
        repository.git(&["init", "--quiet", "--initial-branch=main"])?;
        copy(&demo.join("repo"), folder)?;
        copy(&demo.join("repo-first"), folder)?;
        for (number, name) in PLAIN.iter().enumerate() {
            write(&folder.join("apps").join(name).join("app.yaml"), &plain_app(name, number))?;
        }
        for name in PLAIN.iter().chain(&TROUBLED) {
            write(&folder.join("root").join(format!("{name}.yaml")), &repository.application(name))?;
        }
        for (number, name) in TENANTS.iter().enumerate() {
            write(&folder.join("tenants").join(name).join("app.yaml"), &plain_app(name, number))?;
        }
        write(&folder.join("root").join("tenants.yaml"), &repository.set())?;
        repository.commit("all apps")?;
        Ok(repository)
    }

    /// Commits the removal of the sub-charts' objects.
    pub(super) fn disable_sub_charts(&self, demo: &Path) -> Result<()> {
        for file in files(&demo.join("repo-first"))? {
            fs::remove_file(self.folder.join(&file))
                .with_context(|| format!("cannot remove {}", file.display()))?;
        }
        self.commit("disable the sub-charts")
    }

    /// Merges a branch, as a merge request does.
    pub(super) fn merge(&self, branch: &str) -> Result<()> {
        self.git(&["merge", "--quiet", "--ff-only", branch])
    }

    /// Its working copy.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The `repoURL` of the Applications.
    pub(super) fn url(&self) -> String {
        format!("file://{}", self.folder.display())
    }

    /// The Application that manages all others.
    pub(super) fn root_application(&self) -> String {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: root, namespace: argocd}}\nspec:\n  \
             project: default\n  source: {{repoURL: '{}', path: root, targetRevision: main}}\n  \
             destination: {{server: 'https://kubernetes.default.svc', namespace: argocd}}\n  \
             syncPolicy: {{automated: {{selfHeal: true}}}}\n",
            self.url()
        )
    }

    /// The set of the tenants.
    fn set(&self) -> String {
        let url = self.url();
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: tenants, namespace: argocd}}\nspec:\n  \
             goTemplate: true\n  goTemplateOptions: [missingkey=error]\n  generators:\n    \
             - git: {{repoURL: '{url}', revision: main, directories: [{{path: tenants/*}}]}}\n  \
             template:\n    metadata: {{name: '{{{{.path.basename}}}}'}}\n    spec:\n      project: default\n      \
             source: {{repoURL: '{url}', path: '{{{{.path.path}}}}', targetRevision: main}}\n      \
             destination: {{server: 'https://kubernetes.default.svc', namespace: '{{{{.path.basename}}}}'}}\n      \
             syncPolicy:\n        automated: {{selfHeal: true}}\n        syncOptions: [CreateNamespace=true]\n"
        )
    }

    fn application(&self, name: &str) -> String {
        // No automated sync: plumb must not adopt the objects of these two apps.
        let policy = if name.starts_with("tekton-") {
            "  syncPolicy: {syncOptions: [CreateNamespace=true]}\n"
        } else {
            "  syncPolicy:\n    automated:\n      prune: false\n      selfHeal: true\n    syncOptions: [CreateNamespace=true]\n"
        };
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  \
             project: default\n  source: {{repoURL: '{}', path: apps/{name}, targetRevision: main}}\n  \
             destination: {{server: 'https://kubernetes.default.svc', namespace: {name}}}\n  \
             ignoreDifferences:\n    - {{group: \"\", kind: Service, jsonPointers: [/spec/clusterIP]}}\n{policy}",
            self.url()
        )
    }

    fn commit(&self, message: &str) -> Result<()> {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--message", message])
    }

    fn git(&self, args: &[&str]) -> Result<()> {
        let output = Command::new("git")
            .args(["-c", "user.name=demo", "-c", "user.email=demo@example.com", "-c", "commit.gpgsign=false"])
            .args(args)
            .current_dir(&self.folder)
            .output()
            .context("cannot run git: is it installed?")?;
        ensure!(
            output.status.success(),
            "git {}: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(())
    }
}

fn plain_app(name: &str, number: usize) -> String {
    let replicas = number % 3;
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{mode: production}}\n---\n\
         apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{selector: {{app: {name}}}, ports: [{{port: 80}}]}}\n---\n\
         apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, labels: {{app: {name}}}}}\nspec:\n  \
         replicas: {replicas}\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    \
         metadata: {{labels: {{app: {name}}}}}\n    spec: {{containers: [{{name: main, image: 'registry.example/{name}:1.0'}}]}}\n"
    )
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Every file below `folder`, relative to it.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut todo = vec![PathBuf::new()];
    while let Some(inside) = todo.pop() {
        let here = folder.join(&inside);
        for entry in fs::read_dir(&here).with_context(|| format!("cannot read {}", here.display()))? {
            let entry = entry?;
            let path = inside.join(entry.file_name());
            if entry.file_type()?.is_dir() { todo.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for file in files(from)? {
        write(
            &to.join(&file),
            &fs::read_to_string(from.join(&file)).with_context(|| file.display().to_string())?,
        )?;
    }
    Ok(())
}
