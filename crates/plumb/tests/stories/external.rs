//! `ExternalSecrets` under the operator's real definitions: what the API server adds means nothing, what somebody changes
//! counts, and health is what the operator says. In the first story the operator is played, in the second one it runs.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_core::yaml::{Limits, parse_documents};
use plumb_testkit::cluster::external_secrets_definitions;
use plumb_testkit::{another_cluster, objects, wait};
use serde_json::{Value, json};

use crate::stage::Stage;

/// The shortest spelling that the operator's documentation shows: the API server fills in the rest.
fn external_secret() -> Value {
    json!({"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": {"name": "db"}, "spec": {
        "refreshInterval": "60m",
        "secretStoreRef": {"name": "vault"},
        "data": [{"secretKey": "password", "remoteRef": {"key": "shop/db"}}],
        "dataFrom": [{"extract": {"key": "shop/more"}}]}})
}

fn store() -> Value {
    json!({"apiVersion": "external-secrets.io/v1", "kind": "SecretStore", "metadata": {"name": "vault"}, "spec": {
        "provider": {"fake": {"data": [{"key": "shop/db", "value": "x"}]}}}})
}

/// Sets the interval of some `ExternalSecrets` on every write, as a policy of a platform team does.
async fn slow_down(stage: &Stage) -> Result<()> {
    let name = stage.place.name();
    let group = "admissionregistration.k8s.io/v1";
    let rule = json!({"apiGroups": ["external-secrets.io"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
        "resources": ["externalsecrets"]});
    let policy = json!({"apiVersion": group, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": {
        "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [rule], "objectSelector": {"matchLabels": {"slow": name}}},
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {
            "expression": "[JSONPatch{op: \"replace\", path: \"/spec/refreshInterval\", value: \"24h0m0s\"}]"}}],
    }});
    let binding = json!({"apiVersion": group, "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name}});
    stage.place.apply(&policy).await?;
    stage.place.apply(&binding).await?;
    // A policy works a moment after it was written, which nothing tells.
    let mut probe = slowed(name);
    probe["metadata"]["name"] = json!("probe");
    let works = async || {
        let _ = stage.place.delete(&probe).await;
        stage.place.apply(&probe).await.is_ok_and(|live| live["spec"]["refreshInterval"] == "24h0m0s")
    };
    wait::until_seen(wait::LIMIT, "the policy works", works, |works| *works).await?;
    stage.place.delete(&probe).await
}

fn slowed(name: &str) -> Value {
    let mut external = objects::labelled(external_secret(), "slow", name);
    external["metadata"]["name"] = json!("slow");
    external["spec"]["refreshInterval"] = json!("1h0m0s");
    external["spec"]["target"] = json!({"name": "slow"});
    external
}

/// A stage whose cluster has the kinds.
async fn stage() -> Result<Stage> {
    let cluster = tokio::task::spawn_blocking(another_cluster).await??;
    let stage = Stage::bare_in(cluster).await?;
    let folder = tokio::task::spawn_blocking(external_secrets_definitions).await??;
    for kind in ["externalsecrets", "secretstores"] {
        let file = folder.join(format!("external-secrets.io_{kind}.yaml"));
        let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let limits = Limits { max_bytes: 4 << 20, ..Limits::default() };
        for mut document in parse_documents(&text, &limits)? {
            // A webhook of the operator converts old versions; it does not run here.
            if let Some(spec) = document.value.get_mut("spec").and_then(Value::as_object_mut) {
                spec.remove("conversion");
            }
            stage.place.apply(&document.value).await?;
        }
    }
    let served = async || {
        stage.place.list("external-secrets.io/v1", "ExternalSecret", "").await.is_ok()
            && stage.place.list("external-secrets.io/v1", "SecretStore", "").await.is_ok()
    };
    wait::until_seen(Duration::from_mins(1), "the kinds are served", served, |done| *done).await?;
    Ok(stage)
}

#[tokio::test]
async fn the_defaults_of_external_secrets_mean_nothing_and_edits_count() -> Result<()> {
    let mut stage = stage().await?;
    stage.begin().await?;
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[store(), external_secret()]))])?;
    let app =
        stage.application("externals", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    let live = stage.place.get(&external_secret()).await?.context("the ExternalSecret")?;
    assert_eq!(live["spec"]["target"]["creationPolicy"], "Owner", "the API server filled in nothing");
    assert_eq!(live["spec"]["data"][0]["remoteRef"]["conversionStrategy"], "Default");

    // The operator reports; its Secret is a part of the health.
    let ready = |status: &str| json!({"conditions": [{"type": "Ready", "status": status, "message": "as said"}], "refreshTime": "2026-01-01T00:00:00Z"});
    let health = |live: &Value| live["status"]["health"]["status"].as_str().unwrap_or_default().to_owned();
    let store_ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    stage.place.patch_status_as("external-secrets", &store(), &store_ready).await?;
    stage.place.patch_status_as("external-secrets", &external_secret(), &ready("False")).await?;
    stage.place.wait(&app, "is Degraded", |live| health(live) == "Degraded").await?;
    let mut secret = objects::secret("db", &[("password", "x")]);
    secret["metadata"]["ownerReferences"] = json!([{"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret",
        "name": "db", "uid": live["metadata"]["uid"], "controller": true}]);
    stage.place.apply_as("external-secrets", &secret).await?;
    stage.place.patch_status_as("external-secrets", &external_secret(), &ready("True")).await?;
    let well = stage.place.wait(&app, "is Healthy", |live| health(live) == "Healthy").await?;
    assert_eq!(
        well["status"]["sync"]["status"], "Synced",
        "the operator's status and Secret count for nothing"
    );

    let edit = json!({"spec": {"refreshInterval": "1m"}});
    stage.place.patch_as("kubectl-edit", &external_secret(), &edit).await?;
    let finding = stage.finding(&app, "ExternalSecret", "db", "LiveEdit").await?;
    ensure!(finding.to_string().contains("refreshInterval"), "{finding}");
    stage.until_sync(&app, "OutOfSync").await?;

    // Somebody edits the Secret that the operator made: Git has no line of it, and the doctor names it.
    let patch = json!({"stringData": {"password": "wryneck"}});
    stage.place.patch_as("kubectl-edit", &secret, &patch).await?;
    let said = stage.plumb(&["doctor", "--secrets"])?;
    ensure!(said.contains("EDITED BY HAND") && said.contains("(password) by kubectl-edit"), "{said}");
    ensure!(said.contains("made from ExternalSecret db") && !said.contains("wryneck"), "{said}");

    // What a policy sets on every write counts for nothing.
    slow_down(&stage).await?;
    stage.repo.commit(&[("slow/all.yaml", objects::manifests(&[slowed(stage.place.name())]))])?;
    let slow = stage
        .application("slow-externals", |app| {
            app["spec"]["source"]["path"] = json!("slow");
            app["spec"]["syncPolicy"] = json!({"automated": {}});
        })
        .await?;
    let finding = stage.finding(&slow, "ExternalSecret", "slow", "AdmissionMutated").await?;
    ensure!(finding["counts"] == false && finding.to_string().contains("refreshInterval"), "{finding}");
    stage.until_sync(&slow, "Synced").await?;
    Ok(())
}

