//! Does an engine of plumb run? It renews its lease every few seconds.

use jiff::{SignedDuration, Timestamp};
use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_crd::{Application, DriftReport};
use plumb_kube::ClusterClient;

use crate::context::Context;
use crate::error::CommandError;

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

/// Makes sure that what a command is about to say about an app is what an engine of plumb found: fails if none has
/// compared the app, and says so if the report is of an engine that runs no more.
pub(crate) async fn said_by_engine(
    context: &Context,
    client: &ClusterClient,
    application: &Application,
    report: Option<&DriftReport>,
) -> Result<(), CommandError> {
    let engine = engine_asked(context, client).await;
    let name = &application.metadata.name;
    match report {
        Some(report) => {
            note_stopped(context, engine, std::slice::from_ref(report));
            Ok(())
        }
        // An engine writes no report on an app without differences.
        None if engine != Engine::Absent && application.status.sync.status == "Synced" => Ok(()),
        None if engine == Engine::Runs => Err(CommandError::new(format!("plumb has not compared {name}"))
            .hint(format!("`plumb app get {name}` shows its conditions"))),
        None => Err(CommandError::new(format!("no engine of plumb has compared {name}")).hint(format!(
            "`plumb doctor --app {name}` judges it on this machine; `plumb app diff {name} --local DIRECTORY` \
             compares a checkout"
        ))),
    }
}

/// The same for the reports on all apps.
pub(crate) async fn all_said_by_engine(
    context: &Context,
    client: &ClusterClient,
    reports: &[DriftReport],
) -> Result<(), CommandError> {
    let engine = engine_asked(context, client).await;
    if reports.is_empty() && engine == Engine::Absent {
        return Err(CommandError::new("no engine of plumb runs here, and none left a report")
            .hint("`plumb doctor` judges the apps on this machine"));
    }
    note_stopped(context, engine, reports);
    Ok(())
}

/// A server that commands go through shows no lease.
async fn engine_asked(context: &Context, client: &ClusterClient) -> Engine {
    match context.door() {
        Some(_) => Engine::Unknown,
        None => engine(context, client, Timestamp::now()).await,
    }
}

/// Says how old the reports of an engine are that runs no more.
fn note_stopped(context: &Context, engine: Engine, reports: &[DriftReport]) {
    if engine != Engine::Absent || reports.is_empty() {
        return;
    }
    let last = reports.iter().filter_map(|report| report.observed_at).max();
    let when = last.map(|last| format!(": the latest report is of {last}")).unwrap_or_default();
    context.out.note(&format!("note: no engine of plumb runs here now{when}"));
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
