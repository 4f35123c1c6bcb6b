//! Servers that take long hold no worker: a run waits for them for a moment and then gives way to other apps. It comes
//! back when they have answered; by then the answer is at hand, since all who have the same reason to ask share one.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plumb_core::app::Source;
use plumb_core::project::normalize_repo_url;
use plumb_crd::application::ApplicationSource;
use tokio::task::JoinHandle;

use super::gather::{Glance, Sources};
use super::resolve::{Reach, Resolved};
use crate::apps::context::Ground;
use crate::queue::Look;

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
    /// Something is wrong.
    Failed(Failure),
    /// Servers take long.
    Waiting(Answered),
}

impl NotGathered {
    /// The condition that tells it, and its words for users.
    pub(crate) fn condition(&self) -> (&'static str, &str) {
        match self {
            Self::Failed(failure) => (failure.condition, &failure.message),
            Self::Waiting(_) => (COMPARISON_ERROR, "the servers of the app's sources have not answered yet"),
        }
    }
}

const COMPARISON_ERROR: &str = "ComparisonError";

/// What is wrong with the sources, or with what they ask for.
#[derive(Debug)]
pub(crate) struct Failure {
    condition: &'static str,
    /// In words for users.
    pub(crate) message: String,
}

impl Failure {
    /// What Git asks for does not go with the app's spec.
    pub(super) fn of_spec(message: String) -> Self {
        Self { condition: "InvalidSpecError", message }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self { condition: COMPARISON_ERROR, message }
    }
}

fn failed(message: String) -> NotGathered {
    NotGathered::Failed(message.into())
}

impl Sources {
    /// What the sources mean now, unless it takes long to find out.
    pub(super) async fn resolve_or_give_way(
        self: &Arc<Self>,
        ground: &Ground,
        sources: &[(Source, ApplicationSource)],
        glance: Glance,
    ) -> Result<Vec<Resolved>, NotGathered> {
        let Glance { look, since, patience } = glance;
        let reach = Reach::of(ground);
        if patience == Patience::Endless || look < Look::Git {
            return self.resolve(&reach, sources, &[], look, since).await.map_err(failed);
        }
        let servers = sources.iter().map(|(source, _)| normalize_repo_url(&source.repo_url)).collect();
        let own = Arc::clone(self);
        let sources = sources.to_vec();
        let asked = async move { own.resolve(&reach, &sources, &[], look, since).await };
        self.late.wait_for(servers, asked).await
    }
}

/// Servers that somebody waits for, and how many do. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub(super) struct Late(Arc<Mutex<HashMap<String, usize>>>);

/// While it lives somebody waits for these.
struct Wait {
    late: Late,
    servers: BTreeSet<String>,
}

impl Late {
    /// Waits a moment for an answer. One that comes later is waited for aside.
    async fn wait_for<T: Send + 'static>(
        &self,
        servers: BTreeSet<String>,
        asked: impl Future<Output = Result<T, String>> + Send + 'static,
    ) -> Result<T, NotGathered> {
        let is_late = self.with(|late| servers.iter().any(|server| late.contains_key(server)));
        let mut answer = tokio::spawn(asked);
        let patience = if is_late { LITTLE_PATIENCE } else { PATIENCE };
        match tokio::time::timeout(patience, &mut answer).await {
            Ok(Ok(answer)) => answer.map_err(failed),
            Ok(Err(error)) => Err(failed(format!("asking the servers was cut off: {error}"))),
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
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
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
        let late = Late::default();
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
        let other = late.wait_for(servers(&["c"]), async { Err::<(), _>("no".to_owned()) }).await;
        assert!(matches!(&other, Err(NotGathered::Failed(failure)) if failure.message == "no"), "{other:?}");
        first.await.unwrap();
        assert!(started.elapsed() >= Duration::from_mins(1), "it ends with the answer");
        second.await.unwrap();
        assert!(late.with(|late| late.is_empty()), "nobody waits any more");
    }
}
