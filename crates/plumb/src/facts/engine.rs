//! Does an engine of plumb run? It renews its lease every few seconds.

use jiff::{SignedDuration, Timestamp};
use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_kube::ClusterClient;

use crate::context::Context;

/// The name of the lease.
const LEASE: &str = "plumb";
/// The clock of this machine may differ from the engine's.
const SKEW: SignedDuration = SignedDuration::from_mins(2);

/// Whether an engine of plumb looks after the Applications of a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// It renewed its lease a moment ago: its reports are up to date.
    Runs,
    /// There is none, or it stopped.
    Absent,
    /// The user may not read the lease.
    Unknown,
}

/// Does an engine of plumb look after the Applications? A user who may not read the lease is taken to be without one.
pub(crate) async fn engine_runs(context: &Context, client: &ClusterClient) -> bool {
    engine(context, client, Timestamp::now()).await == Engine::Runs
}

/// Reads the lease.
pub(super) async fn engine(context: &Context, client: &ClusterClient, now: Timestamp) -> Engine {
    let kind = GroupVersionKind::from_api_version("coordination.k8s.io/v1", "Lease");
    match client.get_at(&kind, Some(context.namespace()), LEASE).await {
        Ok(Some(lease)) => of_lease(&lease, now),
        Ok(None) => Engine::Absent,
        Err(_) => Engine::Unknown,
    }
}

fn of_lease(lease: &Manifest, now: Timestamp) -> Engine {
    let text = |field: &str| lease.value().pointer(field).and_then(serde_json::Value::as_str);
    let is_held = text("/spec/holderIdentity").is_some_and(|holder| !holder.is_empty());
    let renewed = text("/spec/renewTime").and_then(|time| time.parse::<Timestamp>().ok());
    match renewed {
        Some(renewed) if is_held && now.duration_since(renewed) < SKEW => Engine::Runs,
        _ => Engine::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_engine_runs_while_its_lease_is_held_and_renewed() {
        let now: Timestamp = "2026-11-16T00:10:00Z".parse().unwrap();
        let seen = |holder: &str, renewed: &str| {
            let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "plumb"},
                "spec": {"holderIdentity": holder, "renewTime": renewed}});
            of_lease(&Manifest::new(lease).unwrap(), now)
        };
        assert_eq!(seen("a", "2026-11-16T00:09:55.000000Z"), Engine::Runs);
        assert_eq!(seen("a", "2026-11-16T00:10:30.000000Z"), Engine::Runs, "another clock");
        assert_eq!(seen("a", "2026-11-16T00:07:00.000000Z"), Engine::Absent, "it stopped");
        assert_eq!(seen("", "2026-11-16T00:09:55.000000Z"), Engine::Absent, "it gave the lease back");
        assert_eq!(seen("a", "yesterday"), Engine::Absent);
    }
}
