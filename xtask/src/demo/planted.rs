//! The faults that are planted in the demo's repository, and whether plumb found them.

use serde_json::Value;

/// One planted fault.
#[derive(Debug)]
pub(super) struct Planted {
    pub(super) app: &'static str,
    pub(super) kind: &'static str,
    pub(super) name: &'static str,
    /// Each of these is a correct class.
    pub(super) classes: &'static [&'static str],
    counts: bool,
}

const fn planted(
    app: &'static str,
    kind: &'static str,
    name: &'static str,
    classes: &'static [&'static str],
    counts: bool,
) -> Planted {
    Planted { app, kind, name, classes, counts }
}

/// Every planted fault.
pub(super) const PLANTED: [Planted; 20] = [
    planted("paperclip", "ExternalSecret", "paperclip", &["SchemaDefault"], false),
    planted("n8n", "ExternalSecret", "n8n", &["SchemaDefault"], false),
    planted("litellm", "ExternalSecret", "litellm", &["SchemaDefault"], false),
    planted("langfuse", "ExternalSecret", "langfuse", &["SchemaDefault"], false),
    planted("open-webui", "ExternalSecret", "open-webui", &["SchemaDefault"], false),
    planted("openclaw", "ExternalSecret", "openclaw", &["SchemaDefault"], false),
    planted("ghost", "ExternalSecret", "ghost", &["SchemaDefault"], false),
    planted("umami", "ExternalSecret", "umami", &["SchemaDefault"], false),
    planted("vcluster-experiments", "StatefulSet", "experiments", &["SchemaDefault"], false),
    planted("root", "Application", "cilium", &["PhantomDefault"], false),
    planted("tekton-pipelines", "CustomResourceDefinition", "tasks.tekton.dev", &["Unadopted"], true),
    planted("tekton-pipelines", "CustomResourceDefinition", "pipelines.tekton.dev", &["Unadopted"], true),
    planted(
        "tekton-dashboard",
        "CustomResourceDefinition",
        "extensions.dashboard.tekton.dev",
        &["Unadopted"],
        true,
    ),
    planted("gitea", "Service", "gitea-redis-cluster", &["Orphan"], true),
    planted("infisical", "ConfigMap", "infisical-ingress-nginx-controller", &["Orphan"], true),
    planted("vk-remote", "Job", "vk-seed-data", &["HookResidue"], false),
    planted("victoria-metrics", "Deployment", "victoria-metrics-grafana", &["UnstableRender"], false),
    planted("grafana-alerting", "Secret", "grafana-alerting", &["UnstableRender"], false),
    planted("gpu-operator", "ClusterPolicy", "cluster-policy", &["UnclaimedAddition"], false),
    // The app that synced second gets the finding.
    planted("sympozium*", "Namespace", "sympozium-system", &["SharedResource"], true),
];

/// The apps that may be `OutOfSync`: each has real drift.
pub(super) const RED: [&str; 6] =
    ["gitea", "infisical", "sympozium", "sympozium-extras", "tekton-dashboard", "tekton-pipelines"];

impl Planted {
    /// True if the reports (`kubectl get driftreports -o json`) have this finding.
    pub(super) fn is_found(&self, reports: &Value) -> bool {
        let is_app = |report: &Value| {
            let name = report["metadata"]["name"].as_str().unwrap_or_default();
            self.app.strip_suffix('*').map_or(name == self.app, |prefix| name.starts_with(prefix))
        };
        let is_it = |finding: &Value| {
            finding["kind"] == self.kind
                && finding["name"] == self.name
                && finding["counts"] == self.counts
                && self.classes.iter().any(|class| finding["class"] == *class)
        };
        let reports = reports["items"].as_array().into_iter().flatten().filter(|report| is_app(report));
        reports.flat_map(|report| report["findings"].as_array().into_iter().flatten()).any(is_it)
    }
}

/// What is not (yet) as expected, one line each.
pub(super) fn missing(applications: &Value, reports: &Value, n_apps: usize) -> Vec<String> {
    let mut missing = Vec::new();
    let items = applications["items"].as_array().map_or(&[][..], Vec::as_slice);
    if items.len() != n_apps {
        missing.push(format!("{} of {n_apps} apps exist", items.len()));
    }
    for item in items {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        let sync = item["status"]["sync"]["status"].as_str().unwrap_or("Unknown");
        let is_wrongly_red = sync != "Synced" && !RED.contains(&name);
        if is_wrongly_red || sync == "Unknown" {
            missing.push(format!("{name} is {sync}"));
        }
    }
    for planted in PLANTED.iter().filter(|planted| !planted.is_found(reports)) {
        let Planted { app, kind, name, classes, .. } = planted;
        missing.push(format!("{app}: no finding {} on {kind} {name}", classes.join(" or ")));
    }
    let rollouts = items.iter().find(|item| item["metadata"]["name"] == "argo-rollouts");
    let health =
        rollouts.map_or("absent", |item| item["status"]["health"]["status"].as_str().unwrap_or("none"));
    let message = rollouts.and_then(|item| item["status"]["health"]["message"].as_str()).unwrap_or_default();
    if !message.contains("CrashLoopBackOff") {
        missing.push(format!("argo-rollouts is {health}, and its message does not name CrashLoopBackOff"));
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_finding_of_the_wrong_class_is_not_found() {
        let report = |class: &str| {
            json!({"items": [{"metadata": {"name": "n8n"}, "findings": [
                {"kind": "ExternalSecret", "name": "n8n", "class": class, "counts": false}]}]})
        };
        let planted = &PLANTED[1];
        assert!(planted.is_found(&report("SchemaDefault")));
        assert!(!planted.is_found(&report("LiveEdit")));
        assert_eq!(missing(&json!({"items": []}), &json!({"items": []}), 53).len(), 1 + PLANTED.len() + 1);
    }
}
