//! Fills a cluster, and measures lists, streams and changes.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_testkit::cluster::{self, Layout};
use serde_json::{Value, json};

use super::client::Client;
use super::streams::Streams;
use crate::bench_list::application;
use crate::cluster::ensure_programs;
use crate::plumb::{RunningPlumb, given_or_built, wait_until_leading};
use crate::scale::Usage;

/// The fields that the list page of Argo CD asks for.
const FIELDS: [&str; 17] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.annotations",
    "metadata.labels",
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "spec",
    "operation.sync",
    "status.sourceHydrator",
    "status.sync.status",
    "status.sync.revision",
    "status.health",
    "status.operationState.phase",
    "status.operationState.finishedAt",
    "status.operationState.operation.sync",
    "status.summary",
    "status.resources",
];

/// Limits of the figures.
const LIST_1000_MS: f64 = 50.0;
const LIST_10000_MS: f64 = 500.0;
const STREAMS_MIB: f64 = 100.0;
const STREAMS_CORE_PERCENT: f64 = 5.0;
const CHANGE_MS: f64 = 100.0;

/// Fills a fresh cluster with Applications as they are after a few weeks, and measures plumb's API over REST: lists with
/// the fields of the page, and what many open streams cost.
///
/// plumb knows the Applications, but does not reconcile them (`skip-reconcile`). Fails if a figure is over its limit.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of Applications of the first list and of the streams.
    #[arg(long, default_value_t = 1000)]
    apps: usize,
    /// Number of Applications of the second list; 0 leaves it out.
    #[arg(long, default_value_t = 10_000)]
    more_apps: usize,
    /// Number of open streams.
    #[arg(long, default_value_t = 1000)]
    streams: usize,
    /// How long to measure idle streams, in seconds.
    #[arg(long, default_value_t = 30)]
    idle: u64,
    /// How often to list, and to change an Application.
    #[arg(long, default_value_t = 15)]
    runs: usize,
    /// Program to run instead of this repository's plumb.
    #[arg(long)]
    plumb: Option<PathBuf>,
}

/// What was measured, and what was over its limit.
#[derive(Default)]
struct Figures {
    table: String,
    missed: Vec<String>,
}

