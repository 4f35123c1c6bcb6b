//! `--watch` of every list: the table, then its changes, until the reader closes its end.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::bench::Bench;

/// A running command and its output.
struct Watching {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watching {
    fn start(bench: &Bench, line: &str) -> Result<Self> {
        let mut child = bench.command(line)?.stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().context("stdout")?);
        Ok(Self { child, lines })
    }

    /// Reads until a line has the word.
    fn until(&mut self, word: &str) -> Result<String> {
        let mut seen = String::new();
        loop {
            let begins = seen.len();
            if self.lines.read_line(&mut seen)? == 0 {
                bail!("it ended without {word}:\n{seen}");
            }
            if seen.get(begins..).is_some_and(|line| line.contains(word)) {
                return Ok(seen);
            }
        }
    }

    /// Closes the pipe. The next change ends the command.
    fn leave(self) -> impl Future<Output = Result<i32>> {
        let Self { mut child, lines } = self;
        drop(lines);
        async move {
            let status = tokio::task::spawn_blocking(move || child.wait()).await??;
            status.code().context("a signal ended it")
        }
    }
}

#[tokio::test]
async fn every_list_shows_changes() -> Result<()> {
    let bench = Bench::new().await?;
    let app = bench
        .application("first", |app| {
            app["status"] = json!({"resources": [
                {"version": "v1", "kind": "ConfigMap", "namespace": "n", "name": "one", "status": "Synced"}]});
        })
        .await?;
    let more_of_app = async |name: &str| {
        let mut app = app.clone();
        app["status"] = json!({"resources": [
            {"version": "v1", "kind": "ConfigMap", "namespace": "n", "name": "one", "status": "Synced"},
            {"version": "v1", "kind": "ConfigMap", "namespace": "n", "name": name, "status": "Synced"}]});
        bench.place.apply(&app).await
    };
    let run = |line: &str| -> Result<()> {
        let said = bench.quietly(line, &[], "")?;
        if said.code == 0 { Ok(()) } else { bail!("{line}: {}", said.stderr) }
    };
    let repo = |n: u32| format!("plumb repo add https://example.com/{n}.git");
    let window = |kind: &str| {
        format!(
            "plumb proj windows add default --kind {kind} --schedule '0 22 * * *' --duration 1h --applications '*'"
        )
    };
    let cluster = |name: &str| {
        let mut secret = plumb_testkit::objects::secret(name, &[]);
        secret["metadata"]["labels"] = json!({"argocd.argoproj.io/secret-type": "cluster"});
        secret["stringData"] =
            json!({"name": name, "server": format!("https://127.0.0.1:1/{name}"), "config": "{}"});
        secret
    };

    let mut list = Watching::start(&bench, "plumb app list --watch")?;
    assert!(list.until("first")?.starts_with("NAME "), "the table comes first");
    bench.application("second", |_| {}).await?;
    assert_eq!(list.until("second")?.lines().count(), 1, "only what is new is added");
    let list = list.leave();
    bench.application("third", |_| {}).await?;
    assert_eq!(list.await?, 0);

    let mut resources = Watching::start(&bench, "plumb app resources first --watch")?;
    resources.until("one")?;
    more_of_app("two").await?;
    assert_eq!(resources.until("two")?.lines().count(), 1);
    let resources = resources.leave();
    more_of_app("three").await?;
    assert_eq!(resources.await?, 0);

    let mut projects = Watching::start(&bench, "plumb proj list --watch")?;
    projects.until("default")?;
    run("plumb proj create payments")?;
    projects.until("payments")?;
    let projects = projects.leave();
    run("plumb proj create shipping")?;
    assert_eq!(projects.await?, 0);

    let mut windows = Watching::start(&bench, "plumb proj windows list default --watch")?;
    windows.until("ID ")?;
    run(&window("deny"))?;
    windows.until("deny")?;
    let windows = windows.leave();
    run(&window("allow"))?;
    assert_eq!(windows.await?, 0);

    let mut repositories = Watching::start(&bench, "plumb repo list --watch")?;
    repositories.until("TYPE ")?;
    run(&repo(1))?;
    repositories.until("1.git")?;
    run(&repo(2))?;
    assert_eq!(repositories.until("2.git")?.lines().count(), 1, "the first one did not change");
    let repositories = repositories.leave();
    run(&repo(3))?;
    assert_eq!(repositories.await?, 0);

    let mut clusters = Watching::start(&bench, "plumb cluster list --watch")?;
    clusters.until("SERVER ")?;
    bench.place.apply(&cluster("edge")).await?;
    clusters.until("edge")?;
    let clusters = clusters.leave();
    bench.place.apply(&cluster("far")).await?;
    assert_eq!(clusters.await?, 0);
    Ok(())
}

/// Where an engine runs, its next report is on the screen at once.
#[tokio::test]
async fn the_doctor_shows_the_next_report() -> Result<()> {
    let bench = Bench::new().await?;
    bench.application("first", |_| {}).await?;
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "plumb"},
        "spec": {"holderIdentity": "plumb-0", "renewTime": "2199-01-01T00:00:00.000000Z"}});
    bench.place.apply(&lease).await?;
    let mut doctor = Watching::start(&bench, "plumb doctor --watch")?;
    doctor.until("0 wrong")?;
    let finding = json!({"class": "LiveEdit", "counts": true, "kind": "ConfigMap", "namespace": "n", "name": "one",
        "fields": ["/data/x"], "fix": {"kind": "sync", "text": "sync"}});
    let report = json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "first"},
        "summary": {"counted": 1, "explained": 0}, "findings": [finding]});
    bench.place.apply(&report).await?;
    doctor.until("LiveEdit ConfigMap: 1 finding in first")?;
    let doctor = doctor.leave();
    bench.application("second", |_| {}).await?;
    assert_eq!(doctor.await?, 0);
    Ok(())
}
