//! What a project does not permit: it is not read, not claimed, not fetched and not written.
//!
//! The apps of these stories prune, so their names are their own: a tracking mark does not name the control plane.

use anyhow::{Context as _, Result};
use plumb_testkit::git::GitRepo;
use plumb_testkit::{TestNamespace, objects};
use serde_json::{Value, json};

use crate::stage::Stage;

/// A project whose apps may write into this namespace only, and no object of the cluster.
pub(crate) async fn project_for(stage: &Stage, name: &str, namespace: &str) -> Result<()> {
    let mut project = objects::app_project(name);
    project["spec"]["destinations"] = json!([{"server": "*", "namespace": namespace}]);
    project["spec"]["clusterResourceWhitelist"] = json!([]);
    stage.place.apply(&project).await?;
    Ok(())
}

fn conditions(app: &Value, kind: &str) -> String {
    let all = app["status"]["conditions"].as_array().into_iter().flatten();
    let messages = all.filter(|condition| condition["type"] == kind);
    messages.filter_map(|condition| condition["message"].as_str()).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn objects_of_another_namespace_are_named_and_nothing_is_told_about_them() -> Result<()> {
    let stage = Stage::set().await?;
    let victim = TestNamespace::new().await?;
    project_for(&stage, "team", stage.place.name()).await?;
    victim.apply(&objects::config_map("differs", &[("password", "canary-in-the-cluster")])).await?;
    victim.apply(&objects::secret("equal", &[("password", "guessed")])).await?;
    let theirs = |object: Value| objects::in_namespace(object, victim.name());
    stage.repo.commit(&[(
        "app/all.yaml",
        objects::manifests(&[
            theirs(objects::config_map("differs", &[("password", "guess")])),
            theirs(objects::secret("equal", &[("password", "guessed")])),
            theirs(objects::secret("absent", &[("password", "guess")])),
        ]),
    )])?;
    let spy = stage.application("border-spy", |app| app["spec"]["project"] = json!("team")).await?;
    let told = stage.until_sync(&spy, "OutOfSync").await?;
    let resources = told["status"]["resources"].as_array().context("no resources")?;
    assert_eq!(resources.len(), 3, "{resources:?}");
    for resource in resources {
        assert_eq!(resource["status"], "Unknown", "{resource}");
    }
    let why = conditions(&told, "InvalidSpecError");
    assert!(why.contains("is not permitted in project 'team'"), "{why}");
    assert_eq!(told["status"]["health"]["status"], "Missing");

    // A change of the victim changes nothing that the app says.
    victim
        .patch_as("owner", &objects::config_map("differs", &[]), &json!({"data": {"password": "guess"}}))
        .await?;
    victim.delete(&objects::secret("equal", &[])).await?;
    stage.refresh_hard(&spy).await?;
    let after = stage.place.get(&spy).await?.context("the app is gone")?;
    for field in ["resources", "conditions", "health"] {
        assert_eq!(after["status"][field], told["status"][field], "{field}");
    }
    let report = json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "border-spy"}});
    let report = stage.place.get(&report).await?.unwrap_or_default();
    assert!(report["findings"].as_array().is_none_or(Vec::is_empty), "{report}");
    let said = stage.plumb_says(&["app", "sync", "border-spy"])?;
    assert!(said.contains("is not permitted in project 'team'") && !said.contains("canary"), "{said}");
    assert!(!stage.log()?.contains("canary-in-the-cluster"));
    Ok(())
}

