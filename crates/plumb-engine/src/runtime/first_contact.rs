//! Waits for the API server when plumb starts.

use std::time::{Duration, Instant};

use plumb_core::error_chain::error_chain;
use plumb_core::object::GroupVersionKind;
use plumb_crd::{AppProject, Application};
use plumb_kube::{ApiError, Backoff, Catalog, ClusterClient, Connection, FaultLog};
use tracing::{info, warn};

use super::start_error::StartError;

const BACKOFF_FIRST: Duration = Duration::from_millis(500);
const BACKOFF_MOST: Duration = Duration::from_secs(15);
/// An API server that does not return its version within this time is unreachable.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Credentials, permissions and kinds that a user creates together with plumb may take this long until the API server knows
/// them.
const CREATED_WITHIN: Duration = Duration::from_mins(1);

/// Waits until the API server answers, with a line in the log that says so. An answer that another try cannot change is an
/// error, and so are credentials that are refused for a minute.
pub async fn wait_until_reachable(connection: &Connection) -> Result<(), StartError> {
    Ok(discover(&connection.client()?).await?)
}

/// Asks which kinds the API server serves. Tries again while it cannot be reached: a process that ends is started again
/// after a pause that grows to minutes, or not at all.
pub(super) async fn discover(client: &ClusterClient) -> Result<(), ApiError> {
    let mut backoff = Backoff::new(BACKOFF_FIRST, BACKOFF_MOST);
    let mut faults = FaultLog::default();
    let started = Instant::now();
    loop {
        let error = match try_once(client).await {
            Ok(()) => break,
            Err(error) if may_pass(&error, started.elapsed()) => error,
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

/// Waits until the API server serves the kinds that plumb cannot work without, for a while: their definitions may have been
/// applied a moment ago. One that loses them later waits for them.
pub(super) async fn wait_for_kinds(client: &ClusterClient) -> Result<(), StartError> {
    let started = Instant::now();
    let mut backoff = Backoff::new(BACKOFF_FIRST, BACKOFF_MOST);
    let mut is_told = false;
    loop {
        let missing = missing_kinds(&client.catalog());
        if missing.is_empty() {
            return Ok(());
        }
        let missing = missing.join(", ");
        if started.elapsed() >= CREATED_WITHIN {
            return Err(StartError::Kinds { missing });
        }
        if !std::mem::replace(&mut is_told, true) {
            warn!(missing, "the API server does not serve these kinds yet; plumb waits a minute for them");
        }
        tokio::time::sleep(backoff.next_wait()).await;
        discover(client).await?;
    }
}

fn missing_kinds(catalog: &Catalog) -> Vec<&'static str> {
    let is_missing = |(kind, _): &(&str, &str)| {
        catalog.resource(&GroupVersionKind::from_api_version(Application::API_VERSION, kind)).is_none()
    };
    let needed =
        [(Application::KIND, "applications.argoproj.io"), (AppProject::KIND, "appprojects.argoproj.io")];
    needed.into_iter().filter(is_missing).map(|(_, definition)| definition).collect()
}

/// True if the same request may succeed later without a change by the user. `waited` is the time since the first request.
fn may_pass(error: &ApiError, waited: Duration) -> bool {
    let is_refused = error.code().is_some_and(|code| code == 401 || code == 403);
    error.is_unavailable()
        || error.code().is_some_and(|code| code >= 500)
        || (is_refused && waited < CREATED_WITHIN)
}

#[cfg(test)]
mod tests {
    use plumb_kube::{Reason, Status};

    use super::*;

    fn status(code: u16) -> ApiError {
        let status = Status {
            code,
            reason: Reason::Other(String::new()),
            message: String::new(),
            causes: Vec::new(),
            retry_after: None,
        };
        ApiError::Refused { request: "GET /version".to_owned(), status: Box::new(status) }
    }

    #[test]
    fn refused_credentials_are_tried_again_for_a_minute() {
        for (code, waited, expected) in [
            (401, 0, true),
            (403, 59, true),
            (401, 60, false),
            (403, 60, false),
            (404, 0, false),
            (500, 600, true),
            (503, 600, true),
        ] {
            assert_eq!(may_pass(&status(code), Duration::from_secs(waited)), expected, "{code} {waited}");
        }
    }

    #[test]
    fn the_definitions_that_are_missing_are_named() {
        let missing = missing_kinds(&Catalog::default());
        assert_eq!(missing, ["applications.argoproj.io", "appprojects.argoproj.io"]);
        let error = StartError::Kinds { missing: missing.join(", ") };
        assert!(error.to_string().ends_with(" applications.argoproj.io, appprojects.argoproj.io"), "{error}");
    }
}
