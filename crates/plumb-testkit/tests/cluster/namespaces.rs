//! A test's own namespace, its reading and writing, and waiting.

use std::time::Duration;

use anyhow::Result;
use plumb_testkit::{TestNamespace, audit, objects, wait::until_seen};
use serde_json::{Value, json};

fn managers(live: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let fields = live["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    fields
        .iter()
        .map(|entry| (text(&entry["manager"]), text(&entry["operation"]), text(&entry["subresource"])))
        .collect()
}

#[tokio::test]
async fn a_namespace_is_fresh_and_goes_with_its_test() -> Result<()> {
    let witness = TestNamespace::new().await?;
    let test = TestNamespace::new().await?;
    assert_ne!(test.name(), witness.name());
    test.apply(&objects::config_map("settings", &[("a", "1")])).await?;
    assert!(witness.get(&objects::config_map("settings", &[])).await?.is_none());
    let namespace = objects::namespace(test.name());
    let crd = objects::crd(&format!("{}.example", test.name()), "Widget", &json!({"type": "object"}));
    test.apply(&crd).await?;
    witness
        .wait(&crd, "is served", |live| {
            live["status"]["conditions"].as_array().is_some_and(|all| {
                all.iter().any(|one| one["type"] == "Established" && one["status"] == "True")
            })
        })
        .await?;
    drop(test);
    witness.wait_gone(&namespace).await?;
    witness.wait_gone(&crd).await?;
    Ok(())
}

#[tokio::test]
async fn each_writer_is_known_by_name() -> Result<()> {
    let test = TestNamespace::new().await?;
    let web = objects::deployment("web", 1);
    test.apply_as("argocd-controller", &web).await?;
    test.scale_as("autoscaler", &web, 2).await?;
    test.patch_as("kubectl-edit", &web, &json!({"metadata": {"labels": {"edited": "yes"}}})).await?;
    let live = test.get(&web).await?.expect("it exists");
    assert_eq!(live["spec"]["replicas"], 2);
    let service = objects::service("web", 80);
    test.apply(&service).await?;
    let condition = json!([{"type": "Seen", "status": "True", "reason": "Test", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let seen = test.patch_status_as("operator", &service, &json!({"conditions": condition})).await?;

    let managers = [managers(&live), managers(&seen)].concat();
    for (manager, operation, subresource) in [
        ("argocd-controller", "Apply", ""),
        ("autoscaler", "Update", "scale"),
        ("kubectl-edit", "Update", ""),
        ("plumb-test", "Apply", ""),
        ("operator", "Update", "status"),
    ] {
        let entry = (manager.to_owned(), operation.to_owned(), subresource.to_owned());
        assert!(managers.contains(&entry), "{entry:?} is missing in {managers:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_fact_that_does_not_come_true_shows_what_was_seen() -> Result<()> {
    let test = TestNamespace::new().await?;
    let settings = objects::config_map("settings", &[("colour", "green")]);
    test.apply(&settings).await?;
    // Long enough for a busy machine to see it once.
    let short = Duration::from_secs(2);
    let error = test.wait_within(short, &settings, "is blue", |live| live["data"]["colour"] == "blue").await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("is blue"), "{error}");
    assert!(error.contains(r#""colour": "green""#), "{error}");
    assert!(!error.contains("managedFields"), "{error}");

    let missing = objects::config_map("missing", &[]);
    let error = test.wait_within(short, &missing, "exists", |_| true).await.unwrap_err().to_string();
    assert!(error.ends_with("last seen: nothing"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_wait_ends_the_moment_the_fact_comes_true() -> Result<()> {
    let test = TestNamespace::new().await?;
    let settings = objects::config_map("settings", &[("colour", "green")]);
    let blue = objects::config_map("settings", &[("colour", "blue")]);
    let (seen, written) =
        tokio::join!(test.wait(&settings, "is blue", |live| live["data"]["colour"] == "blue"), async {
            test.apply(&settings).await?;
            test.apply(&blue).await
        });
    assert_eq!(seen?["metadata"]["resourceVersion"], written?["metadata"]["resourceVersion"]);
    Ok(())
}

#[tokio::test]
async fn the_audit_log_tells_who_wrote_what() -> Result<()> {
    let test = TestNamespace::new().await?;
    let settings = objects::config_map("settings", &[("a", "1")]);
    test.apply(&settings).await?;
    test.get(&settings).await?;
    let log = test.cluster().audit_log();
    let events = until_seen(
        Duration::from_secs(10),
        "both requests are in the log",
        async || {
            audit::read(&log, |event| {
                let object = event.object_ref.clone().unwrap_or_default();
                object.namespace == test.name()
                    && object.resource == "configmaps"
                    && object.name == "settings"
            })
            .unwrap_or_default()
        },
        |events| events.len() >= 2,
    )
    .await?;
    let verbs: Vec<(&str, bool)> =
        events.iter().map(|event| (event.verb.as_str(), event.is_write())).collect();
    assert_eq!(verbs, [("patch", true), ("get", false)]);
    assert!(events.iter().all(|event| event.user_agent == "plumb-test"));
    assert!(events.iter().all(|event| event.user.username == "plumb-admin"));
    Ok(())
}
