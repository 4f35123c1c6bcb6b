//! Alerts for Prometheus, on the metrics that plumb serves.

use serde_json::{Value, json};

/// The groups of a rule file of Prometheus.
pub fn alert_groups() -> Value {
    json!([{"name": "plumb", "rules": [
        alert(
            "PlumbHasNoLeader",
            "(sum(plumb_leader) or vector(0)) < 1",
            "2m",
            "critical",
            "No plumb is the leader: nothing is compared or synced",
            "Look at the pods and at the Lease `plumb`: /readyz of each pod says what it waits for.",
        ),
        alert(
            "PlumbAppOutOfSync",
            "sum by (namespace, name, project) (argocd_app_info{sync_status=\"OutOfSync\"}) > 0",
            "1h",
            "warning",
            "{{ $labels.namespace }}/{{ $labels.name }} differs from Git for more than an hour",
            "`plumb drift {{ $labels.namespace }}/{{ $labels.name }}` shows the differences, their authors and how to end them.",
        ),
        alert(
            "PlumbTugOfWar",
            "sum(plumb_findings{class=\"TugOfWar\"}) > 0",
            "15m",
            "warning",
            "Another writer and plumb keep changing the same field",
            "`plumb doctor --class TugOfWar` names the object, the field and the other writer.",
        ),
        alert(
            "PlumbClusterAway",
            "argocd_cluster_connection_status == 0",
            "5m",
            "critical",
            "plumb cannot reach the cluster {{ $labels.server }}",
            "Its apps are not compared. `plumb cluster list` and the log of the leader have the error.",
        ),
        alert(
            "PlumbRendersFail",
            "sum by (category) (increase(plumb_source_failures_total{transient=\"false\"}[15m])) > 0",
            "15m",
            "warning",
            "Sources of apps cannot be read or rendered ({{ $labels.category }})",
            "`plumb app list` shows the apps with a ComparisonError; `plumb app get NAME` shows the error.",
        ),
        alert(
            "PlumbAppUnknown",
            "sum by (namespace, name, project) (argocd_app_info{sync_status=\"Unknown\"}) > 0",
            "15m",
            "warning",
            "{{ $labels.namespace }}/{{ $labels.name }} cannot be compared with Git",
            "`plumb app get {{ $labels.namespace }}/{{ $labels.name }}` shows the condition that says why.",
        ),
        alert(
            "PlumbAppStuck",
            "sum by (namespace, name, project) (argocd_app_info{health_status=~\"Degraded|Progressing\"}) > 0",
            "1h",
            "warning",
            "{{ $labels.namespace }}/{{ $labels.name }} is not healthy for more than an hour",
            "`plumb unmask --app {{ $labels.namespace }}/{{ $labels.name }}` shows why, and what changed before it began.",
        ),
    ]}])
}

fn alert(name: &str, expression: &str, after: &str, severity: &str, summary: &str, next: &str) -> Value {
    json!({
        "alert": name,
        "expr": expression,
        "for": after,
        "labels": {"severity": severity},
        "annotations": {"summary": summary, "description": next},
    })
}
