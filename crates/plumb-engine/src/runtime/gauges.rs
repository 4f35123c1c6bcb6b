//! Metrics that are computed from the engine's state on each scrape.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_core::app::ClusterRef;
use plumb_core::project::repo_label;
use plumb_crd::Application;

use crate::apps::snapshot::AppSummary;
use crate::engine::Engine;
use crate::metrics::counters::QUEUE;
use crate::metrics::series::{Family, number};
use crate::runtime::handle::Stage;

/// Metrics that need no connection to a cluster.
pub(super) fn of_process(stage: &Stage) -> Vec<Family> {
    let leads = if *stage == Stage::Leading { 1.0 } else { 0.0 };
    vec![
        Family::gauge("argocd_info", "Info about the version.")
            .with(&[("version", concat!("plumb-v", env!("CARGO_PKG_VERSION")))], 1.0),
        Family::gauge("plumb_leader", "1 if this process is the leader.").with(&[], leads),
    ]
}

/// Metrics of apps, clusters and the queue.
pub(super) fn of_engine(engine: &Engine) -> Vec<Family> {
    let mut families = apps(engine);
    families.extend(clusters(engine));
    families.extend(sets(engine));
    families.extend(plumb_metrics(engine));
    families
}

fn apps(engine: &Engine) -> Vec<Family> {
    let settings = engine.config.settings();
    let mut info = Family::gauge("argocd_app_info", "Information about application.");
    let mut labels =
        Family::gauge("argocd_app_labels", "Argo Application labels converted to Prometheus labels.");
    let mut conditions = Family::gauge("argocd_app_condition", "Report application conditions.");
    let mut orphans =
        Family::gauge("argocd_app_orphaned_resources_count", "Number of orphaned resources per application.");
    let mut apps = engine.registry.all();
    apps.sort_by(|a, b| a.id.cmp(&b.id));
    for summary in apps {
        let Ok(application) = &summary.head else { continue };
        let project = application.project();
        let base =
            [("namespace", summary.id.namespace.as_str()), ("name", &summary.id.name), ("project", project)];
        app_info(engine, &summary, application, &base, &mut info);
        if !settings.metrics_labels.is_empty() {
            let values = with_labels(&settings.metrics_labels, &application.metadata.labels);
            let mut all = base.to_vec();
            all.extend(values.iter().map(|(name, value)| (name.as_str(), *value)));
            labels.push(&all, 1.0);
        }
        if !settings.metrics_conditions.is_empty() {
            let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
            for condition in &application.status.conditions {
                *counts.entry(&condition.condition_type).or_default() += 1;
            }
            let wanted =
                |condition: &&&str| settings.metrics_conditions.iter().any(|want| want == **condition);
            for condition in counts.keys().filter(wanted) {
                let mut all = base.to_vec();
                all.push(("condition", condition));
                conditions.push(&all, number(counts[condition]));
            }
        }
        if let Some(count) = engine.orphans.count(&summary.id) {
            orphans.push(&base, number(count));
        }
    }
    vec![info, labels, conditions, orphans]
}

fn app_info(
    engine: &Engine,
    summary: &AppSummary,
    application: &Application,
    base: &[(&str, &str)],
    info: &mut Family,
) {
    let or_unknown = |status: &str| if status.is_empty() { "Unknown".to_owned() } else { status.to_owned() };
    let automated = summary.app.as_ref().is_ok_and(|app| app.sync_policy.automated.is_some());
    let source = summary.app.as_ref().ok().and_then(|app| app.sources.first());
    let repo = source.map(|source| repo_label(&source.repo_url)).unwrap_or_default();
    let server = engine.server_of(summary);
    let operation = if application.is_terminating() {
        "delete"
    } else if application.operation.as_ref().is_some_and(|operation| operation.sync.is_some()) {
        "sync"
    } else {
        ""
    };
    let mut all = base.to_vec();
    let sync = or_unknown(&application.status.sync.status);
    let health = or_unknown(&application.status.health.status);
    all.extend([
        ("autosync_enabled", if automated { "true" } else { "false" }),
        ("repo", &repo),
        ("dest_server", &server),
        ("dest_namespace", &application.spec.destination.namespace),
        ("sync_status", &sync),
        ("health_status", &health),
        ("operation", operation),
    ]);
    info.push(&all, 1.0);
}

fn sets(engine: &Engine) -> Vec<Family> {
    let mut info = Family::gauge("argocd_appset_info", "Information about Applicationset.");
    let mut owned = Family::gauge(
        "argocd_appset_owned_applications",
        "Number of applications owned by the applicationset.",
    );
    for (id, figures) in engine.set_signals.sets() {
        let base = [("namespace", id.namespace.as_str()), ("name", id.name.as_str())];
        let mut all = base.to_vec();
        all.push(("resource_update_status", figures.update_status.as_str()));
        info.push(&all, 1.0);
        owned.push(&base, number(u64::try_from(figures.n_owned).unwrap_or(u64::MAX)));
    }
    vec![info, owned]
}

