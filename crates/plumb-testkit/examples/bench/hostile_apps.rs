//! Hostile tenants: what their apps ask for, and the servers that they name.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use plumb_testkit::git::GitRepo;
use plumb_testkit::objects;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::Bench;
use crate::floor;
use crate::phases::applications;

pub(crate) const NAMESPACE: &str = "bench-hostile";
const PROJECT: &str = "hostile";
const LABELS: &str = "bench=hostile";

/// The kinds of hostile apps, which take turns.
const KINDS: [&str; 10] = [
    "jq-time",
    "jq-memory",
    "jq-many",
    "yaml-weight",
    "helm-memory",
    "jsonnet-time",
    "huge-object",
    "git-silent",
    "git-tarpit",
    "index-endless",
];

/// Time between two hard refreshes that the tenants ask for, each of another app.
const REFRESH_EVERY: Duration = Duration::from_millis(500);
/// Requests that the API server refuses because it is busy are sent again after this time.
const BACK_OFF: Duration = Duration::from_millis(500);
const MOST_TRIES: u32 = 60;

/// Hostile apps with their servers. Everything stops when it is dropped.
pub(crate) struct HostileApps {
    _repo: GitRepo,
    _tasks: JoinSet<()>,
    api: Api<DynamicObject>,
}

impl HostileApps {
    /// Creates the Applications one after the other, as tenants would. Each is small: what is large comes from Git.
    pub(crate) async fn create(bench: &Bench, count: usize) -> Result<Self> {
        let repo = GitRepo::new()?;
        repo.commit(&files(count))?;
        let mut tasks = JoinSet::new();
        let server = serve(&mut tasks).await?;
        let projects = floor::api(&bench.client, &bench.args.namespace, &objects::app_project(PROJECT));
        create(&projects, project()).await.context("create the project")?;
        let api = applications(bench);
        for number in 0..count {
            let application = application(number, &repo.url(), &server);
            create(&api, application).await.context("create a hostile Application")?;
        }
        tasks.spawn(refresh_all(api.clone(), count));
        Ok(Self { _repo: repo, _tasks: tasks, api })
    }

    /// Per kind: how many apps have a condition, and what the first one says.
    pub(crate) async fn conditions(&self) -> Result<BTreeMap<&'static str, (usize, String)>> {
        let mut said: BTreeMap<&'static str, (usize, String)> = BTreeMap::new();
        for app in self.api.list(&ListParams::default().labels(LABELS)).await? {
            let name = app.metadata.name.unwrap_or_default();
            let Some(kind) = KINDS.into_iter().find(|kind| name.starts_with(kind)) else { continue };
            let mut messages = app.data["status"]["conditions"].as_array().into_iter().flatten();
            let message = messages.find_map(|condition| condition["message"].as_str());
            let (n_apps, first) = said.entry(kind).or_default();
            *n_apps += usize::from(message.is_some());
            if first.is_empty() {
                message.unwrap_or_default().clone_into(first);
            }
        }
        Ok(said)
    }
}

/// Creates an object, and tries again while the API server is busy.
async fn create(api: &Api<DynamicObject>, object: Value) -> Result<()> {
    let object: DynamicObject = serde_json::from_value(object)?;
    let mut tries = 0;
    loop {
        tries += 1;
        match api.create(&PostParams::default(), &object).await {
            Ok(_) => return Ok(()),
            // The first request took effect although its answer was lost.
            Err(kube::Error::Api(refused)) if refused.code == 409 && tries > 1 => return Ok(()),
            Err(error) if is_busy(&error) && tries < MOST_TRIES => tokio::time::sleep(BACK_OFF).await,
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_busy(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(refused) if matches!(refused.code, 429 | 500 | 503 | 504))
}

/// Asks for one hard refresh after the other: nothing that was read or rendered before may be used.
async fn refresh_all(api: Api<DynamicObject>, count: usize) {
    let patch = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}});
    for number in (0..count).cycle() {
        tokio::time::sleep(REFRESH_EVERY).await;
        // A refusal does not matter: the next request follows.
        let _ = api.patch(&name(number), &PatchParams::default(), &Patch::Merge(&patch)).await;
    }
}

/// Starts the servers of one port: the path says how a request is answered.
async fn serve(tasks: &mut JoinSet<()>) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("listen")?;
    let address = format!("http://{}", listener.local_addr()?);
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((connection, _)) = listener.accept().await {
            connections.spawn(answer(connection));
        }
    });
    Ok(address)
}

