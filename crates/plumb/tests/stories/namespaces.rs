//! Applications outside the control plane's namespace, and syncs that act as service accounts.

use anyhow::Result;
use plumb_testkit::{TestNamespace, objects};
use serde_json::{Value, json};

use crate::safety::has_condition;
use crate::stage::Stage;

const TRACKING: &str = "argocd.argoproj.io/tracking-id";

#[tokio::test]
async fn apps_of_one_name_live_in_two_namespaces() -> Result<()> {
    let mut stage = Stage::bare().await?;
    let (team, unwelcome, outside) =
        (TestNamespace::new().await?, TestNamespace::new().await?, TestNamespace::new().await?);
    let permitted = format!("{},/^{}$/", team.name(), unwelcome.name());
    stage.setting("argocd-cmd-params-cm", "application.namespaces", &permitted).await?;
    stage.begin().await?;
    let project = json!({"spec": {"sourceNamespaces": [team.name()]}});
    stage.place.patch_as("a-person", &objects::app_project("default"), &project).await?;
    stage.repo.commit(&[
        ("app/map.yaml", objects::manifests(&[objects::config_map("ours", &[("a", "1")])])),
        ("theirs/map.yaml", objects::manifests(&[objects::config_map("theirs", &[("a", "1")])])),
    ])?;
    let elsewhere = |place: &TestNamespace| {
        let namespace = place.name().to_owned();
        move |app: &mut Value| {
            app["metadata"]["namespace"] = json!(namespace);
            app["spec"]["source"]["path"] = json!("theirs");
            app["spec"]["destination"]["namespace"] = json!(namespace);
            app["spec"]["syncPolicy"] = json!({"automated": {}});
        }
    };
    let ours = stage.application("web", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    let theirs = stage.application("web", elsewhere(&team)).await?;
    let refused = stage.application("web", elsewhere(&unwelcome)).await?;
    let unseen = stage.application("web", elsewhere(&outside)).await?;
    stage.until_sync(&ours, "Synced").await?;
    let synced = stage.until_sync(&theirs, "Synced").await?;
    assert_eq!(synced["status"]["controllerNamespace"], stage.place.name());
    let mark = |map: &Value| map["metadata"]["annotations"][TRACKING].as_str().unwrap_or_default().to_owned();
    let map =
        team.wait(&objects::config_map("theirs", &[]), "is marked", |map| !mark(map).is_empty()).await?;
    let instance = format!("{}_web:", team.name());
    assert!(mark(&map).starts_with(&instance), "{}", mark(&map));
    let map = stage.place.get(&objects::config_map("ours", &[])).await?.unwrap_or_default();
    assert!(mark(&map).starts_with("web:"), "{}", mark(&map));

    // A live edit of theirs is told in their namespace.
    team.patch_as("a-person", &objects::config_map("theirs", &[]), &json!({"data": {"a": "2"}})).await?;
    stage.until_sync(&theirs, "OutOfSync").await?;
    let report =
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "web"}});
    team.wait(&report, "has the edit", |report| report["findings"][0]["class"] == "LiveEdit").await?;
    let ours = stage.place.get(&ours).await?.unwrap_or_default();
    assert_eq!(ours["status"]["sync"]["status"], "Synced", "the other app of this name is not concerned");

    // The project does not know that namespace: the app says so. Another namespace is none of our business.
    let refused =
        unwelcome.wait(&refused, "says what is wrong", |app| has_condition(app, "InvalidSpecError")).await?;
    let message = refused["status"]["conditions"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("is not permitted to use project 'default'"), "{message}");
    assert!(unwelcome.get(&objects::config_map("theirs", &[])).await?.is_none());
    let unseen = outside.get(&unseen).await?.unwrap_or_default();
    assert!(unseen["status"].is_null(), "{unseen:#}");
    Ok(())
}

#[tokio::test]
async fn a_sync_acts_as_the_service_account_of_the_project() -> Result<()> {
    let mut stage = Stage::bare().await?;
    stage.setting("argocd-cm", "application.sync.impersonation.enabled", "true").await?;
    stage.begin().await?;
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
    stage.place.apply(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "deployer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deployer"},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": namespace}],
    })).await?;
    let may = objects::config_map("may", &[("a", "1")]);
    let may_not = objects::secret("may-not", &[("a", "1")]);
    stage.repo.commit(&[
        ("app/may.yaml", objects::manifests(std::slice::from_ref(&may))),
        ("more/may-not.yaml", objects::manifests(std::slice::from_ref(&may_not))),
    ])?;
    let automated = json!({"automated": {}});
    let app = stage.application("may", |app| app["spec"]["syncPolicy"] = automated.clone()).await?;
    stage.until_sync(&app, "Synced").await?;
    let failed = |app: &Value, text: &str| {
        let operation = &app["status"]["operationState"];
        matches!(operation["phase"].as_str(), Some("Failed" | "Error"))
            && operation.to_string().contains(text)
    };
    let once = json!({"automated": {}, "retry": {"limit": 0}});
    let app = stage
        .application("may-not", |app| {
            app["spec"]["source"]["path"] = json!("more");
            app["spec"]["syncPolicy"] = once.clone();
        })
        .await?;
    let user = format!("system:serviceaccount:{namespace}:deployer");
    stage.place.wait(&app, "is refused as the account", |app| failed(app, &user)).await?;
    assert!(stage.place.get(&may_not).await?.is_none());

    // No account for this destination: no sync.
    let app = stage
        .application("nobody", |app| {
            app["spec"]["destination"]["namespace"] = json!("kube-public");
            app["spec"]["syncPolicy"] = once.clone();
        })
        .await?;
    let none = "failed to find a matching service account to impersonate";
    stage.place.wait(&app, "finds no account", |app| failed(app, none)).await?;
    Ok(())
}
