//! Reads a sample of the objects now and then, to find out whether the data of the API server went back in time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use plumb_core::object::{GroupKind, ObjectKey};
use serde::Deserialize;
use tokio::time::Instant;

use super::core::Core;
use super::feeder::number;
use super::record::{KindId, Record, Uid};
use super::rewind::{Answered, OF_CLUSTER, Told, contradiction, is_numbered_by_etcd, other_cluster};
use super::state::State;
use crate::backoff::jitter;
use crate::catalog::Resource;
use crate::client::Call;
use crate::error::ApiError;
use crate::read::METADATA_ONLY;

/// How often a sample is read. Together with the confirmation far less than a minute.
const SAMPLE_EVERY: Duration = Duration::from_secs(20);
/// After an outage the watches come back one after the other: those of this time cost one look.
const AFTER_OUTAGE: Duration = Duration::from_secs(1);
/// A first suspicion is confirmed after this time.
const CONFIRM_AFTER: Duration = Duration::from_secs(1);

/// One object to read, or the version of one list.
#[derive(Debug, PartialEq, Eq)]
struct Sample {
    resource: Resource,
    namespace: Option<String>,
    /// `None` for the version of the list alone.
    object: Option<Identity>,
    told: Told,
    /// True for the namespace that exists as long as its cluster.
    is_of_cluster: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    name: String,
    uid: Uid,
}

/// An object of the store that the server does not have. Its deletion may be on its way.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Missing {
    kind: GroupKind,
    uid: Uid,
    version: u64,
}

/// What a look at the samples found.
#[derive(Default)]
struct Found {
    /// How the server contradicts what it had told before. `None` if it does not, or cannot be asked.
    evidence: Option<String>,
    missing: BTreeSet<Missing>,
}

impl State {
    /// What to read. Versions of different kinds are not compared: they may be in different etcd clusters.
    ///
    /// - The newest object, which a restore changes first.
    /// - The newest object that an app tracks. Controllers may write the newest object of all again right after a restore,
    ///   with a higher version than before. After an outage, the newest tracked object of each kind.
    /// - The list of the kind whose watch is the furthest, which a restore sets back first, even if only deletions were
    ///   undone.
    fn samples(&self, was_away: bool) -> Vec<Sample> {
        let is_numbered: Vec<bool> = self.kind_names().iter().map(|kind| self.is_numbered(kind)).collect();
        let is_numbered = |kind: KindId| {
            let at = usize::try_from(kind).unwrap_or(usize::MAX);
            is_numbered.get(at).copied().unwrap_or_default()
        };
        let mut newest: Option<&Record> = None;
        let mut newest_tracked: BTreeMap<KindId, &Record> = BTreeMap::new();
        for (_, record) in self.all().filter(|(_, record)| is_numbered(record.address.kind)) {
            if newest.is_none_or(|newest| newest.version < record.version) {
                newest = Some(record);
            }
            if record.mark.is_some() && record.parents.is_empty() {
                let newest = newest_tracked.entry(record.address.kind).or_insert(record);
                if newest.version < record.version {
                    *newest = record;
                }
            }
        }
        let tracked = newest_tracked.into_values();
        let tracked: Vec<&Record> = if was_away {
            tracked.collect()
        } else {
            tracked.max_by_key(|record| record.version).into_iter().collect()
        };
        let is_other = |record: &&Record| newest.is_none_or(|newest| newest.address != record.address);
        let objects = newest.into_iter().chain(tracked.into_iter().filter(is_other));
        let mut samples: Vec<Sample> = objects.filter_map(|record| self.sample_of(record)).collect();
        // The list of an object tells how far its kind is, too.
        let of_objects = samples.iter().map(|sample| sample.told.list).max();
        let furthest = self.furthest_list(is_numbered);
        samples.extend(furthest.filter(|furthest| of_objects.is_none_or(|told| told < furthest.told.list)));
        samples
    }

    fn furthest_list(&self, is_numbered: impl Fn(KindId) -> bool) -> Option<Sample> {
        let tables = self.tables().filter(|table| {
            self.table_of(&table.resource.gvk.group_kind()).is_some_and(|(kind, _)| is_numbered(kind))
        });
        let scopes = tables.flat_map(|table| table.scopes.iter().map(move |scope| (table, scope)));
        let furthest = scopes.filter(|(_, scope)| scope.listed).max_by_key(|(_, scope)| scope.position);
        furthest.map(|(table, scope)| Sample {
            resource: table.resource.clone(),
            namespace: scope.namespace.clone(),
            object: None,
            told: Told { list: scope.position, object: 0 },
            is_of_cluster: false,
        })
    }

