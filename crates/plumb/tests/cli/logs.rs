//! `app logs`. On the test cluster containers named `talker` have a log; others have none.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result};
use plumb_testkit::objects;
use serde_json::json;

use crate::bench::Bench;

/// The log of the `talker` containers.
fn log_file(bench: &Bench) -> PathBuf {
    bench.place.kubeconfig().with_file_name("logs").join("talker.log")
}

/// Appends a line to the log.
fn say(bench: &Bench, text: &str) -> Result<()> {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.000000000Z");
    let mut file = std::fs::File::options().append(true).open(log_file(bench)).context("the log")?;
    writeln!(file, "{now} stdout F {text}")?;
    Ok(())
}

#[tokio::test]
async fn logs_are_read_followed_and_narrowed_down() -> Result<()> {
    let bench = Bench::with_engine().await?;
    let talker = objects::with(
        objects::deployment("web", 1),
        "/spec/template/spec/containers/0/name",
        json!("talker"),
    );
    let twins = objects::with(
        objects::deployment("twins", 2),
        "/spec/template/spec/containers/0/name",
        json!("talker"),
    );
    let silent = objects::deployment("silent", 1);
    bench.repo.commit(&[("app/all.yaml", objects::manifests(&[talker, twins, silent]))])?;
    let app = bench.application("chatty", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    bench.until(&app, "Synced", "Healthy").await?;
    let logs = |flags: &str| bench.quietly(&format!("plumb app logs chatty {flags}"), &[], "");
    let web = "--group apps --kind Deployment --name web";

    let all = logs(web)?;
    assert_eq!(all.code, 0, "{}", all.stderr);
    assert!(
        all.stdout.starts_with("listening on :8080\nwarning: the cache is cold\nready\n"),
        "{}",
        all.stdout
    );
    assert_eq!(logs(&format!("{web} --previous"))?.stdout, "fatal: no database\n");
    assert_eq!(logs(&format!("{web} --filter WARNING"))?.stdout, "warning: the cache is cold\n");
    assert_eq!(logs(&format!("{web} --filter WARNING --match-case"))?.stdout, "");
    assert_eq!(logs(&format!("{web} --until-time 2026-01-01T10:00:00Z"))?.stdout, "listening on :8080\n");
    let timed = logs(&format!("{web} --timestamps --until-time 2026-01-01T10:00:00Z"))?;
    assert_eq!(timed.stdout, "2026-01-01T10:00:00.000000000Z listening on :8080\n");

    let mark = format!("from {}", bench.place.name());
    say(&bench, &mark)?;
    assert_eq!(logs(&format!("{web} --tail 1"))?.stdout, format!("{mark}\n"));
    assert_eq!(logs(&format!("{web} --since-seconds 600 --filter '{mark}'"))?.stdout, format!("{mark}\n"));
    assert!(!logs(&format!("{web} --since-seconds 600"))?.stdout.contains("listening"));

    // With several pods each line begins with the name of its pod.
    let both = logs("--kind Deployment --name twins --tail 1")?;
    let lines: Vec<&str> = both.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", both.stdout);
    assert!(
        lines.iter().all(|line| line.starts_with("twins-") && line.ends_with(&format!(" | {mark}"))),
        "{lines:?}"
    );
    let one_pod = lines.first().and_then(|line| line.split(' ').next()).context("a pod")?;
    assert_eq!(logs(&format!("--kind Pod --name {one_pod} --tail 1"))?.stdout, format!("{mark}\n"));

    // A container without a log, one that does not exist, and objects that do not exist.
    let none = logs("--kind Deployment --name silent")?;
    assert!(
        none.code == 20 && none.stderr.starts_with("error: cannot read the log of pod silent-"),
        "{}",
        none.stderr
    );
    let wrong = logs(&format!("{web} --container sidecar"))?;
    assert!(wrong.code == 20 && wrong.stderr.contains("no pod has a container sidecar"), "{}", wrong.stderr);
    assert_eq!(logs(&format!("{web} --container talker --tail 1"))?.stdout, format!("{mark}\n"));
    let missing = logs("--kind StatefulSet")?;
    assert!(missing.code == 20 && missing.stderr.contains("has no matching pods"), "{}", missing.stderr);

    // New lines, until the reader closes its end.
    let mut child = bench
        .command(&format!("plumb app logs chatty {web} --follow --tail 1"))?
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("stdout")?);
    let mut next = || -> Result<String> {
        let mut line = String::new();
        lines.read_line(&mut line)?;
        Ok(line)
    };
    assert_eq!(next()?, format!("{mark}\n"));
    say(&bench, &format!("again {mark}"))?;
    assert_eq!(next()?, format!("again {mark}\n"));
    drop(lines);
    say(&bench, "nobody reads this")?;
    let status = tokio::task::spawn_blocking(move || child.wait()).await??;
    assert_eq!(status.code(), Some(0));
    Ok(())
}
