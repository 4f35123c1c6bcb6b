//! Which apps render which object. This distinguishes shared objects from owned ones, and objects that moved
//! to another app from objects that were removed from Git.
//!
//! What an app renders is known once it was gathered. Until then, after a start, the objects in its status
//! count. So no app is compared as if it were the only one. A status can be forged or outdated: once the app's
//! first run has ended without rendering anything, its status only counts for objects that carry the app's
//! own tracking mark. And a claim only counts if the project of the app permits the object.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use plumb_core::app::AppId;
use plumb_core::object::{Manifest, ObjectKey};

use crate::apps::compressed_set::CompressedSet;

/// True if the project of this app permits it to claim this object.
pub(crate) type PermitsClaim<'a> = dyn Fn(&AppId, &ObjectKey) -> bool + Sync + 'a;

/// One app that renders an object.
#[derive(Clone, Debug)]
pub(crate) struct Claimant {
    /// The app's name in tracking labels and annotations.
    pub(crate) instance: Arc<str>,
    claimed: Claimed,
    /// True if the app is only known by its status, and a run of it has ended without rendering anything.
    is_doubtful: bool,
}

/// The objects of an app.
#[derive(Clone, Debug)]
enum Claimed {
    /// The desired set of the app.
    Desired(Arc<CompressedSet>),
    /// The objects in the app's status, which an earlier process compared.
    Status(Arc<BTreeSet<ObjectKey>>),
}

impl Claimant {
    /// The app's manifest of this object; `None` if the app was not gathered yet.
    pub(crate) fn manifest(&self, key: &ObjectKey) -> Option<Manifest> {
        match &self.claimed {
            Claimed::Desired(desired) => {
                desired.load()?.get().objects.get(key).map(|object| object.manifest.clone())
            }
            Claimed::Status(_) => None,
        }
    }

    /// True if the claim decides about an object that carries the tracking mark of `owner`.
    pub(crate) fn counts(&self, owner: Option<&str>) -> bool {
        !self.is_doubtful || owner == Some(&*self.instance)
    }

    fn is_recalled(&self) -> bool {
        matches!(self.claimed, Claimed::Status(_))
    }

    fn claims(&self, key: &ObjectKey) -> bool {
        match &self.claimed {
            Claimed::Desired(desired) => desired.contains(key),
            Claimed::Status(keys) => keys.contains(key),
        }
    }

    fn keys(&self) -> Box<dyn Iterator<Item = &ObjectKey> + '_> {
        match &self.claimed {
            Claimed::Desired(desired) => Box::new(desired.keys()),
            Claimed::Status(keys) => Box::new(keys.iter()),
        }
    }
}

/// Hash of (cluster, key). It may collide, so the apps found by it are checked with `claims`.
type ObjectHash = u64;

#[derive(Debug, Default)]
struct Index {
    hasher: RandomState,
    by_hash: HashMap<ObjectHash, Vec<Arc<AppId>>>,
    by_app: HashMap<AppId, ClaimEntry>,
}

#[derive(Debug)]
struct ClaimEntry {
    id: Arc<AppId>,
    cluster: Arc<str>,
    rendered: Claimant,
    /// Apps that leave an object alone because of this one. They run again when its claims change.
    waiting: BTreeSet<AppId>,
}

/// What every app renders, by object. Cheap to clone; clones share one index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims(Arc<Mutex<Index>>);

impl Claims {
    /// Notes what an app renders now. Returns the other apps whose comparison may change because of it.
    pub(crate) fn set(
        &self,
        app: &AppId,
        cluster: &Arc<str>,
        instance: &str,
        desired: &Arc<CompressedSet>,
    ) -> BTreeSet<AppId> {
        let mut index = self.lock();
        let is_same = index.by_app.get(app).is_some_and(|before| {
            before.cluster == *cluster
                && *before.rendered.instance == *instance
                && matches!(&before.rendered.claimed, Claimed::Desired(set) if Arc::ptr_eq(set, desired))
        });
        if is_same {
            return BTreeSet::new();
        }
        let claimed = Claimed::Desired(Arc::clone(desired));
        let rendered = Claimant { instance: instance.into(), claimed, is_doubtful: false };
        index.replace(app, cluster, rendered)
    }

    /// Notes the objects in the status of an app, unless its objects are known already.
    pub(crate) fn restore(
        &self,
        app: &AppId,
        cluster: &Arc<str>,
        instance: &str,
        keys: impl FnOnce() -> BTreeSet<ObjectKey>,
    ) {
        let mut index = self.lock();
        if !index.by_app.contains_key(app) {
            let claimed = Claimed::Status(Arc::new(keys()));
            let rendered = Claimant { instance: instance.into(), claimed, is_doubtful: false };
            index.replace(app, cluster, rendered);
        }
    }

    /// Notes that a run of an app ended without rendering anything. If only its status is known, it proves little from now
    /// on. Returns the apps that waited for it.
    pub(crate) fn not_rendered(&self, app: &AppId) -> BTreeSet<AppId> {
        let mut index = self.lock();
        let entry = index.by_app.get_mut(app).filter(|entry| entry.rendered.is_recalled());
        let Some(entry) = entry else { return BTreeSet::new() };
        if std::mem::replace(&mut entry.rendered.is_doubtful, true) {
            return BTreeSet::new();
        }
        std::mem::take(&mut entry.waiting)
    }

