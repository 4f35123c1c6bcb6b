//! The life of an Application at the command line.

use anyhow::Result;
use plumb_testkit::objects;
use serde_json::json;

use crate::bench::Bench;

const SERVER: &str = "https://kubernetes.default.svc";

#[tokio::test]
async fn an_application_is_made_looked_at_and_deleted() -> Result<()> {
    let mut bench = Bench::with_engine().await?;
    let web = objects::deployment("web", 1);
    let service = objects::service("web", 80);
    bench.repo.commit(&[("app/web.yaml", objects::manifests(&[web.clone(), service]))])?;
    let namespace = bench.place.name().to_owned();
    let create = format!(
        "plumb app create web --repo {} --path app --dest-server {SERVER} --dest-namespace {namespace}",
        bench.repo.url()
    );
    bench.plumb(&create)?;
    bench.plumb(&create)?;
    bench.plumb(&format!("{create} --revision main"))?;
    bench.plumb(&format!("{create} --revision main --upsert"))?;
    bench.plumb("plumb app create nothing --repo x")?;
    bench.quietly("plumb app get web --refresh", &[], "")?;
    let report =
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "web"}});
    bench.place.wait(&report, "tells what is missing", |report| report["summary"]["counted"] == 2).await?;
    bench.plumb("plumb app get web --refresh")?;
    bench.plumb("plumb app diff web")?;
    bench.plumb("plumb app diff web --exit-code=false")?;
    let synced = bench.run_from("plumb app sync web", "\nOperation:")?;
    for word in ["TIMESTAMP", "apps", "Deployment", "web", "Synced"] {
        assert!(synced.stdout.contains(word), "{word} is not in\n{}", synced.stdout);
    }
    bench.run_from("plumb app wait web --timeout 60", "\nName:")?;
    bench.place.wait(&report, "tells that all is well", |report| report["summary"]["counted"] == 0).await?;
    bench.plumb("plumb app list")?;
    bench.plumb("plumb app list -o name")?;
    bench.plumb("plumb app list --project other")?;
    bench.plumb("plumb app list -o json")?;
    bench.plumb("plumb app get web")?;
    bench.plumb("plumb app get web -o yaml")?;
    bench.plumb("plumb app history web")?;
    bench.plumb("plumb app history web -o id")?;
    bench.plumb("plumb app resources web")?;
    bench.plumb("plumb app get-resource web --kind Service")?;
    bench.plumb(
        "plumb app get-resource web --kind Service --filter-fields metadata.name,spec.ports -o json",
    )?;
    bench.plumb("plumb app get-resource web --kind Ingress")?;
    bench.plumb("plumb app diff web")?;

    bench.place.scale_as("kubectl-scale", &web, 3).await?;
    let application = objects::application("web", "", "", "");
    bench
        .place
        .wait(&application, "is OutOfSync", |app| app["status"]["sync"]["status"] == "OutOfSync")
        .await?;
    bench.place.wait(&report, "tells of the edit", |report| report["summary"]["worst"] == "LiveEdit").await?;
    bench.plumb("plumb app diff web")?;
    bench.plumb("plumb app diff web --diff-exit-code 7")?;
    bench.plumb("plumb drift")?;
    bench.plumb("plumb drift web")?;
    bench.plumb("plumb app confirm-deletion web")?;
    bench.plumb(
        "plumb app patch-resource web --kind Deployment --resource-name web --patch '{\"spec\":{\"replicas\":1}}'",
    )?;
    bench.place.wait(&application, "is Synced", |app| app["status"]["sync"]["status"] == "Synced").await?;
    bench.plumb("plumb app delete-resource web --kind Service --resource-name web")?;
    bench.run("plumb app delete web", &[], "n\n")?;
    bench.run_from("plumb app delete web --yes --wait", "application")?;
    bench.plumb("plumb app list")?;
    bench.transcript.check("app-life")
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
        .file("editor", "#!/bin/sh\nsed -i 's/revisionHistoryLimit: 3/revisionHistoryLimit: 4/' \"$1\"\n")?;
    let editor = format!("sh {}", editor.display());
    bench.run("plumb app edit web", &[("EDITOR", &editor)], "")?;
    bench.run("plumb app edit web", &[("EDITOR", &editor)], "")?;
    bench.run("plumb app edit web", &[("EDITOR", "false")], "")?;
    bench.plumb(spec)?;
    bench.plumb("plumb app delete web --yes --cascade=false")?;
    bench.transcript.check("app-spec")
}

#[tokio::test]
async fn waiting_ends_when_the_time_is_up_and_watching_when_the_reader_goes() -> Result<()> {
    let mut bench = Bench::new().await?;
    bench.application("idle", |_| {}).await?;
    bench.plumb("plumb app wait idle --health --timeout 1")?;
    bench.plumb("plumb app wait")?;
    bench.plumb("plumb app wait idle --hydrated")?;
    bench.plumb("plumb app sync idle --local .")?;
    bench.plumb("plumb app sync idle --revisions v1")?;
    bench.plumb("plumb app sync idle --async")?;
    bench.plumb("plumb app sync idle")?;
    bench.transcript.check("app-wait")?;

    // The first table comes, the reader goes, the next change ends it.
    let mut command = bench.command("plumb app list --watch")?;
    let mut child = command.stdout(std::process::Stdio::piped()).spawn()?;
    let stdout = child.stdout.take();
    let mut first = String::new();
    if let Some(stdout) = stdout {
        let mut lines = std::io::BufReader::new(stdout);
        std::io::BufRead::read_line(&mut lines, &mut first)?;
        std::io::BufRead::read_line(&mut lines, &mut first)?;
    }
    assert!(first.starts_with("NAME"), "{first}");
    assert!(first.contains("idle"), "{first}");
    bench.application("second", |_| {}).await?;
    let status = tokio::task::spawn_blocking(move || child.wait()).await??;
    assert_eq!(status.code(), Some(0));
    Ok(())
}
