use std::time::Duration;

use plumb_kube::{Leadership, LeaseKeeper, LeaseOptions};
use serde_json::{Value, json};

use super::server::Server;

fn lease(holder: &str, version: u64) -> Value {
    lasting(15, holder, version, &format!("renewal {version}"))
}

fn lasting(seconds: i64, holder: &str, version: u64, renewed: &str) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "plumb", "namespace": "argocd", "resourceVersion": version.to_string(), "labels": {"a": "b"}},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": renewed,
                 "strategy": "OldestEmulationVersion"}})
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

/// When a process takes a lease of which it sees these states, one every three seconds.
async fn taken_after(states: impl Fn(u64) -> Value) -> Duration {
    let server = Server::default();
    let started = tokio::time::Instant::now();
    for n in 0..200 {
        server.answer(200, vec![], states(n));
    }
    let keeper = LeaseKeeper::start(server.client(), LeaseOptions::new("argocd", "plumb", "me"));
    keeper.leading().await;
    started.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_not_believed_to_last_for_years_nor_shorter_than_the_fence() {
    let years = taken_after(|_| lasting(i64::from(i32::MAX), "dead", 7, "once")).await;
    assert!((60..70).contains(&years.as_secs()), "{years:?}");
    let short = taken_after(|_| lasting(1, "dead", 7, "once")).await;
    assert!((15..20).contains(&short.as_secs()), "the holder may still write: {short:?}");
    let negative = taken_after(|_| lasting(-5, "dead", 7, "once")).await;
    assert!((15..20).contains(&negative.as_secs()), "{negative:?}");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_no_renewal_does_not_prolong_a_lease() {
    let labelled = taken_after(|n| lasting(15, "dead", n, "once")).await;
    assert!((15..20).contains(&labelled.as_secs()), "{labelled:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_taken_again_in_a_new_term() {
    let server = Server::default();
    server.answer(200, vec![], lease("", 1)).answer(200, vec![], lease("me", 2));
    let refused = json!({"code": 403, "reason": "Forbidden", "message": "no"});
    for _ in 0..5 {
        server.answer(403, vec![], refused.clone());
    }
    for version in 3..20 {
        server.answer(200, vec![], lease("me", version));
    }
    let keeper = LeaseKeeper::start(server.client(), LeaseOptions::new("argocd", "plumb", "me"));
    keeper.leading().await;
    let first = keeper.fence();
    first.lost().await;
    let mut leadership = keeper.leadership();
    let failing =
        leadership.wait_for(|state| matches!(state, Leadership::Failing { .. })).await.unwrap().to_string();
    assert!(failing.starts_with("cannot renew the lease: ") && failing.contains("403"), "{failing}");
    keeper.leading().await;
    assert!(keeper.fence().check().is_ok());
    assert!(first.check().is_err(), "another process may have led in between");
    first.lost().await;
}

#[tokio::test(start_paused = true)]
async fn renewals_in_time_keep_the_term() {
    let server = Server::default();
    for version in 1..60 {
        server.answer(200, vec![], lease("me", version));
    }
    let keeper = LeaseKeeper::start(server.client(), LeaseOptions::new("argocd", "plumb", "me"));
    keeper.leading().await;
    let fence = keeper.fence();
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert!(fence.check().is_ok());
}

/// The test blocks the only thread of its runtime, as work on apps could.
#[tokio::test]
async fn renewals_go_on_while_every_worker_is_blocked() {
    let server = Server::default();
    for version in 1..5000 {
        server.answer(200, vec![], lease("me", version));
    }
    let options = LeaseOptions {
        renew_deadline: Duration::from_secs(5),
        renew_every: Duration::from_millis(20),
        ..LeaseOptions::new("argocd", "plumb", "me")
    };
    let keeper = LeaseKeeper::start_on_thread(server.client(), options, |_| false).unwrap();
    keeper.leading().await;
    let fence = keeper.fence();
    let blocked = std::time::Instant::now();
    while server.seen().len() < 40 {
        assert!(blocked.elapsed() < Duration::from_secs(30), "{:?}", server.seen());
        std::thread::yield_now();
    }
    assert!(fence.check().is_ok());
    let releaser = keeper.releaser();
    releaser.release();
    while !releaser.has_ended() {
        std::thread::yield_now();
    }
    assert!(fence.check().is_err());
    assert!(server.seen().last().is_some_and(|last| last.starts_with("PUT")), "it was given back");
}
