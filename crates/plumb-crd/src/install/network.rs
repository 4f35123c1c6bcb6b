//! Which pods reach plumb.

use serde_json::{Value, json};

use super::objects::{METRICS_PORT, NAME, WEB_PORT, labels, selector};
use super::options::InstallOptions;

/// Namespaces with this label may read metrics, whatever their name.
const METRICS_LABEL: &str = "plumb.dev/metrics";

/// Ingress: webhooks from pods of the cluster (usually the ingress controller), metrics from the monitoring. The kubelet
/// reaches the probes in any case. Egress: everything, because Git, charts and clusters may be anywhere.
pub(super) fn network_policy(options: &InstallOptions) -> Value {
    let named = |namespaces: &[String]| {
        json!({"namespaceSelector": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces},
        ]}})
    };
    let web =
        if options.web_from.is_empty() { json!({"namespaceSelector": {}}) } else { named(&options.web_from) };
    let mut metrics = vec![
        json!({"podSelector": {}}),
        json!({"namespaceSelector": {"matchLabels": {METRICS_LABEL: "enabled"}}}),
    ];
    if !options.metrics_from.is_empty() {
        metrics.push(named(&options.metrics_from));
    }
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": NAME, "namespace": options.namespace, "labels": labels()},
        "spec": {
            "podSelector": {"matchLabels": selector()},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                // Replicas pass requests on to the one that leads.
                {"from": [web, {"podSelector": {"matchLabels": selector()}}], "ports": [{"protocol": "TCP", "port": WEB_PORT}]},
                {"from": metrics, "ports": [{"protocol": "TCP", "port": METRICS_PORT}]},
            ],
            "egress": [{}],
        },
    })
}
