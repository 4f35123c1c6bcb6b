//! The Applications and reports of the measured cluster.

use serde_json::{Value, json};

/// Applications with their status, reports on all that are `OutOfSync` and on two of three others, and the lease of an
/// engine: where none runs, `plumb doctor` would judge the apps by itself. One app is ill, and has no report.
pub(super) fn objects(n: usize) -> Value {
    let reports = (0..n).filter(|n| n % 3 != 2 || is_red(*n)).map(report);
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "plumb", "namespace": "argocd"},
        "spec": {"holderIdentity": "plumb-0", "renewTime": "2199-01-01T00:00:00.000000Z"}});
    let items: Vec<Value> = (0..n).map(application).chain(reports).chain([lease]).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

const KINDS: [(&str, &str, &str); 10] = [
    ("apps", "v1", "Deployment"),
    ("", "v1", "Service"),
    ("", "v1", "ConfigMap"),
    ("", "v1", "ServiceAccount"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("external-secrets.io", "v1", "ExternalSecret"),
];

fn name(n: usize) -> String {
    format!("team-{:02}-service-{n:04}", n % 40)
}

fn is_red(n: usize) -> bool {
    n.is_multiple_of(10)
}

/// The status of an app without a report is read from its Application.
fn is_ill(n: usize) -> bool {
    n == 5
}

/// An Application as it is after a few weeks.
pub(crate) fn application(n: usize) -> Value {
    let (name, team) = (name(n), format!("team-{:02}", n % 40));
    let commit = |n: usize| format!("{n:040x}");
    let source = json!({
        "repoURL": "https://git.example.com/platform/deployments.git",
        "path": format!("teams/{team}/{name}/overlays/production"), "targetRevision": "main",
        "helm": {"valueFiles": ["values.yaml", "values-production.yaml"],
            "parameters": [{"name": "image.tag", "value": "v1.2.3"}]},
    });
    let destination = json!({"server": "https://kubernetes.default.svc", "namespace": team});
    let object = |index: usize, kind: &(&str, &str, &str)| json!({"group": kind.0, "version": kind.1, "kind": kind.2, "namespace": team, "name": format!("{name}-{index}")});
    let all = || KINDS.iter().cycle().take(20).enumerate();
    let resources: Vec<Value> = all()
        .map(|(index, kind)| {
            let mut one = object(index, kind);
            one["status"] = json!(if is_red(n) && index == 0 { "OutOfSync" } else { "Synced" });
            one["health"] = json!({"status": if is_ill(n) && index == 0 { "Degraded" } else { "Healthy" }});
            one
        })
        .collect();
    let results: Vec<Value> = all()
        .map(|(index, kind)| {
            let mut one = object(index, kind);
            one["status"] = json!("Synced");
            one["message"] = json!(format!("{}/{name}-{index} serverside-applied", kind.2.to_lowercase()));
            one["hookPhase"] = json!("Running");
            one["syncPhase"] = json!("Sync");
            one
        })
        .collect();
    let history: Vec<Value> = (0..10)
        .map(|id| {
            json!({"id": id, "revision": commit(n * 10 + id), "deployedAt": "2026-11-01T10:00:00Z",
                "deployStartedAt": "2026-11-01T09:59:58Z", "source": source, "initiatedBy": {"automated": true}})
        })
        .collect();
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "labels": {"team": team}},
        "spec": {
            "project": "default", "source": source, "destination": destination,
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"]},
        },
        "status": {
            "controllerNamespace": "argocd", "reconciledAt": "2026-11-16T01:00:00Z", "sourceType": "Helm",
            "sync": {"status": if is_red(n) { "OutOfSync" } else { "Synced" }, "revision": commit(n),
                "comparedTo": {"source": source, "destination": destination}},
            "health": {"status": if is_ill(n) { "Degraded" } else { "Healthy" }, "lastTransitionTime": "2026-11-10T10:00:00Z"},
            "resources": resources, "history": history,
            "operationState": {
                "phase": "Succeeded", "message": "successfully synced (all tasks run)",
                "startedAt": "2026-11-10T10:00:00Z", "finishedAt": "2026-11-10T10:00:05Z",
                "operation": {"sync": {"revision": commit(n), "prune": true}, "initiatedBy": {"automated": true}},
                "syncResult": {"revision": commit(n), "source": source, "resources": results},
            },
        },
    })
}

fn report(n: usize) -> Value {
    let counted = usize::from(is_red(n));
    let finding = |index: usize| {
        json!({
            "group": "apps", "kind": "Deployment", "namespace": format!("team-{:02}", n % 40),
            "name": format!("{}-{index}", name(n)), "class": if index < counted { "LiveEdit" } else { "SchemaDefault" },
            "counts": index < counted, "fields": ["/spec/replicas"], "actor": "kubectl-scale",
            "since": "2026-11-15T10:00:00Z",
            "evidence": ["`kubectl-scale (scale)` wrote /spec/replicas: Git says 3, the cluster has 10"],
            "fix": {"kind": "sync", "text": "restore Git's value with `plumb app sync shop`, or commit the live value to Git"},
        })
    };
    let mut summary = json!({"counted": counted, "explained": 3 - counted, "worst": "SchemaDefault"});
    if is_red(n) {
        summary["worst"] = json!("LiveEdit");
        summary["since"] = json!("2026-11-15T10:00:00Z");
    }
    json!({
        "apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport",
        "metadata": {"name": name(n), "namespace": "argocd"},
        "observedAt": "2026-11-15T10:00:00Z", "summary": summary, "findings": (0..3).map(finding).collect::<Vec<_>>(),
    })
}
