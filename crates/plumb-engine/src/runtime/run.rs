//! Waits for the lease, then leads until there is a reason to stop.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use plumb_core::app::ClusterRef;
use plumb_core::error_chain::error_chain;
use plumb_kube::{Backoff, ClusterClient, Connection, FaultLog, Leadership, LeaseKeeper, LeaseOptions};
use tracing::{error, info, warn};

use super::deliver_pushes::deliver_pushes;
use super::first_contact::{discover, wait_for_kinds};
use super::handle::{Handle, Stage};
use super::lead::{LeadEnd, Leading, lead};
use super::start_error::StartError;
use super::watchdog::Watchdog;
use super::witness_guard::guard_witness;
use super::{lease_identity, other_controllers};
use crate::cluster::destination::observe_requests;
use crate::config::options::Options;
use crate::state::time_travels::TimeTravels;

/// How long plumb waits before it starts another engine after one that ended by a fault.
const AGAIN_FIRST: Duration = Duration::from_secs(1);
const AGAIN_MOST: Duration = Duration::from_mins(1);

/// Runs until `stop` is done.
pub async fn run(
    connection: Connection,
    options: Options,
    handle: Handle,
    stop: impl Future<Output = ()>,
) -> Result<(), StartError> {
    let client = connection.client()?;
    tokio::pin!(stop);
    let first_contact = async {
        discover(&client).await?;
        wait_for_kinds(&client).await
    };
    tokio::select! {
        reached = first_contact => reached?,
        () = &mut stop => {
            info!("stopping");
            return Ok(());
        }
    }
    refuse_beside_others(&client, &options).await?;
    // The lease has its own connection and thread: no work on apps delays a renewal.
    let lease =
        LeaseKeeper::start_on_thread(connection.client()?, lease_options(&options), lease_identity::is_gone);
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

fn lease_options(options: &Options) -> LeaseOptions {
    let usual = LeaseOptions::new(&options.namespace, "plumb", &options.identity);
    match options.lease_deadline {
        Some(deadline) => LeaseOptions { renew_deadline: deadline, duration: deadline * 3 / 2, ..usual },
        None => usual,
    }
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
    let travels = Arc::new(TimeTravels::default());
    let mut has_led = false;
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
        let leading = Leading { client, options, handle, fence: &fence, travels: &travels };
        if lead_until_lost(leading, lease.last_renewed(), &mut has_led, stop).await? == Told::ToStop {
            return Ok(());
        }
        let reason = lease.leadership().borrow().to_string();
        error!(reason, "the lease is lost: plumb writes nothing more until it holds the lease again");
    }
}

/// Why leading ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    /// The process was asked to stop.
    ToStop,
    /// The lease is lost.
    LeaseLost,
}

/// Runs one engine after the other while this process holds the lease. A process that has led once does not end by itself:
/// whatever keeps an engine from running is logged, and tried again.
async fn lead_until_lost(
    leading: Leading<'_>,
    mut down_since: Option<Timestamp>,
    has_led: &mut bool,
    stop: &mut Pin<&mut impl Future<Output = ()>>,
) -> Result<Told, StartError> {
    let mut backoff = Backoff::new(AGAIN_FIRST, AGAIN_MOST);
    let mut faults = FaultLog::default();
    loop {
        let began = Instant::now();
        // Another controller may have started while this process waited.
        let ended = match refuse_beside_others(leading.client, leading.options).await {
            Ok(()) => lead(leading, down_since, stop).await,
            Err(error) => Err(error),
        };
        if ended.is_ok() {
            *has_led = true;
            down_since = None;
        }
        let error = match ended {
            Ok(LeadEnd::Stopped) => return Ok(Told::ToStop),
            Ok(LeadEnd::Lost) => return Ok(Told::LeaseLost),
            Ok(LeadEnd::Restart) => continue,
            Ok(LeadEnd::TaskEnded) => StartError::Watch,
            Err(error) if !*has_led => return Err(error),
            Err(error) => error,
        };
        if began.elapsed() > AGAIN_MOST {
            backoff.reset();
        }
        if let Some(times) = faults.fault(Instant::now()) {
            error!(
                error = error_chain(&error),
                times, "the engine ended; plumb starts another one in this process"
            );
        }
        tokio::select! {
            () = tokio::time::sleep(backoff.next_wait()) => {}
            _ = leading.fence.lost() => return Ok(Told::LeaseLost),
            () = &mut *stop => {
                info!("stopping");
                return Ok(Told::ToStop);
            }
        }
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
