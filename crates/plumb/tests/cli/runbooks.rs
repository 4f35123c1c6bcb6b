//! Commands of argocd from runbooks.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use plumb_testkit::{objects, programs};
use serde_json::{Value, json};

use crate::bench::{Bench, path_with};

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
    // A manual scale is reverted until automated sync is off.
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

    // An overview with jq, with an inline program and one from a file.
    let program = r#".items[] | .metadata.name as $app
           | .status.resources[]?
           | select(.status != "Synced")
           | "\($app)\t\(.kind)/\(.name)\t\(.namespace // "cluster")""#;
    let namespace = bench.place.name().to_owned();
    let red = format!("payments\tDeployment/payments\t{namespace}\n");
    let typed =
        format!("kubectl -n {namespace} get applications -o json \\\n  | jq -r '{program}' \\\n  | sort");
    assert_eq!(piped(&bench, &typed)?.unwrap_or_else(|| red.clone()), red);
    let file = bench.shell.file("drift.jq", program)?;
    let from_file = format!(
        "kubectl -n {namespace} get applications -o json | jq -r -f {} | sort | head -30",
        file.display()
    );
    assert_eq!(piped(&bench, &from_file)?.unwrap_or_else(|| red.clone()), red);

    // Which Ingresses use an IngressClass?
    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "shop"},
        "spec": {"ingressClassName": "nginx", "defaultBackend": {"service": {"name": "shop", "port": {"number": 80}}}}});
    bench.place.apply(&ingress).await?;
    let users = r#"kubectl get ingress -A -o json \
  | jq -r '.items[] | select(.spec.ingressClassName=="nginx")
                   | "\(.metadata.namespace)/\(.metadata.name)"'"#;
    if let Some(users) = piped(&bench, users)? {
        let shop = format!("{namespace}/shop");
        assert!(users.lines().any(|user| user == shop), "{users}");
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
    bench.shell.transcript.check("runbooks")
}

/// The output of a shell pipe; `None` on a machine without jq.
fn piped(bench: &Bench, line: &str) -> Result<Option<String>> {
    if Command::new("jq").arg("--version").output().is_err() {
        plumb_testkit::skipped("JQ", "there is no jq")?;
        return Ok(None);
    }
    let kubectl = programs()?.kubectl.parent().context("kubectl lies in no folder")?;
    let output = Command::new("sh")
        .args(["-c", line])
        .env("PATH", path_with(std::iter::once(kubectl)))
        .env("KUBECONFIG", bench.place.kubeconfig())
        .output()
        .context("run sh")?;
    ensure!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(Some(String::from_utf8(output.stdout)?))
}
