//! Starts the witness and registers it with the API server. `plumb_core::witness` says what it is for.
//!
//! The witness is optional: a failure here is logged once and the engine runs without it. Findings then
//! cannot name the writer that removed or reordered fields.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::tracking::FIELD_MANAGER;
use plumb_kube::{ApplyOptions, FieldValidation, Gate, OwnWrite, Target, Witness};
use tracing::{info, warn};

use crate::cluster::destination::Cluster;
use crate::config::options::WitnessPlace;

/// The registration of a running witness.
pub(crate) struct Registered {
    target: Target,
    uid: String,
}

/// Starts the witness in a task of its own and registers it.
pub(crate) async fn start(
    place: &WitnessPlace,
    namespace: &str,
    cluster: &Cluster,
    tasks: &mut tokio::task::JoinSet<()>,
) -> Option<Registered> {
    let (address, host) = match place {
        WitnessPlace::Off => return None,
        WitnessPlace::Loopback => (SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), "127.0.0.1"),
        WitnessPlace::At { host, port } => (SocketAddr::from((Ipv4Addr::UNSPECIFIED, *port)), host.as_str()),
    };
    let witness = match Witness::listen(address, host).await {
        Ok(witness) => witness,
        Err(error) => {
            warn!(
                error = plumb_core::error_chain::error_chain(&error),
                "cannot start the witness: findings cannot name who removed a field"
            );
            return None;
        }
    };
    let url = match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(host)) => format!("https://[{host}]:{}/", witness.address().port()),
        _ => format!("https://{host}:{}/", witness.address().port()),
    };
    let registered = register(cluster, namespace, &url, witness.ca_bundle()).await;
    tasks.spawn(witness.serve());
    match registered {
        Ok(registered) => Some(registered),
        Err(problem) => {
            warn!(problem, "cannot register the witness: findings cannot name who removed a field");
            None
        }
    }
}

async fn register(
    cluster: &Cluster,
    namespace: &str,
    url: &str,
    ca_bundle: &str,
) -> Result<Registered, String> {
    let owner = ObjectKey::new("", "Namespace", None, namespace);
    let owner = cluster.client.get(&owner).await.map_err(|error| error.to_string())?;
    let owner = owner.as_ref().and_then(Manifest::uid).ok_or("the namespace does not exist")?;
    let registration = plumb_crd::witness::registration(namespace, owner, url, ca_bundle);
    let manifest = Manifest::new(registration).map_err(|error| error.to_string())?;
    let target = Target::of(&manifest).ok_or("the registration has no name")?;
    let options = ApplyOptions {
        field_manager: FIELD_MANAGER.to_owned(),
        force: true,
        field_validation: FieldValidation::Ignore,
        subresource: None,
    };
    let applied = cluster.gate.write_own(&OwnWrite::Apply { manifest, options }).await;
    let applied = applied.map_err(|error| error.to_string())?;
    let uid = applied.as_ref().and_then(|applied| applied.manifest.uid()).ok_or("the response has no uid")?;
    info!(name = target.name, url, "witness registered");
    Ok(Registered { uid: uid.to_owned(), target })
}

impl Registered {
    /// Deletes the registration when the witness stops.
    pub(crate) async fn withdraw(self, gate: &Gate) {
        let delete = OwnWrite::Delete { target: self.target, uid: self.uid };
        if let Err(error) = gate.write_own(&delete).await {
            warn!(%error, "cannot unregister the witness; the API server ignores an unreachable witness");
        }
    }
}
