//! Waits for the API server when plumb starts.

use std::time::{Duration, Instant};

use plumb_core::error_chain::error_chain;
use plumb_kube::{ApiError, Backoff, ClusterClient, Connection, FaultLog};
use tracing::{info, warn};

use super::start_error::StartError;

const BACKOFF_FIRST: Duration = Duration::from_millis(500);
const BACKOFF_MOST: Duration = Duration::from_secs(15);
/// An API server that does not return its version within this time is unreachable.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Waits until the API server answers, with a line in the log that says so. An answer that another try cannot change,
/// such as refused credentials, is an error.
pub async fn wait_until_reachable(connection: &Connection) -> Result<(), StartError> {
    Ok(discover(&connection.client()?).await?)
}

/// Asks which kinds the API server serves. Tries again while it cannot be reached: a process that ends is started again
/// after a pause that grows to minutes, or not at all.
pub(super) async fn discover(client: &ClusterClient) -> Result<(), ApiError> {
    let mut backoff = Backoff::new(BACKOFF_FIRST, BACKOFF_MOST);
    let mut faults = FaultLog::default();
    loop {
        let error = match try_once(client).await {
            Ok(()) => break,
            Err(error) if may_pass(&error) => error,
            Err(error) => return Err(error),
        };
        if let Some(times) = faults.fault(Instant::now()) {
            warn!(
                server = client.server(),
                error = error_chain(&error),
                times,
                "cannot reach the API server; plumb waits for it and tries again"
            );
        }
        tokio::time::sleep(backoff.next_spread()).await;
    }
    if let Some(times) = faults.over() {
        info!(server = client.server(), times, "the API server answers");
    }
    Ok(())
}

async fn try_once(client: &ClusterClient) -> Result<(), ApiError> {
    match tokio::time::timeout(PROBE_TIMEOUT, client.probe()).await {
        Ok(answer) => answer?,
        Err(_) => {
            return Err(ApiError::TimedOut { request: "GET /version".to_owned(), after: PROBE_TIMEOUT });
        }
    }
    client.discover().await.map(drop)
}

/// True if the same request may succeed later without a change by the user.
fn may_pass(error: &ApiError) -> bool {
    error.is_unavailable() || error.code().is_some_and(|code| code >= 500)
}
