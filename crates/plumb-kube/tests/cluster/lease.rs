use std::time::{Duration, Instant};

use plumb_core::object::{Manifest, ObjectKey};
use plumb_kube::{ApplyOptions, Gate, Leadership, LeaseKeeper, LeaseOptions, WriteError, WritePermit};

use super::lab::{lab, within};

fn options(namespace: &str, identity: &str) -> LeaseOptions {
    LeaseOptions {
        duration: Duration::from_secs(6),
        renew_deadline: Duration::from_secs(4),
        renew_every: Duration::from_millis(500),
        ..LeaseOptions::new(namespace, "plumb", identity)
    }
}

#[tokio::test]
async fn one_leads_the_other_waits_and_takes_over_at_once_when_the_lease_is_given_back() {
    let Some(lab) = lab("lease").await else { return };
    let first = LeaseKeeper::start(lab.client.clone(), options(&lab.namespace, "first"));
    within(5, first.leading()).await;
    let second = LeaseKeeper::start(lab.client.clone(), options(&lab.namespace, "second"));
    let mut standing = second.leadership();
    within(5, standing.wait_for(|state| *state == Leadership::Waiting { holder: Some("first".to_owned()) }))
        .await
        .unwrap();

    let manifest = Manifest::new(lab.config_map("one", None, "1")).unwrap();
    let permit = WritePermit::requested_by_user(manifest.key().unwrap());
    let gate = |keeper: &LeaseKeeper| Gate::new(lab.client.clone(), keeper.fence(), None);
    let (open, closed) = (gate(&first), gate(&second));
    open.apply(&permit, &manifest, &ApplyOptions::default()).await.unwrap();
    let error = closed.apply(&permit, &manifest, &ApplyOptions::default()).await.unwrap_err();
    assert!(matches!(error, WriteError::NotLeader(_)));

    // Renewed for longer than it lasts: renewals keep the second out.
    let renewed = async || {
        let key = ObjectKey::new("coordination.k8s.io", "Lease", Some(lab.namespace.clone()), "plumb");
        let lease = lab.client.get(&key).await.unwrap().unwrap();
        let time = lease.value().pointer("/spec/renewTime").and_then(|time| time.as_str()).unwrap();
        time.parse::<jiff::Timestamp>().unwrap()
    };
    let taken = renewed().await;
    within(30, async {
        while renewed().await.duration_since(taken) < jiff::SignedDuration::from_secs(7) {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
    .await;
    assert!(first.fence().check().is_ok());
    assert!(second.fence().check().is_err());

    first.release().await;
    let error = open.apply(&permit, &manifest, &ApplyOptions::default()).await.unwrap_err();
    assert!(matches!(error, WriteError::NotLeader(_)));
    let started = Instant::now();
    within(5, second.leading()).await;
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    closed.apply(&permit, &manifest, &ApplyOptions::default()).await.unwrap();
}

#[tokio::test]
async fn a_holder_that_dies_is_followed_after_the_leases_duration() {
    let Some(lab) = lab("leasedeath").await else { return };
    let first = LeaseKeeper::start(lab.client.clone(), options(&lab.namespace, "first"));
    within(5, first.leading()).await;
    let fence = first.fence();
    let died = Instant::now();
    first.abandon();
    let second = LeaseKeeper::start(lab.client.clone(), options(&lab.namespace, "second"));
    within(5, fence.lost()).await;
    let closed_after = died.elapsed();
    within(20, second.leading()).await;
    assert!(closed_after < died.elapsed(), "the first fence closed before the second opened");
    assert!(died.elapsed() >= Duration::from_secs(6));
}
