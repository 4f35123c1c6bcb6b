//! Finds one set.

use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_crd::ApplicationSet;
use plumb_kube::{ClusterClient, Target};

use crate::context::Context;
use crate::error::CommandError;

/// Group, version and kind of sets.
pub(super) fn gvk() -> GroupVersionKind {
    GroupVersionKind::from_api_version(ApplicationSet::API_VERSION, ApplicationSet::KIND)
}

/// The set that `name`, or `namespace/name`, means.
pub(super) fn target(context: &Context, written: &str, namespace: Option<&str>) -> Target {
    let (in_name, name) =
        written.split_once('/').map_or((None, written), |(space, name)| (Some(space), name));
    let namespace = in_name.or(namespace).unwrap_or(context.namespace()).to_owned();
    Target { gvk: gvk(), namespace: Some(namespace), name: name.to_owned() }
}

/// Reads a set.
pub(super) async fn read(client: &ClusterClient, target: &Target) -> Result<Manifest, CommandError> {
    let found = client.get_at(&target.gvk, target.namespace.as_deref(), &target.name).await;
    let found =
        found.map_err(|error| CommandError::api(format!("read ApplicationSet {}", target.name), error))?;
    found.ok_or_else(|| {
        CommandError::new(format!("ApplicationSet {} not found", target.name))
            .hint("`plumb appset list` lists them")
    })
}

/// Its typed form.
pub(super) fn parse(object: &Manifest) -> Result<ApplicationSet, CommandError> {
    let name = object.name().unwrap_or_default().to_owned();
    ApplicationSet::from_json(object.value())
        .map_err(|error| CommandError::because(format!("read ApplicationSet {name}"), error))
}
