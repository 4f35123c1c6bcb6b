//! Waits for the lease, then leads until there is a reason to stop.

use std::pin::Pin;

use plumb_core::app::ClusterRef;
use plumb_core::object::GroupVersionKind;
use plumb_crd::{AppProject, Application};
use plumb_kube::{ClusterClient, Connection, Leadership, LeaseKeeper, LeaseOptions};
use tracing::{error, info, warn};

use super::deliver_pushes::deliver_pushes;
use super::first_contact::discover;
use super::handle::{Handle, Stage};
use super::lead::{LeadEnd, lead};
use super::start_error::StartError;
use super::watchdog::Watchdog;
use super::witness_guard::guard_witness;
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
    tokio::pin!(stop);
    tokio::select! {
        discovered = discover(&client) => discovered?,
        () = &mut stop => {
            info!("stopping");
            return Ok(());
        }
    }
    refuse_without_kinds(&client)?;
    refuse_beside_others(&client, &options).await?;
    // The lease has its own connection and thread: no work on apps delays a renewal.
    let lease = LeaseKeeper::start_on_thread(
        connection.client()?,
        LeaseOptions::new(&options.namespace, "plumb", &options.identity),
        lease_identity::is_gone,
    );
    let lease = lease.map_err(StartError::Thread)?;
    let watchdog = Watchdog::start(lease.releaser()).map_err(StartError::Thread)?;
    handle.connected(&client, &options, lease.leadership());
    observe_requests(&client, &handle.metrics(), ClusterRef::IN_CLUSTER_SERVER.into());
    let delivery = tokio::spawn(deliver_pushes(handle.clone()));
    let ended = stand_and_lead(&client, &options, &handle, &lease, &mut stop).await;
    delivery.abort();
    handle.enter(Stage::Stopping);
    lease.release().await;
    drop(watchdog);
    ended
}

/// Waits for the lease and leads, again and again: a process that lost the lease waits for it like any other. Everything
/// that the engine knew is read again, because another leader may have changed it.
async fn stand_and_lead(
    client: &ClusterClient,
    options: &Options,
    handle: &Handle,
    lease: &LeaseKeeper,
    stop: &mut Pin<&mut impl Future<Output = ()>>,
) -> Result<(), StartError> {
    loop {
        handle.enter(Stage::StandingBy);
        info!(identity = options.identity, "waiting for the lease");
        tokio::select! {
            () = wait_for_lease(lease) => {}
            never = guard_witness(client, &options.namespace) => match never {},
            () = &mut *stop => {
                info!("stopping");
                return Ok(());
            }
        }
        info!("leading");
        let fence = lease.fence();
        handle.holds(fence.clone());
        let mut down_since = lease.last_renewed();
        loop {
            // Another controller may have started while this process waited.
            refuse_beside_others(client, options).await?;
            match lead(client, options, handle, &fence, down_since.take(), stop).await? {
                LeadEnd::Stopped => return Ok(()),
                LeadEnd::Restart => {}
                LeadEnd::Lost => break,
            }
        }
        let reason = lease.leadership().borrow().to_string();
        error!(reason, "the lease is lost: plumb writes nothing more until it holds the lease again");
    }
}

/// Waits until this process holds the lease, and logs which process holds it meanwhile.
async fn wait_for_lease(lease: &LeaseKeeper) {
    let mut leadership = lease.leadership();
    let log = async {
        let mut known = None;
        loop {
            let holder = match &*leadership.borrow_and_update() {
                Leadership::Waiting { holder } => holder.clone(),
                Leadership::Failing { .. } | Leadership::Leading { .. } | Leadership::Released => None,
            };
            if holder.is_some() && holder != known {
                info!(holder, "another instance leads; this one takes over when that ends");
                known = holder;
            }
            if leadership.changed().await.is_err() {
                return std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        () = lease.leading() => {}
        () = log => {}
    }
}

/// A process that starts without the definitions says so and ends. One that loses them later waits for them.
fn refuse_without_kinds(client: &ClusterClient) -> Result<(), StartError> {
    let catalog = client.catalog();
    let is_served = |kind: &str| {
        catalog.resource(&GroupVersionKind::from_api_version(Application::API_VERSION, kind)).is_some()
    };
    let has_all = [Application::KIND, AppProject::KIND].into_iter().all(is_served);
    if has_all { Ok(()) } else { Err(StartError::Watch) }
}

/// Two controllers on the same Applications would undo each other's work.
async fn refuse_beside_others(client: &ClusterClient, options: &Options) -> Result<(), StartError> {
    match other_controllers::find(client, &options.namespace).await {
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
