//! Two plumbs of one namespace: one works, the other waits, and never do both write.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plumb_testkit::audit::{self, AuditEvent};
use plumb_testkit::objects::{self, Trouble};
use plumb_testkit::proxy::{Ending, Fault, Requests, Times};
use plumb_testkit::{PrivateCluster, wait};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::interrupted::let_go;
use crate::outside::{get, metric, tell_push};
use crate::stage::{Another, Stage};
use crate::time_travel::{blocking, start};

/// A leader that froze is waited for until its lease has run out.
const TAKEOVER: Duration = Duration::from_mins(1);

fn lease() -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "plumb"}})
}

fn phase(app: &Value) -> &str {
    app["status"]["operationState"]["phase"].as_str().unwrap_or_default()
}

fn automated(app: &mut Value) {
    app["spec"]["syncPolicy"] = json!({"automated": {"prune": true, "selfHeal": true}});
}

/// A leader and one that waits; where the latter tells how it is.
async fn two() -> Result<(Stage, String, Another, SocketAddr)> {
    let mut stage = Stage::bare().await?;
    let leader = stage.give_plumb_a_name().await?;
    stage.begin().await?;
    let held =
        |lease: &Value| lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty());
    stage.place.wait(&lease(), "is held", held).await?;
    let standby = stage.start_another("standby").await?;
    let inside = standby.address("metrics and health").await?;
    until_it_says(inside, "standing by: another process leads").await?;
    Ok((stage, leader, standby, inside))
}

async fn until_it_says(inside: SocketAddr, words: &str) -> Result<()> {
    let says = async || get(inside, "/readyz").await.ok();
    let what = format!("it says `{words}`");
    wait::until_seen(TAKEOVER, &what, says, |said| *said == Some((200, format!("{words}\n")))).await?;
    Ok(())
}

/// What a user wrote after the log had this length, but for what `--install` brings at each start.
fn writes(stage: &Stage, user: &str, after: u64) -> Result<Vec<AuditEvent>> {
    let all = audit::read_after(&stage.place.cluster().audit_log(), after)?;
    let installed = ["customresourcedefinitions", "namespaces", "appprojects"];
    let is_installed = |event: &AuditEvent| {
        event.object_ref.as_ref().is_some_and(|object| installed.contains(&object.resource.as_str()))
    };
    Ok(all
        .into_iter()
        .filter(|event| event.user.username == user && event.is_write() && !is_installed(event))
        .collect())
}

/// A flood of pushes to the one that waits costs few writes: they are merged, and the repository has a budget.
async fn flood(stage: &Stage, standby: &Another, web: SocketAddr, app: &Value, commit: &str) -> Result<()> {
    for _ in 0..100 {
        assert_eq!(tell_push(web, &stage.repo.url(), None).await?, 200);
    }
    let is_there = |app: &Value| {
        app["status"]["sync"]["status"] == "Synced" && app["status"]["sync"]["revision"] == commit
    };
    stage.place.wait(app, "is at the last commit that was pushed", is_there).await?;
    let n_writes = writes(stage, &standby.user, 0)?.len();
    ensure!(n_writes <= 20, "{n_writes} writes for 101 pushes");
    Ok(())
}

