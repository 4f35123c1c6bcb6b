//! Applications that sets generate.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plumb_testkit::audit::{self, AuditEvent};
use plumb_testkit::{objects, wait};
use serde_json::{Value, json};

use crate::outside::{get, metric, tell_push};
use crate::stage::Stage;

const REFRESH: &str = "argocd.argoproj.io/application-set-refresh";

/// A set whose Applications are named after directories below `apps`. Git is only asked if a user says so.
fn of_directories(stage: &Stage) -> Value {
    let git = json!({
        "repoURL": stage.repo.url(), "revision": "HEAD", "directories": [{"path": "apps/*"}],
        "requeueAfterSeconds": 0,
    });
    set(stage, &json!([{"git": git}]), "{{path.basename}}", "{{path}}")
}

fn set(stage: &Stage, generators: &Value, name: &str, path: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "teams", "namespace": stage.place.name()},
        "spec": {
            "generators": generators,
            "template": {
                "metadata": {"name": name},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": stage.repo.url(), "path": path, "targetRevision": "HEAD"},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": stage.place.name()},
                },
            },
        },
    })
}

fn directory(name: &str) -> (String, String) {
    let map = objects::config_map(&format!("of-{name}"), &[("a", "1")]);
    (format!("apps/{name}/map.yaml"), objects::manifests(&[map]))
}

async fn look_at_git(stage: &Stage, set: &Value) -> Result<()> {
    let ask = json!({"metadata": {"annotations": {REFRESH: "true"}}});
    stage.place.patch_as("kubectl", set, &ask).await?;
    let is_done = |live: &Value| live["metadata"]["annotations"].get(REFRESH).is_none();
    stage.place.wait(set, "Git was looked at", is_done).await?;
    Ok(())
}

/// The names and versions of the generated Applications.
async fn generated(stage: &Stage) -> Result<BTreeSet<String>> {
    let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{}/applications", stage.place.name());
    let list: Value = serde_json::from_str(&stage.place.read(&path).await?)?;
    let items = list["items"].as_array().context("a list")?;
    let is_alive = |item: &&Value| item["metadata"]["deletionTimestamp"].is_null();
    Ok(items
        .iter()
        .filter(is_alive)
        .filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned))
        .collect())
}

async fn until(stage: &Stage, names: &[&str]) -> Result<()> {
    let wanted: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let what = format!("the Applications are {names:?}");
    wait::until_seen(
        Duration::from_mins(1),
        &what,
        async || generated(stage).await.ok(),
        |found| found.as_ref() == Some(&wanted),
    )
    .await?;
    Ok(())
}