fn clusters(engine: &Engine) -> Vec<Family> {
    let mut info = Family::gauge("argocd_cluster_info", "Information about cluster.");
    let mut status = Family::gauge("argocd_cluster_connection_status", "The cluster connection status.");
    let mut kinds =
        Family::gauge("argocd_cluster_api_resources", "Number of monitored Kubernetes API resources.");
    let mut objects =
        Family::gauge("argocd_cluster_api_resource_objects", "Number of objects in the cache per cluster.");
    let mut age = Family::gauge("argocd_cluster_cache_age_seconds", "Cluster cache age in seconds.");
    let mut whole = Family::gauge("plumb_objects_kept_whole", "Objects that are kept in memory as a whole.");
    let mut bytes = Family::gauge(
        "plumb_objects_bytes",
        "Compressed bytes of the objects that are kept in memory as a whole.",
    );
    let mut named = Vec::new();
    for cluster in engine.clusters.connected() {
        let server = &*cluster.server;
        let catalog = cluster.client.catalog();
        let version = catalog.server.git_version.trim_start_matches('v');
        let size = cluster.store.size();
        let count = |count: usize| number(u64::try_from(count).unwrap_or(u64::MAX));
        // A cluster Secret may give another name to the cluster that plumb runs in.
        let registered = engine.clusters.named(&ClusterRef::Server(server.to_owned()));
        let name = registered.map_or_else(|| cluster.name.clone(), |(_, name)| name);
        info.push(&[("server", server), ("k8s_version", version), ("name", &name)], 1.0);
        let connected = if cluster.store.is_complete() { 1.0 } else { 0.0 };
        status.push(&[("server", server), ("k8s_version", version)], connected);
        kinds.push(&[("server", server)], count(cluster.store.n_kinds()));
        objects.push(&[("server", server)], count(size.n_objects));
        age.push(&[("server", server)], cache_age(cluster.store.complete_for()));
        whole.push(&[("server", server)], count(size.n_whole));
        bytes.push(&[("server", server)], count(size.whole_bytes));
        named.push((Arc::clone(&cluster.server), name));
    }
    for (server, name) in engine.clusters.away() {
        info.push(&[("server", &server), ("k8s_version", ""), ("name", &name)], 1.0);
        status.push(&[("server", &server), ("k8s_version", "")], 0.0);
        age.push(&[("server", &server)], cache_age(None));
        named.push((server, name));
    }
    let labels = cluster_labels(engine, &named);
    vec![info, labels, status, kinds, objects, age, whole, bytes]
}

/// As in Argo CD: whole seconds, and -1 for a cluster whose cache was never complete.
fn cache_age(age: Option<Duration>) -> f64 {
    age.map_or(-1.0, |age| number(age.as_secs()))
}

fn cluster_labels(engine: &Engine, clusters: &[(Arc<str>, String)]) -> Family {
    let mut family =
        Family::gauge("argocd_cluster_labels", "Argo Cluster labels converted to Prometheus labels.");
    let settings = engine.config.settings();
    if settings.metrics_cluster_labels.is_empty() {
        return family;
    }
    for (server, name) in clusters {
        let labels = engine.clusters.labels(server);
        let values = with_labels(&settings.metrics_cluster_labels, &labels);
        let mut all = vec![("server", &**server), ("name", name.as_str())];
        all.extend(values.iter().map(|(name, value)| (name.as_str(), *value)));
        family.push(&all, 1.0);
    }
    family
}

/// The configured labels under their Prometheus names; absent ones are empty.
fn with_labels<'a>(wanted: &[String], labels: &'a BTreeMap<String, String>) -> Vec<(String, &'a str)> {
    let value = |key: &String| labels.get(key).map(String::as_str).unwrap_or_default();
    wanted.iter().map(|key| (label_name(key), value(key))).collect()
}

fn plumb_metrics(engine: &Engine) -> Vec<Family> {
    let mut findings = Family::gauge("plumb_findings", "Findings of all apps by class.");
    for ((class, counts), n) in engine.records.finding_counts() {
        findings.push(&[("class", class), ("counts", if counts { "true" } else { "false" })], number(n));
    }
    let renders = engine.sources.render_counts();
    let mut rendered = Family::counter("plumb_renders_total", "Renders, by whether the result was cached.");
    rendered.push(&[("cached", "true")], number(renders.cached));
    rendered.push(&[("cached", "false")], number(renders.fresh));
    let mut families = vec![findings, rendered];
    families.extend(queue(engine));
    families
}

/// Metrics of the queue, named as in client-go.
fn queue(engine: &Engine) -> Vec<Family> {
    let load = engine.queue.load(Instant::now());
    let count = |count: usize| number(u64::try_from(count).unwrap_or(u64::MAX));
    let name = [("name", QUEUE)];
    vec![
        Family::gauge("workqueue_depth", "Current depth of workqueue.").with(&name, count(load.n_waiting)),
        Family::counter("workqueue_adds_total", "Total number of adds handled by workqueue.")
            .with(&name, number(load.n_added)),
        Family::gauge(
            "workqueue_unfinished_work_seconds",
            "How many seconds of work has been done that is in progress.",
        )
        .with(&name, load.unfinished.as_secs_f64()),
        Family::gauge(
            "workqueue_longest_running_processor_seconds",
            "How many seconds has the longest running processor for workqueue been running.",
        )
        .with(&name, load.longest.as_secs_f64()),
    ]
}

/// `label_team_name` for `team-name`.
fn label_name(key: &str) -> String {
    let valid = key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    std::iter::once("label_").map(str::to_owned).chain(valid.map(String::from)).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_cache_that_was_never_filled_has_the_age_minus_one() {
        use std::time::Duration;
        assert_eq!(super::cache_age(None).to_string(), "-1");
        assert_eq!(super::cache_age(Some(Duration::from_millis(2900))).to_string(), "2");
    }

    #[test]
    fn labels_become_valid_prometheus_names() {
        assert_eq!(super::label_name("app.kubernetes.io/team-name"), "label_app_kubernetes_io_team_name");
    }
}
