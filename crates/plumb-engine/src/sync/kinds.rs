//! How the cluster serves the kinds of an app now.

use std::collections::BTreeSet;

use plumb_core::desired::Scope;
use plumb_core::object::GroupVersionKind;
use plumb_core::sync::{PlannedKinds, ServedAs};

use crate::cluster::destination::Cluster;
use crate::sources::gathered::Gathered;

/// The kinds of everything that Git asks for, hooks too.
pub(crate) fn kinds_of(gathered: &Gathered) -> BTreeSet<GroupVersionKind> {
    let desired = gathered.desired.get();
    let objects = desired.objects.values().map(|object| object.manifest.gvk());
    objects.chain(desired.hooks.iter().map(|hook| hook.manifest.gvk())).collect()
}

/// How the cluster serves these kinds. A schema that cannot be read now is not known.
pub(crate) async fn present_kinds(cluster: &Cluster, kinds: BTreeSet<GroupVersionKind>) -> PlannedKinds {
    let catalog = cluster.client.catalog();
    let is_published = |kind: &&GroupVersionKind| catalog.schemas.contains_key(&kind.api_version());
    let schemas = cluster.schemas.with(kinds.iter().filter(is_published).cloned().collect()).await.ok();
    let served_as = |kind: &GroupVersionKind| {
        let resource = catalog.resource(kind)?;
        let schema = schemas.as_ref().and_then(|schemas| schemas.kind(kind)).map(|kind| kind.text_hash);
        let scope = if resource.namespaced { Scope::Namespaced } else { Scope::Cluster };
        Some(ServedAs { scope, schema })
    };
    kinds
        .into_iter()
        .map(|kind| {
            let served = served_as(&kind);
            (kind, served)
        })
        .collect()
}