    /// True if the resource versions of this kind are those of etcd: also those of custom resources are.
    pub(super) fn is_numbered(&self, kind: &GroupKind) -> bool {
        let is_custom = || {
            let Some((_, table)) = self.table_of(kind) else { return false };
            let crd = format!("{}.{}", table.resource.plural, kind.group);
            let crd = ObjectKey::new("apiextensions.k8s.io", "CustomResourceDefinition", None, crd);
            self.find_key(&crd).is_some()
        };
        is_numbered_by_etcd(kind) || is_custom()
    }

    fn sample_of(&self, record: &Record) -> Option<Sample> {
        let namespace = record.address.namespace.as_deref();
        let table = self.table(record.address.kind)?;
        let covers = |place: Option<&str>| place.is_none() || place == namespace;
        let scope = table.scopes.iter().find(|scope| covers(scope.namespace.as_deref()))?;
        Some(Sample {
            resource: table.resource.clone(),
            namespace: namespace.map(str::to_owned),
            object: Some(Identity { name: record.address.name.to_string(), uid: record.uid.clone() }),
            told: Told { list: scope.position, object: record.version },
            is_of_cluster: false,
        })
    }

    /// The namespace that exists as long as its cluster, if it is watched.
    fn sample_of_cluster(&self) -> Option<Sample> {
        let key = ObjectKey::new("", "Namespace", None, OF_CLUSTER);
        let record = self.record(self.find_key(&key)?)?;
        Some(Sample { is_of_cluster: true, ..self.sample_of(record)? })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct List {
    metadata: Version,
    items: Vec<Item>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item {
    metadata: Version,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Version {
    resource_version: String,
    uid: String,
}

/// Reads a sample now and then, and after each outage, until the server contradicts what it had told before.
pub(super) async fn detect(core: Arc<Core>) {
    loop {
        // Another cluster at the same address cannot come without an outage.
        let was_away = tokio::select! {
            () = tokio::time::sleep(SAMPLE_EVERY.saturating_sub(jitter(SAMPLE_EVERY / 4))) => false,
            () = core.came_back.notified() => {
                tokio::time::sleep(AFTER_OUTAGE).await;
                true
            }
        };
        let first = look(&core, was_away).await;
        if first.evidence.is_none() && first.missing.is_empty() {
            continue;
        }
        tokio::time::sleep(CONFIRM_AFTER).await;
        let second = look(&core, was_away).await;
        if let Some(evidence) = second.evidence.filter(|_| first.evidence.is_some()) {
            core.publish_rewound(evidence);
            continue;
        }
        // Still missing, and the watch did not report a deletion: a restore took back the creation.
        let missing = first.missing.intersection(&second.missing);
        let kinds: BTreeSet<GroupKind> = missing.map(|missing| missing.kind.clone()).collect();
        if !kinds.is_empty() {
            tracing::debug!(
                ?kinds,
                "the API server does not have an object of the store; listing its kind again"
            );
            core.state_mut().list_again(&kinds, Instant::now());
        }
    }
}

async fn look(core: &Core, was_away: bool) -> Found {
    let samples = {
        let state = core.state();
        let of_cluster = if was_away { state.sample_of_cluster() } else { None };
        of_cluster.into_iter().chain(state.samples(was_away)).collect::<Vec<_>>()
    };
    let mut found = Found::default();
    for sample in samples {
        match ask(core, &sample).await {
            Ok((answered, uid)) => {
                let told = sample.object.as_ref().filter(|_| sample.is_of_cluster);
                let is_other = told.and_then(|told| other_cluster(&told.uid, uid.as_ref()));
                found.evidence = is_other.or_else(|| contradiction(sample.told, answered));
                if found.evidence.is_some() {
                    break;
                }
                found.missing.extend(sample.object.filter(|_| answered.object.is_none()).map(|object| {
                    Missing {
                        kind: sample.resource.gvk.group_kind(),
                        uid: object.uid,
                        version: sample.told.object,
                    }
                }));
            }
            Err(error) => tracing::debug!(%error, "cannot read a sample"),
        }
    }
    found
}

/// A list of one object: it answers with the version of the object and with that of all data.
async fn ask(core: &Core, sample: &Sample) -> Result<(Answered, Option<Uid>), ApiError> {
    let path = sample.resource.collection_path(sample.namespace.as_deref())?;
    let call = Call::new(Method::GET, path.clone()).accepting(METADATA_ONLY);
    let call = match &sample.object {
        Some(object) => call.query("fieldSelector", &format!("metadata.name={}", object.name)),
        None => call.query("limit", "1"),
    };
    let answer = core.client.call(call).await?;
    let list: List = serde_json::from_slice(&answer.body)
        .map_err(|source| ApiError::unreadable(&path, "a list of objects", Some(source)))?;
    let object = list.items.first().filter(|_| sample.object.is_some());
    let answered = Answered {
        list: number(&list.metadata.resource_version),
        object: object.map(|object| number(&object.metadata.resource_version)),
    };
    Ok((answered, object.map(|object| Uid::new(&object.metadata.uid))))
}

#[cfg(test)]
mod tests {
    use plumb_core::object::GroupVersionKind;

    use super::super::record::Origin;
    use super::super::state::Seen;
    use super::*;

    /// A store with these objects: kind, name, version, and whether an app tracks it.
    fn store(objects: &[(&GroupKind, &str, &str, u64, bool)]) -> State {
        let mut state = State::default();
        for (kind, plural, name, version, is_tracked) in objects {
            let gvk = GroupVersionKind {
                group: kind.group.clone(),
                version: "v1".to_owned(),
                kind: kind.kind.clone(),
            };
            let resource = Resource { gvk, plural: (*plural).to_owned(), namespaced: false };
            if state.table_of(kind).is_none() {
                state.open_table(&resource, &[None]);
            }
            let mark = is_tracked.then(|| state.intern("app"));
            let seen = Seen {
                address: state.address(&ObjectKey::new(&kind.group, &kind.kind, None, *name)),
                uid: Uid::new(name),
                version: *version,
                created: 0,
                terminating: false,
                may_be_edited: false,
                mark,
                parents: Box::default(),
                refs: Box::default(),
                images: Box::default(),
                body: None,
            };
            state.put(seen, Some(1), Origin::Watched);
        }
        state
    }

    fn names(state: &State, was_away: bool) -> Vec<String> {
        let name = |sample: Sample| sample.object.map(|object| object.name).unwrap_or_default();
        state.samples(was_away).into_iter().map(name).collect()
    }

    #[test]
    fn the_newest_object_and_what_apps_track_are_read_custom_resources_too() {
        let node = GroupKind::new("", "Node");
        let map = GroupKind::new("", "ConfigMap");
        let app = GroupKind::new("apps", "Deployment");
        let tenant = GroupKind::new("minio.min.io", "Tenant");
        let package = GroupKind::new("packages.operators.coreos.com", "PackageManifest");
        let crd = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
        let state = store(&[
            (&node, "nodes", "node", 90, false),
            (&map, "configmaps", "old-map", 20, true),
            (&map, "configmaps", "map", 30, true),
            (&map, "configmaps", "others", 80, false),
            (&app, "deployments", "web", 40, true),
            (&crd, "customresourcedefinitions", "tenants.minio.min.io", 5, false),
            (&tenant, "tenants", "store", 50, true),
            // Of an aggregated API server, which numbers as it likes.
            (&package, "packagemanifests", "package", 1000, true),
        ]);
        assert_eq!(names(&state, false), ["node", "store"]);
        let mut all = names(&state, true);
        all.sort();
        assert_eq!(all, ["map", "node", "store", "web"]);
        assert!(state.is_numbered(&tenant) && !state.is_numbered(&package));
    }

    #[test]
    fn an_object_is_read_once_and_the_list_of_the_furthest_watch_too() {
        let map = GroupKind::new("", "ConfigMap");
        let secret = GroupKind::new("", "Secret");
        let mut state =
            store(&[(&map, "configmaps", "map", 30, true), (&secret, "secrets", "secret", 10, false)]);
        assert_eq!(names(&state, true), ["map"], "no watch has a position");
        let kind = state.kind_id(&secret);
        let scope = state.scope_mut(kind, 0).unwrap();
        (scope.listed, scope.position) = (true, 60);
        assert_eq!(names(&state, true), ["map", ""]);
    }
}