fn has_condition(live: &Value, kind: &str, status: &str) -> bool {
    let mut conditions = live["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == kind && condition["status"] == status)
}

/// Events on the set and metrics tell what it did.
async fn is_told(stage: &Stage) -> Result<()> {
    let is_event = |event: &Value| {
        event["involvedObject"]["kind"] == "ApplicationSet"
            && event["involvedObject"]["name"] == "teams"
            && event["source"]["component"] == "applicationset-controller"
            && event["reason"] == "created"
            && event["message"] == "created Application \"one\""
    };
    let is_there = |seen: &wait::Seen| seen.values().any(is_event);
    stage.place.wait_list("v1", "Event", "", "tells that the set created an Application", is_there).await?;
    let inside = stage.address("metrics and health").await?;
    let (_, metrics) = get(inside, "/metrics").await?;
    let labels = ["name=\"teams\"", "resource_update_status=\"ApplicationSetUpToDate\""];
    ensure!(metric(&metrics, "argocd_appset_info", &labels).is_some(), "{metrics}");
    let owned = metric(&metrics, "argocd_appset_owned_applications", &labels[..1]).unwrap_or_default();
    ensure!(owned.ends_with(" 2"), "{owned}");
    ensure!(metric(&metrics, "argocd_appset_reconcile_count", &labels[..1]).is_some(), "{metrics}");
    Ok(())
}

#[tokio::test]
async fn directories_become_applications_and_a_commit_without_new_parameters_writes_nothing() -> Result<()> {
    let stage = Stage::set().await?;
    stage.repo.commit(&[directory("one"), directory("two")])?;
    let set = of_directories(&stage);
    stage.place.apply(&set).await?;
    until(&stage, &["one", "two"]).await?;
    let live = stage
        .place
        .wait(&set, "says that all is well", |live| has_condition(live, "ResourcesUpToDate", "True"))
        .await?;
    ensure!(live["status"]["resourcesCount"] == 2, "{}", live["status"]);
    let one = stage.application_named("one");
    let live = stage.place.get(&one).await?.context("one")?;
    ensure!(live["metadata"]["ownerReferences"][0]["name"] == "teams", "{live}");

    is_told(&stage).await?;

    let writes = || anyhow::Ok(stage.log()?.matches("Applications of the set written").count());
    let n_before = writes()?;
    ensure!(n_before > 0, "plumb does not tell what it writes");
    stage.repo.commit(&[("README.md", "nothing new")])?;
    look_at_git(&stage, &set).await?;
    ensure!(writes()? == n_before, "an Application was written again");

    stage.repo.commit(&[directory("three")])?;
    look_at_git(&stage, &set).await?;
    until(&stage, &["one", "two", "three"]).await?;
    stage.repo.remove(&["apps/two/map.yaml"])?;
    look_at_git(&stage, &set).await?;
    until(&stage, &["one", "three"]).await?;

    // Somebody edits a generated Application.
    let edit = json!({"spec": {"source": {"path": "elsewhere"}}});
    stage.place.patch_as("kubectl-edit", &one, &edit).await?;
    stage.place.wait(&one, "is put back", |app| app["spec"]["source"]["path"] == "apps/one").await?;
    Ok(())
}

#[tokio::test]
async fn a_renamed_folder_deletes_nothing_until_a_user_says_so() -> Result<()> {
    let stage = Stage::set().await?;
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    stage.repo.commit(&names.map(directory))?;
    let set = of_directories(&stage);
    stage.place.apply(&set).await?;
    until(&stage, &names).await?;

    stage.repo.git(&["mv", "apps", "applications"])?;
    stage.repo.commit_all("rename")?;
    look_at_git(&stage, &set).await?;
    let waiting = stage
        .place
        .wait(&set, "waits for a user", |live| has_condition(live, "DeletionsWaiting", "True"))
        .await?;
    ensure!(
        waiting["status"].to_string().contains("7 Applications are no longer generated"),
        "{}",
        waiting["status"]
    );
    ensure!(generated(&stage).await?.len() == names.len(), "an Application is gone");

    // A repository that is gone is an error, and deletes nothing either.
    let elsewhere = json!({"spec": {"generators": [{"git": {
        "repoURL": format!("{}-gone", stage.repo.url()), "revision": "HEAD", "directories": [{"path": "*"}],
    }}]}});
    stage.place.patch_as("kubectl", &set, &elsewhere).await?;
    stage.place.wait(&set, "is an error", |live| has_condition(live, "ErrorOccurred", "True")).await?;
    ensure!(generated(&stage).await?.len() == names.len(), "an Application is gone");

    stage.place.apply(&set).await?;
    stage.place.wait(&set, "waits again", |live| has_condition(live, "DeletionsWaiting", "True")).await?;
    stage.plumb(&["appset", "confirm-deletion", "teams"])?;
    until(&stage, &[]).await
}

#[tokio::test]
async fn renamed_applications_outlive_the_ones_that_take_their_place_until_a_user_says_so() -> Result<()> {
    let stage = Stage::set().await?;
    let old = ["a", "b", "c", "d", "e", "f", "g"];
    stage.repo.commit(&old.map(directory))?;
    let set = of_directories(&stage);
    stage.place.apply(&set).await?;
    until(&stage, &old).await?;

    let new = old.map(|name| format!("team-{name}"));
    for (old, new) in old.iter().zip(&new) {
        stage.repo.git(&["mv", &format!("apps/{old}"), &format!("apps/{new}")])?;
    }
    stage.repo.commit_all("rename")?;
    look_at_git(&stage, &set).await?;
    let both: Vec<&str> = old.into_iter().chain(new.iter().map(String::as_str)).collect();
    until(&stage, &both).await?;
    let waits = |live: &Value| has_condition(live, "DeletionsWaiting", "True");
    stage.place.wait(&set, "waits for a user", waits).await?;

    // Half of all are no longer generated now, which alone would be no reason to wait.
    stage.repo.commit(&[directory("team-new")])?;
    look_at_git(&stage, &set).await?;
    let both: Vec<&str> = both.into_iter().chain(["team-new"]).collect();
    until(&stage, &both).await?;
    let live = stage.place.get(&set).await?.context("the set")?;
    ensure!(waits(&live), "{}", live["status"]);

    stage.plumb(&["appset", "confirm-deletion", "teams"])?;
    let left: Vec<&str> = new.iter().map(String::as_str).chain(["team-new"]).collect();
    until(&stage, &left).await
}

#[tokio::test]
async fn clusters_and_a_matrix_follow_the_secrets_and_the_policy_keeps_applications() -> Result<()> {
    let stage = Stage::set().await?;
    stage.repo.commit(&[directory("one"), directory("two")])?;
    let clusters = json!({"clusters": {"selector": {"matchLabels": {"story": "sets"}}}});
    let git = json!({"git": {
        "repoURL": stage.repo.url(), "revision": "HEAD", "directories": [{"path": "apps/*"}],
        "requeueAfterSeconds": 0,
    }});
    let generators = json!([{"matrix": {"generators": [clusters, git]}}]);
    let mut set = set(&stage, &generators, "{{name}}-{{path.basename}}", "{{path}}");
    set["spec"]["template"]["spec"]["destination"]["server"] = json!("{{server}}");
    set["spec"]["syncPolicy"] = json!({"applicationsSync": "create-update"});
    stage.place.apply(&set).await?;
    let cluster = |name: &str| {
        let server = format!("https://{name}.invalid");
        let mut secret = objects::secret(name, &[("name", name), ("server", &server), ("config", "{}")]);
        secret["metadata"]["labels"] = json!({"argocd.argoproj.io/secret-type": "cluster", "story": "sets"});
        secret
    };
    stage.place.apply(&cluster("east")).await?;
    until(&stage, &["east-one", "east-two"]).await?;
    stage.place.apply(&cluster("west")).await?;
    until(&stage, &["east-one", "east-two", "west-one", "west-two"]).await?;

    // The policy permits no deletions.
    stage.place.delete(&cluster("east")).await?;
    let is_less = |live: &Value| has_condition(live, "ErrorOccurred", "False");
    stage.place.wait(&set, "is well", is_less).await?;
    let sync = json!({"spec": {"syncPolicy": {"applicationsSync": "sync"}}});
    ensure!(generated(&stage).await?.len() == 4, "an Application is gone");
    stage.place.patch_as("kubectl", &set, &sync).await?;
    until(&stage, &["west-one", "west-two"]).await
}

/// The first step takes one Application at a time, and a deletion goes the other way.
fn of_steps(stage: &Stage) -> Value {
    let elements = ["dev-1", "dev-2", "dev-3", "prod"]
        .map(|name| json!({"name": name, "env": name.split('-').next().unwrap_or_default()}));
    let mut set = set(stage, &json!([{"list": {"elements": elements}}]), "{{name}}", "apps/{{name}}");
    set["spec"]["template"]["metadata"]["labels"] = json!({"env": "{{env}}"});
    set["spec"]["template"]["spec"]["syncPolicy"] = json!({"automated": {}});
    let step = |env: &str| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]});
    let mut first = step("dev");
    first["maxUpdate"] = json!(1);
    set["spec"]["strategy"] = json!({
        "type": "RollingSync", "deletionOrder": "Reverse", "rollingSync": {"steps": [first, step("prod")]},
    });
    set
}

