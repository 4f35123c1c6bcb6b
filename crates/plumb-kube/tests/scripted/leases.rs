use std::time::Duration;

use plumb_kube::{LeaseKeeper, LeaseOptions};
use serde_json::{Value, json};

use super::server::Server;

fn lease(holder: &str, version: u64) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "plumb", "namespace": "argocd", "resourceVersion": version.to_string(), "labels": {"a": "b"}},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "strategy": "OldestEmulationVersion"}})
}

#[tokio::test(start_paused = true)]
async fn the_fence_closes_when_renewals_fail_and_before_anyone_else_may_lead() {
    let server = Server::default();
    server.answer(200, vec![], lease("", 1)).answer(200, vec![], lease("me", 2));
    // From here on every answer is a failure.
    let keeper = LeaseKeeper::start(server.client(), LeaseOptions::new("argocd", "plumb", "me"));
    keeper.leading().await;
    let fence = keeper.fence();
    assert!(fence.check().is_ok());
    let started = tokio::time::Instant::now();
    fence.lost().await;
    let closed = started.elapsed();
    assert!(closed <= Duration::from_secs(10), "{closed:?}");
    assert!(closed >= Duration::from_secs(9), "{closed:?}");
    assert!(fence.check().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_another_is_left_alone_while_it_is_renewed() {
    let server = Server::default();
    for version in 1..20 {
        server.answer(200, vec![], lease("other", version));
    }
    let keeper = LeaseKeeper::start(server.client(), LeaseOptions::new("argocd", "plumb", "me"));
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert!(keeper.fence().check().is_err());
    assert!(server.seen().iter().all(|asked| asked.starts_with("GET")), "{:?}", server.seen());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_renewed_is_taken_after_its_duration() {
    let server = Server::default();
    let started = tokio::time::Instant::now();
    for _ in 0..40 {
        server.answer(200, vec![], lease("dead", 7));
    }
    let keeper = LeaseKeeper::start(server.client(), LeaseOptions::new("argocd", "plumb", "me"));
    keeper.leading().await;
    assert!(started.elapsed() >= Duration::from_secs(15), "{:?}", started.elapsed());
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_came_second_leads_to_another_look() {
    let server = Server::default();
    server
        .answer(200, vec![], lease("", 1))
        .answer(409, vec![], json!({"code": 409, "reason": "Conflict"}))
        .answer(200, vec![], lease("other", 2));
    let keeper = LeaseKeeper::start(server.client(), LeaseOptions::new("argocd", "plumb", "me"));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(keeper.fence().check().is_err());
    assert_eq!(server.seen().len(), 3);
}
