//! Starts the witness and registers it with the API server. `plumb_core::witness` says what it is for.
//!
//! The witness is optional: a failure here is logged once and the engine runs without it. Findings then
//! cannot name the writer that removed or reordered fields.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use plumb_core::error_chain::error_chain;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::tracking::FIELD_MANAGER;
use plumb_kube::{
    ApplyOptions, Fence, FieldValidation, Gate, IsOwn, OwnWrite, Target, Witness, WitnessError, WitnessServer,
};
use tracing::{debug, info, warn};

use crate::cluster::destination::Cluster;
use crate::config::options::WitnessPlace;

/// A running witness and its registration.
pub(crate) struct Registered {
    place: RegisteredPlace,
    target: Target,
    /// The uid of the registration. Another process may remove it, and then it is made again.
    uid: Mutex<String>,
    _server: WitnessServer,
}

/// What a registration says.
struct RegisteredPlace {
    namespace: String,
    url: String,
    ca_bundle: String,
    own_user: Option<String>,
}

/// How often the leader looks whether its witness is registered. That takes no request.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The registration of the witness of an installation.
pub(crate) fn registration_key(namespace: &str) -> ObjectKey {
    let name = plumb_crd::witness::name(namespace);
    ObjectKey::new("admissionregistration.k8s.io", "MutatingWebhookConfiguration", None, name)
}

/// The users as whom plumb writes, besides its own. Their writes with plumb's field manager are plumb's.
#[derive(Debug, Default)]
pub(crate) struct ImpersonatedUsers(RwLock<HashSet<String>>);

impl ImpersonatedUsers {
    pub(crate) fn note(&self, user: &str) {
        if !self.contains(user) {
            self.0.write().insert(user.to_owned());
        }
    }

    fn contains(&self, user: &str) -> bool {
        self.0.read().contains(user)
    }
}

/// Starts the witness on a thread of its own and registers it.
pub(crate) async fn start(
    place: &WitnessPlace,
    namespace: &str,
    cluster: &Cluster,
    impersonated: Arc<ImpersonatedUsers>,
) -> Option<Registered> {
    let (address, host) = match place {
        WitnessPlace::Off => return None,
        WitnessPlace::Loopback => (SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), "127.0.0.1"),
        WitnessPlace::At { host, port } => (SocketAddr::from((Ipv4Addr::UNSPECIFIED, *port)), host.as_str()),
    };
    let own_user = match cluster.client.own_user().await {
        Ok(user) => Some(user),
        Err(error) => {
            warn!(
                %error,
                "cannot ask which user plumb is: a writer that uses plumb's field manager is taken for plumb"
            );
            None
        }
    };
    let known = own_user.clone();
    let is_own: IsOwn = Arc::new(move |user: &str, manager: &str| {
        let is_user = known.as_deref().is_none_or(|known| known == user) || impersonated.contains(user);
        manager == FIELD_MANAGER && is_user
    });
    let (server, url, ca_bundle) = match serve(address, host, is_own) {
        Ok(served) => served,
        Err(error) => {
            let error = error_chain(&error);
            warn!(error, "cannot start the witness: findings cannot name who removed a field");
            return None;
        }
    };
    let place = RegisteredPlace { namespace: namespace.to_owned(), url, ca_bundle, own_user };
    match register(cluster, &place).await {
        Ok((target, uid)) => {
            // The path of the address is a secret.
            info!(name = target.name, host, "witness registered");
            Some(Registered { place, target, uid: Mutex::new(uid), _server: server })
        }
        Err(problem) => {
            warn!(problem, "cannot register the witness: findings cannot name who removed a field");
            None
        }
    }
}

/// Starts the server. Returns it with its address and certificate for the registration.
fn serve(
    address: SocketAddr,
    host: &str,
    is_own: IsOwn,
) -> Result<(WitnessServer, String, String), WitnessError> {
    let witness = Witness::listen(address, host)?;
    let (port, path) = (witness.address().port(), witness.path());
    let url = match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(host)) => format!("https://[{host}]:{port}{path}"),
        _ => format!("https://{host}:{port}{path}"),
    };
    let ca_bundle = witness.ca_bundle().to_owned();
    Ok((witness.serve(is_own)?, url, ca_bundle))
}

async fn register(cluster: &Cluster, place: &RegisteredPlace) -> Result<(Target, String), String> {
    let RegisteredPlace { namespace, url, ca_bundle, own_user } = place;
    let owner = ObjectKey::new("", "Namespace", None, namespace);
    let owner = cluster.client.get(&owner).await.map_err(|error| error.to_string())?;
    let owner = owner.as_ref().and_then(Manifest::uid).ok_or("the namespace does not exist")?;
    let registration =
        plumb_crd::witness::registration(namespace, owner, url, ca_bundle, own_user.as_deref());
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
    Ok((target, uid.to_owned()))
}

impl Registered {
    /// Registers the witness again when its registration is gone: a process that stands by removes that of a leader that does
    /// not answer for a moment. Never ends.
    pub(crate) async fn keep(self: Arc<Self>, cluster: Arc<Cluster>) {
        let key = registration_key(&self.place.namespace);
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let store = &cluster.store;
            if !store.is_listed(&key.group_kind()) || store.get_kept(&key).is_some() {
                continue;
            }
            match register(&cluster, &self.place).await {
                Ok((target, uid)) => {
                    *self.uid.lock() = uid;
                    info!(name = target.name, "the registration of the witness was gone: registered again");
                }
                Err(problem) => debug!(problem, "cannot register the witness again"),
            }
        }
    }

    /// Stops the witness and deletes its registration. Without the lease the registration stays: another leader may have
    /// written its own under this name, and the API server ignores a witness that it cannot reach.
    pub(crate) async fn end(&self, gate: &Gate, fence: &Fence) {
        if fence.check().is_err() {
            return;
        }
        let uid = self.uid.lock().clone();
        let delete = OwnWrite::Delete { target: self.target.clone(), uid };
        if let Err(error) = gate.write_own(&delete).await {
            warn!(%error, "cannot unregister the witness; the API server ignores an unreachable witness");
        }
    }
}
