//! One `ApplicationSet` with many Applications from the files of a repository: what it costs to generate them, what one
//! changed file costs, and what nothing costs.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use plumb_testkit::audit::AuditEvent;
use plumb_testkit::git::GitRepo;
use plumb_testkit::objects;
use plumb_testkit::wait::{self, Selection};
use serde_json::{Value, json};

use crate::Bench;
use crate::floor;
use crate::phases::{LIMIT, applications, create_namespaces};
use crate::workload::{FLOOR_NAMESPACE, NAMESPACE};

/// How much longer than the bare creates the first generation may take.
const MOST_TIMES: f64 = 3.0;
/// Requests are over after this time without one.
const QUIET: Duration = Duration::from_secs(5);
const SET: &str = "generated";
const REFRESH: &str = "argocd.argoproj.io/application-set-refresh";

pub(crate) async fn run(bench: &Bench, n_applications: usize) -> Result<()> {
    create_namespaces(bench, &[NAMESPACE, FLOOR_NAMESPACE]).await?;
    // The Applications are of another repository: a commit of parameters is no commit of theirs.
    let repo = GitRepo::new()?;
    // Each has an object of its own: a shared one would be drift of all of them.
    let manifests: Vec<(String, String)> = (0..n_applications)
        .map(|n| {
            let map = objects::config_map(&format!("set-{n}"), &[]);
            (format!("apps/set-{n}/map.yaml"), objects::manifests(&[map]))
        })
        .collect();
    repo.commit(&manifests)?;
    let files: Vec<(String, String)> = (0..n_applications).map(|n| parameters(n, "first")).collect();
    bench.repo.commit(&files)?;
    let bare = bare_creates(bench, &repo, n_applications).await?;

    let sets = sets(bench);
    let start = Instant::now();
    let running = bench.meter.start()?;
    let set = set(bench, &repo);
    sets.create(&PostParams::default(), &serde_json::from_value(set)?).await.context("create the set")?;
    all_exist(bench, n_applications).await?;
    let first = start.elapsed();
    is_told(bench, n_applications).await?;
    let first_cost = running.done()?;
    all_compared(bench, n_applications).await?;
    tokio::time::sleep(QUIET).await;

    let running = bench.meter.start()?;
    let start = Instant::now();
    bench.repo.commit(&[parameters(n_applications / 2, "second")])?;
    let ask = json!({"metadata": {"annotations": {REFRESH: "now"}}});
    sets.patch(SET, &PatchParams::default(), &Patch::Merge(&ask)).await.context("ask for a look at Git")?;
    let is_changed =
        |seen: &wait::Seen| seen.values().any(|app| app["metadata"]["labels"]["value"] == "second");
    wait::until(&applications(bench), &of_set(), LIMIT, "one is changed", is_changed).await?;
    let change = start.elapsed();
    tokio::time::sleep(QUIET).await;
    let (change_cost, change_events) = running.done_with_events()?;

    let running = bench.meter.start()?;
    tokio::time::sleep(Duration::from_secs(bench.args.idle)).await;
    let (idle_cost, idle_events) = running.done_with_events()?;
    let figures = Figures {
        n_applications,
        bare,
        first,
        first_cpu: first_cost.cpu,
        change,
        change_cpu: change_cost.cpu,
        generated: names(&change_events, |event| event.request_uri.contains("applicationset-controller")),
        touched: names(&change_events, |_| true),
        n_idle: idle_events.iter().filter(|event| !is_lease(event)).count(),
        idle_cpu: idle_cost.cpu,
        idle: bench.args.idle,
        peak_mib: idle_cost.peak_mib,
    };
    figures.print()
}

struct Figures {
    n_applications: usize,
    bare: Duration,
    first: Duration,
    first_cpu: Duration,
    change: Duration,
    change_cpu: Duration,
    /// The Applications that the set wrote after one file changed.
    generated: BTreeSet<String>,
    /// The Applications that were written at all: a changed one is compared again.
    touched: BTreeSet<String>,
    n_idle: usize,
    idle_cpu: Duration,
    idle: u64,
    peak_mib: u64,
}

