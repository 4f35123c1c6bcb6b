//! `plumb app`: argocd's words for looking at Applications and syncing them.

mod diff;
mod get;
mod list;
mod set;
mod sync;

use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_crd::Application;
use plumb_kube::{ClusterClient, Fence, Gate, OwnWrite, Patch, PatchOptions, Target};
use serde_json::Value;

use crate::config::ConnectionArgs;
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Look at Applications and sync them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List Applications, with what is wrong with each.
    List,
    /// Show one Application and its objects.
    Get(get::Args),
    /// Show what differs from Git and counts, with its class, who did it and since when.
    Diff(diff::Args),
    /// Make the cluster equal to Git, and wait until it is.
    Sync(sync::Args),
    /// Change how an Application is synced.
    Set(set::Args),
}

pub(crate) fn run(connection: &ConnectionArgs, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List => list::run(connection),
        Command::Get(args) => get::run(connection, args),
        Command::Diff(args) => diff::run(connection, args),
        Command::Sync(args) => sync::run(connection, args),
        Command::Set(args) => set::run(connection, args),
    }
}

/// Where an Application is: `name` in the control-plane namespace, or `namespace/name`.
fn target(connection: &ConnectionArgs, app: &str) -> Target {
    let (namespace, name) = app.split_once('/').unwrap_or((&connection.namespace, app));
    Target {
        gvk: GroupVersionKind::from_api_version(Application::API_VERSION, Application::KIND),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    }
}

/// The Application as it is now.
async fn read(client: &ClusterClient, target: &Target) -> Result<Application, CommandError> {
    let name = &target.name;
    let found = client.get_at(&target.gvk, target.namespace.as_deref(), name).await;
    let found = found.map_err(|error| CommandError::because(format!("read application {name}"), error))?;
    let namespace = target.namespace.as_deref().unwrap_or_default();
    let manifest = found.ok_or_else(|| {
        CommandError::new(format!("there is no application {name} in namespace {namespace}"))
            .hint("`plumb app list` shows the applications; --namespace names another namespace")
    })?;
    parse(&manifest)
}

fn parse(manifest: &Manifest) -> Result<Application, CommandError> {
    let name = manifest.name().unwrap_or_default();
    Application::from_json(manifest.value())
        .map_err(|error| CommandError::because(format!("read application {name}"), error))
}

/// Changes an Application.
async fn patch(client: &ClusterClient, target: &Target, patch: Value) -> Result<Application, CommandError> {
    let gate = Gate::new(client.clone(), Fence::of_command(), None);
    let write = OwnWrite::Patch {
        target: target.clone(),
        patch: Patch::Merge(patch),
        options: PatchOptions { field_manager: Some("argocd".to_owned()), subresource: None },
    };
    let what = format!("change application {}", target.name);
    let applied = gate.write_own(&write).await.map_err(|error| CommandError::because(what.clone(), error))?;
    applied.map_or_else(|| Err(CommandError::new(what)), |applied| parse(&applied.manifest))
}
