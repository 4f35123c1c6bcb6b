//! Reads the answers of the discovery endpoints, aggregated and older ones.

use std::collections::BTreeMap;

use plumb_core::object::GroupKind;
use serde::Deserialize;

use crate::catalog::{Catalog, ServedKind, ServedVersion, Verbs};

/// `APIGroupDiscoveryList`: the aggregated form.
#[derive(Deserialize)]
pub(super) struct GroupDiscoveryList {
    #[serde(default)]
    items: Vec<GroupDiscovery>,
}

#[derive(Deserialize)]
struct GroupDiscovery {
    #[serde(default)]
    metadata: Name,
    #[serde(default)]
    versions: Vec<VersionDiscovery>,
}

#[derive(Default, Deserialize)]
struct Name {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct VersionDiscovery {
    version: String,
    #[serde(default)]
    resources: Vec<ResourceDiscovery>,
    #[serde(default)]
    freshness: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDiscovery {
    resource: String,
    /// Some aggregated API servers leave it out.
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    subresources: Vec<SubresourceDiscovery>,
}

#[derive(Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
struct SubresourceDiscovery {
    subresource: String,
}

impl GroupDiscoveryList {
    pub(super) fn add_to(self, catalog: &mut Catalog) {
        for group in self.items {
            for version in group.versions {
                if version.freshness == "Stale" {
                    catalog.stale.insert(api_version(&group.metadata.name, &version.version));
                }
                for resource in version.resources {
                    let kind = resource.response_kind.map(|kind| kind.kind).unwrap_or_default();
                    let served = ServedVersion {
                        version: version.version.clone(),
                        plural: resource.resource,
                        verbs: verbs(&resource.verbs),
                        subresources: resource.subresources.into_iter().map(|s| s.subresource).collect(),
                    };
                    add(catalog, &group.metadata.name, &kind, resource.scope == "Namespaced", served);
                }
            }
        }
    }
}

/// `APIVersions` of `/api` and `APIGroupList` of `/apis`: the index of the older form.
#[derive(Deserialize)]
pub(super) struct GroupIndex {
    #[serde(default)]
    pub(super) versions: Vec<String>,
    #[serde(default)]
    pub(super) groups: Vec<GroupEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupEntry {
    name: String,
    #[serde(default)]
    versions: Vec<GroupVersionEntry>,
    preferred_version: Option<GroupVersionEntry>,
}

#[derive(Deserialize)]
struct GroupVersionEntry {
    version: String,
}

impl GroupEntry {
    /// Group and version, the preferred one first.
    pub(super) fn group_versions(&self) -> Vec<(String, String)> {
        let preferred = self.preferred_version.as_ref().map(|entry| entry.version.as_str());
        let mut versions: Vec<&str> = self.versions.iter().map(|entry| entry.version.as_str()).collect();
        versions.sort_by_key(|version| Some(*version) != preferred);
        versions.into_iter().map(|version| (self.name.clone(), version.to_owned())).collect()
    }
}

/// `APIResourceList`: one group version of the older form.
#[derive(Deserialize)]
pub(super) struct ResourceList {
    #[serde(default)]
    resources: Vec<ResourceEntry>,
}

#[derive(Deserialize)]
struct ResourceEntry {
    name: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    verbs: Vec<String>,
}

impl ResourceList {
    pub(super) fn add_to(self, catalog: &mut Catalog, group: &str, version: &str) {
        let mut subresources: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for entry in &self.resources {
            if let Some((plural, subresource)) = entry.name.split_once('/') {
                subresources.entry(plural.to_owned()).or_default().push(subresource.to_owned());
            }
        }
        for entry in self.resources {
            if entry.name.contains('/') {
                continue;
            }
            let served = ServedVersion {
                version: version.to_owned(),
                subresources: subresources.remove(&entry.name).unwrap_or_default().into_iter().collect(),
                plural: entry.name,
                verbs: verbs(&entry.verbs),
            };
            add(catalog, group, &entry.kind, entry.namespaced, served);
        }
    }
}

fn add(catalog: &mut Catalog, group: &str, kind: &str, namespaced: bool, served: ServedVersion) {
    if kind.is_empty() {
        return;
    }
    let entry = catalog.kinds.entry(GroupKind::new(group, kind)).or_insert_with(|| ServedKind {
        plural: served.plural.clone(),
        namespaced,
        versions: Vec::new(),
    });
    if entry.version(&served.version).is_none() {
        entry.versions.push(served);
    }
}

fn verbs(names: &[String]) -> Verbs {
    let has = |verb: &str| names.iter().any(|name| name == verb);
    Verbs {
        get: has("get"),
        list: has("list"),
        watch: has("watch"),
        create: has("create"),
        patch: has("patch"),
        update: has("update"),
        delete: has("delete"),
    }
}

pub(super) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
