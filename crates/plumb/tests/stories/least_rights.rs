//! The strict profile: plumb reads everything and writes only its own objects.

use anyhow::{Result, ensure};
use plumb_crd::install::{InstallOptions, Profile, install};
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::stage::Stage;

/// Applies the permissions of the strict profile. The names of what is cluster-wide get the namespace as suffix: other
/// tests use the same cluster.
async fn apply_strict_rights(stage: &Stage) -> Result<()> {
    let namespace = stage.place.name().to_owned();
    let options = InstallOptions {
        namespace: namespace.clone(),
        profile: Profile::Strict,
        impersonate_in: vec![namespace.clone()],
        ..InstallOptions::default()
    };
    let unique = |name: &Value| json!(format!("{}-{namespace}", name.as_str().unwrap_or_default()));
    for mut object in install(&options) {
        if object["apiVersion"] != "rbac.authorization.k8s.io/v1" {
            continue;
        }
        if object["kind"] == "ClusterRole" || object["kind"] == "ClusterRoleBinding" {
            object["metadata"]["name"] = unique(&object["metadata"]["name"]);
        }
        if object["roleRef"]["kind"] == "ClusterRole" {
            object["roleRef"]["name"] = unique(&object["roleRef"]["name"]);
        }
        stage.place.apply(&object).await?;
    }
    Ok(())
}

/// The project names the account `deployer`, which may write `ConfigMaps` in this namespace.
async fn bind_deployer(stage: &Stage) -> Result<()> {
    let namespace = stage.place.name().to_owned();
    let accounts = json!({"spec": {"destinationServiceAccounts": [{
        "server": "https://kubernetes.default.svc", "namespace": namespace, "defaultServiceAccount": "deployer",
    }]}});
    stage.place.patch_as("a-person", &objects::app_project("default"), &accounts).await?;
    stage.place.apply(&objects::service_account("deployer")).await?;
    stage
        .place
        .apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "deployer"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}],
        }))
        .await?;
    stage
        .place
        .apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "deployer"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deployer"},
            "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": namespace}],
        }))
        .await?;
    Ok(())
}

#[tokio::test]
async fn with_the_strict_profile_every_write_is_the_projects_account() -> Result<()> {
    let mut stage = Stage::set().await?;
    stage.stop_plumb()?;
    stage.setting("argocd-cm", "application.sync.impersonation.enabled", "true").await?;
    apply_strict_rights(&stage).await?;
    stage.give_plumb_only_its_roles().await?;
    stage.installs = false;

    bind_deployer(&stage).await?;
    let (may, gone) = (objects::config_map("may", &[("a", "1")]), objects::config_map("gone", &[]));
    stage.repo.commit(&[
        ("app/may.yaml", objects::manifests(std::slice::from_ref(&may))),
        ("app/gone.yaml", objects::manifests(std::slice::from_ref(&gone))),
    ])?;
    stage.start_plumb()?;
    let policy = json!({"automated": {"prune": true, "selfHeal": true}});
    let app = stage.application("strict", |app| app["spec"]["syncPolicy"] = policy.clone()).await?;
    stage.until_sync(&app, "Synced").await?;
    // An edit is healed, and an object that left Git is copied and deleted.
    stage.place.patch_as("kubectl-edit", &may, &json!({"data": {"a": "2"}})).await?;
    stage.place.wait(&may, "is healed", |live| live["data"]["a"] == "1").await?;
    stage.repo.remove(&["app/gone.yaml"])?;
    stage.refresh(&app).await?;
    stage.place.wait_gone(&gone).await?;
    ensure!(!stage.place.list("v1", "Secret", "plumb.dev/app=strict").await?.is_empty(), "a copy is kept");

    // A namespace without an account: no sync, and the app says why.
    let once = json!({"automated": {}, "retry": {"limit": 0}});
    let app = stage
        .application("elsewhere", |app| {
            app["spec"]["destination"]["namespace"] = json!("kube-public");
            app["spec"]["syncPolicy"] = once.clone();
        })
        .await?;
    let refused = |app: &Value| {
        let said = app["status"]["operationState"]["message"].as_str().unwrap_or_default();
        said.contains("failed to find a matching service account to impersonate")
    };
    stage.place.wait(&app, "finds no account", refused).await?;
    Ok(())
}
