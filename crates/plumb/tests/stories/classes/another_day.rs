//! A chart that prints the date, looked at on another day by another process.

use anyhow::Result;
use plumb_testkit::objects;
use serde_json::{Value, json};

use super::report::expect;
use crate::stage::Stage;

#[tokio::test]
async fn a_date_of_another_day_is_the_charts_and_an_edit_beside_it_is_not() -> Result<()> {
    let mut stage = Stage::set().await?;
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stamped}\n\
               data: {day: {{ now | date \"2006-01-02\" | quote }}, key: fixed, \
               utc: {{ dateInZone \"2006-01-02\" now \"UTC\" | quote }}}\n";
    stage.repo.commit(&[
        ("chart/Chart.yaml", "apiVersion: v2\nname: stamped\nversion: 1.0.0\n"),
        ("chart/templates/map.yaml", map),
    ])?;
    let of_chart = |app: &mut Value| {
        app["spec"]["source"]["path"] = json!("chart");
        app["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}, "retry": {"limit": 0}});
    };
    let app = stage.application("stamped", of_chart).await?;
    expect(&stage, &app, "Synced", &[]).await?;

    // What plumb applied the day before, as it looks today.
    stage.kill_plumb()?;
    let mark = format!("stamped:/ConfigMap:{}/stamped", stage.place.name());
    let before =
        objects::config_map("stamped", &[("day", "2020-02-29"), ("key", "fixed"), ("utc", "2020-02-29")]);
    let before = objects::annotated(before, "argocd.argoproj.io/tracking-id", &mark);
    stage.place.apply_as("argocd-controller", &before).await?;
    stage.start_plumb()?;
    let unstable = "ConfigMap/stamped UnstableRender /data/day /data/utc";
    expect(&stage, &app, "Synced", &[unstable]).await?;

    stage.place.patch_as("kubectl-edit", &before, &json!({"data": {"key": "edited"}})).await?;
    let healed = stage.place.wait(&before, "is healed", |live| live["data"]["key"] == "fixed").await?;
    for field in ["day", "utc"] {
        assert_eq!(healed["data"][field], "2020-02-29", "{field} is not for a heal to change");
    }
    expect(&stage, &app, "Synced", &[unstable]).await
}
