//! The kinds that a cluster serves, as a value.

use std::collections::{BTreeMap, BTreeSet};

use plumb_core::object::{GroupKind, GroupVersionKind};

use super::resource::Resource;
use crate::error::ApiError;

/// Everything that a cluster serves at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// By group and kind.
    pub kinds: BTreeMap<GroupKind, ServedKind>,
    /// Group versions whose (aggregated) API server did not answer. `kinds` keeps what it last answered.
    pub stale: BTreeSet<String>,
    /// The hash of each group version's schema document, by `apps/v1` or `v1`.
    pub schemas: BTreeMap<String, String>,
    /// The server's version.
    pub server: ServerVersion,
}

/// The answer of `/version`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerVersion {
    /// Such as `1`.
    pub major: String,
    /// Such as `36`, on some platforms `36+`.
    pub minor: String,
    /// Such as `v1.36.3`.
    pub git_version: String,
}

/// A kind that the cluster serves, in all its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedKind {
    /// Plural name in URL paths, such as `deployments`.
    pub plural: String,
    /// True if its objects are namespaced.
    pub namespaced: bool,
    /// The versions in the server's order of preference, never empty.
    pub versions: Vec<ServedVersion>,
}

/// One kind in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedVersion {
    /// Such as `v1`.
    pub version: String,
    /// Plural name in URL paths.
    pub plural: String,
    /// The verbs that the server allows.
    pub verbs: Verbs,
    /// Subresources such as `status` and `scale`.
    pub subresources: BTreeSet<String>,
}

/// The verbs that a server allows for a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent verb")]
pub struct Verbs {
    /// `get`.
    pub get: bool,
    /// `list`.
    pub list: bool,
    /// `watch`.
    pub watch: bool,
    /// `create`.
    pub create: bool,
    /// `patch`.
    pub patch: bool,
    /// `update`.
    pub update: bool,
    /// `delete`.
    pub delete: bool,
}

impl ServedKind {
    /// The server's preferred version.
    pub fn preferred(&self) -> &ServedVersion {
        #[expect(clippy::indexing_slicing, reason = "the list is never empty, see its invariant")]
        &self.versions[0]
    }

    /// The version called `name`.
    pub fn version(&self, name: &str) -> Option<&ServedVersion> {
        self.versions.iter().find(|version| version.version == name)
    }

    /// The most preferred version that can be listed and watched.
    pub fn watchable(&self) -> Option<&ServedVersion> {
        self.versions.iter().find(|version| version.verbs.list && version.verbs.watch)
    }
}

impl Catalog {
    /// The kind of this group and name, if it is served.
    pub fn kind(&self, kind: &GroupKind) -> Option<&ServedKind> {
        self.kinds.get(kind)
    }

    /// True if the objects of this kind are namespaced; `None` if the kind is not served.
    pub fn is_namespaced(&self, kind: &GroupKind) -> Option<bool> {
        self.kinds.get(kind).map(|served| served.namespaced)
    }

    /// A kind in its preferred version.
    pub fn preferred(&self, kind: &GroupKind) -> Option<Resource> {
        let served = self.kinds.get(kind)?;
        let version = served.preferred();
        Some(resource(kind, served, version))
    }

    /// A kind in this version.
    pub fn resource(&self, gvk: &GroupVersionKind) -> Option<Resource> {
        let kind = gvk.group_kind();
        let served = self.kinds.get(&kind)?;
        Some(resource(&kind, served, served.version(&gvk.version)?))
    }

    /// The versions in which this kind is served, or else a kind of the same name in another group.
    pub fn served_versions(&self, kind: &GroupKind) -> Option<(GroupKind, Vec<String>)> {
        let same_name = || self.kinds.iter().find(|(other, _)| other.kind == kind.kind);
        let (kind, served) = self.kinds.get_key_value(kind).or_else(same_name)?;
        Some((kind.clone(), served.versions.iter().map(|version| version.version.clone()).collect()))
    }

    /// A kind in the version to watch it in.
    pub fn watchable(&self, kind: &GroupKind) -> Option<Resource> {
        let served = self.kinds.get(kind)?;
        Some(resource(kind, served, served.watchable()?))
    }

