//! Which kinds a store watches, and which objects it keeps whole.

use std::collections::BTreeSet;
use std::sync::Arc;

use plumb_core::object::GroupKind;

use crate::feed::Marks;

/// Returns the instance name of the app that tracks an object, from its labels and annotations.
pub type OwnerOf = dyn Fn(&Marks<'_>) -> Option<String> + Send + Sync;

/// Which kinds to watch, and which objects to keep whole.
#[derive(Clone)]
pub struct LiveOptions {
    /// Which app tracks an object (`plumb_core::tracking`). Another rule needs a new store.
    pub owner_of: Arc<OwnerOf>,
    /// Kinds that are not watched, besides those of [`never_watched`].
    pub excluded: Arc<dyn Fn(&GroupKind) -> bool + Send + Sync>,
    /// Kinds whose objects are always kept whole.
    pub keep_whole: BTreeSet<GroupKind>,
    /// Only these namespaces; all of them if empty.
    pub namespaces: Vec<String>,
    /// With `namespaces`: cluster-scoped kinds as well?
    pub cluster_scoped: bool,
    /// Skip kinds that plumb has no permission to list, instead of waiting for the permission
    /// (`resource.respectRBAC`).
    pub skip_forbidden: bool,
}

impl LiveOptions {
    /// The whole cluster. Pods, `ReplicaSets` and Jobs, and the Services that webhooks call are always kept
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

/// Kinds with many objects that change all the time and that no app has in Git.
pub fn never_watched(kind: &GroupKind) -> bool {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("" | "events.k8s.io", "Event")
        | ("coordination.k8s.io", "Lease" | "LeaseCandidate")
        | ("discovery.k8s.io", "EndpointSlice")
        | ("", "Endpoints" | "ComponentStatus") => true,
        (group, _) => group == "metrics.k8s.io" || group.ends_with(".metrics.k8s.io"),
    }
}
