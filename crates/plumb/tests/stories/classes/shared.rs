//! One object, two apps.

use anyhow::Result;
use plumb_testkit::objects;
use serde_json::{Value, json};

use super::report::expect;
use crate::stage::Stage;

#[tokio::test]
async fn an_object_of_two_apps_is_red_for_one_until_the_other_lets_it_go() -> Result<()> {
    let stage = Stage::set().await?;
    let shared = objects::config_map("shared", &[("from", "chart")]);
    let wider = objects::with(shared.clone(), "/data/extra", json!("label"));
    let own = |name: &str| objects::config_map(name, &[("a", "1")]);
    stage.repo.commit(&[
        ("owner/all.yaml", objects::manifests(&[shared.clone(), own("owner")])),
        ("other/all.yaml", objects::manifests(&[wider.clone(), own("other")])),
    ])?;
    let of = |path: &'static str| {
        move |app: &mut Value| {
            app["spec"]["source"]["path"] = json!(path);
            app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}});
        }
    };
    let owner = stage.application("owner", of("owner")).await?;
    stage.until_sync(&owner, "Synced").await?;
    let other = stage.application("other", of("other")).await?;
    expect(&stage, &other, "OutOfSync", &["ConfigMap/shared SharedResource! /data/extra"]).await?;
    let before = stage.place.get(&shared).await?.unwrap_or_default();
    expect(&stage, &owner, "Synced", &["ConfigMap/shared SharedResource"]).await?;

    stage.repo.commit(&[("owner/all.yaml", objects::manifests(&[own("owner")]))])?;
    stage.refresh(&owner).await?;
    stage.refresh(&other).await?;
    expect(&stage, &other, "Synced", &[]).await?;
    expect(&stage, &owner, "Synced", &[]).await?;
    let after = stage.place.get(&shared).await?.unwrap_or_default();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"], "nothing was deleted");
    assert_eq!(after["data"], wider["data"]);
    Ok(())
}
