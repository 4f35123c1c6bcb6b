//! The desired set of an app, compressed between two runs.
//!
//! A parsed manifest takes ten times the memory of its text, and most apps are idle for hours. So plumb keeps
//! the keys and fingerprints, which are needed often, and the texts, compressed. A run decompresses them for
//! as long as it lasts.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use plumb_core::desired::{
    Complete, DesiredHook, DesiredObject, DesiredProblem, DesiredSet, ObjectOptions, Origin,
};
use plumb_core::object::{Fingerprint, Manifest, ObjectKey};
use plumb_kube::PackedJson;
use serde_json::Value;

/// A compressed desired set.
#[derive(Debug)]
pub(crate) struct CompressedSet {
    /// Sorted by key.
    entries: Box<[ObjectEntry]>,
    /// The manifests as a list, in the order of the entries.
    manifests: PackedJson,
    hooks: Box<[DesiredHook]>,
    problems: Box<[DesiredProblem]>,
    /// The decompressed set while a run uses it.
    loaded: Mutex<Weak<Complete<DesiredSet>>>,
}

#[derive(Debug)]
struct ObjectEntry {
    key: ObjectKey,
    api_version: Box<str>,
    fingerprint: Fingerprint,
    options: ObjectOptions,
    origin: Option<Origin>,
}

impl CompressedSet {
    pub(crate) fn new(set: &Arc<Complete<DesiredSet>>) -> Self {
        let objects = &set.get().objects;
        let entries = objects.values().map(|object| ObjectEntry {
            key: object.key.clone(),
            api_version: object.manifest.api_version().into(),
            fingerprint: Fingerprint::of(&object.manifest),
            options: object.options.clone(),
            origin: object.origin.clone(),
        });
        let manifests: Vec<&Value> = objects.values().map(|object| object.manifest.value()).collect();
        Self {
            entries: entries.collect(),
            manifests: PackedJson::new(&manifests),
            hooks: set.get().hooks.clone().into(),
            problems: set.get().problems.clone().into(),
            loaded: Mutex::new(Arc::downgrade(set)),
        }
    }

    /// The whole set, decompressed. `None` if it cannot be read back: then the set is unknown, which is never
    /// treated as an empty set.
    pub(crate) fn load(&self) -> Option<Arc<Complete<DesiredSet>>> {
        let mut loaded = self.loaded.lock();
        if let Some(set) = loaded.upgrade() {
            return Some(set);
        }
        let set = Arc::new(self.decompress()?.complete().ok()?);
        *loaded = Arc::downgrade(&set);
        Some(set)
    }

    fn decompress(&self) -> Option<DesiredSet> {
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

    /// The keys of its objects, without hooks.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.entries.iter().map(|entry| &entry.key)
    }

    /// True if this is one of its objects.
    pub(crate) fn contains(&self, key: &ObjectKey) -> bool {
        self.entries.binary_search_by(|entry| entry.key.cmp(key)).is_ok()
    }

    /// The fingerprint of one of its objects, computed once.
    pub(crate) fn fingerprint(&self, key: &ObjectKey) -> Option<Fingerprint> {
        let index = self.entries.binary_search_by(|entry| entry.key.cmp(key)).ok()?;
        self.entries.get(index).map(|entry| entry.fingerprint)
    }

    /// The keys of its objects with their fingerprints.
    pub(crate) fn fingerprints(&self) -> impl Iterator<Item = (&ObjectKey, Fingerprint)> {
        self.entries.iter().map(|entry| (&entry.key, entry.fingerprint))
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
    fn a_set_is_read_back_as_it_was() {
        let whole = Arc::new(set().complete().unwrap());
        let set = CompressedSet::new(&whole);
        assert!(Arc::ptr_eq(&set.load().unwrap(), &whole), "it is still in memory");
        let before = Complete::clone(&whole);
        drop(whole);
        let again = set.load().unwrap();
        assert_eq!(*again, before);
        assert!(Arc::ptr_eq(&set.load().unwrap(), &again), "it is decompressed once");
    }

    #[test]
    fn keys_and_fingerprints_need_no_decompression() {
        let whole = Arc::new(set().complete().unwrap());
        let set = CompressedSet::new(&whole);
        assert!(set.keys().eq(whole.get().objects.keys()));
        assert!(set.keys().all(|key| set.contains(key)));
        let other = ObjectKey::new("", "ConfigMap", Some("x".to_owned()), "b");
        assert!(!set.contains(&other));
        assert!(set.fingerprints().all(|(key, fingerprint)| set.fingerprint(key) == Some(fingerprint)));
        assert_eq!(set.fingerprint(&other), None);
        assert!(set.api_versions().all(|version| version == "v1"));
    }

    #[test]
    fn a_set_that_cannot_be_read_back_is_unknown_and_not_empty() {
        let set = Arc::new(set().complete().unwrap());
        let set = CompressedSet {
            manifests: PackedJson::default(),
            loaded: Mutex::default(),
            ..CompressedSet::new(&set)
        };
        assert!(set.load().is_none());
    }
}
