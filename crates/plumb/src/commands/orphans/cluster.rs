//! Everything in the cluster: who uses an object can only be told from all others.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use futures::stream;
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use plumb_core::orphans::KnownApp;
use plumb_crd::Application;
use plumb_crd::application::ResourceStatus;
use plumb_kube::{ClusterClient, Selection, never_watched};

use crate::context::Context;
use crate::error::CommandError;

/// So many kinds are listed at a time.
const AT_A_TIME: usize = 6;

/// The objects of a cluster.
pub(super) struct Cluster {
    pub(super) objects: BTreeMap<ObjectKey, Manifest>,
    /// Kinds that could not be listed, with the reason.
    pub(super) unlisted: Vec<(String, String)>,
}

/// Lists every kind once.
pub(super) async fn read(client: &ClusterClient) -> Cluster {
    let catalog = client.catalog();
    let kinds: Vec<GroupVersionKind> = catalog
        .kinds
        .iter()
        .filter(|(kind, served)| served.preferred().verbs.list && !never_watched(kind))
        .filter_map(|(kind, _)| Some(catalog.preferred(kind)?.gvk))
        .collect();
    let listed: Vec<_> = stream::iter(kinds)
        .map(|gvk| async move {
            let found = client.list(&gvk, &Selection::default()).await;
            (gvk, found)
        })
        .buffer_unordered(AT_A_TIME)
        .collect()
        .await;
    // An aggregated API server that is down hides all of its kinds.
    let hidden =
        catalog.stale.iter().map(|version| (version.clone(), "its API server does not answer".to_owned()));
    let mut cluster = Cluster { objects: BTreeMap::new(), unlisted: hidden.collect() };
    for (gvk, found) in listed {
        match found {
            Ok(found) => {
                let keyed = found.into_iter().filter_map(|object| Some((object.key()?, object)));
                cluster.objects.extend(keyed);
            }
            // Some kinds are only an action, whatever discovery says.
            Err(error) if error.is_not_found() => {}
            Err(error) => cluster.unlisted.push((gvk.to_string(), error.to_string())),
        }
    }
    cluster.unlisted.sort();
    cluster
}

/// The apps of the cluster, and what their status shows as no longer in Git. An app for another cluster counts, and its
/// objects are not here.
pub(super) fn apps(context: &Context, cluster: &Cluster) -> Result<Vec<KnownApp>, CommandError> {
    if let Some((_, why)) = cluster.unlisted.iter().find(|(kind, _)| kind.contains("argoproj.io")) {
        return Err(CommandError::new(format!("cannot list the Applications: {why}"))
            .hint("without them, every object would look like one of an app that is gone"));
    }
    let is_application = |key: &&ObjectKey| key.group == "argoproj.io" && key.kind == Application::KIND;
    let keys = cluster.objects.keys().filter(is_application);
    let applications = keys.filter_map(|key| cluster.objects.get(key));
    let known = applications.filter_map(|object| {
        let application = Application::from_json(object.value()).ok()?;
        let destination = &application.spec.destination;
        let is_here =
            matches!(destination.server.as_str(), "" | plumb_core::app::ClusterRef::IN_CLUSTER_SERVER)
                && matches!(destination.name.as_str(), "" | plumb_core::app::ClusterRef::IN_CLUSTER_NAME);
        // A hook that has run is in Git, and goes by its own policy.
        let is_left = |resource: &&ResourceStatus| is_here && resource.requires_pruning && !resource.hook;
        let left = application.status.resources.iter().filter(is_left);
        Some(KnownApp {
            instance: application.id().instance_name(context.namespace()),
            orphans: left.map(ResourceStatus::key).collect(),
            id: application.id(),
        })
    });
    Ok(known.collect())
}
