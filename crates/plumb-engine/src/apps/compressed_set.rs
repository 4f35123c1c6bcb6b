//! What Git asks of an app, kept small between two runs.
//!
//! A parsed manifest takes ten times the room of its text, and most apps have nothing to do for hours. So what is
//! kept are the names, which everybody asks for, and the texts, compressed; a run unpacks them for as long as it
//! lasts.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use plumb_core::desired::{
    Complete, DesiredHook, DesiredObject, DesiredProblem, DesiredSet, ObjectOptions, Origin,
};
use plumb_core::object::{Manifest, ObjectKey};
use plumb_kube::PackedJson;
use serde_json::Value;

/// A desired set on the shelf.
#[derive(Debug)]
pub(crate) struct Shelf {
    /// Sorted by key.
    entries: Box<[Entry]>,
    /// The manifests as a list, in the order of the entries.
    manifests: PackedJson,
    hooks: Box<[DesiredHook]>,
    problems: Box<[DesiredProblem]>,
    /// The set while somebody works with it.
    awake: Mutex<Weak<Complete<DesiredSet>>>,
}

#[derive(Debug)]
struct Entry {
    key: ObjectKey,
    api_version: Box<str>,
    options: ObjectOptions,
    origin: Option<Origin>,
}

impl Shelf {
    pub(crate) fn new(set: &Arc<Complete<DesiredSet>>) -> Self {
        let objects = &set.get().objects;
        let entries = objects.values().map(|object| Entry {
            key: object.key.clone(),
            api_version: object.manifest.api_version().into(),
            options: object.options.clone(),
            origin: object.origin.clone(),
        });
        let manifests: Vec<&Value> = objects.values().map(|object| object.manifest.value()).collect();
        Self {
            entries: entries.collect(),
            manifests: PackedJson::new(&manifests),
            hooks: set.get().hooks.clone().into(),
            problems: set.get().problems.clone().into(),
            awake: Mutex::new(Arc::downgrade(set)),
        }
    }

    /// The whole set. `None` if it cannot be read back: then it is as unknown as before the first look, and never
    /// taken for less than it is.
    pub(crate) fn set(&self) -> Option<Arc<Complete<DesiredSet>>> {
        let mut awake = self.awake.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = awake.upgrade() {
            return Some(set);
        }
        let set = Arc::new(Complete::rendered_without_error(self.unpack()?));
        *awake = Arc::downgrade(&set);
        Some(set)
    }

    fn unpack(&self) -> Option<DesiredSet> {
        let values: Vec<Value> = self.manifests.read()?;
        if values.len() != self.entries.len() {
            return None;
        }
        let objects = self.entries.iter().zip(values).map(|(entry, value)| {
            let object = DesiredObject {
                key: entry.key.clone(),
                manifest: Manifest::new(value).ok()?,
                options: entry.options.clone(),
                origin: entry.origin.clone(),
            };
            Some((entry.key.clone(), object))
        });
        Some(DesiredSet {
            objects: objects.collect::<Option<_>>()?,
            hooks: self.hooks.to_vec(),
            problems: self.problems.to_vec(),
        })
    }

    /// Its objects, hooks left out.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.entries.iter().map(|entry| &entry.key)
    }

    /// Is this one of its objects?
    pub(crate) fn contains(&self, key: &ObjectKey) -> bool {
        self.entries.binary_search_by(|entry| entry.key.cmp(key)).is_ok()
    }

    /// The group versions of its objects, some of them more than once.
    pub(crate) fn api_versions(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| &*entry.api_version)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set() -> DesiredSet {
        let manifest = |kind: &str, name: &str, data: Value| {
            let value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "x"}, "data": data});
            Manifest::new(value).unwrap()
        };
        let objects = [
            manifest(
                "ConfigMap",
                "a",
                json!({"number": 0.1, "text": "ä\u{0}", "large": u64::MAX, "least": i64::MIN}),
            ),
            manifest("Secret", "a", json!({})),
        ];
        let objects = objects.map(|manifest| {
            let key = manifest.key().unwrap();
            let origin = Some(Origin { source: 0, file: "a.yaml".to_owned(), line: 3, verbatim: true });
            let options = ObjectOptions { replace: true, ..ObjectOptions::default() };
            (key.clone(), DesiredObject { key, manifest, options, origin })
        });
        let hook = DesiredHook {
            manifest: manifest("Job", "h", json!({})),
            namespace: Some("x".to_owned()),
            phases: Vec::new(),
            options: ObjectOptions::default(),
            origin: None,
        };
        let (key, _) = objects[0].clone();
        let problems = vec![DesiredProblem::Excluded { key }];
        DesiredSet { objects: objects.into(), hooks: vec![hook], problems }
    }

    #[test]
    fn what_comes_off_the_shelf_is_what_was_put_there() {
        let set = Arc::new(Complete::rendered_without_error(set()));
        let shelf = Shelf::new(&set);
        assert!(Arc::ptr_eq(&shelf.set().unwrap(), &set), "it is still at hand");
        let before = Complete::clone(&set);
        drop(set);
        let again = shelf.set().unwrap();
        assert_eq!(*again, before);
        assert!(Arc::ptr_eq(&shelf.set().unwrap(), &again), "nobody unpacks twice");
    }

    #[test]
    fn names_are_known_without_unpacking() {
        let set = Arc::new(Complete::rendered_without_error(set()));
        let shelf = Shelf::new(&set);
        assert!(shelf.keys().eq(set.get().objects.keys()));
        assert!(shelf.keys().all(|key| shelf.contains(key)));
        let other = ObjectKey::new("", "ConfigMap", Some("x".to_owned()), "b");
        assert!(!shelf.contains(&other));
        assert!(shelf.api_versions().all(|version| version == "v1"));
    }

    #[test]
    fn a_set_that_cannot_be_read_back_is_unknown_and_not_empty() {
        let set = Arc::new(Complete::rendered_without_error(set()));
        let shelf = Shelf { manifests: PackedJson::default(), awake: Mutex::default(), ..Shelf::new(&set) };
        assert!(shelf.set().is_none());
    }
}
