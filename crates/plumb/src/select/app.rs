//! Which Application a command is about, and how it is read and changed.

use plumb_core::object::Manifest;
use plumb_crd::Application;
use plumb_kube::{ClusterClient, Patch, Selection, Target};
use serde_json::Value;

use crate::context::{Context, change};
use crate::edit::merge;
use crate::error::CommandError;
use crate::kinds;

/// The Application that a command is about.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct AppArg {
    /// `name`, or `namespace/name`.
    #[arg(value_name = "APP", add = crate::complete::apps())]
    pub(crate) app: String,
    /// Namespace of the Application, where it is not the control plane's.
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    pub(crate) app_namespace: Option<String>,
}

impl AppArg {
    /// Where it is.
    pub(crate) fn target(&self, context: &Context) -> Target {
        target(context, &self.app, self.app_namespace.as_deref())
    }

    /// It, as it is now.
    pub(crate) async fn read(
        &self,
        context: &Context,
        client: &ClusterClient,
    ) -> Result<(Target, Application), CommandError> {
        let target = self.target(context);
        let application = read(context, client, &target).await?;
        Ok((target, application))
    }
}

/// Where an Application is: `namespace/name`, or `name` in the given namespace or the control plane's.
pub(crate) fn target(context: &Context, app: &str, namespace: Option<&str>) -> Target {
    let default = namespace.unwrap_or_else(|| context.namespace());
    let (namespace, name) = app.split_once('/').unwrap_or((default, app));
    Target { gvk: kinds::application(), namespace: Some(namespace.to_owned()), name: name.to_owned() }
}

/// The Application as it is now.
pub(crate) async fn read(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
) -> Result<Application, CommandError> {
    parse(&read_whole(context, client, target).await?)
}

/// The Application as it is now, with every field that it has.
pub(crate) async fn read_whole(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
) -> Result<Manifest, CommandError> {
    let name = &target.name;
    let found = client
        .get_at(&target.gvk, target.namespace.as_deref(), name)
        .await
        .map_err(|error| CommandError::api(format!("read application {name}"), error))?;
    match found {
        Some(found) => Ok(found),
        None => Err(unknown(context, client, target).await),
    }
}

/// Says that there is no such app, and where there is one of that name.
async fn unknown(context: &Context, client: &ClusterClient, target: &Target) -> CommandError {
    let namespace = target.namespace.as_deref().unwrap_or_default();
    let name = &target.name;
    let error = CommandError::new(format!("there is no application {name} in namespace {namespace}"));
    let selection = Selection { fields: Some(format!("metadata.name={name}")), ..Selection::default() };
    // Whoever may not look everywhere gets the shorter answer.
    let elsewhere = client.list(&target.gvk, &selection).await.unwrap_or_default();
    let mut names: Vec<String> =
        elsewhere.iter().filter_map(|app| Some(format!("{}/{}", app.namespace()?, app.name()?))).collect();
    names.sort();
    match names.as_slice() {
        [] => error
            .hint("`plumb app list` shows the applications; --app-namespace names another namespace")
            .hint_if(context.namespace() == namespace, "--namespace names another control plane"),
        [one] => error.hint(format!("there is one in another namespace: use {one}")),
        several => {
            error.hint(format!("several namespaces have one of that name; say which: {}", several.join(", ")))
        }
    }
}

/// Reads an Application out of an object.
pub(crate) fn parse(manifest: &Manifest) -> Result<Application, CommandError> {
    let name = manifest.name().unwrap_or_default();
    Application::from_json(manifest.value())
        .map_err(|error| CommandError::because(format!("read application {name}"), error))
}

/// Changes an Application by a merge patch.
pub(crate) async fn patch(
    client: &ClusterClient,
    target: &Target,
    patch: Value,
) -> Result<Application, CommandError> {
    parse(&change(client, target, &Patch::Merge(patch)).await?)
}

/// Changes an Application's spec, see [`merge::edit_spec`]. Says whether anything changed.
pub(crate) async fn edit_spec(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
    edit: impl Fn(&mut Value) -> Result<(), CommandError>,
) -> Result<bool, CommandError> {
    // The answer to a name that does not exist says where there is one.
    read_whole(context, client, target).await?;
    merge::edit_spec(client, target, edit).await
}