/// The operator for one namespace. It ends with this value, and with this process.
struct Operator(Child);

impl Operator {
    #[expect(clippy::disallowed_methods, reason = "where the program is, is chosen outside")]
    fn start(stage: &Stage) -> Result<Self> {
        let program = std::env::var_os("PLUMB_EXTERNAL_SECRETS")
            .context("PLUMB_EXTERNAL_SECRETS must name the program")?;
        let child = Command::new(program)
            .arg("--kubeconfig")
            .arg(stage.place.kubeconfig())
            .args(["--namespace", stage.place.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("start the External Secrets operator")?;
        Ok(Self(child))
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // It holds nothing that an orderly end would save.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
#[ignore = "needs the operator, which takes minutes to build: `cargo xtask test --with external-secrets`"]
async fn the_operator_makes_the_secret_that_the_next_wave_needs() -> Result<()> {
    const VALUE: &str = "a-value-of-the-store";
    let mut stage = stage().await?;
    stage.begin().await?;
    let mut store = store();
    store["spec"]["provider"]["fake"]["data"] = json!([{"key": "shop/db", "value": VALUE}]);
    let mut external = external_secret();
    if let Some(spec) = external["spec"].as_object_mut() {
        spec.remove("dataFrom");
    }
    let mut web = objects::annotated(objects::deployment("web", 1), "argocd.argoproj.io/sync-wave", "1");
    web["spec"]["template"]["spec"]["containers"][0]["envFrom"] = json!([{"secretRef": {"name": "db"}}]);
    let commit = |external: &Value| {
        let all = [store.clone(), external.clone(), web.clone()];
        stage.repo.commit(&[("app/all.yaml", objects::manifests(&all))])
    };
    commit(&external)?;
    let app =
        stage.application("operated", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    let waits = |live: &Value| {
        let message = live["status"]["operationState"]["message"].as_str().unwrap_or_default();
        live["status"]["operationState"]["phase"] == "Running" && message.contains("ExternalSecret/db")
    };
    stage.place.wait(&app, "waits for the ExternalSecret", waits).await?;
    ensure!(stage.place.get(&web).await?.is_none(), "the next wave did not wait");

    let _operator = Operator::start(&stage)?;
    stage.until_sync(&app, "Synced").await?;
    let health = |live: &Value| live["status"]["health"]["status"].as_str().unwrap_or_default().to_owned();
    let well = stage.place.wait(&app, "is Healthy", |live| health(live) == "Healthy").await?;
    let secret = objects::secret("db", &[]);
    let made = stage.place.get(&secret).await?.context("the Secret")?;
    assert_eq!(made["data"]["password"], STANDARD.encode(VALUE));
    let told = well.to_string() + &stage.log()?;
    ensure!(!told.contains(VALUE) && !told.contains(&STANDARD.encode(VALUE)), "the value is told");
    // The operator's own writes are no edits by hand, and the store is found.
    let said = stage.plumb(&["doctor", "--secrets"])?;
    ensure!(said.contains("nothing to do about the Secrets of 1 app"), "{said}");

    // It writes again what somebody changes.
    let patch = json!({"stringData": {"password": "wryneck"}});
    stage.place.patch_as("kubectl-edit", &secret, &patch).await?;
    let is_back = |live: &Value| live["data"]["password"] == STANDARD.encode(VALUE);
    stage.place.wait(&secret, "is what the store has", is_back).await?;

    // What the store does not have makes the app ill, with the operator's own words.
    external["spec"]["data"][0]["remoteRef"]["key"] = json!("shop/none");
    commit(&external)?;
    let ill = stage.place.wait(&app, "is Degraded", |live| health(live) == "Degraded").await?;
    ensure!(!ill.to_string().contains(VALUE), "{ill}");
    Ok(())
}
