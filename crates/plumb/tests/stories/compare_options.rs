//! Compare options and settings, with the meaning that Argo CD documents.

use anyhow::Result;
use plumb_testkit::objects;
use plumb_testkit::proxy::Requests;
use serde_json::{Value, json};

use crate::stage::Stage;

async fn set_options(stage: &Stage, object: &Value, options: &str) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {"argocd.argoproj.io/compare-options": options}}});
    stage.place.patch_as("a-person", object, &patch).await?;
    Ok(())
}

#[tokio::test]
async fn the_server_is_asked_where_the_options_say_so_and_what_admission_adds_counts_on_request() -> Result<()>
{
    let (stage, proxy) = Stage::set_behind_proxy().await?;
    let map = objects::labelled(objects::config_map("map", &[("a", "1")]), "mutate", stage.place.name());
    stage.repo.commit(&[("app/map.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    let app = stage.application("asked", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;

    let asked = || proxy.count(&Requests::to("dryRun=All").and_to("/configmaps/map"));
    let before = asked();
    set_options(&stage, &app, "ServerSideDiff=true").await?;
    stage.refresh_hard(&app).await?;
    assert!(asked() > before, "every comparison asks");

    // From now on a policy adds to what is written; the live object was written before.
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": stage.place.name()},
        "spec": {"failurePolicy": "Ignore", "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}],
                "objectSelector": {"matchLabels": {"mutate": stage.place.name()}}},
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {
                "expression": "Object{data: {\"added\": \"by-policy\"}}"}}]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": stage.place.name()}, "spec": {"policyName": stage.place.name()}});
    stage.place.apply(&policy).await?;
    stage.place.apply(&binding).await?;
    // A policy works a moment after it was written, which nothing tells.
    let probe = objects::labelled(objects::config_map("probe", &[]), "mutate", stage.place.name());
    let works = async || {
        let _ = stage.place.delete(&probe).await;
        stage.place.apply(&probe).await.is_ok_and(|live| live["data"]["added"] == "by-policy")
    };
    plumb_testkit::wait::until_seen(std::time::Duration::from_mins(1), "the policy works", works, |works| {
        *works
    })
    .await?;

    stage.refresh_hard(&app).await?;
    stage.until_sync(&app, "Synced").await?;
    set_options(&stage, &app, "ServerSideDiff=true,IncludeMutationWebhook=true").await?;
    stage.refresh_hard(&app).await?;
    let due = stage.finding(&app, "ConfigMap", "map", "Behind").await?;
    assert_eq!(due["fields"], json!(["/data/added"]), "{due}");
    stage.until_sync(&app, "OutOfSync").await?;
    Ok(())
}

#[tokio::test]
async fn settings_say_which_texts_are_quantities_and_whose_rules_a_role_has() -> Result<()> {
    let stage = Stage::set().await?;
    let group = format!("{}.example.com", stage.place.name());
    let text = json!({"type": "string"});
    let definition = objects::crd(
        &group,
        "Tenant",
        &json!({"type": "object", "properties": {
        "cpu": text, "name": text, "every": text, "pods": {"type": "array", "items": {"type": "object", "properties": {"memory": text}}}}}),
    );
    stage.place.apply(&definition).await?;
    let known = "- {field: spec.cpu, type: core/Quantity}\n- {field: spec.every, type: meta/v1/Duration}\n- {field: spec.pods.memory, type: core/Quantity}\n";
    stage
        .place
        .apply(&objects::config_map(
            "argocd-cm",
            &[(&format!("resource.customizations.knownTypeFields.{group}_Tenant"), known)],
        ))
        .await?;
    let tenant = objects::custom(
        &group,
        "Tenant",
        "blue",
        &json!({
        "cpu": "1000m", "name": "1000m", "every": "60m", "pods": [{"memory": "1024Mi"}]}),
    );
    let served = async || stage.place.get(&tenant).await.is_ok();
    plumb_testkit::wait::until_seen(
        std::time::Duration::from_mins(1),
        "the kind is served",
        served,
        |done| *done,
    )
    .await?;
    stage.repo.commit(&[("app/tenant.yaml", objects::manifests(std::slice::from_ref(&tenant)))])?;
    let app = stage.application("typed", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;

    // A person writes other spellings; for a text that nobody calls a quantity that would be an edit.
    let patch = json!({"spec": {"cpu": "1", "every": "1h", "pods": [{"memory": "1Gi"}]}});
    stage.place.patch_as("kubectl-edit", &tenant, &patch).await?;
    let same = stage.finding(&app, "Tenant", "blue", "EquivalentValue").await?;
    assert_eq!(same["fields"], json!(["/spec/cpu", "/spec/every", "/spec/pods/0/memory"]), "{same}");
    stage.refresh_hard(&app).await?;
    stage.until_sync(&app, "Synced").await?;
    stage.place.patch_as("kubectl-edit", &tenant, &json!({"spec": {"name": "1"}})).await?;
    let edit = stage.finding(&app, "Tenant", "blue", "LiveEdit").await?;
    assert_eq!(edit["fields"], json!(["/spec/name"]));
    Ok(())
}
