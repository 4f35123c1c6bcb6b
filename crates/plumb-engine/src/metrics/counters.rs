//! The metrics that the engine updates while it runs. Names and labels are Argo CD's where Argo CD has the
//! metric, so that dashboards keep working. Metrics that only plumb has start with `plumb_`.
//!
//! Values that can be read from the engine's state at any moment (number of apps, their statuses) are not
//! counted here. `runtime::gauges` computes them at each scrape.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use plumb_core::app::AppId;
use plumb_core::project::repo_label;
use plumb_core::sync::OperationPhase;
use plumb_git::GitRequest;
use plumb_kube::RequestRecord;

use super::series::Family;
use super::series::{Counter, Gauge, Histogram, number};

/// The name of plumb's only queue. Argo CD's queue has the same name.
pub(crate) const QUEUE: &str = "app_reconciliation_queue";
/// The bounds that client-go uses.
const QUEUE_BOUNDS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

/// The labels of an app in metrics.
#[derive(Clone, Debug)]
pub(crate) struct AppLabels {
    pub(crate) id: AppId,
    pub(crate) project: String,
    pub(crate) server: String,
}

tokio::task_local! {
    /// The app of the current run. Requests to API servers are counted for this app.
    pub(crate) static ON_BEHALF: AppLabels;
}

/// All metrics of the engine.
#[derive(Debug)]
pub(crate) struct Metrics {
    syncs: Counter<6>,
    sync_seconds: Counter<4>,
    reconciles: Histogram<2>,
    pub(crate) set_reconciles: Histogram<2>,
    requests: Counter<9>,
    pub(crate) cluster_events: Counter<3>,
    event_batches: Histogram<1>,
    last_batch: Gauge<1>,
    queue_seconds: Histogram<1>,
    work_seconds: Histogram<1>,
    repositories: BoundedLabel,
    git_requests: Counter<2>,
    git_seconds: Histogram<2>,
    git_fetch_failures: Counter<1>,
    git_refs_failures: Counter<1>,
    pub(crate) webhook_requests: Counter<2>,
    pub(crate) unimplemented_calls: Counter<2>,
    pub(crate) dry_runs: Counter<1>,
    pub(crate) events: Counter<1>,
    pub(crate) triggers: Counter<1>,
    /// Labels: the category, and whether the failure is transient.
    pub(crate) source_failures: Counter<2>,
    pub(crate) heals: Counter<1>,
    pub(crate) unchanged: Counter<1>,
}

