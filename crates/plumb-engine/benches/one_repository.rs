//! Many apps in one repository, and commits that each change one of them. All apps are refreshed concurrently, and each
//! commit must cost one request to the Git server, one fetch and one render, whatever the number of apps. Prints the
//! figures and fails if a count differs; `cargo bench -p plumb-engine`.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt as _;
use plumb_core::app::Source;
use plumb_git::{GitOptions, Mirrors, RepoAccess, RepoUrl, RevisionSpec};
use plumb_render::{
    AppFacts, ClusterFacts, Freshness, RenderRequest, RenderSettings, Renderer, RendererConfig,
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const APPS: usize = 500;
const COMMITS: usize = 60;
/// How many apps are refreshed concurrently.
const WORKERS: usize = 16;

/// What all apps share.
struct Shared {
    mirrors: Mirrors,
    renderer: Renderer,
    url: RepoUrl,
}

fn git(directory: &Path, arguments: &[&str]) -> Result<()> {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
    let status = Command::new("git").current_dir(directory).args(identity).args(arguments).status()?;
    if status.success() { Ok(()) } else { Err(format!("git {}", arguments.join(" ")).into()) }
}

fn write(repository: &Path, app: usize, version: usize) -> Result<()> {
    let directory = repository.join(format!("apps/{app}"));
    std::fs::create_dir_all(&directory)?;
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: app-{app}}}\ndata: {{version: \"{version}\"}}\n"
    );
    Ok(std::fs::write(directory.join("cm.yaml"), text)?)
}

fn request(app: usize, files: plumb_git::SourceTree, revision: String) -> RenderRequest {
    RenderRequest {
        source: Source { path: Some(format!("apps/{app}")), ..Source::default() },
        index: 0,
        files: Arc::new(files),
        revision,
        refs: std::collections::BTreeMap::new(),
        chart_dependencies: std::collections::BTreeMap::new(),
        overrides: None,
        app: AppFacts { name: format!("app-{app}"), ..AppFacts::default() },
        cluster: ClusterFacts::default(),
        settings: Arc::new(RenderSettings::default()),
    }
}

/// Refreshes one app; returns whether it had to be rendered.
async fn refresh(shared: Arc<Shared>, app: usize, since: Instant) -> Result<bool> {
    let access = RepoAccess::default();
    shared.mirrors.fetch_since(&shared.url, &access, since).await?;
    let (mirror, commit) = shared.mirrors.resolve(&shared.url, &access, &RevisionSpec::default()).await?;
    let request = request(app, mirror.tree(&commit)?, commit.to_string());
    let rendered = tokio::task::spawn_blocking(move || shared.renderer.render(&request, Freshness::Cached));
    Ok(!rendered.await??.cached)
}

/// Refreshes all apps for the same trigger; returns which of them had to be rendered.
async fn refresh_all(shared: &Arc<Shared>) -> Result<Vec<usize>> {
    let since = Instant::now();
    let refreshes = (0..APPS).map(|app| {
        let refresh = refresh(Arc::clone(shared), app, since);
        async move { Ok((app, refresh.await?)) }
    });
    let results: Vec<Result<(usize, bool)>> =
        futures::stream::iter(refreshes).buffer_unordered(WORKERS).collect().await;
    let results: Vec<(usize, bool)> = results.into_iter().collect::<Result<_>>()?;
    Ok(results.into_iter().filter_map(|(app, rendered)| rendered.then_some(app)).collect())
}

async fn measure() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let repository = directory.path().join("repo");
    std::fs::create_dir(&repository)?;
    git(&repository, &["init", "-q", "-b", "main"])?;
    for app in 0..APPS {
        write(&repository, app, 0)?;
    }
    git(&repository, &["add", "--all"])?;
    git(&repository, &["commit", "-q", "-m", "first"])?;
    let url = RepoUrl::parse(&format!("file://{}", repository.display()))?;
    let shared = Arc::new(Shared {
        mirrors: Mirrors::new(directory.path().join("git"), GitOptions::default())?,
        renderer: Renderer::new(RendererConfig::new(directory.path().join("render")))?,
        url,
    });

    let started = Instant::now();
    let first = refresh_all(&shared).await?;
    println!("first refresh: {} of {APPS} apps rendered in {:?}", first.len(), started.elapsed());
    ensure(first.len() == APPS, "an app was not rendered in the first refresh")?;
    let before = shared.mirrors.requests();
    ensure((before.ls_remote, before.fetch) == (1, 1), "more than one request for the first refresh")?;
    let mut spent = Vec::with_capacity(COMMITS);
    for commit in 1..=COMMITS {
        let changed = commit * 7 % APPS;
        write(&repository, changed, commit)?;
        git(&repository, &["commit", "-q", "-a", "-m", "change"])?;
        let started = Instant::now();
        let rendered = refresh_all(&shared).await?;
        spent.push(started.elapsed());
        ensure(rendered == [changed], "the rendered apps are not exactly the changed one")?;
    }
    let after = shared.mirrors.requests();
    let (listed, fetched) = (after.ls_remote - before.ls_remote, after.fetch - before.fetch);
    println!(
        "{COMMITS} commits to {APPS} apps: {listed} ref listings, {fetched} fetches, {} renders",
        spent.len()
    );
    spent.sort();
    let (median, worst) = (spent.get(COMMITS / 2).copied(), spent.last().copied());
    println!(
        "per commit for all apps, Git included: median {:?}, worst {:?}",
        median.unwrap_or_default(),
        worst.unwrap_or_default()
    );
    let expected = COMMITS as u64;
    ensure((listed, fetched) == (expected, expected), "not one request and one fetch per commit")
}

fn ensure(holds: bool, otherwise: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

fn main() -> Result<()> {
    // `cargo test --benches` only checks that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return Ok(());
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(measure())
}