#[tokio::test]
async fn an_app_cannot_keep_objects_that_its_project_does_not_permit() -> Result<()> {
    let stage = Stage::set().await?;
    let elsewhere = TestNamespace::new().await?;
    project_for(&stage, "elsewhere", elsewhere.name()).await?;
    let binding = objects::config_map("binding", &[("role", "admin")]);
    let shared = objects::config_map("shared", &[("a", "1")]);
    let own = objects::config_map("own", &[("a", "1")]);
    let here = |object: &Value| objects::in_namespace(object.clone(), stage.place.name());
    stage.repo.commit(&[
        ("owner/all.yaml", objects::manifests(&[binding.clone(), shared.clone(), own.clone()])),
        ("mallory/all.yaml", objects::manifests(&[here(&binding)])),
        ("friend/all.yaml", objects::manifests(std::slice::from_ref(&shared))),
    ])?;
    let owner = stage
        .application("binding-owner", |app| {
            app["spec"]["source"]["path"] = json!("owner");
            app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}});
        })
        .await?;
    stage.until_sync(&owner, "Synced").await?;
    let mallory = stage
        .application("binding-mallory", |app| {
            app["spec"]["project"] = json!("elsewhere");
            app["spec"]["source"]["path"] = json!("mallory");
            app["spec"]["destination"]["namespace"] = json!(elsewhere.name());
        })
        .await?;
    stage.until_sync(&mallory, "OutOfSync").await?;
    let friend =
        stage.application("binding-friend", |app| app["spec"]["source"]["path"] = json!("friend")).await?;
    stage.until_sync(&friend, "OutOfSync").await?;

    stage.repo.commit(&[("owner/all.yaml", objects::manifests(&[own]))])?;
    stage.refresh(&owner).await?;
    stage.place.wait_gone(&binding).await?;
    // The other one may be written by the app that renders it. It stays, and its owner is told.
    let says_so = |app: &Value| {
        let message =
            "ConfigMap STAGE/shared left Git and is not pruned: application binding-friend claims it";
        conditions(app, "SharedResourceWarning").contains(&message.replace("STAGE", stage.place.name()))
    };
    stage.place.wait(&owner, "says what is not pruned, and why", says_so).await?;
    assert!(stage.place.get(&shared).await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_forged_status_keeps_nothing_after_a_restart() -> Result<()> {
    let mut stage = Stage::set().await?;
    let elsewhere = TestNamespace::new().await?;
    project_for(&stage, "elsewhere", elsewhere.name()).await?;
    let binding = objects::config_map("binding", &[("role", "admin")]);
    let own = objects::config_map("own", &[("a", "1")]);
    stage.repo.commit(&[("owner/all.yaml", objects::manifests(&[binding.clone(), own.clone()]))])?;
    let owner = stage
        .application("forged-owner", |app| {
            app["spec"]["source"]["path"] = json!("owner");
            app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}});
        })
        .await?;
    stage.until_sync(&owner, "Synced").await?;
    // Neither app can be rendered. The project of the second one permits the object: that takes a user.
    let resource = json!({"version": "v1", "kind": "ConfigMap", "namespace": stage.place.name(),
                          "name": "binding", "status": "Synced"});
    let broken = |project: &str, namespace: &str| {
        let (project, namespace) = (project.to_owned(), namespace.to_owned());
        let resource = resource.clone();
        move |app: &mut Value| {
            app["spec"]["project"] = json!(project);
            app["spec"]["source"]["path"] = json!("does-not-exist");
            app["spec"]["destination"]["namespace"] = json!(namespace);
            app["status"] = json!({"resources": [resource], "sync": {"status": "Synced"},
                                   "health": {"status": "Healthy"}});
        }
    };
    stage.stop_plumb()?;
    stage.repo.commit(&[("owner/all.yaml", objects::manifests(std::slice::from_ref(&own)))])?;
    let mallory = stage.application("forged-mallory", broken("elsewhere", elsewhere.name())).await?;
    stage.begin().await?;
    stage.place.wait_gone(&binding).await?;
    stage.until_sync(&mallory, "Unknown").await?;

    stage.repo.commit(&[("owner/all.yaml", objects::manifests(&[binding.clone(), own.clone()]))])?;
    stage.refresh(&owner).await?;
    stage.place.wait(&binding, "is back", |_| true).await?;
    stage.until_sync(&owner, "Synced").await?;
    stage.stop_plumb()?;
    stage.repo.commit(&[("owner/all.yaml", objects::manifests(&[own]))])?;
    stage.application("forged-friend", broken("default", stage.place.name())).await?;
    stage.begin().await?;
    let asks = |app: &Value| conditions(app, "SharedResourceWarning").contains("is pruned only by a user");
    stage.place.wait(&owner, "asks a user", asks).await?;
    assert!(stage.place.get(&binding).await?.is_some());
    let waits = |app: &Value| {
        let message = app["status"]["operationState"]["message"].as_str();
        message.is_some_and(|message| message.contains("waiting for pruning confirmation"))
    };
    stage.place.wait(&owner, "waits for a confirmation", waits).await?;
    stage.plumb(&["app", "confirm-deletion", "forged-owner"])?;
    stage.place.wait_gone(&binding).await?;
    Ok(())
}