impl Default for Metrics {
    // Long because it is a table: one entry per metric.
    fn default() -> Self {
        Self {
            syncs: Counter::new(
                "argocd_app_sync_total",
                "Number of application syncs.",
                ["namespace", "name", "project", "dest_server", "phase", "dry_run"],
            ),
            sync_seconds: Counter::new(
                "argocd_app_sync_duration_seconds_total",
                "Application sync performance in seconds total.",
                ["namespace", "name", "project", "dest_server"],
            ),
            reconciles: Histogram::new(
                "argocd_app_reconcile",
                "Application reconciliation performance in seconds.",
                ["namespace", "dest_server"],
                // Argo CD's bounds, and smaller ones because plumb takes less time.
                &[0.01, 0.05, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0],
            ),
            set_reconciles: Histogram::new(
                "argocd_appset_reconcile",
                "Application reconciliation performance in seconds.",
                ["namespace", "name"],
                // The bounds that Prometheus' client for Go has by default.
                &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0],
            ),
            requests: Counter::new(
                "argocd_app_k8s_request_total",
                "Number of Kubernetes requests executed during application reconciliation.",
                [
                    "namespace",
                    "name",
                    "project",
                    "server",
                    "response_code",
                    "verb",
                    "resource_kind",
                    "resource_namespace",
                    "dry_run",
                ],
            ),
            cluster_events: Counter::new(
                "argocd_cluster_events_total",
                "Number of object changes received from watches.",
                ["server", "group", "kind"],
            ),
            event_batches: Histogram::new(
                "argocd_resource_events_processing",
                "Time to process resource events in seconds.",
                ["server"],
                // Argo CD's bounds, and smaller ones because plumb takes less time.
                &[0.001, 0.01, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0],
            ),
            last_batch: Gauge::new(
                "argocd_resource_events_processed_in_batch",
                "Number of resource events processed in batch.",
                ["server"],
            ),
            queue_seconds: Histogram::new(
                "workqueue_queue_duration_seconds",
                "How long in seconds an item stays in workqueue before being requested.",
                ["name"],
                &QUEUE_BOUNDS,
            ),
            work_seconds: Histogram::new(
                "workqueue_work_duration_seconds",
                "How long in seconds processing an item from workqueue takes.",
                ["name"],
                &QUEUE_BOUNDS,
            ),
            repositories: BoundedLabel::default(),
            git_requests: Counter::new(
                "argocd_git_request_total",
                "Number of Git requests performed.",
                ["repo", "request_type"],
            ),
            git_seconds: Histogram::new(
                "argocd_git_request_duration_seconds",
                "Git requests duration seconds.",
                ["repo", "request_type"],
                &[0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0, 20.0],
            ),
            git_fetch_failures: Counter::new(
                "argocd_git_fetch_fail_total",
                "Number of Git fetch requests that failed.",
                ["repo"],
            ),
            git_refs_failures: Counter::new(
                "argocd_git_lsremote_fail_total",
                "Number of Git ls-remote requests that failed.",
                ["repo"],
            ),
            webhook_requests: Counter::new(
                "argocd_webhook_requests_total",
                "Number of webhook requests, by sender and outcome.",
                ["sender", "outcome"],
            ),
            unimplemented_calls: Counter::new(
                "plumb_api_unimplemented_total",
                "Calls of the API that clients asked for and plumb does not have.",
                ["method", "client"],
            ),
            dry_runs: Counter::new("plumb_dry_runs_total", "Dry-run requests, by cluster.", ["server"]),
            events: Counter::new("plumb_events_total", "Kubernetes events, by outcome.", ["outcome"]),
            triggers: Counter::new("plumb_runs_total", "Reconciles of apps, by trigger.", ["trigger"]),
            source_failures: Counter::new(
                "plumb_source_failures_total",
                "Runs that could not determine the desired state, by category of failure.",
                ["category", "transient"],
            ),
            heals: Counter::new(
                "plumb_heals_total",
                "Syncs that reverted live edits, by cluster.",
                ["server"],
            ),
            unchanged: Counter::new(
                "plumb_ignored_updates_total",
                "Object changes ignored by the settings for resource updates, by cluster.",
                ["server"],
            ),
        }
    }
}

impl Metrics {
    /// Counts a sync that ended.
    pub(crate) fn sync_ended(&self, app: &AppLabels, phase: OperationPhase, dry_run: bool, took: Duration) {
        let AppLabels { id, project, server } = app;
        let dry_run = if dry_run { "true" } else { "false" };
        self.syncs.increment([&id.namespace, &id.name, project, server, phase.name(), dry_run]);
        if phase == OperationPhase::Succeeded {
            self.sync_seconds.add([&id.namespace, &id.name, project, server], took.as_secs_f64());
        }
    }

    /// Starts to measure a run. Dropping the guard counts it, whatever its result.
    pub(crate) fn run<'a>(&'a self, app: &'a AppLabels) -> RunGuard<'a> {
        RunGuard { metrics: self, app, began: Instant::now() }
    }

