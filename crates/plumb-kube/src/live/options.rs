//! What a store follows and keeps.

use std::collections::BTreeSet;
use std::sync::Arc;

use plumb_core::object::GroupKind;

use crate::feed::Marks;

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