#[tokio::test]
async fn an_operation_syncs_from_repositories_of_the_project_only() -> Result<()> {
    let stage = Stage::set().await?;
    let forbidden = GitRepo::new()?;
    let mut project = objects::app_project("team");
    project["spec"]["sourceRepos"] = json!([stage.repo.url()]);
    stage.place.apply(&project).await?;
    project["metadata"] = json!({"name": "open", "annotations": {"plumb.dev/allow-local-manifests": "true"}});
    stage.place.apply(&project).await?;
    let (mine, loot) =
        (objects::config_map("mine", &[("a", "1")]), objects::config_map("loot", &[("a", "1")]));
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[mine]))])?;
    forbidden.commit(&[("app/all.yaml", objects::manifests(std::slice::from_ref(&loot)))])?;
    let app = stage.application("request", |app| app["spec"]["project"] = json!("team")).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    let source = json!({"repoURL": forbidden.url(), "path": "app", "targetRevision": "HEAD"});
    for (sync, why) in [
        (json!({"source": source}), "is not permitted in project 'team'"),
        (json!({"sources": [source]}), "is not permitted in project 'team'"),
        (json!({"manifests": [loot.to_string()]}), "restricts the repositories"),
    ] {
        let operation = json!({"operation": {"sync": sync}, "status": {"operationState": null}});
        stage.place.patch_as("a-person", &app, &operation).await?;
        let ended = |app: &Value| {
            app["operation"].is_null() && app["status"]["operationState"]["finishedAt"].is_string()
        };
        let after = stage.place.wait(&app, "the operation has ended", ended).await?;
        let operation_state = &after["status"]["operationState"];
        assert_eq!(operation_state["phase"], "Error", "{operation_state}");
        let message = operation_state["message"].as_str().unwrap_or_default();
        assert!(message.contains(why), "{operation_state}");
    }
    assert!(stage.place.get(&loot).await?.is_none());
    let open = stage.application("open-request", |app| app["spec"]["project"] = json!("open")).await?;
    stage.until_sync(&open, "OutOfSync").await?;
    let operation = json!({"operation": {"sync": {"manifests": [loot.to_string()]}}});
    stage.place.patch_as("a-person", &open, &operation).await?;
    stage.place.wait(&loot, "was applied", |_| true).await?;
    Ok(())
}

#[tokio::test]
async fn a_kind_that_becomes_cluster_scoped_during_a_sync_is_planned_anew() -> Result<()> {
    let stage = Stage::set().await?;
    project_for(&stage, "team", stage.place.name()).await?;
    let group = format!("{}.example.com", stage.place.name());
    let mut crd = objects::crd(&group, "Grant", &json!({"type": "object"}));
    crd["spec"]["scope"] = json!("Cluster");
    let grant = objects::custom(&group, "Grant", "evil", &json!({}));
    let grant =
        objects::annotated(grant, "argocd.argoproj.io/sync-options", "SkipDryRunOnMissingResource=true");
    let grant = objects::annotated(grant, "argocd.argoproj.io/sync-wave", "1");
    // It is not healthy before it has an address: the sync waits for the story.
    let door = objects::with(objects::service("door", 80), "/spec/type", json!("LoadBalancer"));
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[door.clone(), grant.clone()]))])?;
    let app = stage
        .application("late-kind", |app| {
            app["spec"]["project"] = json!("team");
            app["operation"] = json!({"sync": {}});
        })
        .await?;
    let waits = |app: &Value| {
        let message = app["status"]["operationState"]["message"].as_str();
        message.is_some_and(|message| message.contains("waiting for healthy state"))
    };
    stage.place.wait(&app, "waits for the Service", waits).await?;
    stage.place.apply(&crd).await?;
    let is_served = |crd: &Value| {
        let all = crd["status"]["conditions"].as_array().into_iter().flatten();
        all.into_iter().any(|one| one["type"] == "Established" && one["status"] == "True")
    };
    stage.place.wait(&crd, "is served", is_served).await?;
    let address = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    stage.place.patch_status_as("a-story", &door, &address).await?;
    let ended = |app: &Value| app["status"]["operationState"]["finishedAt"].is_string();
    let after = stage.place.wait(&app, "the operation has ended", ended).await?;
    let operation_state = &after["status"]["operationState"];
    assert_eq!(operation_state["phase"], "Failed", "{operation_state}");
    let why = format!("resource {group}:Grant is not permitted in project team");
    let message = operation_state["message"].as_str().unwrap_or_default();
    assert!(message.contains(&why), "{operation_state}");
    assert!(stage.place.get(&grant).await?.is_none(), "it was created");
    stage.place.delete(&crd).await?;
    Ok(())
}
