//! Servers that answer slowly and renderings that take long do not occupy workers. A run waits for them for a
//! moment and then yields to other apps. The request goes on by itself, and the app runs again when it has ended.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use plumb_core::app::AppId;
use plumb_crd::application::ConditionType;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{Span, info_span};

use super::error::SourceError;

/// How long a run waits for a server.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// How long a run waits for a server that other runs already wait for, and for a request that it has yielded to before.
pub(super) const MAX_WAIT_IF_SLOW: Duration = Duration::from_millis(50);

/// How long a run waits for servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Until they answer: a command of a user, which delays no app.
    Endless,
    /// For a moment: other apps need the worker.
    Short,
}

/// Tells when a request has ended. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Answered(watch::Receiver<()>);

impl Answered {
    /// Waits for the end of the request, however it ends.
    pub(crate) async fn wait(mut self) {
        while self.0.changed().await.is_ok() {}
    }

    /// True if the request has ended.
    pub(super) fn is_over(&self) -> bool {
        self.0.has_changed().is_err()
    }
}

/// Why nothing was gathered.
#[derive(Debug)]
pub(crate) enum NotGathered {
    /// Something is wrong with the sources or with what they render.
    Failed(SourceError),
    /// Servers answer slowly, or rendering takes long.
    Waiting(Answered),
}

impl NotGathered {
    /// The conditions that report it: the type, and a message for each of them.
    pub(crate) fn conditions(&self) -> (ConditionType, Vec<String>) {
        match self {
            Self::Failed(error) => (error.condition(), error.messages()),
            Self::Waiting(_) => (
                ConditionType::ComparisonError,
                vec!["the app's sources have not been fetched and rendered yet".to_owned()],
            ),
        }
    }

    /// All messages in one.
    pub(crate) fn message(&self) -> String {
        self.conditions().1.join("; ")
    }
}

/// A request that goes on by itself, whether a run waits for it or not.
#[derive(Debug)]
pub(super) struct InFlight<T> {
    task: JoinHandle<Result<T, SourceError>>,
    ended: Answered,
}

