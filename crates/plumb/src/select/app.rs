//! One Application: its argument, reading and changing it.

use plumb_core::object::Manifest;
use plumb_crd::Application;
use plumb_kube::{ClusterClient, Patch, Selection, Target};
use serde_json::Value;

use crate::context::{Context, change};
use crate::edit::merge;
use crate::error::CommandError;
use crate::kinds;

/// The Application of a command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct AppArg {
    /// `name`, or `namespace/name`.
    #[arg(value_name = "APP", add = crate::complete::apps())]
    pub(crate) app: String,
    /// Namespace of the Application [default: the control plane's].
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    pub(crate) app_namespace: Option<String>,
}

impl AppArg {
    /// Its kind, namespace and name.
    pub(crate) fn target(&self, context: &Context) -> Target {
        target(context, &self.app, self.app_namespace.as_deref())
    }

    /// Reads it.
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

/// The target of `namespace/name`, or of `name` in the given namespace or the control plane's.
pub(crate) fn target(context: &Context, app: &str, namespace: Option<&str>) -> Target {
    let default = namespace.unwrap_or_else(|| context.namespace());
    let (namespace, name) = app.split_once('/').unwrap_or((default, app));
    Target { gvk: kinds::application(), namespace: Some(namespace.to_owned()), name: name.to_owned() }
}

/// Reads an Application.
pub(crate) async fn read(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
) -> Result<Application, CommandError> {
    parse(&read_whole(context, client, target).await?)
}

/// Reads an Application with all its fields, also those that plumb does not know.
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

/// The error for a missing app. It names the apps of that name in other namespaces.
async fn unknown(context: &Context, client: &ClusterClient, target: &Target) -> CommandError {
    let namespace = target.namespace.as_deref().unwrap_or_default();
    let name = &target.name;
    let error = CommandError::new(format!("application {name} not found in namespace {namespace}"));
    let selection = Selection { fields: Some(format!("metadata.name={name}")), ..Selection::default() };
    // A user who may not list all namespaces gets the shorter hint.
    let elsewhere = client.list(&target.gvk, &selection).await.unwrap_or_default();
    let mut names: Vec<String> =
        elsewhere.iter().filter_map(|app| Some(format!("{}/{}", app.namespace()?, app.name()?))).collect();
    names.sort();
    match names.as_slice() {
        [] => error
            .hint("`plumb app list` lists the applications; --app-namespace selects another namespace")
            .hint_if(context.namespace() == namespace, "--namespace selects another control plane"),
        [one] => error.hint(format!("it exists in another namespace: use {one}")),
        several => error.hint(format!("it exists in several namespaces; use one of: {}", several.join(", "))),
    }
}

/// Parses an Application.
pub(crate) fn parse(manifest: &Manifest) -> Result<Application, CommandError> {
    let name = manifest.name().unwrap_or_default();
    Application::from_json(manifest.value())
        .map_err(|error| CommandError::because(format!("parse application {name}"), error))
}

/// Changes an Application with a merge patch.
pub(crate) async fn patch(
    client: &ClusterClient,
    target: &Target,
    patch: Value,
) -> Result<Application, CommandError> {
    parse(&change(client, target, &Patch::Merge(patch)).await?)
}

/// Changes the spec of an Application, see [`merge::edit_spec`]. Returns whether it changed.
pub(crate) async fn edit_spec(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
    edit: impl Fn(&mut Value) -> Result<(), CommandError>,
) -> Result<bool, CommandError> {
    // For its error: it names apps of the same name in other namespaces.
    read_whole(context, client, target).await?;
    merge::edit_spec(client, target, edit).await
}
