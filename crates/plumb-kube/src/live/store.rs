//! The live state of one cluster, as the engine asks for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use futures::StreamExt;
use plumb_core::live::LiveSet;
use plumb_core::object::{GroupKind, GroupVersionKind, Manifest, ObjectKey};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use super::changes::{Changes, channel};
use super::feeder::{ingest, number};
use super::pack::Packed;
use super::record::{Change, Node, Origin, Uid};
use super::state::{Id, State};
use super::supervise::supervise;
use crate::client::ClusterClient;
use crate::error::ApiError;
use crate::feed::{Head, Marks};

/// The app that an object's marks name, by instance name.
pub type OwnerOf = dyn Fn(&Marks<'_>) -> Option<String> + Send + Sync;

/// What to follow, and what to keep.
#[derive(Clone)]
pub struct LiveOptions {
    /// Whose an object is by its marks (`plumb_core::tracking`). A new rule needs a new store.
    pub owner_of: Arc<OwnerOf>,
    /// Kinds to leave out, besides those of [`never_watched`].
    pub excluded: Arc<dyn Fn(&GroupKind) -> bool + Send + Sync>,
    /// Kinds whose objects are kept whole whoever owns them.
    pub keep_whole: BTreeSet<GroupKind>,
    /// Only these namespaces; all of them if empty.
    pub namespaces: Vec<String>,
    /// With `namespaces`: cluster-scoped kinds as well?
    pub cluster_scoped: bool,
    /// Do without kinds that we may not list, instead of waiting for the permission
    /// (`resource.respectRBAC`).
    pub skip_forbidden: bool,
}

impl LiveOptions {
    /// All of a cluster. Pods, what stands between them and a workload, and the Services that webhooks call are kept
    /// whole: their state explains why an app is not healthy.
    pub fn new(owner_of: Arc<OwnerOf>) -> Self {
        Self {
            owner_of,
            excluded: Arc::new(|_| false),
            keep_whole: BTreeSet::from([
                GroupKind::new("", "Pod"),
                GroupKind::new("", "Service"),
                GroupKind::new("apps", "ReplicaSet"),
                GroupKind::new("batch", "Job"),
            ]),
            namespaces: Vec::new(),
            cluster_scoped: true,
            skip_forbidden: false,
        }
    }
}

/// Kinds that are many, change all the time, and tell nothing about what Git asks for.
pub fn never_watched(kind: &GroupKind) -> bool {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("" | "events.k8s.io", "Event")
        | ("coordination.k8s.io", "Lease" | "LeaseCandidate")
        | ("discovery.k8s.io", "EndpointSlice")
        | ("", "Endpoints" | "ComponentStatus") => true,
        (group, _) => group == "metrics.k8s.io" || group.ends_with(".metrics.k8s.io"),
    }
}

/// The live state of one cluster. Cheap to clone; the watches end when the last clone is dropped.
#[derive(Clone)]
pub struct LiveStore {
    core: Arc<Core>,
    _watches: Arc<Watches>,
}

/// Is told of a change; `false`: it does not want to hear more.
type Follower = Box<dyn Fn(&Change) -> bool + Send>;

pub(super) struct Core {
    pub(super) client: ClusterClient,
    pub(super) options: LiveOptions,
    state: RwLock<State>,
    subscribers: Mutex<Vec<Follower>>,
    /// The kinds may have changed.
    pub(super) look_again: Notify,
    /// What is left out may have changed.
    pub(super) reconsider: Notify,
    /// Did the first discovery succeed, and every watch finish its first list?
    complete: watch::Sender<bool>,
    complete_since: Mutex<Option<Instant>>,
    pub(super) discovered: watch::Sender<bool>,
    /// What keeps a watch from the server.
    lost: watch::Sender<Option<Arc<str>>>,
}

struct Watches(AbortHandle);