impl Figures {
    fn add(&mut self, what: &str, value: f64, unit: &str, limit: f64) {
        let _ = write!(self.table, "\n| {what} | {value:.1} {unit} | {limit:.0} {unit} |");
        if value > limit {
            self.missed.push(format!("{what}: {value:.1} {unit}, not {limit} {unit}"));
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = crate::repository::root().canonicalize().context("cannot find the repository")?;
    let plumb = given_or_built(args.plumb.as_deref(), &root)?;
    let layout = Layout::from_environment()?;
    let programs = ensure_programs(&layout)?;
    let cluster = cluster::attach(&layout, &programs)?;
    let folder = std::env::temp_dir().join(format!("plumb-bench-api-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let bench = Bench {
        plumb,
        kubeconfig: cluster.state().kubeconfig.clone(),
        path: crate::programs::path_with(&programs),
        folder: folder.clone(),
    };
    let figures = bench.measure(args);
    let _ = std::fs::remove_dir_all(folder);
    let figures = figures?;
    say(&format!("| REST, fields of the page | measured | limit |\n|---|---|---|{}", figures.table));
    for missed in &figures.missed {
        say(&format!("over the limit: {missed}"));
    }
    Ok(if figures.missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Bench {
    plumb: PathBuf,
    kubeconfig: PathBuf,
    path: std::ffi::OsString,
    folder: PathBuf,
}

impl Bench {
    fn measure(&self, args: &Args) -> Result<Figures> {
        let mut figures = Figures::default();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let (text, log) = (address.to_string(), self.folder.join("plumb.log"));
        self.install()?;
        self.create(0..args.apps)?;
        let flags = ["--web-address", &text, "--insecure"];
        let cache = self.folder.join("cache");
        let mut plumb =
            RunningPlumb::start_with(&self.plumb, &self.kubeconfig, &self.path, &cache, &log, &flags)?;
        wait_until_leading(&log)?;
        let client = Client::login(address, "admin", &self.password()?)?;
        let items: Vec<String> = FIELDS.iter().map(|field| format!("items.{field}")).collect();
        let list = format!("/api/v1/applications?fields=metadata.resourceVersion,{}", items.join(","));
        self.until_listed(&client, args.apps)?;
        let took = median(args.runs, || client.bytes("GET", &list, &Value::Null).map(drop))?;
        figures.add(&format!("list of {}", args.apps), took, "ms", LIST_1000_MS);
        Self::streams(&client, plumb.id(), args, &mut figures)?;
        if args.more_apps > args.apps {
            self.create(args.apps..args.more_apps)?;
            self.until_listed(&client, args.more_apps)?;
            let took = median(args.runs, || client.bytes("GET", &list, &Value::Null).map(drop))?;
            figures.add(&format!("list of {}", args.more_apps), took, "ms", LIST_10000_MS);
        }
        plumb.stop();
        Ok(figures)
    }

    /// What open streams cost while nothing happens, and how quickly a change reaches them.
    fn streams(client: &Client, pid: u32, args: &Args, figures: &mut Figures) -> Result<()> {
        let version =
            client.call("GET", "/api/v1/applications?fields=metadata.resourceVersion", &Value::Null)?;
        let version = version["metadata"]["resourceVersion"].as_str().context("the list has no version")?;
        let fields: Vec<String> = FIELDS.iter().map(|field| format!("result.application.{field}")).collect();
        let watched = format!(
            "/api/v1/stream/applications?resourceVersion={version}&fields=result.type,{}",
            fields.join(",")
        );
        let before = Usage::of(pid)?;
        let mut streams = Streams::open(client, &watched, args.streams)?;
        let open = Usage::of(pid)?;
        std::thread::sleep(Duration::from_secs(args.idle));
        let after = Usage::of(pid)?;
        let percent =
            after.cpu.saturating_sub(open.cpu).as_secs_f64() / Duration::from_secs(args.idle).as_secs_f64();
        let what = format!("{} open streams", streams.len());
        figures.add(&format!("{what}, memory"), after.resident_mib - before.resident_mib, "MiB", STREAMS_MIB);
        figures.add(&format!("{what}, idle"), percent * 100.0, "% of a core", STREAMS_CORE_PERCENT);
        let mut run = 0;
        let name = application(0)["metadata"]["name"].as_str().context("an app has no name")?.to_owned();
        let mut reached = Vec::new();
        while reached.len() < args.runs {
            run += 1;
            let mark = format!("change-{run}-of-the-bench");
            let change = json!({"metadata": {"labels": {"bench": mark}}}).to_string();
            let body = json!({"name": name, "patchType": "merge", "patch": change, "validate": false});
            let path = format!("/api/v1/applications/{name}");
            // The change is written when the API server has it: that is just before the answer.
            client.call("PATCH", &path, &body)?;
            let written = Instant::now();
            let all = streams.until_all_show(&mark)?;
            reached.push(all.saturating_duration_since(written).as_secs_f64() * 1000.0);
        }
        reached.sort_by(f64::total_cmp);
        let worst = reached.last().copied().unwrap_or_default();
        figures.add(
            &format!("a change reaches {} streams, worst of {run}", streams.len()),
            worst,
            "ms",
            CHANGE_MS,
        );
        Ok(())
    }

    fn kubectl(&self, words: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(words).env("PATH", &self.path);
        command.stdin(Stdio::null()).stderr(Stdio::inherit());
        command
    }

    fn install(&self) -> Result<()> {
        let mut command = Command::new(&self.plumb);
        command.args(["install", "--apply"]).env("KUBECONFIG", &self.kubeconfig).stdout(Stdio::null());
        ensure!(command.status()?.success(), "cannot install the definitions");
        Ok(())
    }

    /// Creates Applications, several at a time.
    fn create(&self, range: std::ops::Range<usize>) -> Result<()> {
        say(&format!("creating {} Applications", range.len()));
        let mut running = Vec::new();
        let all: Vec<Value> = range.map(skipped).collect();
        for (part, apps) in all.chunks(all.len().div_ceil(AT_ONCE).max(1)).enumerate() {
            let file = self.folder.join(format!("apps-{part}.json"));
            std::fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": apps}).to_string())?;
            let mut command = self.kubectl(&["create", "--validate=false", "-f"]);
            running.push(command.arg(file).stdout(Stdio::null()).spawn().context("cannot start kubectl")?);
        }
        for mut one in running {
            ensure!(one.wait()?.success(), "cannot create the Applications");
        }
        Ok(())
    }

    fn password(&self) -> Result<String> {
        let until = Instant::now() + Duration::from_mins(1);
        loop {
            let place =
                ["-n", "argocd", "get", "secret", "argocd-initial-admin-secret", "--ignore-not-found"];
            let output =
                self.kubectl(&[&place[..], &["-o", "jsonpath={.data.password}"]].concat()).output()?;
            if output.status.success() && !output.stdout.is_empty() {
                return Ok(String::from_utf8(STANDARD.decode(output.stdout)?)?);
            }
            ensure!(Instant::now() < until, "plumb made no password");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn until_listed(&self, client: &Client, count: usize) -> Result<()> {
        let until = Instant::now() + Duration::from_mins(2);
        loop {
            let listed =
                client.call("GET", "/api/v1/applications?fields=items.metadata.name", &Value::Null)?;
            if listed["items"].as_array().map_or(0, Vec::len) == count {
                return Ok(());
            }
            ensure!(
                Instant::now() < until,
                "plumb does not list {count} Applications; see {}",
                self.folder.display()
            );
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

/// How many processes create Applications.
const AT_ONCE: usize = 8;

/// An Application that plumb shows and does not reconcile.
fn skipped(n: usize) -> Value {
    let mut app = application(n);
    app["metadata"]["annotations"] = json!({"argocd.argoproj.io/skip-reconcile": "true"});
    app
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot find a free port")?.local_addr()?.port())
}

/// The median time in milliseconds, after one run that fills caches.
fn median(runs: usize, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    work()?;
    let mut times = Vec::new();
    for _ in 0..runs.max(1) {
        let started = Instant::now();
        work()?;
        times.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}

#[expect(clippy::print_stdout, reason = "the table is the output of the task")]
fn say(text: &str) {
    println!("{text}");
}
