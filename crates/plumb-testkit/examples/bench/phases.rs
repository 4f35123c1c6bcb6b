//! The phases: install, idle, upgrade, heal, waves.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use plumb_testkit::objects;
use plumb_testkit::wait::{self, Selection};
use serde_json::{Value, json};

use crate::Bench;
use crate::cost::Cost;
use crate::floor::{self, Floor};
use crate::least;
use crate::workload::{self, FLEET, FLOOR_NAMESPACE, Fleet, NAMESPACE};

/// How long a phase may take before the engine is called stuck.
pub(crate) const LIMIT: Duration = Duration::from_mins(10);
/// Events of the last phase are over after this time without one.
const QUIET: Duration = Duration::from_secs(3);

/// What came out.
pub(crate) struct Figures {
    pub(crate) install_floor: Floor,
    pub(crate) install: Cost,
    pub(crate) idle: Cost,
    /// The bare apply of all objects, changed or not, as an engine sends it that asks the server what differs.
    pub(crate) upgrade_floor: Floor,
    /// That of the changed objects alone.
    pub(crate) upgrade_floor_of_changed: Floor,
    /// Those, the requests for a look, the rollouts and a status for each app: what no engine can leave out.
    pub(crate) upgrade_least: Duration,
    pub(crate) upgrade: Cost,
    pub(crate) heal: Cost,
    /// From the live edit to the event that takes it back, sorted.
    pub(crate) heals: Vec<Duration>,
    pub(crate) waves: Cost,
}

pub(crate) async fn run(bench: &Bench) -> Result<Figures> {
    create_namespaces(bench, &[NAMESPACE, FLOOR_NAMESPACE]).await?;
    let install_floor = floor::measure(bench, all_objects(bench, "50m")).await?;
    let install = install(bench, FLEET).await?;
    tokio::time::sleep(QUIET).await;
    let idle = idle(bench).await?;
    let changed = workload::upgraded(all_objects(bench, "55m"));
    let upgrade_floor_of_changed = floor::measure(bench, changed).await?;
    let upgrade_least = least::measure(bench, "57m").await?;
    tokio::time::sleep(QUIET).await;
    let upgrade_floor = floor::measure(bench, all_objects(bench, "60m")).await?;
    let upgrade = upgrade(bench).await?;
    tokio::time::sleep(QUIET).await;
    let (heal, heals) = heal(bench, FLEET).await?;
    tokio::time::sleep(QUIET).await;
    let waves = waves(bench).await?;
    Ok(Figures {
        install_floor,
        install,
        idle,
        upgrade_floor,
        upgrade_floor_of_changed,
        upgrade_least,
        upgrade,
        heal,
        heals,
        waves,
    })
}

/// A namespace takes service accounts a moment after it is there; nothing of it is measured.
pub(crate) async fn create_namespaces(bench: &Bench, namespaces: &[&str]) -> Result<()> {
    let objects = namespaces.iter().map(|namespace| objects::namespace(namespace));
    floor::apply(bench, "", objects.collect()).await?;
    for namespace in namespaces {
        let accounts = floor::api(&bench.client, namespace, &objects::service_account("default"));
        wait::until(&accounts, &Selection::Name("default".to_owned()), LIMIT, "exists", |seen| {
            !seen.is_empty()
        })
        .await?;
    }
    Ok(())
}

fn all_objects(bench: &Bench, cpu: &str) -> Vec<Value> {
    (0..bench.args.apps).flat_map(|app| workload::objects_of(app, cpu)).collect()
}

pub(crate) fn applications(bench: &Bench) -> Api<DynamicObject> {
    let any = objects::application("", "", "", "");
    floor::api(&bench.client, &bench.args.namespace, &any)
}

/// From the first Application that is created to the last that is Synced and Healthy.
pub(crate) async fn install(bench: &Bench, fleet: Fleet) -> Result<Cost> {
    let commit = bench.repo.commit(&workload::files(bench.args.apps, "50m"))?;
    let api = applications(bench);
    let running = bench.meter.start()?;
    let create = stream::iter(0..bench.args.apps)
        .map(|app| {
            let name = format!("{}-{app}", fleet.prefix);
            let application = workload::application(fleet, &name, &bench.repo.url(), &format!("apps/{app}"));
            let api = api.clone();
            async move {
                let application: DynamicObject = serde_json::from_value(application)?;
                api.create(&PostParams::default(), &application)
                    .await
                    .map(drop)
                    .context("create an Application")
            }
        })
        .buffer_unordered(bench.args.concurrency)
        .try_collect::<()>();
    let (created, settled) = tokio::join!(create, all_at(bench, fleet, &api, &commit));
    created?;
    settled?;
    running.done()
}

