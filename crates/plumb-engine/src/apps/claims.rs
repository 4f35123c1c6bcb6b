//! Which apps render which object: what tells a shared object from an owned one, and a moved one from one that
//! left Git.
//!
//! What an app renders is known once it was gathered. Until then, after a start, its status counts: the
//! objects that an earlier process compared. So no app is judged as if it were alone.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use plumb_core::app::AppId;
use plumb_core::object::{Manifest, ObjectKey};

use crate::apps::compressed_set::CompressedSet;

/// One app that renders an object.
#[derive(Clone, Debug)]
pub(crate) struct Claimant {
    /// The app's name in tracking marks.
    pub(crate) instance: Arc<str>,
    known: Claimed,
}

/// What is known of an app's objects.
#[derive(Clone, Debug)]
enum Claimed {
    /// Everything it asks for.
    Desired(Arc<CompressedSet>),
    /// What an earlier process compared.
    Status(Arc<BTreeSet<ObjectKey>>),
}

impl Claimant {
    /// What the app asks this object to be; `None` if that is not known yet.
    pub(crate) fn manifest(&self, key: &ObjectKey) -> Option<Manifest> {
        match &self.known {
            Claimed::Desired(desired) => {
                desired.load()?.get().objects.get(key).map(|object| object.manifest.clone())
            }
            Claimed::Status(_) => None,
        }
    }

    fn claims(&self, key: &ObjectKey) -> bool {
        match &self.known {
            Claimed::Desired(desired) => desired.contains(key),
            Claimed::Status(keys) => keys.contains(key),
        }
    }

    fn keys(&self) -> Box<dyn Iterator<Item = &ObjectKey> + '_> {
        match &self.known {
            Claimed::Desired(desired) => Box::new(desired.keys()),
            Claimed::Status(keys) => Box::new(keys.iter()),
        }
    }
}

/// A number for an object in one cluster. Two objects may share one, so whoever is found by it is asked.
type Place = u64;

#[derive(Debug, Default)]
struct Index {
    hasher: RandomState,
    by_place: HashMap<Place, Vec<Arc<AppId>>>,
    by_app: HashMap<AppId, ClaimEntry>,
}

#[derive(Debug)]
struct ClaimEntry {
    id: Arc<AppId>,
    cluster: Arc<str>,
    rendered: Claimant,
}

/// What every app renders, by object. Cheap to clone; all clones are one index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims(Arc<Mutex<Index>>);

impl Claims {
    /// Notes what an app renders now. Returns the other apps whose judgement may change by it.
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
                && matches!(&before.rendered.known, Claimed::Desired(known) if Arc::ptr_eq(known, desired))
        });
        if is_same {
            return BTreeSet::new();
        }
        let rendered = Claimant { instance: instance.into(), known: Claimed::Desired(Arc::clone(desired)) };
        index.replace(app, cluster, rendered)
    }

    /// Notes what an earlier process compared, unless this one knows better.
    pub(crate) fn restore(
        &self,
        app: &AppId,
        cluster: &Arc<str>,
        instance: &str,
        keys: impl FnOnce() -> BTreeSet<ObjectKey>,
    ) {
        let mut index = self.lock();
        if !index.by_app.contains_key(app) {
            let known = Claimed::Status(Arc::new(keys()));
            index.replace(app, cluster, Claimant { instance: instance.into(), known });
        }
    }

    /// The app is gone. Returns the other apps that render something it rendered.
    pub(crate) fn remove(&self, app: &AppId) -> BTreeSet<AppId> {
        let mut index = self.lock();
        let Some(gone) = index.by_app.remove(app) else { return BTreeSet::new() };
        let mut touched = BTreeSet::new();
        for key in gone.rendered.keys() {
            index.drop_claim(&gone, key);
            touched.extend(index.claimants(&gone.cluster, key).map(|other| AppId::clone(&other.id)));
        }
        touched
    }

    /// The other apps that render this object.
    pub(crate) fn others(&self, app: &AppId, cluster: &Arc<str>, key: &ObjectKey) -> Vec<Claimant> {
        let index = self.lock();
        let others = index.claimants(cluster, key).filter(|other| *other.id != *app);
        others.map(|other| other.rendered.clone()).collect()
    }

    /// The instance name of one other app that renders this object.
    pub(crate) fn first_other(&self, app: &AppId, cluster: &Arc<str>, key: &ObjectKey) -> Option<String> {
        let index = self.lock();
        let mut others = index.claimants(cluster, key).filter(|other| *other.id != *app);
        others.next().map(|other| other.rendered.instance.to_string())
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.0.lock()
    }
}

impl Index {
    fn place(&self, cluster: &str, key: &ObjectKey) -> Place {
        self.hasher.hash_one((cluster, key))
    }

