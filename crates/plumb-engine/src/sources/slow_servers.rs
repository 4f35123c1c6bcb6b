//! Servers that take long hold no worker: a run waits for them for a moment and then gives way to other apps. It comes
//! back when they have answered; by then the answer is at hand, since all who have the same reason to ask share one.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use plumb_core::app::Source;
use plumb_core::project::normalize_repo_url;
use plumb_crd::application::{ApplicationSource, ConditionType};
use tokio::task::JoinHandle;

use super::error::SourceError;
use super::gather::{FetchPolicy, Sources};
use super::resolve::{Access, Resolved};
use crate::apps::context::AppContext;
use crate::queue::RefreshDepth;

/// So long is a server waited for …
const PATIENCE: Duration = Duration::from_secs(2);
/// … and so long one that others wait for already.
const LITTLE_PATIENCE: Duration = Duration::from_millis(50);

/// How long servers are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As long as it takes.
    Endless,
    /// A moment: others wait for the worker.
    Short,
}

/// Ends when the servers have answered.
pub(crate) type Answered = JoinHandle<()>;

/// Why nothing was gathered.
#[derive(Debug)]
pub(crate) enum NotGathered {
    /// Something is wrong with the sources or with what they render.
    Failed(SourceError),
    /// Servers take long. The handle ends when they have answered.
    Waiting(Answered),
}

impl NotGathered {
    /// The condition that reports it, and its message.
    pub(crate) fn condition(&self) -> (ConditionType, String) {
        match self {
            Self::Failed(error) => (error.condition(), error.message()),
            Self::Waiting(_) => (
                ConditionType::ComparisonError,
                "the servers of the app's sources have not answered yet".to_owned(),
            ),
        }
    }
}

impl Sources {
    /// What the sources mean now, unless it takes long to find out.
    pub(super) async fn resolve_or_give_way(
        self: &Arc<Self>,
        context: &AppContext,
        sources: &[(Source, ApplicationSource)],
        policy: FetchPolicy,
    ) -> Result<Vec<Resolved>, NotGathered> {
        let FetchPolicy { depth, since, patience } = policy;
        let reach = Access::of(context);
        if patience == Patience::Endless || depth < RefreshDepth::Git {
            return self.resolve(&reach, sources, &[], depth, since).await.map_err(NotGathered::Failed);
        }
        let servers = sources.iter().map(|(source, _)| normalize_repo_url(&source.repo_url)).collect();
        let own = Arc::clone(self);
        let sources = sources.to_vec();
        let asked = async move { own.resolve(&reach, &sources, &[], depth, since).await };
        self.slow_servers.wait_for(servers, asked).await
    }
}

/// Servers that somebody waits for, and how many do. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub(super) struct SlowServers(Arc<Mutex<HashMap<String, usize>>>);

/// While it lives somebody waits for these.
struct Wait {
    late: SlowServers,
    servers: BTreeSet<String>,
}

impl SlowServers {
    /// Waits a moment for an answer. One that comes later is waited for aside.
    async fn wait_for<T: Send + 'static>(
        &self,
        servers: BTreeSet<String>,
        asked: impl Future<Output = Result<T, SourceError>> + Send + 'static,
    ) -> Result<T, NotGathered> {
        let is_late = self.with(|late| servers.iter().any(|server| late.contains_key(server)));
        let mut answer = tokio::spawn(asked);
        let patience = if is_late { LITTLE_PATIENCE } else { PATIENCE };
        match tokio::time::timeout(patience, &mut answer).await {
            Ok(Ok(answer)) => answer.map_err(NotGathered::Failed),
            Ok(Err(source)) => {
                Err(NotGathered::Failed(SourceError::Aborted { what: "asking the servers", source }))
            }
            Err(_) => {
                let wait = self.begin(servers);
                Err(NotGathered::Waiting(tokio::spawn(async move {
                    // What it is, the next run finds out.
                    let _ = answer.await;
                    drop(wait);
                })))
            }
        }
    }

    fn begin(&self, servers: BTreeSet<String>) -> Wait {
        self.with(|late| {
            for server in &servers {
                *late.entry(server.clone()).or_default() += 1;
            }
        });
        Wait { late: self.clone(), servers }
    }

    fn with<T>(&self, change: impl FnOnce(&mut HashMap<String, usize>) -> T) -> T {
        change(&mut self.0.lock())
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.late.with(|late| {
            for server in &self.servers {
                if let Some(n_waiting) = late.get_mut(server) {
                    *n_waiting -= 1;
                    if *n_waiting == 0 {
                        late.remove(server);
                    }
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    fn servers(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_for_a_slow_server_gives_way_and_the_next_at_once() {
        let late = SlowServers::default();
        let slow = || async {
            tokio::time::sleep(Duration::from_mins(1)).await;
            Ok(7)
        };
        let started = Instant::now();
        let first = late.wait_for(servers(&["a", "b"]), slow()).await;
        let Err(NotGathered::Waiting(first)) = first else { panic!("{first:?}") };
        assert_eq!(started.elapsed(), PATIENCE);
        let second = late.wait_for(servers(&["b"]), slow()).await;
        let Err(NotGathered::Waiting(second)) = second else { panic!("{second:?}") };
        assert_eq!(started.elapsed(), PATIENCE + LITTLE_PATIENCE);
        let quick = late.wait_for(servers(&["b"]), async { Ok(7) }).await;
        assert!(matches!(quick, Ok(7)), "an answer that is at hand is taken: {quick:?}");
        let other = late
            .wait_for(servers(&["c"]), async { Err::<(), _>(SourceError::Manifests("no".to_owned())) })
            .await;
        assert!(matches!(&other, Err(NotGathered::Failed(error)) if error.to_string() == "no"), "{other:?}");
        first.await.unwrap();
        assert!(started.elapsed() >= Duration::from_mins(1), "it ends with the answer");
        second.await.unwrap();
        assert!(late.with(|late| late.is_empty()), "nobody waits any more");
    }
}