async fn all_at(bench: &Bench, fleet: Fleet, api: &Api<DynamicObject>, commit: &str) -> Result<()> {
    let is_there = |app: &Value| {
        app["status"]["sync"]["status"] == "Synced"
            && app["status"]["sync"]["revision"] == commit
            && app["status"]["health"]["status"] == "Healthy"
    };
    let n_apps = bench.args.apps;
    let labels = Selection::Labels(format!("bench={}", fleet.label));
    wait::until(api, &labels, LIMIT, "all are Synced and Healthy", |seen| {
        seen.len() == n_apps && seen.values().all(is_there)
    })
    .await
    .map(drop)
}

async fn idle(bench: &Bench) -> Result<Cost> {
    let running = bench.meter.start()?;
    tokio::time::sleep(Duration::from_secs(bench.args.idle)).await;
    running.done()
}

/// Asks for a look at an app.
pub(crate) fn refresh() -> Value {
    json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}})
}

/// One commit changes every app; each is asked to look, as a webhook would.
async fn upgrade(bench: &Bench) -> Result<Cost> {
    let api = applications(bench);
    let commit = bench.repo.commit(&workload::files(bench.args.apps, "60m"))?;
    let running = bench.meter.start()?;
    let patch = refresh();
    let ask = stream::iter(0..bench.args.apps)
        .map(|app| {
            let (api, patch) = (api.clone(), &patch);
            async move {
                api.patch(&format!("bench-{app}"), &PatchParams::default(), &Patch::Merge(patch))
                    .await
                    .map(drop)
                    .context("ask for a refresh")
            }
        })
        .buffer_unordered(bench.args.concurrency)
        .try_collect::<()>();
    let (asked, settled) = tokio::join!(ask, all_at(bench, FLEET, &api, &commit));
    asked?;
    settled?;
    running.done()
}

/// One live edit after the other, each on another object.
pub(crate) async fn heal(bench: &Bench, fleet: Fleet) -> Result<(Cost, Vec<Duration>)> {
    let deployments = floor::api(
        &bench.client,
        fleet.namespace,
        &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}}),
    );
    let version = deployments.list_metadata(&ListParams::default()).await?.metadata.resource_version;
    let mut events =
        deployments.watch(&WatchParams::default().timeout(290), &version.unwrap_or_default()).await?.boxed();
    let running = bench.meter.start()?;
    let mut heals = Vec::new();
    for edit in 0..bench.args.heals {
        let name = format!("podinfo-{}", edit * 7 % bench.args.apps);
        let patch = json!({"spec": {"replicas": 1}});
        let params =
            PatchParams { field_manager: Some("kubectl-scale".to_owned()), ..PatchParams::default() };
        let edited = deployments.patch(&name, &params, &Patch::Merge(&patch)).await?;
        let start = Instant::now();
        loop {
            let event = tokio::time::timeout(LIMIT, events.try_next()).await.context("no heal")??;
            let Some(WatchEvent::Modified(seen)) = event else { bail!("the watch of Deployments ended") };
            let is_back = seen.metadata.name.as_deref() == Some(&name)
                && seen.metadata.generation > edited.metadata.generation
                && seen.data["spec"]["replicas"] == 0;
            if is_back {
                break;
            }
        }
        heals.push(start.elapsed());
        // As people do: one edit, and nothing else going on.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    heals.sort();
    Ok((running.done()?, heals))
}

/// One app of ten waves, from its creation to its end.
async fn waves(bench: &Bench) -> Result<Cost> {
    bench.repo.commit(&workload::waves())?;
    let api = applications(bench);
    let running = bench.meter.start()?;
    let application = workload::application(FLEET, "waves", &bench.repo.url(), "waves");
    api.create(&PostParams::default(), &serde_json::from_value(application)?).await?;
    let name = Selection::Name("waves".to_owned());
    wait::until(&api, &name, LIMIT, "its sync has ended", |seen| {
        seen.values().any(|app| {
            app["status"]["operationState"]["phase"] == "Succeeded"
                && app["status"]["sync"]["status"] == "Synced"
        })
    })
    .await?;
    running.done()
}