    /// The apps that render this object, by name.
    fn claimants(&self, cluster: &Arc<str>, key: &ObjectKey) -> impl Iterator<Item = &ClaimEntry> {
        let apps = self.by_place.get(&self.place(cluster, key)).into_iter().flatten();
        let claimants = apps.filter_map(|app| self.by_app.get(app));
        claimants.filter(move |other| other.cluster == *cluster && other.rendered.claims(key))
    }

    fn replace(&mut self, app: &AppId, cluster: &Arc<str>, rendered: Claimant) -> BTreeSet<AppId> {
        let before = self.by_app.remove(app);
        let id = before.as_ref().map_or_else(|| Arc::new(app.clone()), |before| Arc::clone(&before.id));
        let stays = before.as_ref().filter(|before| before.cluster == *cluster);
        let mut touched = BTreeSet::new();
        if let Some(before) = &before {
            for key in before.rendered.keys() {
                self.drop_claim(before, key);
                if stays.is_none() || !rendered.claims(key) {
                    let others = self.claimants(&before.cluster, key);
                    touched.extend(others.map(|other| AppId::clone(&other.id)));
                }
            }
        }
        for key in rendered.keys() {
            if !stays.is_some_and(|before| before.rendered.claims(key)) {
                touched.extend(self.claimants(cluster, key).map(|other| AppId::clone(&other.id)));
            }
            let place = self.place(cluster, key);
            let apps = self.by_place.entry(place).or_insert_with(|| Vec::with_capacity(1));
            if apps.iter().all(|known| *known != id) {
                apps.push(Arc::clone(&id));
                apps.sort();
            }
        }
        self.by_app.insert(app.clone(), ClaimEntry { id, cluster: Arc::clone(cluster), rendered });
        touched
    }

    fn drop_claim(&mut self, claimant: &ClaimEntry, key: &ObjectKey) {
        let place = self.place(&claimant.cluster, key);
        let Some(apps) = self.by_place.get_mut(&place) else { return };
        apps.retain(|app| *app != claimant.id);
        if apps.is_empty() {
            self.by_place.remove(&place);
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
    fn a_shared_object_wakes_the_other_app_when_it_comes_and_when_it_goes() {
        let (claims, cluster) = (Claims::default(), Arc::from("in"));
        assert!(claims.set(&app("a"), &cluster, "a", &set(&["one", "two"])).is_empty());
        assert_eq!(claims.set(&app("b"), &cluster, "b", &set(&["two"])), BTreeSet::from([app("a")]));
        assert!(claims.set(&app("b"), &cluster, "b", &set(&["two"])).is_empty(), "nothing new");
        let two = set(&["two"]).keys().next().unwrap().clone();
        assert_eq!(claims.others(&app("a"), &cluster, &two).len(), 1);
        assert_eq!(claims.set(&app("a"), &cluster, "a", &set(&["one"])), BTreeSet::from([app("b")]));
        assert!(claims.others(&app("b"), &cluster, &two).is_empty());
        assert!(claims.remove(&app("b")).is_empty());
    }

    #[test]
    fn what_an_earlier_process_compared_counts_until_the_app_is_gathered() {
        let (claims, cluster) = (Claims::default(), Arc::from("in"));
        let keys = |names: &[&str]| set(names).keys().cloned().collect::<BTreeSet<_>>();
        claims.restore(&app("b"), &cluster, "b", || keys(&["one", "two"]));
        let one = keys(&["one"]).pop_first().unwrap();
        let others = claims.others(&app("a"), &cluster, &one);
        assert_eq!(others.len(), 1);
        assert!(others[0].manifest(&one).is_none());
        assert!(claims.others(&app("a"), &Arc::from("elsewhere"), &one).is_empty());
        // It renders one of them no more: who renders it too has to know.
        claims.set(&app("a"), &cluster, "a", &set(&["one"]));
        assert_eq!(claims.set(&app("b"), &cluster, "b", &set(&["two"])), BTreeSet::from([app("a")]));
        claims.restore(&app("b"), &cluster, "b", || keys(&["one"]));
        assert!(claims.others(&app("a"), &cluster, &one).is_empty(), "what is known counts more");
    }

    #[test]
    fn an_app_that_moves_to_another_cluster_claims_nothing_in_the_old_one() {
        let (claims, east, west) = (Claims::default(), Arc::from("east"), Arc::from("west"));
        let one = set(&["one"]).keys().next().unwrap().clone();
        claims.set(&app("a"), &east, "a", &set(&["one"]));
        claims.set(&app("b"), &east, "b", &set(&["one"]));
        assert_eq!(claims.set(&app("a"), &west, "a", &set(&["one"])), BTreeSet::from([app("b")]));
        assert!(claims.others(&app("b"), &east, &one).is_empty());
        assert_eq!(claims.others(&app("x"), &west, &one).len(), 1);
    }
}
