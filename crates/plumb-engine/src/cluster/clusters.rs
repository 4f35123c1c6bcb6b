//! The destination clusters of apps. The home cluster, in which plumb runs, is always connected. Any other
//! cluster is connected while at least one app names it.
//!
//! A cluster that cannot be reached affects only its own apps. This module decides which cluster a
//! destination means and whether it can be used now.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use plumb_core::app::{AppId, ClusterRef};
use plumb_crd::settings::SecretData;
use plumb_kube::{ExecPlugins, Fence};
use tokio::sync::{mpsc, watch};

use super::registration::{ClusterLookup, Labels, Registered, Registration};

use crate::cluster::destination::Cluster;

/// Whether the destination cluster of an app can be used now.
pub(crate) enum ClusterState {
    /// It is connected.
    Ready(Arc<Cluster>),
    /// It is being connected, or the cluster Secrets are not listed yet. Its apps run again afterwards.
    NotYet,
    /// It cannot be reached, with the reason. Its apps run again when that changes.
    Away(String),
    /// No such cluster is registered.
    Unknown(String),
    /// Its registration is invalid, ambiguous or disabled. A user has to correct that.
    Unclear(String),
    /// Its Secret turns off the reconciliation of its apps.
    LeftAlone,
}

/// The effect of a changed cluster Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretChange {
    Nothing,
    /// A registration changed. If the cluster is connected, it is connected again.
    Changed,
    /// A user requested that all objects of the home cluster are read again.
    RefreshHome,
}

/// All destination clusters.
pub(crate) struct Clusters {
    home: Arc<Cluster>,
    pub(crate) exec: ExecPlugins,
    pub(crate) fence: Fence,
    orders: mpsc::UnboundedSender<Order>,
    state: Mutex<State>,
    /// Tells that a cluster was connected or lost, or that the Secrets were listed.
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    registered: Registered,
    /// True once all Secrets were listed. Before that, no Secret is known to be missing.
    is_listed: bool,
    /// Clusters in use, by address.
    running: HashMap<Arc<str>, Running>,
    /// The address of the cluster that each app uses.
    destinations: HashMap<AppId, Arc<str>>,
    n_started: u64,
}

/// Identifies one start of a cluster, so that reports about an earlier one are ignored.
pub(crate) type StartId = u64;

struct Running {
    id: StartId,
    registration: Arc<Registration>,
    condition: Condition,
    users: BTreeSet<AppId>,
}

#[derive(Clone)]
pub(crate) enum Condition {
    Starting,
    Up(Arc<Cluster>),
    Away(String),
}

/// Commands for the task that connects and disconnects clusters.
pub(crate) enum Order {
    Start(StartId, Arc<Registration>),
    Stop(StartId),
}

impl Clusters {
    /// The home cluster only. `runtime::clusters` carries out the orders from the receiver.
    pub(crate) fn new(
        home: Arc<Cluster>,
        exec: ExecPlugins,
        fence: Fence,
    ) -> (Self, mpsc::UnboundedReceiver<Order>) {
        let (orders, receiver) = mpsc::unbounded_channel();
        let state = Mutex::default();
        (Self { home, exec, fence, orders, state, changes: watch::Sender::default() }, receiver)
    }

    /// Notes a cluster Secret, or its deletion with `None`. A cluster whose Secret changed is disconnected,
    /// and connected again by the next run that uses it.
    pub(crate) fn note_secret(&self, name: &str, secret: Option<&SecretData>) -> SecretChange {
        let mut state = self.lock();
        let refresh_request = |state: &State| {
            let home = state.registered.by_server(ClusterRef::IN_CLUSTER_SERVER);
            home.and_then(|home| home.refresh.clone())
        };
        let before = refresh_request(&state);
        if !state.registered.note(name, secret) {
            return SecretChange::Nothing;
        }
        let now = refresh_request(&state);
        if state.is_listed && now.is_some() && now != before {
            return SecretChange::RefreshHome;
        }
        let State { registered, running, .. } = &mut *state;
        running.retain(|server, running| {
            let is_same = registered.by_server(server).is_some_and(|now| *now == running.registration);
            if !is_same {
                let _ = self.orders.send(Order::Stop(running.id));
            }
            is_same
        });
        SecretChange::Changed
    }