impl Drop for Watches {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The live objects of one app.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// What it tracks, and what has the key of something it wants.
    pub live: LiveSet,
    /// Objects that exist and could not be read. They are in no way absent.
    pub unreadable: Vec<(ObjectKey, ApiError)>,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreSize {
    /// Objects.
    pub n_objects: usize,
    /// Of these, kept whole.
    pub n_whole: usize,
    /// Bytes of those that are kept whole.
    pub whole_bytes: usize,
}

/// How many objects are fetched at once that are not kept whole.
const FETCH_AT_ONCE: usize = 16;

impl Core {
    pub(super) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, change: &Change) {
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|told| told(change));
    }

    /// A watch lost the server, or found it again.
    pub(super) fn tell_lost(&self) {
        // Read under the channel's lock: two watches may tell at the same moment, and the later word must not be
        // the older one.
        self.lost.send_if_modified(|known| {
            let lost: Option<Arc<str>> = self.state().lost().map(Into::into);
            let changed = *known != lost;
            *known = lost;
            changed
        });
    }

    /// Something about completeness may have changed.
    pub(super) fn progressed(&self) {
        // Read under the channel's lock, as in `tell_lost`.
        self.complete.send_if_modified(|known| {
            let complete = *self.discovered.borrow() && self.state().unlisted().is_empty();
            let changed = std::mem::replace(known, complete) != complete;
            if changed && complete {
                let mut since = self.complete_since.lock().unwrap_or_else(PoisonError::into_inner);
                *since = Some(Instant::now());
            }
            changed
        });
    }
}

impl LiveStore {
    /// Starts to follow a cluster.
    pub fn start(client: ClusterClient, options: LiveOptions) -> Self {
        let core = Arc::new(Core {
            client,
            options,
            state: RwLock::default(),
            subscribers: Mutex::default(),
            look_again: Notify::new(),
            reconsider: Notify::new(),
            complete: watch::Sender::new(false),
            complete_since: Mutex::default(),
            discovered: watch::Sender::new(false),
            lost: watch::Sender::new(None),
        });
        let task = tokio::spawn(supervise(Arc::clone(&core)));
        Self { core, _watches: Arc::new(Watches(task.abort_handle())) }
    }

    /// The cluster's client.
    pub fn client(&self) -> &ClusterClient {
        &self.core.client
    }

    // --- completeness ------------------------------------------------------------------------------------

    /// Did every watch finish its first list? Only then is what is not here absent.
    pub fn is_complete(&self) -> bool {
        *self.core.complete.borrow()
    }

    /// How long ago the list ended that made it complete last; `None` if it never was.
    pub fn complete_for(&self) -> Option<Duration> {
        let since = self.core.complete_since.lock().unwrap_or_else(PoisonError::into_inner);
        since.map(|since| since.elapsed())
    }

    /// Waits until it is complete.
    pub async fn wait_complete(&self) {
        let mut complete = self.core.complete.subscribe();
        // The sender lives as long as `self`.
        let _ = complete.wait_for(|complete| *complete).await;
    }

