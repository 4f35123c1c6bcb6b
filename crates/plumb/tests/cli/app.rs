//! `plumb app`: from `create` to `delete`.

use anyhow::Result;
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::bench::Bench;

const SERVER: &str = "https://kubernetes.default.svc";

#[tokio::test]
async fn an_application_is_created_shown_and_deleted() -> Result<()> {
    let mut bench = Bench::with_engine().await?;
    let web = objects::deployment("web", 1);
    let service = objects::service("web", 80);
    bench.repo.commit(&[("app/web.yaml", objects::manifests(&[web.clone(), service]))])?;
    let namespace = bench.place.name().to_owned();
    let create = format!(
        "plumb app create shop --repo {} --path app --dest-server {SERVER} --dest-namespace {namespace}",
        bench.repo.url()
    );
    bench.plumb(&create)?;
    bench.plumb(&create)?;
    bench.plumb(&format!("{create} --revision main"))?;
    bench.plumb(&format!("{create} --revision main --upsert"))?;
    bench.plumb("plumb app create nothing --repo x")?;
    bench.quietly("plumb app get shop --refresh", &[], "")?;
    let report =
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "shop"}});
    bench.place.wait(&report, "tells what is missing", |report| report["summary"]["counted"] == 2).await?;
    bench.plumb("plumb app get shop --refresh")?;
    bench.plumb("plumb app diff shop")?;
    bench.plumb("plumb app diff shop --exit-code=false")?;
    // The state of the pods at the end differs from run to run.
    let synced = bench.quietly("plumb app sync shop", &[], "")?;
    assert_eq!(synced.code, 0, "{}", synced.stderr);
    for word in
        ["TIMESTAMP", "apps", "Deployment", "web", "Synced", "Healthy", "Phase:              Succeeded"]
    {
        assert!(synced.stdout.contains(word), "{word} is not in\n{}", synced.stdout);
    }
    bench.run_from("plumb app wait shop --timeout 60", "\nName:")?;
    let waited = bench.quietly("plumb app wait shop --timeout 60 -o json", &[], "")?;
    let waited: Value = serde_json::from_str(&waited.stdout)?;
    assert_eq!(waited["status"]["sync"]["status"], "Synced", "{waited:#}");
    bench.place.wait(&report, "tells that all is well", |report| report["summary"]["counted"] == 0).await?;
    bench.plumb("plumb app list")?;
    bench.plumb("plumb app list -o name")?;
    bench.plumb("plumb app list --project other")?;
    bench.plumb("plumb app list -o json")?;
    bench.plumb("plumb app get shop")?;
    bench.plumb("plumb app get shop -o yaml")?;
    bench.plumb("plumb app history shop")?;
    bench.plumb("plumb app history shop -o id")?;
    bench.plumb("plumb app resources shop")?;
    bench.plumb("plumb app get-resource shop --kind Service")?;
    bench.plumb(
        "plumb app get-resource shop --kind Service --filter-fields metadata.name,spec.ports -o json",
    )?;
    bench.plumb("plumb app get-resource shop --kind Ingress")?;
    bench.plumb("plumb app diff shop")?;

    bench.place.scale_as("kubectl-scale", &web, 3).await?;
    let application = objects::application("shop", "", "", "");
    bench
        .place
        .wait(&application, "is OutOfSync", |app| app["status"]["sync"]["status"] == "OutOfSync")
        .await?;
    bench.place.wait(&report, "tells of the edit", |report| report["summary"]["worst"] == "LiveEdit").await?;
    bench.plumb("plumb app diff shop")?;
    bench.plumb("plumb app diff shop --diff-exit-code 7")?;
    bench.plumb("plumb drift")?;
    bench.plumb("plumb drift shop")?;
    bench.plumb("plumb app confirm-deletion shop")?;
    bench.plumb(
        "plumb app patch-resource shop --kind Deployment --resource-name web --patch '{\"spec\":{\"replicas\":1}}'",
    )?;
    bench.place.wait(&application, "is Synced", |app| app["status"]["sync"]["status"] == "Synced").await?;
    bench.plumb("plumb app delete-resource shop --kind Service --resource-name web")?;
    bench.run("plumb app delete shop", &[], "n\n")?;
    bench.run_from("plumb app delete shop --yes --wait", "application")?;
    bench.plumb("plumb app list")?;
    bench.shell.transcript.check("app-lifecycle")
}

#[tokio::test]
async fn a_spec_is_changed() -> Result<()> {
    let mut bench = Bench::new().await?;
    bench.application("web", |_| {}).await?;
    let spec = "plumb app get web -o yaml";
    bench.plumb("plumb app set web")?;
    bench.plumb("plumb app set web --sync-policy automated --auto-prune --self-heal")?;
    bench.plumb("plumb app set web --sync-policy automated --auto-prune --self-heal")?;
    bench.plumb("plumb app set web --sync-policy none")?;
    bench.plumb("plumb app set web --auto-prune")?;
    bench.plumb(
        "plumb app set web --revision v1 -p a=1 -p b=2 --values x.yaml --sync-option CreateNamespace=true",
    )?;
    bench.plumb("plumb app unset web -p a --values x.yaml")?;
    bench.plumb("plumb app unset web -p a")?;
    bench.plumb("plumb app set web --source-position 2 --revision v2")?;
    bench.plumb("plumb app add-source web --repo https://example.com/values.git --ref values")?;
    bench.plumb("plumb app set web --revision v3")?;
    bench.plumb("plumb app set web --revision v3 --source-position 1")?;
    bench.plumb("plumb app remove-source web --source-position 2")?;
    bench.plumb("plumb app remove-source web --source-position 1")?;
    bench.plumb("plumb app patch web --type merge --patch '{\"spec\":{\"revisionHistoryLimit\":3}}'")?;
    bench.plumb("plumb app patch web --patch '{\"spec\":{}}'")?;
    let editor = bench
        .shell
        .file("editor", "#!/bin/sh\nsed -i 's/revisionHistoryLimit: 3/revisionHistoryLimit: 4/' \"$1\"\n")?;
    let editor = format!("sh {}", editor.display());
    bench.run("plumb app edit web", &[("EDITOR", &editor)], "")?;
    bench.run("plumb app edit web", &[("EDITOR", &editor)], "")?;
    bench.run("plumb app edit web", &[("EDITOR", "false")], "")?;
    bench.plumb(spec)?;
    bench.plumb("plumb app delete web --yes --cascade=false")?;
    bench.shell.transcript.check("app-spec")
}