    /// Notes that all cluster Secrets were listed.
    pub(crate) fn note_listed(&self) {
        self.lock().is_listed = true;
        self.changes.send_replace(());
    }

    /// Tells when an app that waits for its cluster should look again.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// The destination cluster of an app. Starts to connect it if it is not in use yet.
    pub(crate) fn reach(&self, app: &AppId, destination: &ClusterRef, home_enabled: bool) -> ClusterState {
        let mut state = self.lock();
        let registration = match state.registered.find(destination) {
            ClusterLookup::None(_) if !state.is_listed => return ClusterState::NotYet,
            ClusterLookup::None(why) => {
                self.leave(&mut state, app);
                return ClusterState::Unknown(why);
            }
            ClusterLookup::Unclear(why) => {
                self.leave(&mut state, app);
                return ClusterState::Unclear(why);
            }
            ClusterLookup::Home(registration) => {
                self.leave(&mut state, app);
                return self.reach_home(registration.as_deref(), home_enabled);
            }
            ClusterLookup::Other(registration) => registration,
        };
        if state.destinations.get(app) != Some(&registration.server) {
            self.leave(&mut state, app);
        }
        if registration.skip_reconcile {
            return ClusterState::LeftAlone;
        }
        let server = Arc::clone(&registration.server);
        state.destinations.insert(app.clone(), Arc::clone(&server));
        if !state.running.contains_key(&server) {
            state.n_started += 1;
            let id = state.n_started;
            let _ = self.orders.send(Order::Start(id, Arc::clone(&registration)));
            let running =
                Running { id, registration, condition: Condition::Starting, users: BTreeSet::new() };
            state.running.insert(Arc::clone(&server), running);
        }
        let Some(running) = state.running.get_mut(&server) else { return ClusterState::NotYet };
        running.users.insert(app.clone());
        match &running.condition {
            Condition::Starting => ClusterState::NotYet,
            Condition::Up(cluster) => ClusterState::Ready(Arc::clone(cluster)),
            Condition::Away(why) => ClusterState::Away(format!("cluster {server} cannot be reached: {why}")),
        }
    }

    fn reach_home(&self, registration: Option<&Registration>, enabled: bool) -> ClusterState {
        if !enabled {
            return ClusterState::Unclear(format!(
                "cluster \"{}\" is disabled by the setting cluster.inClusterEnabled",
                ClusterRef::IN_CLUSTER_SERVER
            ));
        }
        match registration {
            Some(registration) if registration.skip_reconcile => ClusterState::LeftAlone,
            Some(registration) => ClusterState::Ready(Arc::new(self.home.renamed(registration))),
            None => ClusterState::Ready(Arc::clone(&self.home)),
        }
    }

    /// The address of the cluster that a destination means. Does not connect it.
    pub(crate) fn address(&self, destination: &ClusterRef) -> Option<Arc<str>> {
        match self.lock().registered.find(destination) {
            ClusterLookup::Home(_) => Some(Arc::clone(&self.home.server)),
            ClusterLookup::Other(registration) => Some(Arc::clone(&registration.server)),
            ClusterLookup::None(_) | ClusterLookup::Unclear(_) => None,
        }
    }

    /// Address and name of the cluster that a destination means. Does not connect it.
    pub(crate) fn named(&self, destination: &ClusterRef) -> Option<(Arc<str>, String)> {
        match self.lock().registered.find(destination) {
            ClusterLookup::Home(None) => Some((Arc::clone(&self.home.server), self.home.name.clone())),
            ClusterLookup::Home(Some(registration)) | ClusterLookup::Other(registration) => {
                Some((Arc::clone(&registration.server), registration.name.clone()))
            }
            ClusterLookup::None(_) | ClusterLookup::Unclear(_) => None,
        }
    }