impl Figures {
    fn print(&self) -> Result<()> {
        let ratio = self.first.as_secs_f64() / self.bare.as_secs_f64();
        let mut out = std::io::stdout();
        writeln!(out, "{} Applications of one ApplicationSet", self.n_applications)?;
        writeln!(out, "bare creates                    {:.2} s", self.bare.as_secs_f64())?;
        writeln!(
            out,
            "first generation                {:.2} s, {ratio:.1} times, CPU {:.2} s",
            self.first.as_secs_f64(),
            self.first_cpu.as_secs_f64()
        )?;
        writeln!(
            out,
            "one changed file                {:.2} s, CPU {:.2} s, writes of the set: {}, Applications compared again: {}",
            self.change.as_secs_f64(),
            self.change_cpu.as_secs_f64(),
            self.generated.len(),
            self.touched.len()
        )?;
        writeln!(
            out,
            "idle, {} s                      {} requests, CPU {:.2} s",
            self.idle,
            self.n_idle,
            self.idle_cpu.as_secs_f64()
        )?;
        writeln!(out, "peak memory                     {} MiB", self.peak_mib)?;
        ensure!(
            ratio <= MOST_TIMES,
            "the first generation took {ratio:.1} times as long as the bare creates"
        );
        ensure!(self.generated.len() == 1, "one changed file made the set write {:?}", self.generated);
        ensure!(self.touched.len() == 1, "one changed file touched {:?}", self.touched);
        ensure!(self.n_idle == 0, "an idle engine made {} requests", self.n_idle);
        Ok(())
    }
}

fn parameters(n: usize, value: &str) -> (String, String) {
    (format!("params/{n}.yaml"), format!("name: set-{n}\nvalue: {value}\n"))
}

fn spec(repo: &GitRepo, name: &str) -> Value {
    json!({
        "project": "default",
        "source": {"repoURL": repo.url(), "path": format!("apps/{name}"), "targetRevision": "HEAD"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": NAMESPACE},
    })
}

fn set(bench: &Bench, repo: &GitRepo) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": SET, "namespace": bench.args.namespace},
        "spec": {
            "generators": [{"git": {
                "repoURL": bench.repo.url(), "revision": "HEAD", "files": [{"path": "params/*.yaml"}],
            }}],
            "template": {
                "metadata": {"name": "{{name}}", "labels": {"set": SET, "value": "{{value}}"}},
                "spec": spec(repo, "{{name}}"),
            },
        },
    })
}

fn sets(bench: &Bench) -> Api<DynamicObject> {
    let any = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {}});
    floor::api(&bench.client, &bench.args.namespace, &any)
}

fn of_set() -> Selection {
    Selection::Labels(format!("set={SET}"))
}

/// Creates the same Applications where no engine looks.
async fn bare_creates(bench: &Bench, repo: &GitRepo, n_applications: usize) -> Result<Duration> {
    let any = objects::application("", "", "", "");
    let api = floor::api(&bench.client, FLOOR_NAMESPACE, &any);
    let start = Instant::now();
    stream::iter(0..n_applications)
        .map(|n| {
            let spec = spec(repo, &format!("set-{n}"));
            let application = json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": {
                    "name": format!("set-{n}"), "namespace": FLOOR_NAMESPACE,
                    "labels": {"set": SET, "value": "first"},
                    "finalizers": ["resources-finalizer.argocd.argoproj.io"],
                },
                "spec": spec,
            });
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
        .try_collect::<()>()
        .await?;
    Ok(start.elapsed())
}

async fn all_exist(bench: &Bench, n_applications: usize) -> Result<()> {
    let is_whole = |seen: &wait::Seen| seen.len() == n_applications;
    wait::until(&applications(bench), &of_set(), LIMIT, "all are generated", is_whole).await?;
    Ok(())
}

async fn all_compared(bench: &Bench, n_applications: usize) -> Result<()> {
    let is_compared = |app: &Value| app["status"]["sync"]["status"].is_string();
    let are_compared = |seen: &wait::Seen| seen.len() == n_applications && seen.values().all(is_compared);
    wait::until(&applications(bench), &of_set(), LIMIT, "all are compared", are_compared).await?;
    Ok(())
}

async fn is_told(bench: &Bench, n_applications: usize) -> Result<()> {
    let name = Selection::Name(SET.to_owned());
    let is_told =
        |seen: &wait::Seen| seen.values().any(|set| set["status"]["resourcesCount"] == n_applications);
    wait::until(&sets(bench), &name, LIMIT, "tells how many there are", is_told).await?;
    Ok(())
}

fn is_lease(event: &AuditEvent) -> bool {
    event.object_ref.as_ref().is_some_and(|object| object.resource == "leases")
}

/// The Applications that were written.
fn names(events: &[AuditEvent], keep: impl Fn(&AuditEvent) -> bool) -> BTreeSet<String> {
    let written = events.iter().filter(|event| event.is_write() && keep(event));
    let objects = written.filter_map(|event| event.object_ref.as_ref());
    objects.filter(|object| object.resource == "applications").map(|object| object.name.clone()).collect()
}
