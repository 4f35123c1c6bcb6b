//! Many apps in one repository, and commits that each touch one of them: one request to the server, one fetch and one
//! rendering per commit, whatever the number of apps. Prints its figures; `cargo bench -p plumb-engine`.
#![expect(clippy::print_stdout, reason = "a benchmark says what it measured")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_core::app::Source;
use plumb_git::{GitOptions, Mirrors, RepoAccess, RepoUrl, RevisionSpec};
use plumb_render::{
    AppFacts, ClusterFacts, Freshness, RenderRequest, RenderSettings, Renderer, RendererConfig,
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const APPS: usize = 500;
const COMMITS: usize = 60;

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

/// All apps look at the repository for the same reason; gives back how many had to be rendered.
async fn round(mirrors: &Mirrors, renderer: &Renderer, url: &RepoUrl, since: Instant) -> Result<usize> {
    let access = RepoAccess::default();
    let mut n_rendered = 0;
    for app in 0..APPS {
        mirrors.fetch_since(url, &access, since).await?;
        let (mirror, commit) = mirrors.resolve(url, &access, &RevisionSpec::default()).await?;
        let request = request(app, mirror.tree(&commit)?, commit.to_string());
        n_rendered += usize::from(!renderer.render(&request, Freshness::Cached)?.cached);
    }
    Ok(n_rendered)
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
    let mirrors = Mirrors::new(directory.path().join("git"), GitOptions::default())?;
    let renderer = Renderer::new(RendererConfig::new(directory.path().join("render")))?;

    let started = Instant::now();
    let first = round(&mirrors, &renderer, &url, started).await?;
    println!("first look: {first} of {APPS} apps rendered in {:?}", started.elapsed());
    let before = mirrors.requests();
    let (mut n_rendered, mut spent) = (0, Duration::ZERO);
    for commit in 1..=COMMITS {
        write(&repository, commit * 7 % APPS, commit)?;
        git(&repository, &["commit", "-q", "-a", "-m", "change"])?;
        let started = Instant::now();
        n_rendered += round(&mirrors, &renderer, &url, started).await?;
        spent += started.elapsed();
    }
    let after = mirrors.requests();
    let (asked, fetched) = (after.ls_remote - before.ls_remote, after.fetch - before.fetch);
    println!(
        "{COMMITS} commits to {APPS} apps: asked {asked} times, fetched {fetched} times, rendered {n_rendered}"
    );
    println!("{:?} per commit for all apps, Git included", spent / u32::try_from(COMMITS)?);
    let expected = COMMITS as u64;
    if (asked, fetched, n_rendered) == (expected, expected, COMMITS) {
        return Ok(());
    }
    Err("more than one request, fetch or rendering per commit".into())
}

fn main() -> Result<()> {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return Ok(());
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())
}
