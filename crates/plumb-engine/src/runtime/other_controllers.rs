//! Detects another application controller in the same namespace. Two controllers would overwrite each other's changes
//! forever, so plumb does not start beside one.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_kube::{ApiError, ClusterClient, Selection};
use serde_json::Value;
use tracing::info;

/// Name of the program of Argo CD's controller in all ways to install it.
const PROGRAM: &str = "argocd-application-controller";
/// How the names of its leases end, whatever the prefix.
const SUFFIX: &str = "application-controller";

/// A lease whose last renewal is older than this, or lies further in the future, is not being renewed. The clocks of two
/// machines differ by less.
const RECENT: SignedDuration = SignedDuration::from_mins(1);
/// How long plumb watches a recent lease for a renewal. Controllers renew every few seconds.
const OBSERVE_FOR: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Descriptions of the controllers that run in a namespace: ready pods that run Argo CD's program, and leases that are
/// seen to be renewed. What a lease says about its own times is no proof: any client that can write it can write that.
pub(crate) async fn find(client: &ClusterClient, namespace: &str) -> Result<Vec<String>, ApiError> {
    let here = Selection { namespace: Some(namespace.to_owned()), ..Selection::default() };
    let mut found = Vec::new();
    let pods = client.list(&GroupVersionKind::from_api_version("v1", "Pod"), &here).await?;
    for pod in pods.iter().filter(|pod| is_controller(pod) && is_ready(pod)) {
        found.push(format!("pod {}", pod.name().unwrap_or_default()));
    }
    let before = renewals(client, &here, Timestamp::now()).await?;
    if before.is_empty() {
        return Ok(found);
    }
    info!(leases = ?before.keys(), "checking whether another application controller renews its lease");
    let mut waited = Duration::ZERO;
    while waited < OBSERVE_FOR {
        tokio::time::sleep(LOOK_EVERY).await;
        waited += LOOK_EVERY;
        let now = renewals(client, &here, Timestamp::now()).await?;
        let renewed = renewed(&before, &now);
        if !renewed.is_empty() {
            found.extend(renewed.into_iter().map(|name| format!("lease {name}")));
            break;
        }
    }
    Ok(found)
}

/// The last renewal of a lease: its holder, and the time.
type Renewal = (String, Timestamp);

/// The leases of application controllers that may be in use.
async fn renewals(
    client: &ClusterClient,
    here: &Selection,
    now: Timestamp,
) -> Result<BTreeMap<String, Renewal>, ApiError> {
    let gvk = GroupVersionKind::from_api_version("coordination.k8s.io/v1", "Lease");
    let leases = client.list(&gvk, here).await?;
    Ok(leases.iter().filter_map(|lease| renewal(lease, now)).collect())
}

fn renewal(lease: &Manifest, now: Timestamp) -> Option<(String, Renewal)> {
    let name = lease.name().filter(|name| name.ends_with(SUFFIX))?;
    let spec = &lease.value()["spec"];
    let holder = spec["holderIdentity"].as_str().filter(|holder| !holder.is_empty())?;
    let renewed: Timestamp = spec["renewTime"].as_str()?.parse().ok()?;
    let is_recent = now.duration_since(renewed).abs() < RECENT;
    is_recent.then(|| (name.to_owned(), (holder.to_owned(), renewed)))
}

/// The names of the leases that were renewed between two looks.
fn renewed<'a>(before: &'a BTreeMap<String, Renewal>, now: &BTreeMap<String, Renewal>) -> Vec<&'a str> {
    let is_renewed =
        |(name, renewal): &(&'a String, &Renewal)| now.get(*name).is_some_and(|now| now != *renewal);
    before.iter().filter(is_renewed).map(|(name, _)| name.as_str()).collect()
}

/// True if a container runs Argo CD's program. A label is no proof: other programs have similar names.
fn is_controller(pod: &Manifest) -> bool {
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
    fn controllers_are_recognised_by_their_program() {
        let official = json!({"app.kubernetes.io/name": "argocd-application-controller"});
        let none = json!({"app": "x"});
        let path = "/usr/local/bin/argocd-application-controller";
        assert!(
            is_controller(&pod(&official, &[path], "True")) && is_controller(&pod(&none, &[path], "True"))
        );
        assert!(!is_controller(&pod(&official, &["sleep", "1"], "True")), "a label is no proof");
        assert!(!is_controller(&pod(&none, &["/usr/local/bin/argocd-server"], "True")));
        assert!(!is_controller(&pod(&json!({"app.kubernetes.io/name": "plumb"}), &["run"], "True")));
        assert!(is_ready(&pod(&official, &[], "True")) && !is_ready(&pod(&official, &[], "False")));
    }

    #[test]
    fn a_lease_counts_if_a_renewal_is_seen() {
        let now: Timestamp = "2026-11-16T00:00:20Z".parse().unwrap();
        let lease = |name: &str, holder: &str, renewed: &str| {
            let spec =
                json!({"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": i32::MAX});
            let value = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec});
            renewal(&Manifest::new(value).unwrap(), now)
        };
        let name = "argocd-application-controller";
        let first = lease(name, "a", "2026-11-16T00:00:10.000000Z");
        let second = lease(name, "a", "2026-11-16T00:00:12.000000Z");
        assert!(first.is_some() && second.is_some());
        for (holder, time) in [
            ("a", "2026-11-15T00:00:10Z"),
            ("a", "2094-11-16T00:00:10Z"),
            ("", "2026-11-16T00:00:19Z"),
            ("a", "soon"),
        ] {
            assert_eq!(lease(name, holder, time), None, "{holder} {time}");
        }
        assert_eq!(lease("plumb", "a", "2026-11-16T00:00:10Z"), None);
        let of = |entry: &Option<(String, Renewal)>| entry.clone().into_iter().collect::<BTreeMap<_, _>>();
        assert_eq!(renewed(&of(&first), &of(&second)), [name]);
        assert!(renewed(&of(&first), &of(&first)).is_empty(), "whatever its duration says");
        assert!(renewed(&of(&first), &of(&None)).is_empty());
    }
}