/// The Applications in the order in which they were deleted.
fn deleted(stage: &Stage) -> Result<Vec<String>> {
    let is_deletion = |event: &AuditEvent| {
        let is_application = event.object_ref.as_ref().is_some_and(|object| {
            object.resource == "applications" && object.namespace == stage.place.name()
        });
        let is_done = event.response_status.is_some_and(|status| status.code == 200);
        event.verb == "delete" && is_application && is_done
    };
    let mut names: Vec<String> = Vec::new();
    for event in audit::read(&stage.place.cluster().audit_log(), is_deletion)? {
        let name = event.object_ref.map(|object| object.name).unwrap_or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

#[tokio::test]
async fn a_rollout_syncs_one_step_after_the_other_and_is_deleted_in_reverse() -> Result<()> {
    let mut stage = Stage::bare().await?;
    let settings = [("applicationsetcontroller.enable.progressive.syncs", "true")];
    stage.place.apply(&objects::config_map("argocd-cmd-params-cm", &settings)).await?;
    stage.begin().await?;
    let names = ["dev-1", "dev-2", "dev-3", "prod"];
    stage.repo.commit(&names.map(directory))?;
    let set = of_steps(&stage);
    stage.place.apply(&set).await?;
    let is_done = |live: &Value| {
        let mut all = live["status"]["applicationStatus"].as_array().into_iter().flatten();
        all.clone().count() == names.len() && all.all(|status| status["status"] == "Healthy")
    };
    let live =
        stage.place.wait_within(Duration::from_mins(2), &set, "both steps are healthy", is_done).await?;
    ensure!(
        live["metadata"]["finalizers"].to_string().contains("resources-finalizer.argocd.argoproj.io"),
        "without a finalizer Kubernetes deletes in any order: {live}"
    );
    let mut ended = String::new();
    for name in names {
        let app = stage.place.get(&stage.application_named(name)).await?.context("the Application")?;
        ensure!(app["spec"]["syncPolicy"]["automated"]["enabled"] == false, "automation is on");
        let operation = &app["status"]["operationState"];
        let user = &operation["operation"]["initiatedBy"]["username"];
        ensure!(user == "applicationset-controller", "{operation}");
        let time = |key: &str| operation[key].as_str().unwrap_or_default().to_owned();
        ensure!(time("startedAt") >= ended, "{name} did not wait for the one before: {operation}");
        ended = time("finishedAt");
    }
    stage.plumb(&["appset", "delete", "teams", "--yes", "--wait"])?;
    until(&stage, &[]).await?;
    let order = deleted(&stage)?;
    ensure!(order == ["prod", "dev-1", "dev-2", "dev-3"], "{order:?}");
    Ok(())
}

#[tokio::test]
async fn a_push_is_enough_and_a_set_of_another_branch_is_left_alone() -> Result<()> {
    let stage = Stage::set().await?;
    stage.repo.commit(&[directory("one")])?;
    stage.repo.git(&["branch", "other"])?;
    // Neither asks Git by itself.
    stage.place.apply(&of_directories(&stage)).await?;
    let mut other = of_directories(&stage);
    other["metadata"]["name"] = json!("others");
    other["spec"]["generators"][0]["git"]["revision"] = json!("other");
    other["spec"]["template"]["metadata"]["name"] = json!("other-{{path.basename}}");
    stage.place.apply(&other).await?;
    until(&stage, &["one", "other-one"]).await?;

    stage.repo.git(&["checkout", "other"])?;
    stage.repo.commit(&[directory("unseen")])?;
    stage.repo.git(&["checkout", "main"])?;
    stage.repo.commit(&[directory("two")])?;
    let web = stage.address("webhooks").await?;
    ensure!(tell_push(web, &stage.repo.url(), None).await? == 200, "the push is refused");
    until(&stage, &["one", "other-one", "two"]).await
}

#[tokio::test]
async fn a_decision_that_changes_is_enough() -> Result<()> {
    let stage = Stage::set().await?;
    stage.repo.commit(&[directory("one")])?;
    let group = format!("{}.example.com", stage.place.name());
    let crd = objects::crd(&group, "Decision", &json!({"type": "object"}));
    stage.place.apply(&crd).await?;
    let is_served = |crd: &Value| {
        let mut all = crd["status"]["conditions"].as_array().into_iter().flatten();
        all.any(|one| one["type"] == "Established" && one["status"] == "True")
    };
    stage.place.wait(&crd, "is served", is_served).await?;
    let decision = objects::custom(&group, "Decision", "where", &json!({}));
    stage.place.apply(&decision).await?;
    let api_version = format!("{group}/v1");
    let map = [("apiVersion", api_version.as_str()), ("kind", "decisions"), ("matchKey", "clusterName")];
    stage.place.apply(&objects::config_map("decisions", &map)).await?;
    let decide = async |names: &[&str]| {
        let chosen: Vec<Value> = names.iter().map(|name| json!({"clusterName": name})).collect();
        stage.place.patch_status_as("placement", &decision, &json!({"clusters": chosen})).await
    };
    decide(&["in-cluster"]).await?;
    // It never asks by itself.
    let generator = json!([{"clusterDecisionResource": {
        "configMapRef": "decisions", "name": "where", "requeueAfterSeconds": 0,
    }}]);
    stage.place.apply(&set(&stage, &generator, "on-{{name}}", "apps/one")).await?;
    until(&stage, &["on-in-cluster"]).await?;

    let server = "https://east.invalid";
    let mut secret = objects::secret("east", &[("name", "east"), ("server", server), ("config", "{}")]);
    secret["metadata"]["labels"] = json!({"argocd.argoproj.io/secret-type": "cluster"});
    stage.place.apply(&secret).await?;
    decide(&["in-cluster", "east"]).await?;
    until(&stage, &["on-east", "on-in-cluster"]).await?;
    decide(&["east"]).await?;
    until(&stage, &["on-east"]).await
}
