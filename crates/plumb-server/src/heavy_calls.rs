//! Calls whose answers take much memory: only few of them run at the same time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use plumb_api::{Code, Status};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The calls that render, compare or list whole apps.
const HEAVY: [&str; 5] = [
    "application.ApplicationService/ManagedResources",
    "application.ApplicationService/GetManifests",
    "application.ApplicationService/GetManifestsWithFiles",
    "application.ApplicationService/ServerSideDiff",
    "plumb.ReportService/List",
];
/// How many of them run at the same time, and how many of one caller.
const MOST: usize = 12;
const MOST_OF_ONE: usize = 4;
/// How long a call waits for its turn.
const PATIENCE: Duration = Duration::from_mins(1);

/// The heavy calls that run.
pub(crate) struct HeavyCalls {
    all: Arc<Semaphore>,
    of_callers: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// The place of a call, which is free again when this is dropped.
pub(crate) struct Place {
    _of_caller: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Default for HeavyCalls {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MOST)), of_callers: Mutex::default() }
    }
}

impl HeavyCalls {
    /// Waits for a place if the call is a heavy one. A caller with many calls waits for the own ones first.
    pub(crate) async fn enter(&self, path: &str, caller: &str) -> Result<Option<Place>, Status> {
        if !HEAVY.contains(&path) {
            return Ok(None);
        }
        let own = {
            let mut callers = self.of_callers.lock();
            callers.retain(|_, own| Arc::strong_count(own) > 1);
            let own = callers.entry(caller.to_owned());
            Arc::clone(own.or_insert_with(|| Arc::new(Semaphore::new(MOST_OF_ONE))))
        };
        let both = async {
            let of_caller = own.acquire_owned().await.ok()?;
            let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(Place { _of_caller: of_caller, _of_all: of_all })
        };
        let busy = || {
            Status::new(
                Code::ResourceExhausted,
                "too many calls with large answers run at the same time; try again",
            )
        };
        let place = tokio::time::timeout(PATIENCE, both).await.map_err(|_| busy())?;
        place.map(Some).ok_or_else(busy)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn few_heavy_calls_run_at_the_same_time_and_fewer_of_one_caller() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let heavy = HeavyCalls::default();
        let enter =
            |caller: &str| heavy.enter(HEAVY[0], caller).now_or_never().and_then(Result::ok).flatten();
        let of_one: Vec<_> = (0..10).filter_map(|_| enter("ann")).collect();
        assert_eq!(of_one.len(), MOST_OF_ONE);
        let others: Vec<_> = (0..20).filter_map(|n| enter(&format!("user-{n}"))).collect();
        assert_eq!(of_one.len() + others.len(), MOST);
        drop(of_one);
        assert!(enter("ann").is_some(), "what ended is free again");
        assert_eq!(heavy.of_callers.lock().len(), others.len() + 1, "callers at rest are forgotten");
        let light = heavy.enter("application.ApplicationService/Get", "ann").now_or_never();
        assert!(matches!(light, Some(Ok(None))));
    }
}
