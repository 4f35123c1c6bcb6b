//! Objects of the Prometheus operator.

use serde_json::{Value, json};

use super::alerts::alert_groups;
use super::objects::{METRICS_PORT, NAME, labels, selector};
use super::options::InstallOptions;

const VERSION: &str = "monitoring.coreos.com/v1";
/// The Service of the metrics.
pub(super) const METRICS_SERVICE: &str = "plumb-metrics";

pub(super) fn monitoring(options: &InstallOptions) -> Vec<Value> {
    let mut objects = Vec::new();
    if let Some(monitor) = &options.service_monitor {
        objects.push(json!({
            "apiVersion": VERSION,
            "kind": "ServiceMonitor",
            "metadata": {
                "name": NAME,
                "namespace": options.namespace,
                "labels": with(labels(), &monitor.labels),
            },
            "spec": {
                // Without it, the namespace of plumb's pod replaces that of an app.
                "endpoints": [{"port": "metrics", "interval": monitor.interval, "honorLabels": true}],
                "namespaceSelector": {"matchNames": [options.namespace]},
                "selector": {"matchLabels": with(selector(), &json!({METRICS_LABEL: METRICS_PORT.to_string()}))},
            },
        }));
    }
    if let Some(more) = &options.prometheus_rule {
        objects.push(json!({
            "apiVersion": VERSION,
            "kind": "PrometheusRule",
            "metadata": {"name": NAME, "namespace": options.namespace, "labels": with(labels(), more)},
            "spec": {"groups": alert_groups()},
        }));
    }
    objects
}

/// The label of the Service of the metrics: both Services have the port's number, only one has the label.
pub(super) const METRICS_LABEL: &str = "plumb.dev/metrics-port";

/// These labels, and more of them.
fn with(mut labels: Value, more: &Value) -> Value {
    if let (Some(labels), Some(more)) = (labels.as_object_mut(), more.as_object()) {
        labels.extend(more.clone());
    }
    labels
}