impl<T: Send + 'static> InFlight<T> {
    pub(super) fn start(request: impl Future<Output = Result<T, SourceError>> + Send + 'static) -> Self {
        let (running, ended) = watch::channel(());
        let task = tokio::spawn(async move {
            // Dropped with the request, also if that panics.
            let _running = running;
            request.await
        });
        Self { task, ended: Answered(ended) }
    }

    /// Waits for the result for this long.
    pub(super) async fn within(&mut self, patience: Duration) -> Option<Result<T, SourceError>> {
        let ended = tokio::time::timeout(patience, &mut self.task).await.ok()?;
        Some(ended.unwrap_or(Err(SourceError::Aborted { what: "reading the sources" })))
    }

    pub(super) fn answered(&self) -> Answered {
        self.ended.clone()
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

/// Held by a request for as long as it asks servers. What it does after that, such as rendering, is not the fault of a
/// server.
pub(super) struct Asking(Arc<Mutex<Mark>>);

enum Mark {
    Asking,
    /// A run has yielded to the request.
    Slow {
        _wait: Wait,
    },
    Answered,
}

impl Asking {
    /// For a request that no run waits for.
    pub(super) fn by_a_command() -> Self {
        Self(Arc::new(Mutex::new(Mark::Asking)))
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        *self.0.lock() = Mark::Answered;
    }
}

impl SlowServers {
    /// Starts a request to these servers and waits for it for a moment. The error is the request, which goes on.
    pub(super) async fn ask<T, F>(
        &self,
        servers: BTreeSet<String>,
        request: impl FnOnce(Asking) -> F,
    ) -> Result<Result<T, SourceError>, InFlight<T>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, SourceError>> + Send + 'static,
    {
        let is_slow =
            self.with(|slow_servers| servers.iter().any(|server| slow_servers.contains_key(server)));
        let mark = Arc::new(Mutex::new(Mark::Asking));
        let mut request = InFlight::start(request(Asking(Arc::clone(&mark))));
        let patience = if is_slow { MAX_WAIT_IF_SLOW } else { MAX_WAIT };
        if let Some(result) = request.within(patience).await {
            return Ok(result);
        }
        let mut mark = mark.lock();
        if matches!(*mark, Mark::Asking) {
            *mark = Mark::Slow { _wait: self.begin(servers) };
        }
        Err(request)
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

/// The span of a request for the sources of an app. The request may outlast the run that started it, so it follows the run
/// and is not a part of it.
pub(super) fn span_of(app: &AppId) -> Span {
    let span = info_span!(parent: None, "sources", %app);
    span.follows_from(Span::current());
    span
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use tracing::Instrument as _;

    use super::*;

    fn servers(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    async fn asks(asking: Asking, seconds: u64) -> Result<u8, SourceError> {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        drop(asking);
        Ok(7)
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_yields_to_a_slow_server_and_the_next_run_sooner() {
        let slow_servers = SlowServers::default();
        let started = Instant::now();
        let first = slow_servers.ask(servers(&["a", "b"]), |asking| asks(asking, 60)).await;
        let mut first = first.unwrap_err();
        assert_eq!(started.elapsed(), MAX_WAIT);
        let second = slow_servers.ask(servers(&["b"]), |asking| asks(asking, 60)).await.unwrap_err();
        assert_eq!(started.elapsed(), MAX_WAIT + MAX_WAIT_IF_SLOW);
        let quick = slow_servers.ask(servers(&["b"]), |asking| asks(asking, 0)).await;
        assert!(matches!(quick, Ok(Ok(7))), "a quick answer is used: {quick:?}");
        let other = |_: Asking| async { Err::<(), _>(SourceError::Manifests(vec!["no".to_owned()])) };
        let other = slow_servers.ask(servers(&["c"]), other).await;
        assert!(matches!(&other, Ok(Err(error)) if error.to_string() == "no"), "{other:?}");
        assert!(!first.answered().is_over());
        first.answered().wait().await;
        assert!(started.elapsed() >= Duration::from_mins(1), "it ends with the answer");
        assert!(first.answered().is_over());
        assert!(matches!(first.within(Duration::ZERO).await, Some(Ok(7))), "the answer is kept");
        second.answered().wait().await;
        assert!(slow_servers.with(|slow_servers| slow_servers.is_empty()), "no request waits any more");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_rendering_does_not_make_its_server_slow() {
        let slow_servers = SlowServers::default();
        let renders = |asking: Asking| async move {
            drop(asking);
            tokio::time::sleep(Duration::from_mins(1)).await;
            Ok(7)
        };
        let slow = slow_servers.ask(servers(&["a"]), renders).await.unwrap_err();
        assert!(slow_servers.with(|slow_servers| slow_servers.is_empty()));
        let asks_then_renders = |asking: Asking| async move {
            tokio::time::sleep(Duration::from_secs(10)).await;
            drop(asking);
            tokio::time::sleep(Duration::from_mins(1)).await;
            Ok(7)
        };
        let both = slow_servers.ask(servers(&["a"]), asks_then_renders).await.unwrap_err();
        assert!(slow_servers.with(|slow_servers| slow_servers.contains_key("a")));
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(slow_servers.with(|slow_servers| slow_servers.is_empty()), "the server has answered");
        assert!(!slow.answered().is_over() && !both.answered().is_over());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_panics_ends() {
        let slow_servers = SlowServers::default();
        let panics = |_: Asking| async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            panic!("a defect")
        };
        let request = slow_servers.ask::<(), _>(servers(&["a"]), panics).await;
        let mut request = request.unwrap_err();
        request.answered().wait().await;
        let result = request.within(MAX_WAIT_IF_SLOW).await;
        assert!(matches!(result, Some(Err(SourceError::Aborted { .. }))), "{result:?}");
        assert!(slow_servers.with(|slow_servers| slow_servers.is_empty()));
    }

    /// A log in memory.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_names_its_app_in_the_log_also_after_its_run() {
        let (log, app) = (Log::default(), AppId { namespace: "team".to_owned(), name: "web".to_owned() });
        let writer = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        let request = |asking: Asking| async move {
            let _asking = asking;
            tokio::time::sleep(Duration::from_mins(1)).await;
            tracing::info!("answered");
            Ok(())
        };
        let request = |asking: Asking| request(asking).instrument(span_of(&app));
        let slow_servers = SlowServers::default();
        let run = slow_servers.ask(BTreeSet::new(), request);
        let request = run.instrument(info_span!("reconcile")).await.err().unwrap();
        request.answered().wait().await;
        let log = String::from_utf8(log.0.lock().clone()).unwrap();
        assert!(log.contains("sources{app=team/web}") && log.contains("answered"), "{log}");
        assert!(!log.contains("reconcile"), "it is no part of the run, which has ended: {log}");
    }
}
