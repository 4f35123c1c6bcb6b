//! `plumb install`: what it prints is taken by kubectl and by the cluster's own rules.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use plumb_testkit::{objects, programs};
use serde_json::{Value, json};

use crate::server::Client;
use crate::stage::Stage;

/// `kubectl … -f -` with this text.
pub(crate) fn kubectl(stage: &Stage, words: &[&str], text: &str) -> Result<String> {
    let mut child = Command::new(&programs()?.kubectl)
        .arg("--kubeconfig")
        .arg(stage.place.kubeconfig())
        .args(words)
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("run kubectl")?;
    child.stdin.take().context("no stdin")?.write_all(text.as_bytes())?;
    let output = child.wait_with_output()?;
    let (answer, talk) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "kubectl {}: {answer}{talk}", words.join(" "));
    Ok(answer.into_owned())
}

#[tokio::test]
async fn what_is_printed_is_applied_by_kubectl_and_keeps_to_the_strictest_rules() -> Result<()> {
    let stage = Stage::bare().await?;
    let printed = stage.plumb(&["install", "--image", "registry.example/plumb:1"])?;
    let without = stage.plumb(&["install", "--image", "registry.example/plumb:1", "--without-project"])?;
    ensure!(printed.starts_with(&without) && !without.contains("\nkind: AppProject"), "{without}");
    // Everything, definitions included, in the server's eyes; without effect on the other tests of this cluster.
    for words in [&["apply", "--dry-run=server"][..], &["apply", "--dry-run=server", "--server-side"]] {
        let said = kubectl(&stage, words, &printed)?;
        ensure!(said.matches("server dry run").count() >= 13, "{said}");
    }
    let documents = printed.split("\n---\n").filter(|text| !text.contains("kind: CustomResourceDefinition"));
    let rest = documents.collect::<Vec<_>>().join("\n---\n");
    let first = kubectl(&stage, &["apply"], &rest)?;
    ensure!(first.contains("deployment.apps/plumb created"), "{first}");
    ensure!(first.contains("appproject.argoproj.io/default created"), "{first}");
    let again = kubectl(&stage, &["apply"], &rest)?;
    // kubectl sends the selector of a disruption budget every time: its type says that it is replaced as a whole.
    let is_settled =
        |line: &str| line.ends_with("unchanged") || line.starts_with("poddisruptionbudget.policy/");
    ensure!(again.lines().all(is_settled), "nothing to do a second time: {again}");

    let deployment = objects::deployment("plumb", 2);
    let both = |live: &Value| live["status"]["readyReplicas"] == 2;
    stage.place.wait(&deployment, "has two ready pods", both).await?;
    // The rules that those two keep to are really in force.
    let mut privileged = objects::pod("privileged");
    privileged["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    let refused = stage.place.apply(&privileged).await.err().context("a privileged pod was let in")?;
    ensure!(format!("{refused:#}").contains("violates PodSecurity \"restricted"), "{refused:#}");
    for (version, kind) in
        [("networking.k8s.io/v1", "NetworkPolicy"), ("policy/v1", "PodDisruptionBudget"), ("v1", "Service")]
    {
        let found = stage.place.list(version, kind, "app.kubernetes.io/name=plumb").await?;
        ensure!(found.contains_key("plumb"), "{kind}");
    }
    let cluster_wide = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: plumb}\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: plumb}\n";
    kubectl(&stage, &["delete"], cluster_wide)?;
    Ok(())
}

#[tokio::test]
async fn the_default_project_is_made_where_there_is_none_and_never_written_over() -> Result<()> {
    let mut stage = Stage::set().await?;
    let default = objects::app_project("default");
    // plumb records that it made the project, right after it.
    stage.place.wait(&objects::config_map("plumb-state", &[]), "is there", |_| true).await?;
    let narrow = json!({"spec": {"sourceRepos": ["https://git.example.com/team/*"], "destinations": []}});
    stage.place.patch_as("a-person", &default, &narrow).await?;
    stage.stop_plumb()?;
    stage.begin().await?;
    let kept = stage.place.get(&default).await?.unwrap_or_default();
    assert_eq!(kept["spec"]["sourceRepos"], narrow["spec"]["sourceRepos"]);

    // An operator who deletes it closes the installation: it does not come back, with or without `--install`.
    stage.stop_plumb()?;
    stage.place.delete(&default).await?;
    for installs in [true, false] {
        stage.installs = installs;
        stage.start_plumb()?;
        let narrow = stage.application("closed", |_| {}).await?;
        let refused = |app: &Value| app["status"]["conditions"].to_string().contains("does not exist");
        stage.place.wait(&narrow, "has no project", refused).await?;
        stage.place.delete(&narrow).await?;
        stage.stop_plumb()?;
        ensure!(stage.place.get(&default).await?.is_none(), "the project came back");
    }
    Ok(())
}

#[tokio::test]
async fn the_leader_makes_the_default_project_in_a_new_namespace() -> Result<()> {
    // The kinds are installed by another plumb of this cluster.
    let _installed = Stage::set().await?;
    let mut stage = Stage::bare().await?;
    stage.installs = false;
    stage.start_plumb()?;
    let made = stage.place.wait(&objects::app_project("default"), "is there", |_| true).await?;
    assert_eq!(made["spec"]["sourceRepos"], json!(["*"]));
    Ok(())
}

/// The Deployment passes `server.*` of `argocd-cmd-params-cm` on as these variables.
#[tokio::test]
async fn the_settings_of_argo_cds_server_are_those_of_plumbs() -> Result<()> {
    let mut stage = Stage::bare().await?;
    stage.serves = true;
    stage.variables = vec![
        ("ARGOCD_SERVER_INSECURE", "true"),
        ("ARGOCD_SERVER_ROOTPATH", "/argo"),
        ("ARGOCD_SERVER_BASEHREF", "/"),
    ];
    stage.begin().await?;
    let nobody = Client { address: stage.address("webhooks").await?, token: String::new() };
    let (code, _, version) = nobody.send("GET", "/argo/api/version", "", &Value::Null).await?;
    ensure!(code == 200 && version["Version"].is_string(), "without TLS, below its path: {code} {version}");
    let (code, ..) = nobody.send("GET", "/api/version", "", &Value::Null).await?;
    ensure!(code == 404, "outside of the path: {code}");
    let (code, _, page) = nobody.send_for_text("GET", "/argo/", "", &Value::Null).await?;
    ensure!(
        code == 200 && !page.contains("<base href=\"/\">"),
        "the page is at the path, too: {code} {page}"
    );
    Ok(())
}