    /// Removes a deleted app. Returns the other apps that render an object that it rendered.
    pub(crate) fn remove(&self, app: &AppId) -> BTreeSet<AppId> {
        let mut index = self.lock();
        let Some(gone) = index.by_app.remove(app) else { return BTreeSet::new() };
        let mut affected = gone.waiting.clone();
        for key in gone.rendered.keys() {
            index.drop_claim(&gone, key);
            affected.extend(index.claimants(&gone.cluster, key).map(|other| AppId::clone(&other.id)));
        }
        affected
    }

    /// The other apps that render this object and whose project permits it.
    pub(crate) fn others(
        &self,
        app: &AppId,
        cluster: &Arc<str>,
        key: &ObjectKey,
        permits: &PermitsClaim<'_>,
    ) -> Vec<Claimant> {
        let others: Vec<(Arc<AppId>, Claimant)> = {
            let index = self.lock();
            let others = index.claimants(cluster, key).filter(|other| *other.id != *app);
            others.map(|other| (Arc::clone(&other.id), other.rendered.clone())).collect()
        };
        let permitted = others.into_iter().filter(|(other, _)| permits(other, key));
        permitted.map(|(_, claimant)| claimant).collect()
    }

    /// Notes that an app leaves this object alone because of the claims of others. It runs again when they change.
    pub(crate) fn wait(&self, app: &AppId, cluster: &Arc<str>, key: &ObjectKey) {
        let mut index = self.lock();
        let others: Vec<Arc<AppId>> =
            index.claimants(cluster, key).map(|other| Arc::clone(&other.id)).collect();
        for other in others.iter().filter(|other| ***other != *app) {
            if let Some(entry) = index.by_app.get_mut(&**other) {
                entry.waiting.insert(app.clone());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.0.lock()
    }
}

impl Index {
    fn hash_of(&self, cluster: &str, key: &ObjectKey) -> ObjectHash {
        self.hasher.hash_one((cluster, key))
    }

    /// The apps that render this object, sorted by name.
    fn claimants(&self, cluster: &Arc<str>, key: &ObjectKey) -> impl Iterator<Item = &ClaimEntry> {
        let apps = self.by_hash.get(&self.hash_of(cluster, key)).into_iter().flatten();
        let claimants = apps.filter_map(|app| self.by_app.get(app));
        claimants.filter(move |other| other.cluster == *cluster && other.rendered.claims(key))
    }

    fn replace(&mut self, app: &AppId, cluster: &Arc<str>, rendered: Claimant) -> BTreeSet<AppId> {
        let before = self.by_app.remove(app);
        let id = before.as_ref().map_or_else(|| Arc::new(app.clone()), |before| Arc::clone(&before.id));
        let on_same_cluster = before.as_ref().filter(|before| before.cluster == *cluster);
        let mut affected = BTreeSet::new();
        if let Some(before) = &before {
            affected.extend(before.waiting.iter().cloned());
            for key in before.rendered.keys() {
                self.drop_claim(before, key);
                if on_same_cluster.is_none() || !rendered.claims(key) {
                    let others = self.claimants(&before.cluster, key);
                    affected.extend(others.map(|other| AppId::clone(&other.id)));
                }
            }
        }
        for key in rendered.keys() {
            if !on_same_cluster.is_some_and(|before| before.rendered.claims(key)) {
                affected.extend(self.claimants(cluster, key).map(|other| AppId::clone(&other.id)));
            }
            let hash = self.hash_of(cluster, key);
            let apps = self.by_hash.entry(hash).or_insert_with(|| Vec::with_capacity(1));
            if apps.iter().all(|other| *other != id) {
                apps.push(Arc::clone(&id));
                apps.sort();
            }
        }
        self.by_app.insert(
            app.clone(),
            ClaimEntry { id, cluster: Arc::clone(cluster), rendered, waiting: BTreeSet::new() },
        );
        affected
    }

    fn drop_claim(&mut self, claimant: &ClaimEntry, key: &ObjectKey) {
        let hash = self.hash_of(&claimant.cluster, key);
        let Some(apps) = self.by_hash.get_mut(&hash) else { return };
        apps.retain(|app| *app != claimant.id);
        if apps.is_empty() {
            self.by_hash.remove(&hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_core::desired::{DesiredObject, DesiredSet, ObjectOptions};
    use plumb_core::object::Manifest;
    use serde_json::json;

    fn app(name: &str) -> AppId {
        AppId { namespace: "argocd".into(), name: name.into() }
    }

    const ANY: fn(&AppId, &ObjectKey) -> bool = |_, _| true;

    fn set(names: &[&str]) -> Arc<CompressedSet> {
        let objects = names.iter().map(|name| {
            let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "x"}});
            let manifest = Manifest::new(value).unwrap();
            let key = manifest.key().unwrap();
            (key.clone(), DesiredObject { key, manifest, options: ObjectOptions::default(), origin: None })
        });
        let set = DesiredSet { objects: objects.collect(), ..DesiredSet::default() };
        Arc::new(CompressedSet::new(&Arc::new(set.complete().unwrap())))
    }

    #[test]
    fn a_shared_object_affects_the_other_app_when_it_is_added_and_removed() {
        let (claims, cluster) = (Claims::default(), Arc::from("in"));
        assert!(claims.set(&app("a"), &cluster, "a", &set(&["one", "two"])).is_empty());
        assert_eq!(claims.set(&app("b"), &cluster, "b", &set(&["two"])), BTreeSet::from([app("a")]));
        assert!(claims.set(&app("b"), &cluster, "b", &set(&["two"])).is_empty(), "nothing new");
        let two = set(&["two"]).keys().next().unwrap().clone();
        assert_eq!(claims.others(&app("a"), &cluster, &two, &ANY).len(), 1);
        assert_eq!(claims.set(&app("a"), &cluster, "a", &set(&["one"])), BTreeSet::from([app("b")]));
        assert!(claims.others(&app("b"), &cluster, &two, &ANY).is_empty());
        assert!(claims.remove(&app("b")).is_empty());
    }

    #[test]
    fn the_status_counts_until_the_app_is_gathered() {
        let (claims, cluster) = (Claims::default(), Arc::from("in"));
        let keys = |names: &[&str]| set(names).keys().cloned().collect::<BTreeSet<_>>();
        claims.restore(&app("b"), &cluster, "b", || keys(&["one", "two"]));
        let one = keys(&["one"]).pop_first().unwrap();
        let others = claims.others(&app("a"), &cluster, &one, &ANY);
        assert_eq!(others.len(), 1);
        assert!(others[0].manifest(&one).is_none());
        assert!(claims.others(&app("a"), &Arc::from("elsewhere"), &one, &ANY).is_empty());
        // App `b` no longer renders `one`. App `a` also renders it, so it is affected.
        claims.set(&app("a"), &cluster, "a", &set(&["one"]));
        assert_eq!(claims.set(&app("b"), &cluster, "b", &set(&["two"])), BTreeSet::from([app("a")]));
        claims.restore(&app("b"), &cluster, "b", || keys(&["one"]));
        assert!(
            claims.others(&app("a"), &cluster, &one, &ANY).is_empty(),
            "the status does not replace the desired set"
        );
    }

    #[test]
    fn an_app_that_moves_to_another_cluster_claims_nothing_in_the_old_one() {
        let (claims, east, west) = (Claims::default(), Arc::from("east"), Arc::from("west"));
        let one = set(&["one"]).keys().next().unwrap().clone();
        claims.set(&app("a"), &east, "a", &set(&["one"]));
        claims.set(&app("b"), &east, "b", &set(&["one"]));
        assert_eq!(claims.set(&app("a"), &west, "a", &set(&["one"])), BTreeSet::from([app("b")]));
        assert!(claims.others(&app("b"), &east, &one, &ANY).is_empty());
        assert_eq!(claims.others(&app("x"), &west, &one, &ANY).len(), 1);
    }

    #[test]
    fn a_claim_that_the_project_of_the_app_does_not_permit_does_not_count() {
        let (claims, cluster) = (Claims::default(), Arc::from("in"));
        let one = set(&["one"]).keys().next().unwrap().clone();
        claims.set(&app("mallory"), &cluster, "mallory", &set(&["one"]));
        claims.restore(&app("eve"), &cluster, "eve", || BTreeSet::from([one.clone()]));
        claims.set(&app("honest"), &cluster, "honest", &set(&["one"]));
        let permits = |id: &AppId, key: &ObjectKey| id.name == "honest" && *key == one;
        let others = claims.others(&app("owner"), &cluster, &one, &permits);
        let names: Vec<&str> = others.iter().map(|other| &*other.instance).collect();
        assert_eq!(names, ["honest"]);
    }

    #[test]
    fn the_status_of_an_app_that_cannot_be_rendered_counts_for_its_own_objects_only() {
        let (claims, cluster) = (Claims::default(), Arc::from("in"));
        let one = set(&["one"]).keys().next().unwrap().clone();
        let claim = |owner: Option<&str>| claims.others(&app("a"), &cluster, &one, &ANY)[0].counts(owner);
        claims.restore(&app("b"), &cluster, "b", || BTreeSet::from([one.clone()]));
        assert!(claim(Some("a")), "its first run has not ended");
        claims.wait(&app("a"), &cluster, &one);
        assert_eq!(claims.not_rendered(&app("b")), BTreeSet::from([app("a")]));
        assert!(claims.not_rendered(&app("b")).is_empty(), "once");
        assert!(!claim(Some("a")) && !claim(None) && claim(Some("b")));
        // Rendered once, it counts until it renders something else, even if a later run fails.
        claims.set(&app("b"), &cluster, "b", &set(&["one"]));
        assert!(claims.not_rendered(&app("b")).is_empty() && claim(Some("a")));
        claims.wait(&app("a"), &cluster, &one);
        assert_eq!(claims.set(&app("b"), &cluster, "b", &set(&["two"])), BTreeSet::from([app("a")]));
    }
}
