//! Servers that answer slowly and renderings that take long do not occupy workers. A run waits for them for a
//! moment and then yields to other apps. It runs again when they have answered. It then gets the answer at once,
//! since equal requests share one answer, and results of renderings are cached.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use plumb_core::project::normalize_repo_url;
use plumb_crd::application::ConditionType;
use tokio::task::JoinHandle;

use super::error::SourceError;
use super::gather::{FetchPolicy, Sources};
use super::inputs::RenderInputs;
use super::resolve::{Access, Resolved};
use crate::apps::context::AppContext;
use crate::queue::RefreshDepth;

/// How long a run waits for a server.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// How long a run waits for a server that other runs already wait for.
const MAX_WAIT_IF_SLOW: Duration = Duration::from_millis(50);

/// How long a run waits for servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Until they answer.
    Endless,
    /// For a moment: other apps need the worker.
    Short,
}

/// Ends when the servers have answered.
pub(crate) type Answered = JoinHandle<()>;

/// Why nothing was gathered.
#[derive(Debug)]
pub(crate) enum NotGathered {
    /// Something is wrong with the sources or with what they render.
    Failed(SourceError),
    /// Servers answer slowly, or rendering takes long. The handle ends with them.
    Waiting(Answered),
}

impl NotGathered {
    /// The condition that reports it, and its message.
    pub(crate) fn condition(&self) -> (ConditionType, String) {
        match self {
            Self::Failed(error) => (error.condition(), error.message()),
            Self::Waiting(_) => (
                ConditionType::ComparisonError,
                "the app's sources have not been fetched and rendered yet".to_owned(),
            ),
        }
    }
}

impl Sources {
    /// Resolves the sources, unless a server answers slowly.
    pub(super) async fn resolve_or_give_way(
        self: &Arc<Self>,
        context: &AppContext,
        inputs: &RenderInputs,
        policy: FetchPolicy,
    ) -> Result<Vec<Resolved>, NotGathered> {
        let FetchPolicy { depth, since, patience } = policy;
        let app_access = Access::of(context);
        if patience == Patience::Endless || depth < RefreshDepth::Git {
            return self.resolve(&app_access, inputs, &[], depth, since).await.map_err(NotGathered::Failed);
        }
        let servers = inputs.sources.iter().map(|(source, _)| normalize_repo_url(&source.repo_url)).collect();
        let this = Arc::clone(self);
        let inputs = inputs.clone();
        let request = async move { this.resolve(&app_access, &inputs, &[], depth, since).await };
        self.slow_servers.wait_for(servers, request).await
    }
}

/// Servers that runs wait for, with the number of waiting requests. Clones share the state.
#[derive(Clone, Debug, Default)]
pub(super) struct SlowServers(Arc<Mutex<HashMap<String, usize>>>);

/// Counts as a waiting request until it is dropped.
struct Wait {
    slow_servers: SlowServers,
    servers: BTreeSet<String>,
}

impl SlowServers {
    /// Waits a moment for the answer. If it takes longer, a task of its own waits for it.
    pub(super) async fn wait_for<T: Send + 'static>(
        &self,
        servers: BTreeSet<String>,
        request: impl Future<Output = Result<T, SourceError>> + Send + 'static,
    ) -> Result<T, NotGathered> {
        let is_slow =
            self.with(|slow_servers| servers.iter().any(|server| slow_servers.contains_key(server)));
        let mut answer = tokio::spawn(request);
        let patience = if is_slow { MAX_WAIT_IF_SLOW } else { MAX_WAIT };
        match tokio::time::timeout(patience, &mut answer).await {
            Ok(Ok(answer)) => answer.map_err(NotGathered::Failed),
            Ok(Err(source)) => {
                Err(NotGathered::Failed(SourceError::Aborted { what: "reading the sources", source }))
            }
            Err(_) => {
                let wait = self.begin(servers);
                Err(NotGathered::Waiting(tokio::spawn(async move {
                    // The next run asks again and gets the result.
                    let _ = answer.await;
                    drop(wait);
                })))
            }
        }
    }

    fn begin(&self, servers: BTreeSet<String>) -> Wait {
        self.with(|slow_servers| {
            for server in &servers {
                *slow_servers.entry(server.clone()).or_default() += 1;
            }
        });
        Wait { slow_servers: self.clone(), servers }
    }

    fn with<T>(&self, change: impl FnOnce(&mut HashMap<String, usize>) -> T) -> T {
        change(&mut self.0.lock())
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.slow_servers.with(|slow_servers| {
            for server in &self.servers {
                if let Some(n_waiting) = slow_servers.get_mut(server) {
                    *n_waiting -= 1;
                    if *n_waiting == 0 {
                        slow_servers.remove(server);
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
    async fn a_run_yields_to_a_slow_server_and_the_next_run_sooner() {
        let slow_servers = SlowServers::default();
        let slow = || async {
            tokio::time::sleep(Duration::from_mins(1)).await;
            Ok(7)
        };
        let started = Instant::now();
        let first = slow_servers.wait_for(servers(&["a", "b"]), slow()).await;
        let Err(NotGathered::Waiting(first)) = first else { panic!("{first:?}") };
        assert_eq!(started.elapsed(), MAX_WAIT);
        let second = slow_servers.wait_for(servers(&["b"]), slow()).await;
        let Err(NotGathered::Waiting(second)) = second else { panic!("{second:?}") };
        assert_eq!(started.elapsed(), MAX_WAIT + MAX_WAIT_IF_SLOW);
        let quick = slow_servers.wait_for(servers(&["b"]), async { Ok(7) }).await;
        assert!(matches!(quick, Ok(7)), "a quick answer is used: {quick:?}");
        let other = slow_servers
            .wait_for(servers(&["c"]), async { Err::<(), _>(SourceError::Manifests("no".to_owned())) })
            .await;
        assert!(matches!(&other, Err(NotGathered::Failed(error)) if error.to_string() == "no"), "{other:?}");
        first.await.unwrap();
        assert!(started.elapsed() >= Duration::from_mins(1), "the task ends with the answer");
        second.await.unwrap();
        assert!(slow_servers.with(|slow_servers| slow_servers.is_empty()), "no request waits any more");
    }
}