    /// Counts how long a job waited in the queue, and starts to measure its work. Dropping the guard counts
    /// the work.
    pub(crate) fn job(&self, waited: Duration) -> JobGuard<'_> {
        self.queue_seconds.observe([QUEUE], waited);
        JobGuard { metrics: self, began: Instant::now() }
    }

    /// Counts a batch of object changes and the time that it took to process.
    pub(crate) fn event_batch(&self, server: &str, n_changes: usize, took: Duration) {
        self.event_batches.observe([server], took);
        self.last_batch.set([server], number(u64::try_from(n_changes).unwrap_or(u64::MAX)));
    }

    /// Counts a request to an API server, answered or not.
    pub(crate) fn request(&self, server: &str, request: &RequestRecord<'_>) {
        if request.dry_run {
            self.dry_runs.increment([server]);
        }
        let code = request.code.map_or_else(|| "unknown".to_owned(), |code| code.to_string());
        let dry_run = if request.dry_run { "true" } else { "false" };
        let count = |namespace: &str, name: &str, project: &str| {
            self.requests.increment([
                namespace,
                name,
                project,
                server,
                &code,
                request.verb,
                request.resource,
                request.namespace,
                dry_run,
            ]);
        };
        let counted = ON_BEHALF.try_with(|app| count(&app.id.namespace, &app.id.name, &app.project));
        if counted.is_err() {
            count("", "", "");
        }
    }

    /// Counts a request to a Git server.
    pub(crate) fn git_request(&self, request: &GitRequest<'_>) {
        let repo = self.repositories.bounded(repo_label(request.repository.as_str()));
        self.git_requests.increment([&repo, request.kind]);
        self.git_seconds.observe([&repo, request.kind], request.took);
        if !request.succeeded {
            let failures =
                if request.kind == "fetch" { &self.git_fetch_failures } else { &self.git_refs_failures };
            failures.increment([&repo]);
        }
    }

    /// Drops the metrics of a deleted app.
    pub(crate) fn forget(&self, app: &AppId) {
        let is_other = |namespace: &str, name: &str| namespace != app.namespace || name != app.name;
        self.syncs.retain(|[namespace, name, ..]| is_other(namespace, name));
        self.sync_seconds.retain(|[namespace, name, ..]| is_other(namespace, name));
        self.requests.retain(|[namespace, name, ..]| is_other(namespace, name));
    }

    /// Drops the metrics of a deleted set.
    pub(crate) fn forget_set(&self, set: &AppId) {
        self.set_reconciles.retain(|[namespace, name]| *namespace != set.namespace || *name != set.name);
    }

    /// The current values of all metrics.
    pub(crate) fn families(&self) -> Vec<Family> {
        vec![
            self.syncs.family(),
            self.sync_seconds.family(),
            self.reconciles.family(),
            self.set_reconciles.family(),
            self.requests.family(),
            self.cluster_events.family(),
            self.event_batches.family(),
            self.last_batch.family(),
            self.queue_seconds.family(),
            self.work_seconds.family(),
            self.git_requests.family(),
            self.git_seconds.family(),
            self.git_fetch_failures.family(),
            self.git_refs_failures.family(),
            self.webhook_requests.family(),
            self.unimplemented_calls.family(),
            self.source_failures.family(),
            self.dry_runs.family(),
            self.events.family(),
            self.triggers.family(),
            self.heals.family(),
            self.unchanged.family(),
        ]
    }
}

/// The values of a label that users choose. Beyond a number of values, all further ones are counted as `other`: users who
/// keep changing the address of an app cannot fill the memory of plumb and of the metrics server.
#[derive(Debug, Default)]
struct BoundedLabel(Mutex<HashSet<String>>);

/// Most repositories with metrics of their own.
const MOST_REPOSITORIES: usize = 2000;

impl BoundedLabel {
    fn bounded(&self, value: String) -> String {
        let mut known = self.0.lock();
        if known.contains(&value) {
            return value;
        }
        if known.len() >= MOST_REPOSITORIES {
            return "other".to_owned();
        }
        known.insert(value.clone());
        value
    }
}

/// Measures one run until it is dropped.
pub(crate) struct RunGuard<'a> {
    metrics: &'a Metrics,
    app: &'a AppLabels,
    began: Instant,
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        self.metrics.reconciles.observe([&self.app.id.namespace, &self.app.server], took);
    }
}

/// Measures the work on one job until it is dropped.
pub(crate) struct JobGuard<'a> {
    metrics: &'a Metrics,
    began: Instant,
}

impl Drop for JobGuard<'_> {
    fn drop(&mut self) {
        self.metrics.work_seconds.observe([QUEUE], self.began.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_users_choose_are_bounded() {
        let label = BoundedLabel::default();
        for n in 0..MOST_REPOSITORIES {
            assert_eq!(label.bounded(n.to_string()), n.to_string());
        }
        assert_eq!(label.bounded("one more".to_owned()), "other");
        assert_eq!(label.bounded("7".to_owned()), "7", "a known one keeps its own metrics");
    }
}