    /// The only project that may use the cluster of a destination, if its Secret names one.
    pub(crate) fn project(&self, destination: &ClusterRef) -> Option<String> {
        match self.lock().registered.find(destination) {
            ClusterLookup::Home(registration) => registration?.project.clone(),
            ClusterLookup::Other(registration) => registration.project.clone(),
            ClusterLookup::None(_) | ClusterLookup::Unclear(_) => None,
        }
    }

    /// The labels of a cluster's Secret.
    pub(crate) fn labels(&self, server: &str) -> Labels {
        self.lock().registered.labels(server).cloned().unwrap_or_default()
    }

    /// Notes that an app was deleted. A cluster that no other app uses is disconnected.
    pub(crate) fn forget(&self, app: &AppId) {
        self.leave(&mut self.lock(), app);
    }

    /// The clusters that are connected now.
    pub(crate) fn connected(&self) -> Vec<Arc<Cluster>> {
        let state = self.lock();
        let up = state.running.values().filter_map(|running| match &running.condition {
            Condition::Up(cluster) => Some(Arc::clone(cluster)),
            Condition::Starting | Condition::Away(_) => None,
        });
        std::iter::once(Arc::clone(&self.home)).chain(up).collect()
    }

    /// Address and name of the clusters that apps use and that are not connected now.
    pub(crate) fn away(&self) -> Vec<(Arc<str>, String)> {
        let state = self.lock();
        let away = state.running.values().filter_map(|running| match &running.condition {
            Condition::Up(_) => None,
            Condition::Starting | Condition::Away(_) => {
                Some((Arc::clone(&running.registration.server), running.registration.name.clone()))
            }
        });
        away.collect()
    }

    /// Address of the clusters that cannot be reached, with the reason.
    pub(crate) fn unreachable(&self) -> Vec<(Arc<str>, String)> {
        let state = self.lock();
        let away = state.running.iter().filter_map(|(server, running)| match &running.condition {
            Condition::Away(why) => Some((Arc::clone(server), why.clone())),
            Condition::Starting | Condition::Up(_) => None,
        });
        away.collect()
    }

    fn leave(&self, state: &mut State, app: &AppId) {
        let Some(server) = state.destinations.remove(app) else { return };
        let Some(running) = state.running.get_mut(&server) else { return };
        running.users.remove(app);
        if running.users.is_empty() {
            tracing::info!(%server, "cluster disconnected: no app uses it");
            let _ = self.orders.send(Order::Stop(running.id));
            state.running.remove(&server);
        }
    }

    /// Disconnects a cluster whose data went back in time. The next run that uses it connects it again and reads everything
    /// anew. Returns the apps that use it.
    pub(crate) fn start_over(&self, id: StartId) -> BTreeSet<AppId> {
        let mut state = self.lock();
        let found = state.running.iter().find(|(_, running)| running.id == id);
        let Some(server) = found.map(|(server, _)| Arc::clone(server)) else { return BTreeSet::new() };
        let _ = self.orders.send(Order::Stop(id));
        state.running.remove(&server).map(|running| running.users).unwrap_or_default()
    }

    /// Notes the condition of a cluster. Returns the apps that use it, or none if nothing changed.
    pub(crate) fn note(&self, id: StartId, condition: Condition) -> BTreeSet<AppId> {
        let mut state = self.lock();
        let Some(running) = state.running.values_mut().find(|running| running.id == id) else {
            return BTreeSet::new();
        };
        let is_same = match (&running.condition, &condition) {
            (Condition::Starting, Condition::Starting) | (Condition::Up(_), Condition::Up(_)) => true,
            (Condition::Away(before), Condition::Away(now)) => before == now,
            (Condition::Starting | Condition::Up(_) | Condition::Away(_), _) => false,
        };
        running.condition = condition;
        self.changes.send_replace(());
        if is_same { BTreeSet::new() } else { running.users.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
