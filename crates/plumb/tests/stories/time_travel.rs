//! An API server whose etcd was restored from an older backup, while plumb runs.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use plumb_testkit::{PrivateCluster, TestNamespace, objects, wait};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::fleet::cluster_secret;
use crate::stage::Stage;

/// How long plumb may take to notice, on a busy machine. It takes about as long as the watches take to come back.
const NOTICED_WITHIN: Duration = Duration::from_mins(1);

/// Runs something that blocks.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.context("a thread ended")?
}

/// A cluster of this story.
pub(crate) async fn start() -> Result<Arc<PrivateCluster>> {
    blocking(|| PrivateCluster::start().map(Arc::new)).await
}

/// Stops the cluster, does this to its data, and starts it again.
async fn while_stopped(cluster: &Arc<PrivateCluster>, work: fn(&PrivateCluster) -> Result<()>) -> Result<()> {
    let cluster = Arc::clone(cluster);
    blocking(move || {
        cluster.stop();
        work(&cluster)?;
        cluster.start_again()
    })
    .await
}

fn lines(log: &str, part: &str) -> usize {
    log.lines().filter(|line| line.contains(part)).count()
}

fn automated(app: &mut Value) {
    app["spec"]["syncPolicy"] = json!({"automated": {"prune": true, "selfHeal": true}});
}

/// The restore takes back a change and a deletion. Without a new list plumb would show `Synced` for good: no watch reports
/// what a restore did.
#[tokio::test]
async fn a_registered_cluster_that_was_restored_is_read_anew_and_healed() -> Result<()> {
    let cluster = start().await?;
    let far = TestNamespace::in_cluster(cluster.shared()).await?;
    let stage = Stage::set().await?;
    let server = format!("https://127.0.0.1:{}", cluster.shared().port()?);
    let config = far.cluster().certificate_config()?.to_string();
    stage.place.apply(&cluster_secret("restored", &server, &config)).await?;
    let (kept, leaving) =
        (objects::config_map("kept", &[("a", "1")]), objects::config_map("leaving", &[("a", "1")]));
    stage.repo.commit(&[
        ("app/kept.yaml", objects::manifests(std::slice::from_ref(&kept))),
        ("app/leaving.yaml", objects::manifests(std::slice::from_ref(&leaving))),
    ])?;
    let to_far = |app: &mut Value| {
        app["spec"]["destination"] = json!({"name": "restored", "namespace": far.name()});
    };
    let healing = stage
        .application("healing", |app| {
            to_far(app);
            automated(app);
        })
        .await?;
    stage.until_sync(&healing, "Synced").await?;
    while_stopped(&cluster, PrivateCluster::back_up).await?;

    // After the backup: a new commit changes one object and removes the other.
    let changed = objects::config_map("kept", &[("a", "2")]);
    stage.repo.remove(&["app/leaving.yaml"])?;
    stage.repo.commit(&[("app/kept.yaml", objects::manifests(std::slice::from_ref(&changed)))])?;
    stage.refresh(&healing).await?;
    far.wait(&kept, "has the new value", |live| live["data"]["a"] == "2").await?;
    far.wait_gone(&leaving).await?;
    stage.until_sync(&healing, "Synced").await?;

    while_stopped(&cluster, PrivateCluster::restore).await?;
    far.wait_within(NOTICED_WITHIN, &kept, "is healed", |live| live["data"]["a"] == "2").await?;
    // What came back is shown. It is not in the app's record any more, so that a user has to confirm its deletion.
    let shows = |app: &Value| {
        let resources = app["status"]["resources"].as_array().into_iter().flatten();
        resources.into_iter().any(|one| one["name"] == "leaving" && one["status"] == "OutOfSync")
    };
    stage.place.wait(&healing, "shows what came back", shows).await?;
    // The status is written a moment before the log.
    let log = async || stage.log().unwrap_or_default();
    let has_reason = |log: &String| log.contains("out of sync: ");
    let log = wait::until_seen(NOTICED_WITHIN, "the change of state has its reason", log, has_reason).await?;
    assert_eq!(lines(&log, "the data of the API server went back in time"), 1, "one line");
    Ok(())
}

