//! How objects are written where a plain apply would be refused, or would leave something behind.

use std::time::Duration;

use anyhow::{Result, ensure};
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::stage::Stage;

fn phase(app: &Value) -> &str {
    app["status"]["operationState"]["phase"].as_str().unwrap_or_default()
}

fn message(app: &Value) -> &str {
    app["status"]["operationState"]["message"].as_str().unwrap_or_default()
}

fn option(object: Value, option: &str) -> Value {
    objects::annotated(object, "argocd.argoproj.io/sync-options", option)
}

fn uid(object: Option<Value>) -> Value {
    object.unwrap_or_default()["metadata"]["uid"].clone()
}

/// Commits these objects, waits until they were synced, one way or another, and returns the Application.
async fn sync(stage: &Stage, app: &Value, all: &[Value]) -> Result<Value> {
    let commit = stage.repo.commit(&[("app/all.yaml", objects::manifests(all))])?;
    stage.refresh(app).await?;
    let has_ended = |app: &Value| {
        let operation = &app["status"]["operationState"];
        operation["syncResult"]["revision"] == json!(commit) && ["Succeeded", "Failed"].contains(&phase(app))
    };
    stage.place.wait(app, "has synced the commit", has_ended).await
}

fn automated(app: &mut Value) {
    app["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}, "retry": {"limit": 0}});
}

#[tokio::test]
async fn a_switched_union_and_an_edited_list_key_are_repaired() -> Result<()> {
    let stage = Stage::set().await?;
    let ports = "/spec/template/spec/containers/0/ports";
    let web =
        objects::with(objects::deployment("web", 1), ports, json!([{"name": "http", "containerPort": 81}]));
    stage.repo.commit(&[("app/all.yaml", objects::manifests(std::slice::from_ref(&web)))])?;
    let app = stage.application("repairs", automated).await?;
    stage.until_sync(&app, "Synced").await?;

    // The number is the key of the list: a plain apply would add a second port of the same name.
    let live = stage.place.get(&web).await?.unwrap_or_default();
    let mut containers = live["spec"]["template"]["spec"]["containers"].clone();
    containers[0]["ports"][0]["containerPort"] = json!(80);
    let edit = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    stage.place.patch_as("kubectl-edit", &web, &edit).await?;
    let is_back = |live: &Value| {
        let ports = live.pointer(ports).and_then(Value::as_array);
        ports.is_some_and(|ports| ports.len() == 1 && ports[0]["containerPort"] == 81)
    };
    stage.place.wait(&web, "has its one port back", is_back).await?;

    // The server filled `rollingUpdate` in, and refuses it beside `Recreate`.
    let recreate = objects::with(web.clone(), "/spec/strategy", json!({"type": "Recreate"}));
    let synced = sync(&stage, &app, std::slice::from_ref(&recreate)).await?;
    assert_eq!(phase(&synced), "Succeeded", "{}", message(&synced));
    let live = stage.place.get(&web).await?.unwrap_or_default();
    assert_eq!(live["spec"]["strategy"], json!({"type": "Recreate"}));
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_written_is_blocked_until_an_option_allows_it() -> Result<()> {
    let stage = Stage::set().await?;
    let image = |name: &str| {
        objects::with(objects::job("once"), "/spec/template/spec/containers/0/image", json!(name))
    };
    let env = |entries: Value| {
        objects::with(objects::deployment("web", 1), "/spec/template/spec/containers/0/env", entries)
    };
    let fine = objects::config_map("fine", &[]);
    let good = env(json!([{"name": "A", "value": "1"}]));
    stage
        .repo
        .commit(&[("app/all.yaml", objects::manifests(&[image("one"), good.clone(), fine.clone()]))])?;
    let app = stage.application("blocked", automated).await?;
    stage.until_sync(&app, "Synced").await?;
    let first = uid(stage.place.get(&image("one")).await?);

    // Neither is written, and each says what is needed; the third object is not held up.
    let twice = env(json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]));
    let fine = objects::with(fine, "/data/new", json!("1"));
    let failed = sync(&stage, &app, &[image("two"), twice, fine.clone()]).await?;
    assert_eq!(phase(&failed), "Failed");
    let job = stage.finding(&app, "Job", "once", "Blocked").await?;
    ensure!(job.to_string().contains("immutable") && job.to_string().contains("Force=true"), "{job}");
    let web = stage.finding(&app, "Deployment", "web", "Blocked").await?;
    ensure!(web["fields"].to_string().contains("/env"), "{web}");
    assert_eq!(uid(stage.place.get(&image("one")).await?), first, "nobody allowed to delete it");
    stage.place.wait(&fine, "is written all the same", |live| live["data"]["new"] == "1").await?;

    // What could not come back is not deleted, force or not.
    let impossible = objects::with(image("two"), "/spec/template/spec/restartPolicy", json!("Always"));
    let failed = sync(&stage, &app, &[option(impossible, "Force=true"), good.clone(), fine.clone()]).await?;
    assert_eq!(phase(&failed), "Failed");
    assert_eq!(uid(stage.place.get(&image("one")).await?), first, "it would not come back");

    // Replace alone is no licence to delete.
    let replaced = option(image("two"), "Replace=true");
    let failed = sync(&stage, &app, &[replaced, good.clone(), fine.clone()]).await?;
    assert_eq!(phase(&failed), "Failed", "{}", message(&failed));
    assert_eq!(uid(stage.place.get(&image("one")).await?), first, "nobody allowed to delete it");

    // Allowed, and possible: it is made anew, and the old one can be brought back.
    let forced =
        sync(&stage, &app, &[option(image("two"), "Force=true"), good.clone(), fine.clone()]).await?;
    assert_eq!(phase(&forced), "Succeeded", "{}", message(&forced));
    let second = uid(stage.place.get(&image("two")).await?);
    assert_ne!(second, first, "made anew");
    let tombstones = stage.place.list("v1", "Secret", "plumb.dev/app=blocked").await?;
    assert_eq!(tombstones.len(), 1, "the old one is kept");
    let both = option(image("three"), "Replace=true,Force=true");
    let recreated = sync(&stage, &app, &[both, good, fine]).await?;
    assert_eq!(phase(&recreated), "Succeeded", "{}", message(&recreated));
    assert_ne!(uid(stage.place.get(&image("three")).await?), second, "made anew");
    Ok(())
}

