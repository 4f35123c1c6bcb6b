//! Which apps render which object: what tells a shared object from an owned one, and a moved one from one that
//! left Git.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use plumb_core::app::AppId;
use plumb_core::desired::{Complete, DesiredSet};
use plumb_core::object::ObjectKey;

/// An object in one cluster.
type Place = (Arc<str>, ObjectKey);

/// One app that renders an object.
#[derive(Clone, Debug)]
pub(crate) struct Rendered {
    /// The app's name in tracking marks.
    pub(crate) instance: Arc<str>,
    /// Everything that app asks for.
    pub(crate) desired: Arc<Complete<DesiredSet>>,
}

#[derive(Debug, Default)]
struct Index {
    by_place: HashMap<Place, BTreeMap<AppId, Rendered>>,
    by_app: HashMap<AppId, (Arc<str>, BTreeSet<ObjectKey>)>,
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
        desired: &Arc<Complete<DesiredSet>>,
    ) -> BTreeSet<AppId> {
        let instance: Arc<str> = instance.into();
        let keys: BTreeSet<ObjectKey> = desired.get().objects.keys().cloned().collect();
        let mut index = self.lock();
        let (before_cluster, before) =
            index.by_app.remove(app).unwrap_or_else(|| (Arc::clone(cluster), BTreeSet::new()));
        let moved = before_cluster != *cluster;
        let mut touched = BTreeSet::new();
        for key in before.iter().filter(|key| moved || !keys.contains(*key)) {
            touched.extend(index.drop_claim(&(Arc::clone(&before_cluster), key.clone()), app));
        }
        for key in &keys {
            let is_new = moved || !before.contains(key);
            let claims = index.by_place.entry((Arc::clone(cluster), key.clone())).or_default();
            if is_new {
                touched.extend(claims.keys().filter(|other| *other != app).cloned());
            }
            claims.insert(
                app.clone(),
                Rendered { instance: Arc::clone(&instance), desired: Arc::clone(desired) },
            );
        }
        index.by_app.insert(app.clone(), (Arc::clone(cluster), keys));
        touched
    }

    /// The app is gone. Returns the other apps that render something it rendered.
    pub(crate) fn remove(&self, app: &AppId) -> BTreeSet<AppId> {
        let mut index = self.lock();
        let Some((cluster, keys)) = index.by_app.remove(app) else { return BTreeSet::new() };
        keys.into_iter().flat_map(|key| index.drop_claim(&(Arc::clone(&cluster), key), app)).collect()
    }

    /// The other apps that render this object.
    pub(crate) fn others(&self, app: &AppId, cluster: &Arc<str>, key: &ObjectKey) -> Vec<Rendered> {
        let index = self.lock();
        let claims = index.by_place.get(&(Arc::clone(cluster), key.clone()));
        claims
            .into_iter()
            .flatten()
            .filter(|(other, _)| *other != app)
            .map(|(_, rendered)| rendered.clone())
            .collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Index> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    fn drop_claim(&mut self, place: &Place, app: &AppId) -> Vec<AppId> {
        let Some(claims) = self.by_place.get_mut(place) else { return Vec::new() };
        claims.remove(app);
        let others = claims.keys().cloned().collect();
        if claims.is_empty() {
            self.by_place.remove(place);
        }
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_core::desired::{Complete, DesiredObject, DesiredSet, ObjectOptions};
    use plumb_core::object::Manifest;
    use serde_json::json;

    fn app(name: &str) -> AppId {
        AppId { namespace: "argocd".into(), name: name.into() }
    }

    fn set(names: &[&str]) -> Arc<Complete<DesiredSet>> {
        let objects = names.iter().map(|name| {
            let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "x"}});
            let manifest = Manifest::new(value).unwrap();
            let key = manifest.key().unwrap();
            (key.clone(), DesiredObject { key, manifest, options: ObjectOptions::default(), origin: None })
        });
        Arc::new(Complete::rendered_without_error(DesiredSet {
            objects: objects.collect(),
            ..DesiredSet::default()
        }))
    }

    #[test]
    fn a_shared_object_wakes_the_other_app_when_it_comes_and_when_it_goes() {
        let (claims, cluster) = (Claims::default(), Arc::from("in"));
        assert!(claims.set(&app("a"), &cluster, "a", &set(&["one", "two"])).is_empty());
        assert_eq!(claims.set(&app("b"), &cluster, "b", &set(&["two"])), BTreeSet::from([app("a")]));
        assert!(claims.set(&app("b"), &cluster, "b", &set(&["two"])).is_empty(), "nothing new");
        let two = set(&["two"]).get().objects.keys().next().unwrap().clone();
        assert_eq!(claims.others(&app("a"), &cluster, &two).len(), 1);
        assert_eq!(claims.set(&app("a"), &cluster, "a", &set(&["one"])), BTreeSet::from([app("b")]));
        assert!(claims.others(&app("b"), &cluster, &two).is_empty());
        assert!(claims.remove(&app("b")).is_empty());
    }
}