    /// Adds a kind without discovery, unless it is in the catalog.
    pub(crate) fn assume(&mut self, resource: &Resource) {
        let verbs = Verbs {
            get: true,
            list: true,
            watch: true,
            create: true,
            patch: true,
            update: true,
            delete: true,
        };
        self.kinds.entry(resource.gvk.group_kind()).or_insert_with(|| ServedKind {
            plural: resource.plural.clone(),
            namespaced: resource.namespaced,
            versions: vec![ServedVersion {
                version: resource.gvk.version.clone(),
                plural: resource.plural.clone(),
                verbs,
                subresources: BTreeSet::new(),
            }],
        });
    }

    pub(crate) fn find(&self, gvk: &GroupVersionKind) -> Result<Resource, ApiError> {
        self.resource(gvk).ok_or_else(|| ApiError::UnknownKind { kind: gvk.to_string() })
    }

    /// `apps/v1` and `apps/v1/Deployment` for everything that is served, sorted: Helm's
    /// `.Capabilities.APIVersions`.
    pub fn api_versions(&self) -> Vec<String> {
        let mut names = BTreeSet::new();
        for (kind, served) in &self.kinds {
            for version in &served.versions {
                let gvk = GroupVersionKind {
                    group: kind.group.clone(),
                    version: version.version.clone(),
                    kind: kind.kind.clone(),
                };
                let api_version = gvk.api_version();
                names.insert(format!("{api_version}/{}", gvk.kind));
                names.insert(api_version);
            }
        }
        names.into_iter().collect()
    }

    /// The version for Helm's and Kustomize's `--kube-version`: `1.36.3`, without the platform's additions.
    pub fn kube_version(&self) -> String {
        let text = self.server.git_version.trim_start_matches('v');
        text.split(['-', '+']).next().unwrap_or(text).to_owned()
    }

    /// This catalog, with the kinds of `previous` for group versions that did not answer. An aggregated API
    /// server that is down for a moment must not look as if its kinds, and with them all their objects, were
    /// deleted.
    #[must_use]
    pub fn with_stale_from(mut self, previous: &Self) -> Self {
        for (kind, served) in &previous.kinds {
            for version in &served.versions {
                let gvk = GroupVersionKind {
                    group: kind.group.clone(),
                    version: version.version.clone(),
                    kind: kind.kind.clone(),
                };
                if !self.stale.contains(&gvk.api_version()) {
                    continue;
                }
                let present = self.kinds.entry(kind.clone()).or_insert_with(|| ServedKind {
                    plural: served.plural.clone(),
                    namespaced: served.namespaced,
                    versions: Vec::new(),
                });
                if present.version(&version.version).is_none() {
                    present.versions.push(version.clone());
                }
            }
        }
        self
    }
}

fn resource(kind: &GroupKind, served: &ServedKind, version: &ServedVersion) -> Resource {
    Resource {
        gvk: GroupVersionKind {
            group: kind.group.clone(),
            version: version.version.clone(),
            kind: kind.kind.clone(),
        },
        plural: version.plural.clone(),
        namespaced: served.namespaced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_of_a_server_that_is_down_are_kept() {
        let kind = GroupKind::new("x.io", "Thing");
        let version = ServedVersion {
            version: "v1".to_owned(),
            plural: "things".to_owned(),
            verbs: Verbs::default(),
            subresources: BTreeSet::new(),
        };
        let served = ServedKind { plural: "things".to_owned(), namespaced: true, versions: vec![version] };
        let previous = Catalog { kinds: BTreeMap::from([(kind.clone(), served)]), ..Catalog::default() };

        let gone = Catalog::default().with_stale_from(&previous);
        assert!(gone.kind(&kind).is_none(), "removed for good");
        let down = Catalog { stale: BTreeSet::from(["x.io/v1".to_owned()]), ..Catalog::default() };
        assert!(down.with_stale_from(&previous).kind(&kind).is_some());
    }

    #[test]
    fn the_kube_version_has_three_numbers() {
        let catalog = |text: &str| Catalog {
            server: ServerVersion { git_version: text.to_owned(), ..ServerVersion::default() },
            ..Catalog::default()
        };
        assert_eq!(catalog("v1.36.3").kube_version(), "1.36.3");
        assert_eq!(catalog("v1.33.1-gke.1234+abc").kube_version(), "1.33.1");
    }
}