/// Says nothing, or one byte in a second, or more than a client can store. Ends when the client goes away.
async fn answer(mut connection: TcpStream) {
    let mut request = [0; 4096];
    let Ok(length) = connection.read(&mut request).await else { return };
    let request = String::from_utf8_lossy(&request[..length]).into_owned();
    if request.contains("/endless") {
        let entry =
            "  - {name: x, version: 1.0.0, urls: [x.tgz], digest: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}\n";
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/yaml\r\n\r\napiVersion: v1\nentries:\n  x:\n";
        let mut sent = connection.write_all(head.as_bytes()).await;
        let page = entry.repeat(1000);
        while sent.is_ok() {
            sent = connection.write_all(page.as_bytes()).await;
        }
    } else if request.contains("/tarpit") {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n\r\n";
        let mut sent = connection.write_all(head.as_bytes()).await;
        while sent.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
            sent = connection.write_all(b"0").await;
        }
    } else {
        let _ = connection.read(&mut [0; 1]).await;
    }
}

fn project() -> Value {
    let mut project = objects::app_project(PROJECT);
    project["spec"] = json!({
        "sourceRepos": ["*"],
        "destinations": [{"server": "*", "namespace": NAMESPACE}],
        "clusterResourceWhitelist": [],
    });
    project
}

fn kind(number: usize) -> &'static str {
    KINDS[number % KINDS.len()]
}

fn name(number: usize) -> String {
    format!("{}-{number}", kind(number))
}

fn application(number: usize, repo_url: &str, server: &str) -> Value {
    let jq: Vec<String> = match kind(number) {
        "jq-time" => vec![format!(".data as $d | .data | select(first(({}empty), true))", "$d[]|".repeat(6))],
        "jq-memory" => vec![format!(".data | select((tostring{} | length) > 0)", "|.+.".repeat(40))],
        "jq-many" => vec![".a".to_owned(); 5_000],
        "huge-object" => vec![".. | .. | .x?".to_owned()],
        _ => Vec::new(),
    };
    let name = name(number);
    let url = match kind(number) {
        "git-silent" => format!("{server}/silent/{number}.git"),
        "git-tarpit" => format!("{server}/tarpit/{number}.git"),
        "index-endless" => format!("{server}/endless/{number}"),
        _ => repo_url.to_owned(),
    };
    let mut application = objects::application(&name, &url, &name, NAMESPACE);
    application["spec"]["project"] = json!(PROJECT);
    application["spec"]["source"] = match kind(number) {
        "index-endless" => json!({"repoURL": url, "chart": "x", "targetRevision": "1.0.0"}),
        _ => json!({"repoURL": url, "path": name, "targetRevision": "main"}),
    };
    application["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}});
    if !jq.is_empty() {
        application["spec"]["ignoreDifferences"] = json!([{"kind": "ConfigMap", "jqPathExpressions": jq}]);
    }
    let (key, value) = LABELS.split_once('=').unwrap_or_default();
    objects::labelled(application, key, value)
}

/// The files of all apps, each with objects of its own.
fn files(count: usize) -> Vec<(String, String)> {
    (0..count).flat_map(|number| files_of(kind(number), &name(number))).collect()
}

fn files_of(kind: &str, name: &str) -> Vec<(String, String)> {
    let one = |file: &str, text: String| vec![(format!("{name}/{file}"), text)];
    let manifest = |data: &[(&str, &str)]| objects::manifests(&[objects::config_map(name, data)]);
    match kind {
        "jq-time" | "jq-memory" | "jq-many" => {
            let keys: Vec<(String, String)> =
                (0..300).map(|n| (format!("key{n}"), "x".repeat(100))).collect();
            let keys: Vec<(&str, &str)> =
                keys.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
            one("all.yaml", manifest(&keys))
        }
        "yaml-weight" => one("all.yaml", format!("a: [{}1]\n", "1,".repeat(2_500_000))),
        "helm-memory" => {
            let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {x: {{ repeat 100000000 \"x\" | quote }}}\n";
            let chart = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
            let template = (format!("{name}/templates/all.yaml"), template.to_owned());
            [one("Chart.yaml", chart), vec![template]].concat()
        }
        "jsonnet-time" => {
            one("all.jsonnet", "local f(n) = if n == 0 then 0 else f(n-1) + f(n-1); f(60)".to_owned())
        }
        "huge-object" => one("all.yaml", manifest(&[("text", &"x".repeat(900_000))])),
        // Nothing of these is in this repository.
        _ => Vec::new(),
    }
}