#[tokio::test]
async fn a_field_of_an_older_client_side_apply_goes_unless_migration_is_off() -> Result<()> {
    let stage = Stage::set().await?;
    for name in ["moves", "stays"] {
        // As `kubectl apply` leaves it.
        let old = objects::config_map(name, &[("a", "1"), ("b", "2")]);
        let applied = old.to_string();
        let live = objects::config_map(name, &[]);
        stage.place.apply_as("a-bootstrap", &live).await?;
        let last_applied = "kubectl.kubernetes.io/last-applied-configuration";
        let patch = json!({"data": old["data"], "metadata": {"annotations": {last_applied: applied}}});
        stage.place.patch_as("kubectl-client-side-apply", &live, &patch).await?;
        let file = format!("{name}/conf.yaml");
        let now = objects::config_map(name, &[("a", "1")]);
        stage.repo.commit(&[(file, objects::manifests(&[now]))])?;
        stage
            .application(name, |app| {
                app["spec"]["source"]["path"] = json!(name);
                app["spec"]["syncPolicy"] = json!({"automated": {}, "retry": {"limit": 0}});
                if name == "stays" {
                    app["spec"]["syncPolicy"]["syncOptions"] = json!(["ClientSideApplyMigration=false"]);
                }
            })
            .await?;
    }
    let data = |b: Option<&'static str>| move |live: &Value| live["data"]["b"].as_str() == b;
    stage.place.wait(&objects::config_map("moves", &[]), "has lost what left Git", data(None)).await?;
    let stays = stage.application_named("stays");
    stage.place.wait(&stays, "has synced", |app| phase(app) == "Succeeded").await?;
    let live = stage.place.get(&objects::config_map("stays", &[])).await?.unwrap_or_default();
    assert_eq!(live["data"]["b"], "2", "nobody took its fields over");
    Ok(())
}

