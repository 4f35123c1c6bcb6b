//! Finds one set.

use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_crd::ApplicationSet;
use plumb_kube::{ClusterClient, ObjectEvent, Selection, Target};

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

/// Follows a set until it is as wanted. `None` means that it is gone.
pub(super) async fn wait(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
    is_wanted: impl Fn(Option<&ApplicationSet>) -> bool,
) -> Result<(), CommandError> {
    let failed = |error| CommandError::api(format!("watch ApplicationSet {}", target.name), error);
    let selection = Selection {
        namespace: target.namespace.clone(),
        fields: Some(format!("metadata.name={}", target.name)),
        ..Selection::default()
    };
    let mut events = client.watch_objects(&target.gvk, selection).map_err(failed)?;
    let mut seen = false;
    while let Some(event) = events.next().await {
        let is_met = match event {
            ObjectEvent::Seen(manifest) => {
                seen = true;
                is_wanted(Some(&parse(&manifest)?))
            }
            ObjectEvent::Gone { .. } => is_wanted(None),
            ObjectEvent::Listed => !seen && is_wanted(None),
            ObjectEvent::Trouble(trouble) => {
                context.out.note(&format!("note: {trouble}"));
                false
            }
        };
        if is_met {
            return Ok(());
        }
    }
    Err(CommandError::new(format!("the watch of ApplicationSet {} ended", target.name)))
}
