//! `plumb pause` and `plumb resume`, as lists show them.

use anyhow::Result;
use plumb_testkit::objects;
use serde_json::json;

use crate::bench::Bench;

#[tokio::test]
async fn a_pause_is_seen_in_lists_and_outlives_a_sync_of_the_app_of_apps() -> Result<()> {
    let mut bench = Bench::with_engine().await?;
    let namespace = bench.place.name().to_owned();
    let repository = bench.repo.url();
    let child = |limit: u32| {
        let mut child = objects::application("child", &repository, "child", &namespace);
        child["metadata"]["namespace"] = json!(namespace);
        child["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}});
        child["spec"]["revisionHistoryLimit"] = json!(limit);
        child
    };
    let web = objects::deployment("web", 1);
    bench.repo.commit(&[
        ("app/child.yaml", objects::manifests(&[child(3)])),
        ("child/web.yaml", objects::manifests(std::slice::from_ref(&web))),
    ])?;
    let root = bench
        .application("root", |app| app["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}}))
        .await?;
    bench.until(&root, "Synced", "Healthy").await?;
    bench.until(&child(3), "Synced", "Healthy").await?;

    bench.plumb("plumb pause child --for 2h --reason 'incident 4711'")?;
    bench.plumb("plumb pause root Application/child --for 2h --reason ' '")?;
    bench.place.scale_as("kubectl-scale", &web, 3).await?;
    let application = objects::application("child", "", "", "");
    bench.until(&application, "OutOfSync", "Healthy").await?;
    let report =
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "child"}});
    let told = |report: &serde_json::Value| {
        report["summary"]["worst"] == "LiveEdit" && report["pauses"][0]["reason"] == "incident 4711"
    };
    bench.place.wait(&report, "tells both", told).await?;
    bench.plumb("plumb app list --path child")?;
    bench.plumb("plumb app get child")?;

    // The parent app has self-heal and is synced manually. The pause on the child stays, and the child is not changed.
    bench.repo.commit(&[("app/child.yaml", objects::manifests(&[child(5)]))])?;
    bench.quietly("plumb app get root --refresh", &[], "")?;
    bench.run_from("plumb app sync root --timeout 60", "\nName:")?;
    let live = bench.place.wait(&application, "exists", |_| true).await?;
    assert!(live["metadata"]["annotations"]["plumb.dev/pause"].is_string(), "{live:#}");
    let scaled = bench.place.wait(&web, "exists", |_| true).await?;
    assert_eq!(scaled["spec"]["replicas"], 3, "it is held");

    bench.plumb("plumb resume child")?;
    bench.place.wait(&web, "is healed", |live| live["spec"]["replicas"] == 1).await?;
    let synced = bench.quietly("plumb app sync root --timeout 60", &[], "")?;
    assert_eq!(synced.code, 0, "{}{}", synced.stdout, synced.stderr);
    let as_in_git = |app: &serde_json::Value| app["spec"]["revisionHistoryLimit"] == 5;
    bench.place.wait(&application, "is what Git says", as_in_git).await?;

    // One object instead of the app.
    bench.plumb("plumb pause child apps/Deployment/web --for 2h --reason 'trying a fix'")?;
    let one = |report: &serde_json::Value| report["pauses"][0]["reason"] == "trying a fix";
    bench.place.scale_as("kubectl-scale", &web, 2).await?;
    bench.place.wait(&report, "tells of the object", one).await?;
    bench.until(&application, "OutOfSync", "Healthy").await?;
    bench.plumb("plumb app list --path child")?;
    bench.plumb("plumb app get child")?;
    bench.shell.transcript.check("pauses")
}
