//! Detects another application controller in the same namespace. Two controllers would overwrite each other's changes
//! forever, so plumb does not start beside one.

use jiff::{SignedDuration, Timestamp};
use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_kube::{ApiError, ClusterClient, Selection};
use serde_json::Value;

/// Name of the program of Argo CD's controller in all ways to install it.
const PROGRAM: &str = "argocd-application-controller";
/// How the names of its pods and leases end, whatever the prefix.
const SUFFIX: &str = "application-controller";

/// Descriptions of the controllers that run in a namespace: pods that are ready, leases that are renewed.
pub(crate) async fn find(
    client: &ClusterClient,
    namespace: &str,
    now: Timestamp,
) -> Result<Vec<String>, ApiError> {
    let here = Selection { namespace: Some(namespace.to_owned()), ..Selection::default() };
    let mut found = Vec::new();
    let pods = client.list(&GroupVersionKind::from_api_version("v1", "Pod"), &here).await?;
    for pod in pods.iter().filter(|pod| is_controller(pod) && is_ready(pod)) {
        found.push(format!("pod {}", pod.name().unwrap_or_default()));
    }
    let leases = GroupVersionKind::from_api_version("coordination.k8s.io/v1", "Lease");
    for lease in client.list(&leases, &here).await? {
        let name = lease.name().unwrap_or_default();
        if name.ends_with(SUFFIX) && is_renewed(&lease, now) {
            found.push(format!("lease {name}"));
        }
    }
    Ok(found)
}

fn is_controller(pod: &Manifest) -> bool {
    let labels = ["app.kubernetes.io/name", "app.kubernetes.io/component"];
    if labels.iter().any(|key| pod.label(key).is_some_and(|value| value.ends_with(SUFFIX))) {
        return true;
    }
    let containers = pod.value().pointer("/spec/containers").and_then(Value::as_array);
    containers.into_iter().flatten().any(|container| {
        let arguments = ["command", "args"].iter().filter_map(|field| container[*field].as_array()).flatten();
        arguments.filter_map(Value::as_str).any(|argument| argument.rsplit('/').next() == Some(PROGRAM))
    })
}

fn is_ready(pod: &Manifest) -> bool {
    let conditions = pod.value().pointer("/status/conditions").and_then(Value::as_array);
    let ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    !pod.is_terminating() && conditions.into_iter().flatten().any(ready)
}

fn is_renewed(lease: &Manifest, now: Timestamp) -> bool {
    let spec = &lease.value()["spec"];
    let is_held = spec["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty());
    let renewed: Option<Timestamp> = spec["renewTime"].as_str().and_then(|time| time.parse().ok());
    let lasts = SignedDuration::from_secs(spec["leaseDurationSeconds"].as_i64().unwrap_or(15));
    is_held && renewed.is_some_and(|renewed| now.duration_since(renewed) < lasts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(labels: &Value, args: &[&str], ready: &str) -> Manifest {
        let value = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": labels},
            "spec": {"containers": [{"name": "c", "args": args}]},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        });
        Manifest::new(value).unwrap()
    }

    #[test]
    fn controllers_are_recognised_by_label_or_program() {
        let official = json!({"app.kubernetes.io/name": "argocd-application-controller"});
        let operator = json!({"app.kubernetes.io/name": "team-application-controller"});
        let none = json!({"app": "x"});
        assert!(is_controller(&pod(&official, &[], "True")) && is_controller(&pod(&operator, &[], "True")));
        assert!(is_controller(&pod(&none, &["/usr/local/bin/argocd-application-controller"], "True")));
        assert!(!is_controller(&pod(&none, &["/usr/local/bin/argocd-server"], "True")));
        assert!(!is_controller(&pod(&json!({"app.kubernetes.io/name": "plumb"}), &["run"], "True")));
        assert!(is_ready(&pod(&official, &[], "True")) && !is_ready(&pod(&official, &[], "False")));
    }

    #[test]
    fn a_lease_counts_while_it_is_renewed() {
        let lease = |holder: &str, renewed: &str| {
            let spec = json!({"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15});
            let value = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": spec});
            Manifest::new(value).unwrap()
        };
        let now: Timestamp = "2026-11-16T00:00:20Z".parse().unwrap();
        assert!(is_renewed(&lease("a", "2026-11-16T00:00:10.000000Z"), now));
        assert!(!is_renewed(&lease("a", "2026-11-16T00:00:01.000000Z"), now));
        assert!(!is_renewed(&lease("", "2026-11-16T00:00:19.000000Z"), now));
    }
}
