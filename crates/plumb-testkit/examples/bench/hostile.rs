//! What hostile apps cost the honest ones: install and heal without them, then the same beside them.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{DeleteParams, ListParams, PostParams};
use plumb_testkit::git::GitRepo;
use plumb_testkit::objects;
use plumb_testkit::wait::{self, Selection};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::Bench;
use crate::cost::Cost;
use crate::floor;
use crate::phases::{LIMIT, applications, create_namespaces, heal, install};
use crate::workload::{FLEET, Fleet, NAMESPACE};

/// The honest apps that live beside hostile ones.
const BESIDE: Fleet = Fleet { namespace: "bench-beside", prefix: "beside", label: "2" };
const HOSTILE_NAMESPACE: &str = "bench-hostile";
const PROJECT: &str = "hostile";

/// How much longer honest apps may take, and how much memory plumb may use, in MiB.
const MOST_TIMES: f64 = 1.5;
const MOST_MIB: u64 = 400;

/// How long the hostile apps have to unfold before the honest ones come.
const HEAD_START: Duration = Duration::from_secs(10);

/// What was measured of one fleet.
struct Measured {
    install: Cost,
    heal: Cost,
    heals: Vec<Duration>,
}

pub(crate) async fn run(bench: &Bench, n_hostile: usize) -> Result<()> {
    create_namespaces(bench, &[NAMESPACE, BESIDE.namespace, HOSTILE_NAMESPACE]).await?;
    let started = bench.meter.started()?;
    let alone = measure(bench, FLEET).await?;
    remove(bench, FLEET).await?;
    let hostile = HostileApps::create(bench, n_hostile).await?;
    tokio::time::sleep(HEAD_START).await;
    let beside = measure(bench, BESIDE).await?;
    let is_same = bench.meter.started().is_ok_and(|now| now == started);
    drop(hostile);
    print(&alone, &beside, n_hostile, is_same)
}

async fn measure(bench: &Bench, fleet: Fleet) -> Result<Measured> {
    let install = install(bench, fleet).await?;
    let (heal, heals) = heal(bench, fleet).await?;
    Ok(Measured { install, heal, heals })
}

/// Removes the Applications; without a finalizer their objects stay.
async fn remove(bench: &Bench, fleet: Fleet) -> Result<()> {
    let api = applications(bench);
    let labels = format!("bench={}", fleet.label);
    api.delete_collection(&DeleteParams::default(), &ListParams::default().labels(&labels)).await?;
    wait::until(&api, &Selection::Labels(labels), LIMIT, "are gone", std::collections::BTreeMap::is_empty)
        .await?;
    Ok(())
}

