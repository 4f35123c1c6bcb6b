//! Waits for the lease, then leads until there is a reason to stop.

use jiff::Timestamp;
use plumb_core::app::ClusterRef;
use plumb_kube::{ClusterClient, Connection, LeaseKeeper, LeaseOptions};
use tracing::{info, warn};

use super::handle::{Handle, Stage};
use super::lead::{LeadEnd, lead};
use super::start_error::StartError;
use super::{lease_identity, other_controllers};
use crate::cluster::destination::observe_requests;
use crate::config::options::Options;

/// Runs until `stop` is done.
pub async fn run(
    connection: Connection,
    options: Options,
    handle: Handle,
    stop: impl Future<Output = ()>,
) -> Result<(), StartError> {
    let client = connection.client()?;
    client.discover().await?;
    refuse_beside_others(&client, &options).await?;
    let lease = LeaseKeeper::start_with(
        client.clone(),
        LeaseOptions::new(&options.namespace, "plumb", &options.identity),
        lease_identity::is_gone,
    );
    handle.connected(&client, &options, lease.fence());
    handle.enter(Stage::StandingBy);
    observe_requests(&client, &handle.metrics(), ClusterRef::IN_CLUSTER_SERVER.into());
    tokio::pin!(stop);
    info!(identity = options.identity, "waiting for the lease");
    tokio::select! {
        () = lease.leading() => {}
        () = &mut stop => {
            info!("stopping");
            lease.release().await;
            return Ok(());
        }
    }
    info!("leading");
    let fence = lease.fence();
    let mut down_since = lease.last_renewed();
    let mut ended = Ok(LeadEnd::Restart);
    while matches!(ended, Ok(LeadEnd::Restart)) {
        // Another controller may have started while this process waited.
        ended = match refuse_beside_others(&client, &options).await {
            Ok(()) => lead(&client, &options, &handle, &fence, down_since.take(), &mut stop).await,
            Err(error) => Err(error),
        };
    }
    handle.enter(Stage::Stopping);
    lease.release().await;
    ended.map(drop)
}

/// Two controllers on the same Applications would undo each other's work.
async fn refuse_beside_others(client: &ClusterClient, options: &Options) -> Result<(), StartError> {
    match other_controllers::find(client, &options.namespace, Timestamp::now()).await {
        Ok(found) if found.is_empty() => Ok(()),
        Ok(found) if options.beside_others => {
            warn!(found = found.join(", "), "another application controller is running here");
            Ok(())
        }
        Ok(found) => {
            let (namespace, found) = (options.namespace.clone(), found.join(", "));
            Err(StartError::Beside { namespace, found })
        }
        Err(error) => {
            // Without the permission to look, nothing speaks against starting.
            warn!(%error, "cannot tell whether another application controller is running here");
            Ok(())
        }
    }
}