#[tokio::test]
async fn a_webhook_and_a_conversion_that_do_not_answer_are_named_and_tried_again() -> Result<()> {
    let stage = Stage::set().await?;
    let group = format!("{}.example.com", stage.place.name());
    let nobody = json!({"url": "https://127.0.0.1:1/", "caBundle": null});
    let guard = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": group},
        "webhooks": [{
            "name": format!("guard.{group}"), "clientConfig": nobody, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "timeoutSeconds": 1,
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["services"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": stage.place.name()}},
        }],
    });
    let schema = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    let mut kind = objects::crd(&group, "Widget", &schema);
    let mut second = kind["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    kind["spec"]["versions"] = json!([kind["spec"]["versions"][0], second]);
    let mut converted = kind.clone();
    converted["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": nobody},
    });
    stage.place.apply(&guard).await?;
    stage.place.apply(&converted).await?;
    let is_served = |live: &Value| live["status"]["conditions"].to_string().contains("Established");
    stage.place.wait(&kind, "is served", is_served).await?;
    let widget = objects::with(
        objects::custom(&group, "Widget", "one", &json!({"size": 1})),
        "/apiVersion",
        json!(format!("{group}/v2")),
    );
    stage.repo.commit(&[
        ("guarded/web.yaml", objects::manifests(&[objects::service("web", 80)])),
        ("converted/one.yaml", objects::manifests(std::slice::from_ref(&widget))),
    ])?;
    for name in ["guarded", "converted"] {
        stage
            .application(name, |app| {
                app["spec"]["source"]["path"] = json!(name);
                let backoff = json!({"duration": "1s", "factor": 1});
                app["spec"]["syncPolicy"] =
                    json!({"automated": {}, "retry": {"limit": 30, "backoff": backoff}});
            })
            .await?;
    }
    let (guarded, widgets) = (stage.application_named("guarded"), stage.application_named("converted"));
    let hook = format!("guard.{group}");
    let is_told = |app: &Value| message(app).contains(&hook) && message(app).contains("Retrying attempt #");
    let guarded_says = stage.place.wait(&guarded, "names the webhook", is_told).await;
    let is_told =
        |app: &Value| message(app).contains("conversion webhook") || message(app).contains("Widget");
    let widgets_say = stage.place.wait(&widgets, "names the conversion", is_told).await;
    stage.place.delete(&guard).await?;
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    stage.place.patch_as("a-person", &kind, &none).await?;
    guarded_says?;
    widgets_say?;
    let done = |app: &Value| phase(app) == "Succeeded";
    let guarded = stage.place.wait(&guarded, "has synced by itself", done).await;
    let widgets = stage.place.wait(&widgets, "has synced by itself", done).await;
    stage.place.delete(&kind).await?;
    guarded?;
    widgets?;
    Ok(())
}

#[tokio::test]
async fn a_namespace_on_its_way_out_is_named_and_waited_for() -> Result<()> {
    let stage = Stage::set().await?;
    let other = format!("{}-leaving", stage.place.name());
    let namespace = objects::namespace(&other);
    stage.place.apply(&namespace).await?;
    let held =
        objects::with(objects::config_map("held", &[]), "/metadata/finalizers", json!(["example.com/hold"]));
    let held = objects::in_namespace(held, &other);
    stage.place.apply(&held).await?;
    stage.place.delete(&namespace).await?;
    stage.place.wait(&namespace, "is leaving", |live| live["status"]["phase"] == "Terminating").await?;
    stage.repo.commit(&[
        ("app/web.yaml", objects::manifests(&[objects::service("web", 80)])),
        ("more/api.yaml", objects::manifests(&[objects::service("api", 80)])),
    ])?;
    let retry = json!({"limit": -1, "backoff": {"duration": "1s", "factor": 1}});
    let maker = stage
        .application("maker", |app| {
            app["spec"]["destination"]["namespace"] = json!(other);
            app["spec"]["syncPolicy"] = json!({"automated": {}, "syncOptions": ["CreateNamespace=true"]});
        })
        .await?;
    let guest = stage
        .application("guest", |app| {
            app["spec"]["source"]["path"] = json!("more");
            app["spec"]["destination"]["namespace"] = json!(other);
            app["spec"]["syncPolicy"] = json!({"automated": {}, "retry": retry});
        })
        .await?;
    // Who may make the namespace waits until it can; who may not tries again.
    let waits = |app: &Value| {
        let text = message(app);
        text.contains(&format!("waiting for deletion of /Namespace/{other}: "))
            && text.contains("example.com/hold")
            && text.contains("(since 20")
    };
    let waited = stage.place.wait(&maker, "says what it waits for", waits).await;
    let is_told = |app: &Value| {
        let text = message(app);
        text.contains(&format!("namespace {other} is being deleted (since 20")) && text.contains("Retrying")
    };
    let told = stage.place.wait(&guest, "says what is in the way", is_told).await;
    stage.place.patch_as("a-person", &held, &json!({"metadata": {"finalizers": null}})).await?;
    waited?;
    told?;
    // The namespace controller looks again when it pleases.
    let limit = Duration::from_mins(3);
    let is_synced = |app: &Value| phase(app) == "Succeeded";
    for app in [&maker, &guest] {
        stage.place.wait_within(limit, app, "has synced by itself", is_synced).await?;
    }
    let service = objects::in_namespace(objects::service("web", 80), &other);
    let made = stage.place.get(&service).await?;
    stage.place.delete(&namespace).await?;
    ensure!(made.is_some(), "the namespace is back, and the Service in it");
    Ok(())
}