#[tokio::test]
async fn a_standby_waits_passes_pushes_on_and_takes_over_what_was_under_way() -> Result<()> {
    let (mut stage, _, standby, inside) = two().await?;
    let hook = objects::annotated(
        objects::troubled(objects::job("migrate"), Trouble::Hold),
        "argocd.argoproj.io/hook",
        "PreSync",
    );
    let conf = objects::config_map("conf", &[("a", "1")]);
    let beside = |value: &str| objects::manifests(&[objects::config_map("beside", &[("a", value)])]);
    stage.repo.commit(&[
        ("app/all.yaml", objects::manifests(&[hook.clone(), conf.clone()])),
        ("beside/map.yaml", beside("1")),
    ])?;
    let app = stage.application("migrates", automated).await?;
    let other = stage
        .application("beside", |app| {
            app["spec"]["source"]["path"] = json!("beside");
            automated(app);
        })
        .await?;
    let job = stage.place.wait(&hook, "runs", |_| true).await?;
    let running = stage.place.wait(&app, "is under way", |app| phase(app) == "Running").await?;
    stage.until_sync(&other, "Synced").await?;

    // The world may reach the one that waits: the one that works hears of it.
    let web = standby.address("webhooks").await?;
    let commit = stage.repo.commit(&[("beside/map.yaml", beside("2"))])?;
    assert_eq!(tell_push(web, &stage.repo.url(), None).await?, 200);
    let is_there = |app: &Value| {
        app["status"]["sync"]["status"] == "Synced" && app["status"]["sync"]["revision"] == commit.as_str()
    };
    stage.place.wait(&other, "is at the commit that was pushed", is_there).await?;
    let wrote = writes(&stage, &standby.user, 0)?;
    let is_message = |event: &AuditEvent| {
        event
            .object_ref
            .as_ref()
            .is_some_and(|object| object.resource == "configmaps" && object.name == "plumb-pushes")
    };
    ensure!(wrote.iter().all(is_message) && !wrote.is_empty(), "only messages to the leader: {wrote:#?}");
    let last = stage.repo.commit(&[("beside/map.yaml", beside("3"))])?;
    flood(&stage, &standby, web, &other, &last).await?;
    let (_, numbers) = get(inside, "/metrics").await?;
    assert_eq!(metric(&numbers, "plumb_leader", &[]), Some("plumb_leader 0"));

    stage.kill_plumb()?;
    until_it_says(inside, "leading").await?;
    ensure!(standby.log()?.contains("ended without releasing the lease"), "by proof, not by waiting");
    let_go(&stage, "migrate").await?;
    let ended = stage.place.wait(&app, "has ended", |app| phase(app) == "Succeeded").await?;
    let (before, after) = (&running["status"]["operationState"], &ended["status"]["operationState"]);
    assert_eq!(after["startedAt"], before["startedAt"], "it is the same operation");
    assert_eq!(after["retryCount"], json!(null), "at its first try");
    let again = stage.place.get(&hook).await?.context("the hook is gone")?;
    assert_eq!(again["metadata"]["uid"], job["metadata"]["uid"], "the hook ran once");
    ensure!(stage.place.get(&conf).await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_leader_that_froze_writes_nothing_more_when_it_wakes() -> Result<()> {
    let (stage, leader, standby, inside) = two().await?;
    let map = objects::config_map("map", &[("a", "1")]);
    stage.repo.commit(&[("app/map.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    let app = stage.application("frozen", automated).await?;
    stage.until_sync(&app, "Synced").await?;
    ensure!(!writes(&stage, &leader, 0)?.is_empty(), "the leader works");

    kill_process(stage.pid()?, Signal::STOP).context("freeze the leader")?;
    // What it would do at once when it wakes, if it were allowed to.
    stage.place.patch_as("kubectl-edit", &map, &json!({"data": {"a": "edited"}})).await?;
    stage.place.wait_within(TAKEOVER, &map, "is put back", |map| map["data"]["a"] == "1").await?;
    until_it_says(inside, "leading").await?;
    ensure!(!standby.log()?.contains("ended without releasing the lease"), "it has not ended");
    let now_holds = stage.place.get(&lease()).await?.unwrap_or_default();
    let woken_at = std::fs::metadata(stage.place.cluster().audit_log())?.len();
    stage.place.patch_as("kubectl-edit", &map, &json!({"data": {"a": "edited again"}})).await?;
    kill_process(stage.pid()?, Signal::CONT).context("wake the leader")?;
    // It stays, says so, and is the standby now.
    let woken = stage.address("metrics and health").await?;
    until_it_says(woken, "standing by: another process leads").await?;
    // The endpoint knows it a moment before the log.
    let log = async || stage.log().unwrap_or_default();
    let is_told = |log: &String| log.contains("the lease is lost") && log.contains("another instance leads");
    wait::until_seen(TAKEOVER, "the log says why", log, is_told).await?;

    stage.place.wait(&map, "is put back by the other", |map| map["data"]["a"] == "1").await?;
    let late = writes(&stage, &leader, woken_at)?;
    ensure!(late.is_empty(), "it wrote without the lease: {late:#?}");
    ensure!(!writes(&stage, &standby.user, woken_at)?.is_empty(), "the audit log has the other's writes");
    let still_holds = stage.place.get(&lease()).await?.unwrap_or_default();
    assert_eq!(still_holds["spec"]["holderIdentity"], now_holds["spec"]["holderIdentity"]);
    Ok(())
}

/// The API server refuses the renewals for a while, as if the permission had been taken away.
#[tokio::test]
async fn a_lease_that_cannot_be_renewed_is_waited_for_and_the_same_process_goes_on() -> Result<()> {
    let (mut stage, proxy) = Stage::set_behind_proxy().await?;
    let map = objects::config_map("map", &[("a", "1")]);
    stage.repo.commit(&[("app/map.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    let app = stage.application("held-lease", automated).await?;
    stage.until_sync(&app, "Synced").await?;
    let inside = stage.address("metrics and health").await?;

    proxy.inject(Fault::Error(403), Requests::to("/leases/plumb"), Times::Always);
    let ready = async || get(inside, "/readyz").await.ok();
    let waits = |said: &Option<(u16, String)>| {
        said.as_ref().is_some_and(|(code, text)| *code == 503 && text.starts_with("waiting for the lease"))
    };
    wait::until_seen(TAKEOVER, "it says that it waits for the lease", ready, waits).await?;
    // Without the lease it writes nothing: the edit stays.
    let edited = stage.place.patch_as("kubectl-edit", &map, &json!({"data": {"a": "edited"}})).await?;
    assert_eq!(get(inside, "/healthz").await?.0, 200);
    let log = stage.log()?;
    ensure!(log.contains("the lease is lost") && log.contains("403"), "it says why: {log}");
    let n_lines = log.lines().filter(|line| line.contains("cannot renew the lease; trying again")).count();
    assert_eq!(n_lines, 1, "it says it once: {log}");
    let still = stage.place.get(&map).await?.unwrap_or_default();
    assert_eq!(still["metadata"]["resourceVersion"], edited["metadata"]["resourceVersion"]);

    proxy.heal();
    stage.place.wait_within(TAKEOVER, &map, "is put back", |map| map["data"]["a"] == "1").await?;
    until_it_says(inside, "leading").await?;
    assert!(stage.stop_plumb()?.success());
    Ok(())
}

/// The lease is lost, and the next engine of the process has no directory for its cache.
#[tokio::test]
async fn an_engine_that_cannot_be_started_again_does_not_end_the_process() -> Result<()> {
    let (mut stage, proxy) = Stage::set_behind_proxy().await?;
    let map = objects::config_map("map", &[("a", "1")]);
    stage.repo.commit(&[("app/map.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    let app = stage.application("held-cache", automated).await?;
    stage.until_sync(&app, "Synced").await?;
    let inside = stage.address("metrics and health").await?;
    let pid = stage.pid()?;

    proxy.inject(Fault::Error(403), Requests::to("/leases/plumb"), Times::Always);
    let ready = async || get(inside, "/readyz").await.ok();
    let waits = |said: &Option<(u16, String)>| {
        said.as_ref().is_some_and(|(code, text)| *code == 503 && text.starts_with("waiting for the lease"))
    };
    wait::until_seen(TAKEOVER, "it says that it waits for the lease", ready, waits).await?;
    let (cache, away) = (stage.cache().to_owned(), stage.cache().with_extension("away"));
    std::fs::rename(&cache, &away)?;
    // A directory in which not even root makes another one. A file would be removed: it is in the cache.
    std::os::unix::fs::symlink("/proc", &cache)?;
    stage.place.patch_as("kubectl-edit", &map, &json!({"data": {"a": "edited"}})).await?;
    proxy.heal();
    let log = async || std::fs::read_to_string(away.join("plumb.log")).unwrap_or_default();
    let says_why = |log: &String| {
        log.contains("cannot use the cache directory")
            && log.contains("plumb starts another one in this process")
    };
    wait::until_seen(TAKEOVER, "it says why it does not lead", log, says_why).await?;

    std::fs::remove_file(&cache)?;
    std::fs::rename(&away, &cache)?;
    stage.place.wait_within(TAKEOVER, &map, "is put back", |map| map["data"]["a"] == "1").await?;
    assert_eq!(stage.pid()?, pid);
    assert!(stage.stop_plumb()?.success());
    Ok(())
}

/// The API server refuses every request for a while, as after the token of plumb's account was revoked.
#[tokio::test]
async fn credentials_that_are_refused_for_a_while_end_nothing_and_cost_few_lines() -> Result<()> {
    let (mut stage, proxy) = Stage::set_behind_proxy().await?;
    let map = objects::config_map("map", &[("a", "1")]);
    stage.repo.commit(&[("app/map.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    let app = stage.application("held-credentials", automated).await?;
    stage.until_sync(&app, "Synced").await?;
    let inside = stage.address("metrics and health").await?;
    let pid = stage.pid()?;

    proxy.inject(Fault::Error(401), Requests::all(), Times::Always);
    proxy.end_watches(&Requests::all(), Ending::Broken);
    let ready = async || get(inside, "/readyz").await.ok();
    let waits = |said: &Option<(u16, String)>| {
        said.as_ref().is_some_and(|(code, text)| *code == 503 && text.starts_with("waiting for the lease"))
    };
    wait::until_seen(TAKEOVER, "it says that it waits for the lease", ready, waits).await?;
    assert_eq!(get(inside, "/healthz").await?.0, 200);
    let warnings = stage.log()?.lines().filter(|line| line.contains("WARN")).count();
    ensure!(warnings < 20, "{warnings} warnings: {}", stage.log()?);
    stage.place.patch_as("kubectl-edit", &map, &json!({"data": {"a": "edited"}})).await?;

    proxy.heal();
    stage.place.wait_within(TAKEOVER, &map, "is put back", |map| map["data"]["a"] == "1").await?;
    assert_eq!(stage.pid()?, pid);
    assert!(stage.stop_plumb()?.success());
    Ok(())
}

/// What happens to a cluster, and how it ends.
type Happening = fn(&PrivateCluster) -> Result<()>;

/// The control plane is away until plumb has lost its lease. The same process goes on when it is back.
async fn outlives(begins: Happening, ends: Happening) -> Result<()> {
    let cluster = start().await?;
    let on_cluster = async |happening: Happening| {
        let cluster = Arc::clone(&cluster);
        blocking(move || happening(&cluster)).await
    };
    let mut stage = Stage::bare_in(cluster.shared()).await?;
    let user = stage.give_plumb_a_name().await?;
    stage.begin().await?;
    let map = objects::config_map("map", &[("a", "1")]);
    stage.repo.commit(&[("app/map.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    let app = stage.application("held", automated).await?;
    stage.until_sync(&app, "Synced").await?;
    let inside = stage.address("metrics and health").await?;
    let (pid, before) = (stage.pid()?, stage.log()?);

    on_cluster(begins).await?;
    let ready = async || get(inside, "/readyz").await.ok();
    let waits = |said: &Option<(u16, String)>| {
        said.as_ref().is_some_and(|(code, text)| *code == 503 && text.starts_with("waiting for the lease"))
    };
    wait::until_seen(TAKEOVER, "it says that it waits for the lease", ready, waits).await?;
    assert_eq!(get(inside, "/healthz").await?.0, 200);
    let lost_at = std::fs::metadata(stage.place.cluster().audit_log())?.len();

    on_cluster(ends).await?;
    stage.place.patch_as("kubectl-edit", &map, &json!({"data": {"a": "edited"}})).await?;
    stage.place.wait_within(TAKEOVER, &map, "is put back", |map| map["data"]["a"] == "1").await?;
    until_it_says(inside, "leading").await?;
    assert_eq!(stage.pid()?, pid, "it is the same process");
    let of = |event: &AuditEvent| event.object_ref.clone().unwrap_or_default().resource;
    // An Event that was under way when the control plane froze is stored when it wakes.
    let written = writes(&stage, &user, lost_at)?.into_iter().find(|event| of(event) != "events");
    let first = written.context("it writes again")?;
    let is_lease = of(&first) == "leases";
    ensure!(is_lease, "it wrote before it held the lease again: {first:#?}");
    let log = stage.log()?;
    let since = log.get(before.len()..).unwrap_or_default();
    let count = |part: &str| since.lines().filter(|line| line.contains(part)).count();
    assert_eq!(count("the lease is lost"), 1, "{since}");
    assert_eq!(count("waiting for the lease"), 1, "{since}");
    ensure!(count("WARN") < 20, "{} warnings: {since}", count("WARN"));
    assert!(stage.stop_plumb()?.success());
    Ok(())
}

#[tokio::test]
async fn a_frozen_api_server_ends_nothing() -> Result<()> {
    outlives(|cluster| cluster.freeze("kube-apiserver"), |cluster| cluster.thaw("kube-apiserver")).await
}

#[tokio::test]
async fn an_api_server_that_is_killed_and_started_again_ends_nothing() -> Result<()> {
    outlives(|cluster| cluster.kill("kube-apiserver"), PrivateCluster::start_again).await
}

#[tokio::test]
async fn a_frozen_etcd_ends_nothing() -> Result<()> {
    outlives(|cluster| cluster.freeze("etcd"), |cluster| cluster.thaw("etcd")).await
}

#[tokio::test]
async fn a_plumb_that_starts_before_the_api_server_waits_for_it() -> Result<()> {
    let (mut stage, proxy) = Stage::bare_behind_proxy().await?;
    proxy.inject(Fault::Error(503), Requests::all(), Times::Always);
    stage.start_plumb()?;
    let log = async || stage.log().unwrap_or_default();
    let waits =
        |log: &String| log.contains("cannot reach the API server; plumb waits for it and tries again");
    wait::until_seen(wait::LIMIT, "plumb says that it waits", log, waits).await?;
    proxy.heal();
    let held =
        |lease: &Value| lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty());
    stage.place.wait(&lease(), "is held", held).await?;
    Ok(())
}
