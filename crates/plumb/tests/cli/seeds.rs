//! The commands that people have in their notes, word for word.

use std::io::Write as _;
use std::process::Command;

use anyhow::{Context, Result};
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::bench::Bench;

#[tokio::test]
async fn commands_from_runbooks_work_word_for_word() -> Result<()> {
    let mut bench = Bench::with_engine().await?;
    let web = objects::deployment("payments", 3);
    bench.repo.commit(&[("app/web.yaml", objects::manifests(std::slice::from_ref(&web)))])?;
    let app = bench
        .application("payments", |app| {
            app["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}});
        })
        .await?;
    bench.until(&app, "Synced", "Healthy").await?;
    bench.run("argocd app list", &[], "")?;
    bench.run("argocd app diff payments", &[], "")?;
    // Scaling by hand is put back, until the automation is paused.
    bench.place.scale_as("kubectl-scale", &web, 10).await?;
    bench.place.wait(&web, "is put back", |live| live["spec"]["replicas"] == 3).await?;
    bench.run("argocd app set payments --sync-policy none", &[], "")?;
    bench.place.scale_as("kubectl-scale", &web, 10).await?;
    bench.place.wait(&app, "is OutOfSync", |app| app["status"]["sync"]["status"] == "OutOfSync").await?;
    let report =
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "payments"}});
    bench.place.wait(&report, "tells of the edit", |report| report["summary"]["worst"] == "LiveEdit").await?;
    bench.run("argocd app diff payments", &[], "")?;
    let live = bench.place.wait(&web, "exists", |_| true).await?;
    assert_eq!(live["spec"]["replicas"], 10, "nobody puts it back while the automation is paused");

    // The bird's-eye view.
    let program = r#".items[] | .metadata.name as $app
           | .status.resources[]?
           | select(.status != "Synced")
           | "\($app)\t\(.kind)/\(.name)\t\(.namespace // "cluster")""#;
    let namespace = bench.place.name().to_owned();
    if let Some(listed) = kubectl_jq(&bench, &["get", "applications", "-o", "json"], program)? {
        assert_eq!(listed, format!("payments\tDeployment/payments\t{namespace}\n"));
    }
    bench.run("argocd app set payments --sync-policy automated", &[], "")?;
    let tuned = bench.quietly("argocd app list --core -o json", &[("ARGOCD_OPTS", "--core")], "")?;
    let listed: Value = serde_json::from_str(&tuned.stdout).context("a JSON list")?;
    assert_eq!(
        listed[0]["spec"]["syncPolicy"],
        json!({"automated": {}}),
        "self-heal is not switched on by itself"
    );
    bench.run("kubectl-plumb app list -o name", &[], "")?;
    bench.transcript.check("seeds")
}

/// `kubectl … | jq -r …`; `None` on a machine without the two.
fn kubectl_jq(bench: &Bench, args: &[&str], program: &str) -> Result<Option<String>> {
    let kubectl = Command::new("kubectl")
        .arg("--kubeconfig")
        .arg(bench.place.kubeconfig())
        .args(["-n", bench.place.name()])
        .args(args)
        .output();
    let Ok(kubectl) = kubectl else {
        writeln!(std::io::stdout(), "skipped: there is no kubectl")?;
        return Ok(None);
    };
    let file = bench.file("applications.json", &String::from_utf8(kubectl.stdout)?)?;
    let Ok(jq) = Command::new("jq").arg("-r").arg(program).arg(file).output() else {
        writeln!(std::io::stdout(), "skipped: there is no jq")?;
        return Ok(None);
    };
    Ok(Some(String::from_utf8(jq.stdout)?))
}
