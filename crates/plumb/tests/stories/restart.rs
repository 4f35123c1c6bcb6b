//! What a start finds: what happened while plumb was away, and whose everything is.

use anyhow::Result;
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::stage::Stage;

#[tokio::test]
async fn an_edit_made_while_plumb_was_away_is_an_edit() -> Result<()> {
    let mut stage = Stage::set().await?;
    let map = objects::config_map("edited", &[("a", "1")]);
    stage.repo.commit(&[("app/map.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    let app = stage.application("edited", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    // A commit that is not about this app: what is shown and what was synced are two revisions.
    let revision = stage.repo.commit(&[("elsewhere/note.md", "nothing for this app")])?;
    stage.refresh(&app).await?;
    stage
        .place
        .wait(&app, "shows the newer commit", |app| app["status"]["sync"]["revision"] == revision.as_str())
        .await?;

    stage.kill_plumb()?;
    stage.place.patch_as("a-person", &map, &json!({"data": {"a": "2"}})).await?;
    stage.start_plumb()?;
    stage.until_sync(&app, "OutOfSync").await?;
    let finding = stage.finding(&app, "ConfigMap", "edited", "LiveEdit").await?;
    assert_eq!(finding["actor"], "a-person");
    Ok(())
}

#[tokio::test]
async fn what_the_server_refused_before_a_restart_is_refused_after_it() -> Result<()> {
    let mut stage = Stage::set().await?;
    let mut job = objects::job("once");
    job["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    stage.repo.commit(&[("app/job.yaml", objects::manifests(std::slice::from_ref(&job)))])?;
    let automated = |app: &mut Value| {
        app["spec"]["syncPolicy"] = json!({"automated": {}, "retry": {"limit": 0}});
    };
    let app = stage.application("refused", automated).await?;
    let failed = |app: &Value| app["status"]["operationState"]["phase"] == "Failed";
    stage.place.wait(&app, "cannot be synced", failed).await?;
    let told = stage.finding(&app, "Job", "once", "Blocked").await?;

    stage.kill_plumb()?;
    let report =
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "refused"}});
    stage.place.delete(&report).await?;
    stage.start_plumb()?;
    let again = stage.finding(&app, "Job", "once", "Blocked").await?;
    assert_eq!(again["evidence"], told["evidence"]);
    Ok(())
}

#[tokio::test]
async fn a_start_takes_no_object_from_the_app_that_has_it() -> Result<()> {
    let mut stage = Stage::set().await?;
    let shared = objects::config_map("shared", &[("a", "1")]);
    let both = objects::manifests(std::slice::from_ref(&shared));
    stage.repo.commit(&[("app/map.yaml", both.clone()), ("other/map.yaml", both)])?;
    let owner =
        stage.application("owner", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&owner, "Synced").await?;
    let other = stage
        .application("another", |app| {
            app["spec"]["source"]["path"] = json!("other");
            app["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true, "prune": true}});
        })
        .await?;
    stage.finding(&other, "ConfigMap", "shared", "SharedResource").await?;
    let before = stage.place.get(&shared).await?.unwrap_or_default();

    stage.kill_plumb()?;
    // The owner cannot be rendered any more, so that nothing but its status tells what it asks for.
    let gone = json!({"spec": {"source": {"targetRevision": "no-such-branch"}}});
    stage.place.patch_as("a-person", &owner, &gone).await?;
    stage.start_plumb()?;
    let failed = |app: &Value| app["status"]["sync"]["status"] == "Unknown";
    stage.place.wait(&owner, "cannot be compared", failed).await?;
    stage.refresh(&other).await?;
    stage.finding(&other, "ConfigMap", "shared", "SharedResource").await?;
    let after = stage.place.get(&shared).await?.unwrap_or_default();
    assert_eq!(
        after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"],
        "nobody wrote it"
    );
    Ok(())
}