#[tokio::test]
async fn waiting_ends_with_the_timeout() -> Result<()> {
    let mut bench = Bench::new().await?;
    bench.application("idle", |_| {}).await?;
    bench.plumb("plumb app wait idle --health --timeout 1")?;
    bench.plumb("plumb app wait")?;
    bench.plumb("plumb app wait idle --hydrated")?;
    bench.plumb("plumb app sync idle --local .")?;
    bench.plumb("plumb app sync idle --revisions v1")?;
    bench.plumb("plumb app sync idle --async")?;
    bench.plumb("plumb app sync idle")?;
    bench.shell.transcript.check("app-wait")
}

#[tokio::test]
async fn another_revision_is_rendered_and_compared() -> Result<()> {
    let mut bench = Bench::with_engine().await?;
    let checkout = bench.repo.path().display().to_string();
    bench.shell.transcript.call(&checkout, "CHECKOUT");
    let config = objects::config_map("settings", &[("colour", "red")]);
    let secret = objects::secret("db", &[("password", "canary-one")]);
    let all = [objects::deployment("web", 1), config, secret];
    bench.repo.commit(&[("app/all.yaml", objects::manifests(&all))])?;
    let app = bench.application("trial", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    bench.until(&app, "Synced", "Healthy").await?;
    bench.repo.branch("next")?;
    let next = [
        objects::deployment("web", 2),
        objects::config_map("more", &[("a", "1")]),
        objects::secret("db", &[("password", "canary-two")]),
    ];
    bench.repo.commit(&[("app/all.yaml", objects::manifests(&next))])?;
    bench.repo.checkout("main")?;

    bench.plumb("plumb app manifests trial")?;
    bench.plumb("plumb app manifests trial --revision next")?;
    bench.plumb("plumb app manifests trial --revision nowhere")?;
    bench.plumb("plumb app diff trial --revision main")?;
    bench.plumb("plumb app diff trial --revision next")?;
    bench.plumb(&format!("plumb app diff trial --local {checkout}/app"))?;
    bench.repo.write("app/all.yaml", objects::manifests(&[objects::deployment("web", 5)]).as_bytes())?;
    bench.plumb(&format!("plumb app diff trial --local {checkout}/app"))?;
    bench.plumb(&format!("plumb app diff trial --local {checkout}/nowhere"))?;
    bench.plumb("plumb app diff trial --revisions v1")?;
    bench.plumb("plumb app diff trial --server-side-generate")?;
    let live = bench.quietly("plumb app manifests trial --source live", &[], "")?;
    assert_eq!(live.stdout.matches("\nkind: ").count(), 3, "{}", live.stdout);
    assert!(!live.stdout.contains("Y2FuYXJ5"), "{}", live.stdout);
    bench.plumb("plumb app manifests trial --source live --revision next")?;

    bench.plumb("plumb app actions list trial --kind Deployment")?;
    bench.plumb("plumb app actions list trial --kind Deployment -o json")?;
    bench.plumb("plumb app actions run trial restart --kind Deployment --resource-name web")?;
    bench.plumb("plumb app actions run trial fly --kind Deployment")?;
    let web = objects::deployment("web", 1);
    let restarted = |live: &serde_json::Value| {
        live["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"].is_string()
    };
    bench.shell.transcript.check("app-revision")?;
    bench.place.wait(&web, "was restarted", restarted).await?;
    let said = format!("{:?}", bench.shell.transcript);
    for canary in ["canary", "Y2FuYXJ5"] {
        assert!(!said.contains(canary), "{canary} is shown");
    }
    Ok(())
}

#[tokio::test]
async fn the_tree_shows_what_objects_own() -> Result<()> {
    let mut bench = Bench::with_engine().await?;
    bench.repo.commit(&[("app/all.yaml", objects::manifests(&[objects::deployment("web", 1)]))])?;
    let app = bench.application("grove", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    bench.until(&app, "Synced", "Healthy").await?;
    let report =
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "grove"}});
    bench.place.wait(&report, "tells of the defaults", |report| report["summary"]["explained"] == 1).await?;
    // The name of the pod begins with the name of its replica set.
    for (version, kind, name) in [("v1", "Pod", "web-HASH-POD"), ("apps/v1", "ReplicaSet", "web-HASH")] {
        let found = bench.place.list(version, kind, "").await?;
        bench.shell.transcript.call(found.keys().next().map_or("", String::as_str), name);
    }
    bench.plumb("plumb app get grove -o tree")?;
    bench.plumb("plumb app resources grove --output tree=detailed")?;
    bench.plumb("plumb app resources grove --orphaned")?;
    bench.shell.transcript.check("tree")
}