    /// Is it complete, now or within this time? A kind that came a moment ago is listed in no time.
    pub async fn is_complete_within(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.wait_complete()).await.is_ok()
    }

    /// Is it complete? Changes whenever that does.
    pub fn completeness(&self) -> watch::Receiver<bool> {
        self.core.complete.subscribe()
    }

    /// The kinds whose objects are not all known yet, with what is in the way.
    pub fn unlisted(&self) -> Vec<(GroupKind, Option<String>)> {
        self.core.state().unlisted()
    }

    /// Is this kind followed, and are all its objects known?
    pub fn is_listed(&self, kind: &GroupKind) -> bool {
        let state = self.core.state();
        state.table_of(kind).is_some_and(|(_, table)| table.scopes.iter().all(|scope| scope.listed))
    }

    /// What keeps watches from the server, while something does: what is here may then be old. A single
    /// connection that breaks shows here for a moment.
    pub fn lost(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.core.lost.subscribe()
    }

    // --- changes -----------------------------------------------------------------------------------------

    /// Every change from now on. Changes of one object that were not taken in between come as one.
    pub fn subscribe(&self) -> Changes {
        let (outlet, changes) = channel();
        self.each(move |change| outlet.send(change.clone()));
        changes
    }

    /// Calls `told` with every single change from now on, on the spot, until it says `false`. It must be quick.
    pub fn each(&self, told: impl Fn(&Change) -> bool + Send + 'static) {
        self.core.subscribers.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(told));
    }

    /// Looks again at which kinds to follow: what the options leave out has changed.
    pub fn reconsider(&self) {
        self.core.reconsider.notify_one();
    }

    /// Takes in an object that the server returned from a write, so that the next comparison sees it. A later
    /// state that is already known stays.
    pub fn observe_written(&self, object: &Manifest) {
        self.observe(object, Origin::Written);
    }

    fn observe(&self, object: &Manifest, origin: Origin) {
        let gvk = object.gvk();
        let kind = gvk.group_kind();
        // Nothing is worked out for an object that nobody follows.
        if self.core.state().table_of(&kind).is_none() {
            return;
        }
        let Ok(raw) = serde_json::to_string(object.value()) else { return };
        let Ok(head) = serde_json::from_str::<Head<'_>>(&raw) else { return };
        let change = ingest(&self.core, &kind, &raw, &head, |state, seen| {
            state.put_answer(seen, &gvk.version, origin)
        });
        if let Some(change) = change {
            self.core.tell(&change);
        }
    }

    // --- objects -----------------------------------------------------------------------------------------

    /// The live objects that matter to one app: those it tracks, and those that have the key of something it
    /// wants. The wanted keys are remembered: their objects are kept whole from now on, and their changes
    /// touch the app, until the next snapshot names others or [`forget`](Self::forget) is called. The same goes for
    /// `beside`, objects that the app depends on without wanting them; they are not part of the snapshot.
    pub async fn snapshot(&self, instance: &str, wanted: &[ObjectKey], beside: &[ObjectKey]) -> Snapshot {
        let complete = self.is_complete();
        let Gathered { packed, to_fetch } = self.gather(instance, wanted, beside);
        let mut snapshot =
            Snapshot { live: LiveSet { complete, ..LiveSet::default() }, ..Snapshot::default() };
        let mut to_fetch = to_fetch;
        for (key, body) in packed {
            match body.read() {
                Some(object) => {
                    snapshot.live.objects.insert(key, Arc::new(object));
                }
                None => to_fetch.push(key),
            }
        }
        let fetched = futures::stream::iter(to_fetch)
            .map(|key| async move {
                let result = self.fetch(&key).await;
                (key, result)
            })
            .buffer_unordered(FETCH_AT_ONCE);
        let fetched: Vec<_> = fetched.collect().await;
        for (key, result) in fetched {
            match result {
                Ok(Some(object)) => {
                    snapshot.live.objects.insert(key, Arc::new(object));
                }
                // A kind that the cluster does not serve has no objects.
                Ok(None) | Err(ApiError::UnknownKind { .. }) => {}
                Err(error) => snapshot.unreadable.push((key, error)),
            }
        }
        snapshot
    }

    fn gather(&self, instance: &str, wanted: &[ObjectKey], beside: &[ObjectKey]) -> Gathered {
        let mut state = self.core.state_mut();
        let instance = state.intern(instance);
        let tracked = state.tracked(&instance);
        let mut ids: BTreeSet<Id> = tracked.iter().copied().collect();
        let mut to_remember = Vec::new();
        let mut gathered = Gathered::default();
        for key in wanted {
            let found = state.find_key(key);
            if found.is_none() && !state.covers(key) {
                // No list would show it: the kind is not followed, not in this namespace, or not listed yet.
                gathered.to_fetch.push(key.clone());
            }
            let is_tracked = found.is_some_and(|id| !ids.insert(id));
            if is_tracked {
                continue;
            }
            to_remember.push(state.address(key));
        }
        for key in beside {
            to_remember.push(state.address(key));
        }
        state.want(&instance, to_remember);
        for id in ids {
            let Some(record) = state.record(id) else { continue };
            let key = state.key(&record.address);
            match &record.body {
                Some(body) => gathered.packed.push((key, body.clone())),
                None => gathered.to_fetch.push(key),
            }
        }
        gathered
    }

    /// Forgets what an app wanted.
    pub fn forget(&self, instance: &str) {
        let mut state = self.core.state_mut();
        let instance = state.intern(instance);
        state.want(&instance, Vec::new());
    }

    /// One object, whole: from the store if it is kept there, else from the server. `None` if it does not
    /// exist.
    pub async fn get_whole(&self, key: &ObjectKey) -> Result<Option<Arc<Manifest>>, ApiError> {
        if let Some(object) = self.get_kept(key) {
            return Ok(Some(Arc::new(object)));
        }
        {
            let state = self.core.state();
            if state.covers(key) && state.find_key(key).is_none() {
                return Ok(None);
            }
        }
        Ok(self.fetch(key).await?.map(Arc::new))
    }

    /// One object, if it is kept whole.
    pub fn get_kept(&self, key: &ObjectKey) -> Option<Manifest> {
        let body = {
            let state = self.core.state();
            state.record(state.find_key(key)?)?.body.clone()?
        };
        body.read()
    }

    /// One object in another version than the watched one, from the server.
    pub async fn get_at(
        &self,
        gvk: &GroupVersionKind,
        key: &ObjectKey,
    ) -> Result<Option<Manifest>, ApiError> {
        self.core.client.get_at(gvk, key.namespace.as_deref(), &key.name).await
    }

    /// From the server, in the watched version, and into the store.
    async fn fetch(&self, key: &ObjectKey) -> Result<Option<Manifest>, ApiError> {
        let resource = {
            let state = self.core.state();
            state.table_of(&key.group_kind()).map(|(_, table)| table.resource.clone())
        };
        let fetched = match resource {
            Some(resource) => self.core.client.get_as(&resource, key.namespace.as_deref(), &key.name).await?,
            None => self.core.client.get(key).await?,
        };
        if let Some(object) = &fetched {
            self.observe(object, Origin::Watched);
        }
        Ok(fetched)
    }

    // --- questions ---------------------------------------------------------------------------------------

    /// Is the store as new as the state that a write returned (`metadata.resourceVersion`)? What it shows of
    /// the object may be from before that write otherwise. A kind that is not followed is read from the server,
    /// which is always as new.
    pub fn has_caught_up(&self, key: &ObjectKey, resource_version: &str) -> bool {
        let version = number(resource_version);
        let state = self.core.state();
        if let Some(record) = state.find_key(key).and_then(|id| state.record(id)) {
            return record.version >= version;
        }
        let Some((_, table)) = state.table_of(&key.group_kind()) else { return true };
        let covers = |namespace: &Option<String>| namespace.is_none() || *namespace == key.namespace;
        table.scopes.iter().any(|scope| covers(&scope.namespace) && scope.position >= version)
    }

    /// Does an object of this key exist, as far as is known?
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.core.state().find_key(key).is_some()
    }

    /// One object as the tree shows it.
    pub fn node(&self, key: &ObjectKey) -> Option<Node> {
        let state = self.core.state();
        state.node(state.find_key(key)?)
    }

    /// One object as the tree shows it, by uid.
    pub fn node_of(&self, uid: &Uid) -> Option<Node> {
        let state = self.core.state();
        state.node(state.by_uid(uid)?)
    }

    /// The objects that this one owns, by reference or by inference.
    pub fn children(&self, uid: &Uid) -> Vec<Node> {
        let state = self.core.state();
        nodes(&state, state.children(uid))
    }

    /// What an app tracks, and all that descends from it.
    pub fn tree(&self, instance: &str) -> Vec<Node> {
        let state = self.core.state();
        let roots = state.tracked(instance);
        nodes(&state, state.tree(&roots))
    }

    /// These objects, and all that descends from them.
    pub fn tree_of(&self, roots: &[ObjectKey]) -> Vec<Node> {
        let state = self.core.state();
        let roots: Vec<Id> = roots.iter().filter_map(|key| state.find_key(key)).collect();
        nodes(&state, state.tree(&roots))
    }

    /// What an app tracks, without descendants.
    pub fn tracked(&self, instance: &str) -> Vec<Node> {
        let state = self.core.state();
        let ids = state.tracked(instance);
        nodes(&state, ids)
    }

    /// The instance names that any mark in the cluster carries.
    pub fn instances(&self) -> BTreeSet<Arc<str>> {
        self.core.state().instances()
    }

    /// The objects that refer to this one by name: users of a `ConfigMap`, Secret, claim or account,
    /// bindings of a role, webhooks of a Service, scalers of a workload; and the instances of a CRD.
    pub fn referrers(&self, key: &ObjectKey) -> Vec<Node> {
        let state = self.core.state();
        let mut ids = state.referrers(key);
        if key.group == "apiextensions.k8s.io" && key.kind == "CustomResourceDefinition" {
            ids.extend(instances_of_crd(&state, &key.name));
        }
        nodes(&state, ids)
    }

    /// How many objects of a kind there are; `None` if the kind is not followed.
    pub fn count(&self, kind: &GroupKind) -> Option<usize> {
        let state = self.core.state();
        state.table_of(kind).map(|(_, table)| table.names.len())
    }

    /// All objects of a kind.
    pub fn of_kind(&self, kind: &GroupKind) -> Vec<Node> {
        let state = self.core.state();
        let ids = state.table_of(kind).map(|(_, table)| table.names.values().copied().collect());
        nodes(&state, ids.unwrap_or_default())
    }

    /// All objects of a namespace.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Node> {
        let state = self.core.state();
        let here = state.all().filter(|(_, record)| record.address.namespace.as_deref() == Some(namespace));
        let ids = here.map(|(id, _)| id).collect();
        nodes(&state, ids)
    }

    /// How many objects of each kind there are.
    pub fn counts(&self) -> BTreeMap<GroupKind, usize> {
        let state = self.core.state();
        let mut counts = BTreeMap::new();
        for (_, record) in state.all() {
            *counts.entry(record.address.kind).or_insert(0) += 1;
        }
        let named = counts
            .into_iter()
            .filter_map(|(kind, n): (u32, usize)| Some((state.table(kind)?.resource.gvk.group_kind(), n)));
        named.collect()
    }

    /// How many kinds are followed.
    pub fn n_kinds(&self) -> usize {
        self.core.state().tables().count()
    }

    /// How much there is.
    pub fn size(&self) -> StoreSize {
        let (n_objects, n_whole, whole_bytes) = self.core.state().size();
        StoreSize { n_objects, n_whole, whole_bytes }
    }
}

#[derive(Default)]
struct Gathered {
    packed: Vec<(ObjectKey, Packed)>,
    to_fetch: Vec<ObjectKey>,
}

fn nodes(state: &State, ids: Vec<Id>) -> Vec<Node> {
    let mut nodes: Vec<Node> = ids.into_iter().filter_map(|id| state.node(id)).collect();
    nodes.sort_by(|a, b| a.key.cmp(&b.key));
    nodes
}

/// A CRD is called `<plural>.<group>`.
fn instances_of_crd(state: &State, name: &str) -> Vec<Id> {
    let Some((plural, group)) = name.split_once('.') else { return Vec::new() };
    let tables =
        state.tables().filter(|table| table.resource.gvk.group == group && table.resource.plural == plural);
    tables.flat_map(|table| table.names.values().copied()).collect()
}
