//! How the objects of a control plane are marked, where its settings do not say it.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use plumb_core::object::Manifest;
use plumb_core::tracking::{TrackingMethod, method_by_marks};
use plumb_crd::Application;
use plumb_kube::ClusterClient;

/// The objects of so many apps are read, and so many of each app.
const MOST_APPS: usize = 20;
const MOST_OBJECTS: usize = 2;
/// How many objects are read at the same time.
const READS_AT_ONCE: usize = 8;

/// The method by which objects of these apps are marked. An object that cannot be read does not tell.
pub async fn method_in_use(
    client: &ClusterClient,
    (control_plane, label_key): (&str, &str),
    applications: &[&Application],
) -> TrackingMethod {
    let apps: BTreeSet<String> =
        applications.iter().map(|application| application.id().instance_name(control_plane)).collect();
    let of_app = |application: &&Application| {
        let resources = application.status.resources.iter().filter(|resource| !resource.hook);
        resources.take(MOST_OBJECTS).map(|resource| (resource.key(), resource.gvk())).collect::<Vec<_>>()
    };
    let with_objects = applications.iter().filter(|application| !application.status.resources.is_empty());
    let sample: Vec<_> = with_objects.take(MOST_APPS).flat_map(of_app).collect();
    let reads = sample.iter().map(|(key, gvk)| client.get_at(gvk, key.namespace.as_deref(), &key.name));
    let read = futures::stream::iter(reads).buffered(READS_AT_ONCE).collect::<Vec<_>>().await;
    let objects: Vec<Manifest> = read.into_iter().filter_map(|object| object.ok().flatten()).collect();
    method_by_marks(&objects, label_key, |name| apps.contains(name))
}
