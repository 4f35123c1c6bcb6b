//! What kwok plays: ready pods, finished jobs, bound volumes, and trouble on demand.

use anyhow::Result;
use plumb_testkit::{
    TestNamespace,
    objects::{self, Trouble, annotated, troubled},
    wait::Seen,
};
use serde_json::{Value, json};

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

fn holds(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == "True")
}

fn first_container(pods: &Seen) -> Option<&Value> {
    pods.values().next()?["status"]["containerStatuses"].get(0)
}

fn waits_for(pods: &Seen, reason: &str) -> bool {
    first_container(pods).is_some_and(|container| container["state"]["waiting"]["reason"] == reason)
}

#[tokio::test]
async fn workloads_become_ready() -> Result<()> {
    let test = TestNamespace::new().await?;
    let web = objects::deployment("web", 3);
    let db = objects::stateful_set("db", 2);
    let agent = objects::daemon_set("agent");
    for object in [&web, &db, &agent, &objects::service("web", 80)] {
        test.apply(object).await?;
    }
    test.wait(&web, "has 3 available pods", |live| live["status"]["availableReplicas"] == 3).await?;
    test.wait(&db, "has 2 ready pods", |live| live["status"]["readyReplicas"] == 2).await?;
    test.wait(&agent, "runs on both nodes", |live| live["status"]["numberReady"] == 2).await?;
    let slices = test
        .wait_list(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            "kubernetes.io/service-name=web",
            "has endpoints",
            |slices| {
                slices
                    .values()
                    .any(|slice| slice["endpoints"].as_array().is_some_and(|endpoints| endpoints.len() == 3))
            },
        )
        .await?;
    assert_eq!(slices.len(), 1);

    test.delete(&web).await?;
    test.wait_gone(&web).await?;
    test.wait_list("v1", "Pod", "app=web", "are gone", Seen::is_empty).await?;
    Ok(())
}

#[tokio::test]
async fn jobs_complete_fail_or_hold_as_told() -> Result<()> {
    let test = TestNamespace::new().await?;
    let good = objects::job("good");
    let bad = troubled(objects::job("bad"), Trouble::Fail);
    let held = troubled(objects::job("held"), Trouble::Hold);
    for job in [&good, &bad, &held] {
        test.apply(job).await?;
    }
    test.wait(&good, "is complete", |live| holds(live, "Complete")).await?;
    test.wait(&bad, "has failed", |live| holds(live, "Failed")).await?;

    let live = test.wait(&held, "is active", |live| live["status"]["ready"] == 1).await?;
    assert!(condition(&live, "Complete").is_none());
    let pods = test.list("v1", "Pod", "job-name=held").await?;
    let pod = pods.values().next().expect("the job has a pod");
    test.patch_as("test", pod, &json!({"metadata": {"labels": {Trouble::Hold.label(): null}}})).await?;
    test.wait(&held, "is complete once let go", |live| holds(live, "Complete")).await?;
    Ok(())
}

#[tokio::test]
async fn a_pod_crash_loops_and_recovers() -> Result<()> {
    let test = TestNamespace::new().await?;
    let mut crashing = troubled(objects::deployment("crashing", 1), Trouble::CrashLoop);
    crashing["spec"]["template"]["metadata"]["annotations"] =
        json!({"plumb.dev/exit-code": "3", "plumb.dev/message": "no such flag"});
    test.apply(&crashing).await?;
    let pods = test
        .wait_list("v1", "Pod", "app=crashing", "has crashed 3 times", |pods| {
            first_container(pods)
                .and_then(|container| container["restartCount"].as_u64())
                .is_some_and(|n| n >= 3)
        })
        .await?;
    assert!(waits_for(&pods, "CrashLoopBackOff"));
    let container = first_container(&pods).expect("it was just seen");
    assert_eq!(container["ready"], false);
    assert_eq!(container["lastState"]["terminated"]["exitCode"], 3);
    assert_eq!(container["lastState"]["terminated"]["message"], "no such flag");
    let message = container["state"]["waiting"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("back-off restarting failed container=main pod=crashing-"), "{message}");
    let live = test.get(&crashing).await?.expect("it exists");
    assert_eq!(live["status"]["unavailableReplicas"], 1, "the workload shows it");

    let pod = pods.values().next().expect("it was just seen");
    test.patch_as("test", pod, &json!({"metadata": {"labels": {Trouble::CrashLoop.label(): null}}})).await?;
    test.wait(pod, "is ready again", |live| holds(live, "Ready")).await?;
    Ok(())
}

#[tokio::test]
async fn pods_wait_for_images_or_readiness() -> Result<()> {
    let test = TestNamespace::new().await?;
    test.apply(&troubled(objects::deployment("no-image", 1), Trouble::ImagePullBackOff)).await?;
    test.apply(&troubled(objects::deployment("slow", 1), Trouble::NotReady)).await?;
    let pods = test
        .wait_list("v1", "Pod", "app=no-image", "waits for its image", |pods| {
            waits_for(pods, "ImagePullBackOff")
        })
        .await?;
    assert_eq!(pods.values().next().expect("it was just seen")["status"]["phase"], "Pending");
    let pods = test
        .wait_list("v1", "Pod", "app=slow", "runs", |pods| {
            pods.values().any(|pod| pod["status"]["phase"] == "Running")
        })
        .await?;
    let pod = pods.values().next().expect("it was just seen");
    assert!(!holds(pod, "Ready"));
    test.patch_as("test", pod, &json!({"metadata": {"labels": {Trouble::NotReady.label(): null}}})).await?;
    test.wait(&objects::deployment("slow", 1), "is available once let go", |live| holds(live, "Available"))
        .await?;
    Ok(())
}

#[tokio::test]
async fn claims_are_bound_and_their_volumes_go_with_them() -> Result<()> {
    let test = TestNamespace::new().await?;
    let claim = annotated(objects::volume_claim("data", "1Gi"), "note", "kept");
    test.apply(&claim).await?;
    let live = test.wait(&claim, "is bound", |live| live["status"]["phase"] == "Bound").await?;
    assert_eq!(live["spec"]["storageClassName"], "standard", "the default class was filled in");
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": live["spec"]["volumeName"]}});
    test.wait(&volume, "is bound", |live| live["status"]["phase"] == "Bound").await?;
    test.delete(&claim).await?;
    test.wait_gone(&claim).await?;
    test.wait_gone(&volume).await?;
    Ok(())
}
