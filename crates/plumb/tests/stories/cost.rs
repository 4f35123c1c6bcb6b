//! What looking costs: where everything is as it should be, nobody is asked anything.

use std::time::Duration;

use anyhow::Result;
use plumb_testkit::proxy::{FaultProxy, Requests};
use plumb_testkit::{objects, wait};
use serde_json::{Value, json};

use crate::stage::Stage;

/// How many objects; 1,000 is the figure that the documents name.
#[expect(clippy::disallowed_methods, reason = "how much a test run covers is chosen outside")]
fn n_objects() -> usize {
    std::env::var("PLUMB_COST_OBJECTS").ok().and_then(|text| text.parse().ok()).unwrap_or(50)
}

/// Objects of several kinds, each with something that the server adds or spells in its own way.
fn object(at: usize) -> Value {
    let name = format!("o{at}");
    match at % 8 {
        0 => objects::config_map(&name, &[("a", "1"), ("empty", "")]),
        1 => objects::secret(&name, &[("a", "1")]),
        2 => objects::deployment(&name, 0),
        3 => json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
            "spec": {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": name}}}}),
        4 => json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        5 => json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": {
            "schedule": "0 3 1 1 *", "suspend": false, "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example/c:1",
                    "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}}}]}}}}}}),
        6 => {
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name},
            "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"ports": [{"port": 80}]}]}})
        }
        _ => objects::stateful_set(&name, 0),
    }
}

fn dry_runs(proxy: &FaultProxy) -> usize {
    proxy.count(&Requests::to("dryRun=All"))
}

#[tokio::test]
async fn what_is_in_sync_is_proven_without_a_question() -> Result<()> {
    let (mut stage, proxy) = Stage::set_behind_proxy().await?;
    let all: Vec<Value> = (0..n_objects()).map(object).collect();
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&all))])?;
    let app = stage.application("cost", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    let is_done = |app: &Value| app["status"]["sync"]["status"] == "Synced" && app["operation"].is_null();
    stage.place.wait_within(Duration::from_mins(10), &app, "is Synced", is_done).await?;

    let before = dry_runs(&proxy);
    stage.refresh_hard(&app).await?;
    stage.until_sync(&app, "Synced").await?;
    stage.refresh(&app).await?;
    assert_eq!(dry_runs(&proxy), before, "a refresh asked for dry-runs");

    // A new process does not know what was applied, and proves it all the same.
    stage.kill_plumb()?;
    stage.break_lease().await?;
    stage.start_plumb()?;
    stage.refresh_hard(&app).await?;
    stage.until_sync(&app, "Synced").await?;
    assert_eq!(dry_runs(&proxy), before, "the first look after a start asked for dry-runs");

    // Nothing happens, nothing is asked: neither by a write nor by a read, but for the lease.
    let asked = || {
        let all = proxy.recorded();
        let own = all.iter().filter(|request| !request.watch && !request.target.contains("/leases/"));
        own.filter(|request| request.user_agent.starts_with("plumb/")).count()
    };
    let mut last = (asked(), 0);
    let still = async || {
        let now = asked();
        last = if now == last.0 { (now, last.1 + 1) } else { (now, 0) };
        last.1
    };
    wait::until_seen(Duration::from_mins(1), "three seconds pass without a request", still, |quiet| {
        *quiet >= 30
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_new_schema_judges_its_own_kind_again_and_is_one_event() -> Result<()> {
    let (stage, proxy) = Stage::set_behind_proxy().await?;
    let group = format!("{}.example.com", stage.place.name());
    let schema = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    let mut apple = objects::crd(&group, "Apple", &schema);
    let pear = objects::crd(&group, "Pear", &schema);
    for definition in [&apple, &pear] {
        stage.place.apply(definition).await?;
        let is_served = |live: &Value| {
            let conditions = live["status"]["conditions"].as_array();
            conditions.into_iter().flatten().any(|c| c["type"] == "Established" && c["status"] == "True")
        };
        stage.place.wait(definition, "is served", is_served).await?;
    }
    // Both schemas are published together, a moment later.
    let document = format!("/openapi/v3/apis/{group}/v1");
    let published = async || stage.place.read(&document).await;
    let has_both = |seen: &Result<String>| {
        seen.as_ref().is_ok_and(|text| ["Apple", "Pear"].iter().all(|kind| text.contains(kind)))
    };
    wait::until_seen(wait::LIMIT, "both schemas are published", published, has_both).await??;
    let fruit = |kind: &str, name: &str| objects::custom(&group, kind, name, &json!({"size": 1}));
    let all = [fruit("Apple", "a1"), fruit("Apple", "a2"), fruit("Apple", "a3"), fruit("Pear", "p1")];
    stage.repo.commit(&[("app/fruit.yaml", objects::manifests(&all))])?;
    let app = stage.application("fruit", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    // plumb may have judged without a schema at first; once it has read it, what follows is a change.
    let has_read = async || proxy.count(&Requests::to(&document));
    wait::until_seen(wait::LIMIT, "plumb has read the schemas", has_read, |count| *count > 0).await?;
    stage.refresh(&app).await?;
    let reads_before = proxy.recorded().len();

    let version = stage.place.get(&all[0]).await?.unwrap_or_default()["metadata"]["resourceVersion"].clone();
    apple["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["colour"] =
        json!({"type": "string", "default": "red"});
    stage.place.apply(&apple).await?;
    let finding = stage.finding(&app, "Apple", "a3", "SchemaDefault").await?;
    assert_eq!((&finding["fields"], &finding["counts"]), (&json!(["/spec/colour"]), &json!(false)));
    let live = stage.place.get(&all[0]).await?.unwrap_or_default();
    assert_eq!(live["spec"]["colour"], "red");
    assert_eq!(live["metadata"]["resourceVersion"], version, "no watch told of it");
    stage.until_sync(&app, "Synced").await?;

    let told = |events: &plumb_testkit::wait::Seen| {
        let about = events.values().filter(|event| event["reason"] == "SchemaChanged");
        about.map(|event| event["message"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let events = stage
        .place
        .wait_list("v1", "Event", "", "tells of the schema", |events| !told(events).is_empty())
        .await?;
    let told = told(&events);
    assert!(
        told.len() == 1 && told[0].contains("Apple") && told[0].ends_with("compared again: 3"),
        "{told:?}"
    );
    let read = |plural: &str| {
        let all = proxy.recorded();
        let after = all.iter().skip(reads_before);
        let of_kind = after.filter(|request| request.target.contains(&format!("{group}/v1/namespaces")));
        of_kind
            .filter(|request| request.method == "GET" && request.target.contains(&format!("/{plural}/")))
            .count()
    };
    assert!(read("apples") >= 3, "what the server shows of them was read anew");
    assert_eq!(read("pears"), 0, "the other kind was not touched");
    Ok(())
}