/// The restore takes back a change of one custom resource. Before plumb looks again, other clients have written so often that
/// no list is older than what plumb knows.
#[tokio::test]
async fn a_custom_resource_that_a_restore_took_back_is_healed_though_the_versions_went_on() -> Result<()> {
    let cluster = start().await?;
    let far = TestNamespace::in_cluster(cluster.shared()).await?;
    let mut stage = Stage::bare().await?;
    // plumb is frozen for a while. It must not lose the lease, after which everything is read anew as well.
    stage.arguments = vec!["--lease-deadline-seconds=600".to_owned()];
    stage.begin().await?;
    let server = format!("https://127.0.0.1:{}", cluster.shared().port()?);
    let config = far.cluster().certificate_config()?.to_string();
    stage.place.apply(&cluster_secret("busy", &server, &config)).await?;
    let group = format!("{}.example.com", far.name());
    let crd = objects::crd(
        &group,
        "Tenant",
        &json!({"type": "object", "properties": {"size": {"type": "integer"}}}),
    );
    let tenant = |size: u32| objects::custom(&group, "Tenant", "store", &json!({"size": size}));
    far.apply(&crd).await?;
    far.wait(&crd, "is served", |crd| {
        let all = crd["status"]["conditions"].as_array().into_iter().flatten();
        all.into_iter().any(|one| one["type"] == "Established" && one["status"] == "True")
    })
    .await?;
    stage.repo.commit(&[("app/tenant.yaml", objects::manifests(&[tenant(1)]))])?;
    let healing = stage
        .application("healing", |app| {
            app["spec"]["destination"] = json!({"name": "busy", "namespace": far.name()});
            automated(app);
        })
        .await?;
    stage.until_sync(&healing, "Synced").await?;
    while_stopped(&cluster, PrivateCluster::back_up).await?;

    stage.repo.commit(&[("app/tenant.yaml", objects::manifests(&[tenant(2)]))])?;
    stage.refresh(&healing).await?;
    far.wait(&tenant(2), "has the new value", |live| live["spec"]["size"] == 2).await?;
    stage.until_sync(&healing, "Synced").await?;
    let before = version(&far.apply(&objects::config_map("busy", &[("n", "0")])).await?)?;
    kill_process(stage.pid()?, Signal::STOP).context("freeze plumb")?;
    while_stopped(&cluster, PrivateCluster::restore).await?;
    for n in 1.. {
        let written = far.apply(&objects::config_map("busy", &[("n", &n.to_string())])).await?;
        // Some more than were written since by others, before the cluster was stopped.
        if version(&written)? > before + 300 {
            break;
        }
    }
    kill_process(stage.pid()?, Signal::CONT).context("wake plumb")?;
    far.wait_within(NOTICED_WITHIN, &tenant(2), "is healed", |live| live["spec"]["size"] == 2).await?;
    let log = stage.log()?;
    assert_eq!(lines(&log, "the lease is lost"), 0, "{log}");
    assert_eq!(lines(&log, "the data of the API server went back in time"), 1, "one line: {log}");
    Ok(())
}

fn version(object: &Value) -> Result<u64> {
    let version = object["metadata"]["resourceVersion"].as_str().context("an object without version")?;
    version.parse().context("a version that is not a number")
}

#[tokio::test]
async fn a_hard_refresh_lists_the_kinds_of_the_app_again() -> Result<()> {
    let (stage, proxy) = Stage::set_behind_proxy().await?;
    let map = objects::config_map("map", &[("a", "1")]);
    stage.repo.commit(&[("app/map.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    let app = stage.application("hard", automated).await?;
    stage.until_sync(&app, "Synced").await?;
    let lists = || {
        let all = proxy.recorded();
        let of_maps =
            |target: &str| target.starts_with("/api/v1/configmaps?") && target.contains("sendInitialEvents");
        all.iter().filter(|request| of_maps(&request.target)).count()
    };
    let before = lists();
    // Kinds that were listed a moment ago are not listed again.
    let listed_again = async || {
        let _ = stage.refresh_hard(&app).await;
        lists()
    };
    wait::until_seen(Duration::from_mins(1), "the maps are listed again", listed_again, |now| *now > before)
        .await?;
    stage.until_sync(&app, "Synced").await?;
    Ok(())
}

#[tokio::test]
async fn a_home_cluster_that_was_restored_is_read_anew_and_nothing_is_restarted_by_hand() -> Result<()> {
    let cluster = start().await?;
    let mut stage = Stage::bare_in(cluster.shared()).await?;
    // The stop of the cluster must not be noticed by the loss of the lease, after which everything is read anew as well.
    stage.arguments = vec!["--lease-deadline-seconds=600".to_owned()];
    stage.begin().await?;
    let map = objects::config_map("kept", &[("a", "1")]);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    let shown = stage.application("shown", |_| {}).await?;
    let healing = stage
        .application("healing", |app| {
            app["spec"]["source"]["path"] = json!("other");
            automated(app);
        })
        .await?;
    let other = objects::config_map("other", &[("a", "1")]);
    stage.repo.commit(&[("other/all.yaml", objects::manifests(std::slice::from_ref(&other)))])?;
    stage.refresh(&healing).await?;
    stage.until_sync(&healing, "Synced").await?;
    stage.until_sync(&shown, "OutOfSync").await?;
    while_stopped(&cluster, PrivateCluster::back_up).await?;

    // After the backup the first app is synced by a user, the second one by a new commit.
    let changed = objects::config_map("other", &[("a", "2")]);
    stage.repo.commit(&[("other/all.yaml", objects::manifests(std::slice::from_ref(&changed)))])?;
    stage.place.patch_as("a-person", &shown, &json!({"operation": {"sync": {}}})).await?;
    stage.until_sync(&shown, "Synced").await?;
    stage.refresh(&healing).await?;
    stage.place.wait(&other, "has the new value", |live| live["data"]["a"] == "2").await?;
    stage.until_sync(&healing, "Synced").await?;

    let pid = stage.pid()?;
    while_stopped(&cluster, PrivateCluster::restore).await?;
    stage.place.wait_within(NOTICED_WITHIN, &other, "is healed", |live| live["data"]["a"] == "2").await?;
    stage.until_sync(&shown, "OutOfSync").await?;
    assert!(stage.place.get(&map).await?.is_none(), "the backup does not have it, and no user synced it");
    assert_eq!(stage.pid()?, pid);
    let log = stage.log()?;
    assert_eq!(lines(&log, "the lease is lost"), 0, "{log}");
    assert_eq!(lines(&log, "the data of the API server went back in time"), 1, "one line: {log}");
    Ok(())
}