/// What the hostile apps need while they live.
struct HostileApps {
    _repo: GitRepo,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for HostileApps {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl HostileApps {
    async fn create(bench: &Bench, count: usize) -> Result<Self> {
        let repo = GitRepo::new()?;
        repo.commit(&files())?;
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listen")?;
        let silent = format!("http://{}/silent.git", listener.local_addr()?);
        let server = tokio::spawn(accept_and_say_nothing(listener));
        let any = objects::app_project(PROJECT);
        floor::api(&bench.client, &bench.args.namespace, &any)
            .create(&PostParams::default(), &serde_json::from_value(project())?)
            .await
            .context("create the project")?;
        let api = applications(bench);
        for number in 0..count {
            let application = application(number, &repo.url(), &silent);
            api.create(&PostParams::default(), &serde_json::from_value(application)?)
                .await
                .context("create a hostile Application")?;
        }
        Ok(Self { _repo: repo, server })
    }
}

/// A Git server that takes every connection and never answers.
async fn accept_and_say_nothing(listener: TcpListener) {
    let mut connections = Vec::new();
    while let Ok((connection, _)) = listener.accept().await {
        connections.push(connection);
    }
}

fn project() -> Value {
    let mut project = objects::app_project(PROJECT);
    project["spec"] = json!({
        "sourceRepos": ["*"],
        "destinations": [{"server": "*", "namespace": HOSTILE_NAMESPACE}],
        "clusterResourceWhitelist": [],
    });
    project
}

/// The kinds take turns.
fn application(number: usize, repo_url: &str, silent: &str) -> Value {
    let (path, jq): (&str, Vec<String>) = match number % 7 {
        0 => {
            ("keys", vec![format!(".data as $d | .data | select(first(({}empty), true))", "$d[]|".repeat(6))])
        }
        1 => ("keys", vec![format!(".data | select((tostring{} | length) > 0)", "|.+.".repeat(40))]),
        2 => ("keys", vec![".a".to_owned(); 100_000]),
        3 => ("weight", Vec::new()),
        4 => ("chart", Vec::new()),
        5 => ("large", vec![".. | .. | .x?".to_owned()]),
        _ => ("silent", Vec::new()),
    };
    let url = if path == "silent" { silent } else { repo_url };
    let mut application = objects::application(&format!("hostile-{number}"), url, path, HOSTILE_NAMESPACE);
    application["spec"]["project"] = json!(PROJECT);
    application["spec"]["source"]["targetRevision"] = json!("main");
    application["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}});
    if !jq.is_empty() {
        application["spec"]["ignoreDifferences"] = json!([{"kind": "ConfigMap", "jqPathExpressions": jq}]);
    }
    objects::labelled(application, "bench", "hostile")
}

fn files() -> Vec<(String, String)> {
    let keys: Vec<(String, String)> = (0..300).map(|n| (format!("key{n}"), "x".repeat(100))).collect();
    let keys: Vec<(&str, &str)> = keys.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    let text = "x".repeat(900_000);
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {x: {{ repeat 100000000 \"x\" | quote }}}\n";
    vec![
        ("keys/all.yaml".to_owned(), objects::manifests(&[objects::config_map("keys", &keys)])),
        ("weight/all.yaml".to_owned(), format!("a: [{}1]\n", "1,".repeat(2_500_000))),
        ("chart/Chart.yaml".to_owned(), "apiVersion: v2\nname: bomb\nversion: 1.0.0\n".to_owned()),
        ("chart/templates/all.yaml".to_owned(), template.to_owned()),
        (
            "large/all.yaml".to_owned(),
            objects::manifests(&[objects::config_map("large", &[("text", &text)])]),
        ),
    ]
}

fn print(alone: &Measured, beside: &Measured, n_hostile: usize, is_same: bool) -> Result<()> {
    let median = |heals: &[Duration]| heals.get(heals.len() / 2).copied().unwrap_or_default();
    let mut out = std::io::stdout().lock();
    writeln!(out, "| honest apps | alone | beside {n_hostile} hostile apps | ratio | goal |")?;
    writeln!(out, "|---|---|---|---|---|")?;
    let mut missed = Vec::new();
    for (name, alone, beside) in [
        ("install", alone.install.took, beside.install.took),
        ("heal, p50", median(&alone.heals), median(&beside.heals)),
    ] {
        let ratio = beside.as_secs_f64() / alone.as_secs_f64().max(0.001);
        let (alone, beside) = (alone.as_millis(), beside.as_millis());
        writeln!(out, "| {name} | {alone} ms | {beside} ms | {ratio:.2} | {MOST_TIMES} |")?;
        if ratio > MOST_TIMES {
            missed.push(name);
        }
    }
    let peak = beside.heal.peak_mib;
    writeln!(out, "| most memory | {} MiB | {peak} MiB | | {MOST_MIB} MiB |", alone.heal.peak_mib)?;
    writeln!(out, "| restarted | | {} | | no |", if is_same { "no" } else { "yes" })?;
    if peak > MOST_MIB {
        missed.push("memory");
    }
    if !is_same {
        missed.push("restart");
    }
    ensure!(missed.is_empty(), "goals that were missed: {}", missed.join(", "));
    Ok(())
}