#[tokio::test]
async fn what_was_replaced_is_judged_by_its_fields_as_if_it_had_been_applied() -> Result<()> {
    let stage = Stage::set().await?;
    let conf = |data: &[(&str, &str)]| option(objects::config_map("conf", data), "Replace=true");
    let web = |image: &str| {
        let web = objects::deployment("web", 1);
        option(objects::with(web, "/spec/template/spec/containers/0/image", json!(image)), "Replace=true")
    };
    let first = [conf(&[("a", "1"), ("b", "2")]), web("registry.example/web:1")];
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&first))])?;
    let app =
        stage.application("replaced", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    // A field that left Git goes with the whole object that is put in its place.
    let second = [conf(&[("a", "2")]), web("registry.example/web:2")];
    let synced = sync(&stage, &app, &second).await?;
    assert_eq!(phase(&synced), "Succeeded", "{}", message(&synced));
    let live = stage.place.get(&conf(&[])).await?.unwrap_or_default();
    assert_eq!(live["data"], json!({"a": "2"}));

    // Additions, defaults and what a controller fills in are nobody's fault.
    stage.place.patch_as("an-operator", &conf(&[]), &json!({"data": {"extra": "1"}})).await?;
    let addition = stage.finding(&app, "ConfigMap", "conf", "UnclaimedAddition").await?;
    assert_eq!((&addition["fields"], &addition["counts"]), (&json!(["/data/extra"]), &json!(false)));
    stage.until_sync(&app, "Synced").await?;

    // Edits count, by their field and with their author.
    stage.place.patch_as("kubectl-edit", &conf(&[]), &json!({"data": {"a": "3"}})).await?;
    stage.place.patch_as("kubectl-scale", &web(""), &json!({"spec": {"replicas": 2}})).await?;
    for (kind, name, field, actor) in [
        ("ConfigMap", "conf", "/data/a", "kubectl-edit"),
        ("Deployment", "web", "/spec/replicas", "kubectl-scale"),
    ] {
        let finding = stage.finding(&app, kind, name, "LiveEdit").await?;
        assert_eq!((&finding["fields"], &finding["actor"]), (&json!([field]), &json!(actor)), "{kind}");
    }
    stage.until_sync(&app, "OutOfSync").await?;

    // A sync puts Git's word in the place of both, additions included.
    stage.plumb(&["app", "sync", "replaced"])?;
    let as_in_git = |live: &Value| live["data"] == json!({"a": "2"});
    stage.place.wait(&conf(&[]), "is as Git has it", as_in_git).await?;
    stage.place.wait(&web(""), "is as Git has it", |live| live["spec"]["replicas"] == 1).await?;
    stage.until_sync(&app, "Synced").await?;
    Ok(())
}

/// The defaults in it belong to whoever created the object, or to nobody: a handler without a port is none.
#[tokio::test]
async fn what_another_tool_made_goes_as_a_whole_when_git_chooses_otherwise() -> Result<()> {
    let stage = Stage::set().await?;
    let probe = "/spec/template/spec/containers/0/readinessProbe";
    let web = |handler: Value| objects::with(objects::deployment("web", 1), probe, handler);
    let first = web(json!({"httpGet": {"path": "/", "port": 80}}));
    stage.place.apply(&first).await?;
    stage.repo.commit(&[("app/web.yaml", objects::manifests(std::slice::from_ref(&first)))])?;
    let app = stage.application("adopts", automated).await?;
    stage.until_sync(&app, "Synced").await?;
    let second = web(json!({"tcpSocket": {"port": 80}}));
    let second = objects::with(second, "/spec/strategy", json!({"type": "Recreate"}));
    stage.repo.commit(&[("app/web.yaml", objects::manifests(std::slice::from_ref(&second)))])?;
    stage.refresh(&app).await?;
    let handlers = |live: &Value| {
        let probe = live.pointer(probe).cloned().unwrap_or_default();
        (probe["httpGet"].is_null(), probe["tcpSocket"]["port"] == 80)
    };
    stage.place.wait(&first, "has the other handler", |live| handlers(live) == (true, true)).await?;
    let live = stage.place.get(&first).await?.unwrap_or_default();
    assert_eq!(live["spec"]["strategy"], json!({"type": "Recreate"}));
    stage.until_sync(&app, "Synced").await?;
    Ok(())
}

/// Whether it was applied or somebody had made it so before: Git had it, and has it no more.
#[tokio::test]
async fn what_git_asked_for_and_somebody_made_so_before_goes_with_git() -> Result<()> {
    let stage = Stage::set().await?;
    let map = |data: &[(&str, &str)]| objects::config_map("map", data);
    let commit =
        |data: &[(&str, &str)]| stage.repo.commit(&[("app/map.yaml", objects::manifests(&[map(data)]))]);
    commit(&[("a", "1"), ("b", "2")])?;
    let app =
        stage.application("foreseen", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    stage.place.patch_as("kubectl-edit", &map(&[]), &json!({"data": {"b": "9"}})).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    commit(&[("a", "1"), ("b", "9")])?;
    stage.refresh(&app).await?;
    stage.until_sync(&app, "Synced").await?;
    commit(&[("a", "1")])?;
    stage.refresh(&app).await?;
    stage.place.wait(&map(&[]), "has lost it", |live| live["data"] == json!({"a": "1"})).await?;
    stage.until_sync(&app, "Synced").await?;
    Ok(())
}
