//! While this process stands by, it probes the witness of the leader. A leader that froze would otherwise cost each write of
//! others to a tracked object a second, until its lease has run out.

use std::convert::Infallible;
use std::time::Duration;

use plumb_core::object::Manifest;
use plumb_core::witness::Silence;
use plumb_kube::{ClusterClient, Fence, Gate, OwnWrite, Target, WitnessProbe};
use tracing::{debug, warn};

use crate::cluster::witness::registration_key;

/// How long the witness has for an answer: as long as the API server waits.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// The pause between two probes.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// How often the registration is read while there is none.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Probes the witness of the leader, and removes its registration when it falls silent. Never ends.
pub(super) async fn guard_witness(client: &ClusterClient, namespace: &str) -> Infallible {
    loop {
        match read(client, namespace).await {
            Some((registration, probe)) => {
                until_silent(probe).await;
                withdraw(client, namespace, &registration).await;
            }
            None => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}

async fn read(client: &ClusterClient, namespace: &str) -> Option<(Manifest, WitnessProbe)> {
    let registration = client.get(&registration_key(namespace)).await.ok()??;
    let probe = WitnessProbe::of(&registration)?;
    Some((registration, probe))
}

async fn until_silent(mut probe: WitnessProbe) {
    let mut silence = Silence::default();
    while !silence.is_over_the_limit() {
        tokio::time::sleep(PROBE_EVERY).await;
        silence = silence.after(probe.is_answered(ANSWER_WITHIN).await);
    }
}

/// Deletes the registration, unless another leader has written its own since. This is the only write without the lease: the
/// leader registers its witness again if it is still there.
async fn withdraw(client: &ClusterClient, namespace: &str, silent: &Manifest) {
    let Ok(Some(now)) = client.get(&registration_key(namespace)).await else { return };
    let (Some(target), Some(uid)) = (Target::of(&now), now.uid()) else { return };
    if now.resource_version() != silent.resource_version() {
        return;
    }
    warn!("the leader's witness does not answer: its registration is removed, so that no write waits for it");
    let gate = Gate::new(client.clone(), Fence::of_command(), None);
    if let Err(error) = gate.write_own(&OwnWrite::Delete { target, uid: uid.to_owned() }).await {
        debug!(%error, "cannot remove the registration of the witness");
    }
}
