//! `plumb app manifests`

use plumb_core::object::Manifest;
use plumb_core::secrets::as_stored;
use serde_json::Value;

use crate::connect::cluster_of;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::remote::{Api, query};
use crate::render_here::{self, RenderArgs, RevisionOverride};
use crate::secrets::mask::Masks;
use crate::select::app::AppArg;
use crate::select::object;
use crate::select::revisions::revisions_of;
use crate::view::describe;
use crate::view::problem::problem_line;
use crate::view::rows::object_rows;

/// Print the manifests of an Application: rendered from Git, or live.
///
/// The values of Secrets are not shown.
///
/// Examples: `plumb app manifests payments`, `plumb app manifests payments --source live`,
/// `plumb app manifests payments --revision v1.2`, `plumb app manifests payments --local deploy/payments`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
    /// `git`: the rendered manifests; `live`: the objects in the cluster.
    #[arg(long, default_value = "git", value_parser = ["git", "live"])]
    source: String,
    #[command(flatten)]
    revision_override: RevisionOverride,
    #[command(flatten)]
    render: RenderArgs,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.source == "live" {
        if args.revision_override.is_given() {
            return Err(CommandError::usage("live objects have no revision: leave out --source live"));
        }
        return live(context, args).await;
    }
    if let Some(door) = context.door() {
        return of_server(context, door.api(), args).await;
    }
    let home = context.client_of_all_kinds().await?;
    let (_, application) = args.app.read(context, &home).await?;
    let inspector = args.render.open(context).await?;
    let rendered = render_here::gather(&inspector, &application, &args.revision_override).await?;
    let desired = rendered.desired();
    let objects = desired.objects.values().map(|object| &object.manifest);
    let hooks = desired.hooks.iter().map(|hook| &hook.manifest);
    let all: Vec<&Manifest> = objects.chain(hooks).collect();
    let client = cluster_of(context, &home, &application).await?;
    let masks = Masks::read(context, &home).await.with_passwords(&client, all.iter().copied()).await?;
    for manifest in all {
        // As the API server stores it, and as the API shows it.
        print(context, as_stored(manifest.value().clone()), &masks);
    }
    for problem in &desired.problems {
        context.out.note(&problem_line(problem));
    }
    Ok(ExitCode::Success)
}

/// The manifests that the server renders. It has masked them.
async fn of_server(context: &Context, api: &Api, args: &Args) -> Result<ExitCode, CommandError> {
    let wanted = &args.revision_override;
    if wanted.local.is_some() {
        return Err(CommandError::usage("--local renders on this machine, not through a server")
            .hint("--core renders with the kubeconfig"));
    }
    let client = context.client().await?;
    let (target, application) = args.app.read(context, &client).await?;
    let sources = describe::sources(&application);
    let revisions =
        revisions_of(&sources, &wanted.revisions, &wanted.source_positions, &wanted.source_names)?;
    let namespace = target.namespace.filter(|namespace| namespace != context.namespace()).unwrap_or_default();
    let revision = wanted.revision.clone().unwrap_or_default();
    let positions: Vec<String> = (1..=revisions.len()).map(|position| position.to_string()).collect();
    let mut pairs = vec![("appNamespace", namespace.as_str()), ("revision", revision.as_str())];
    pairs.extend(revisions.iter().map(|revision| ("revisions", revision.as_str())));
    pairs.extend(positions.iter().map(|position| ("sourcePositions", position.as_str())));
    let path = format!("/api/v1/applications/{}/manifests", query::part(&target.name));
    let answer = api.get(&query::with(&path, &pairs)).await?;
    for text in answer["manifests"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let object: Value = serde_json::from_str(text)
            .map_err(|error| CommandError::because("read a manifest of the server", error))?;
        context.out.print("---");
        context.out.print_data(&plumb_crd::yaml::to_yaml(&object));
    }
    Ok(ExitCode::Success)
}

async fn live(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let home = context.client_of_all_kinds().await?;
    let (_, application) = args.app.read(context, &home).await?;
    let client = cluster_of(context, &home, &application).await?;
    let mut objects = Vec::new();
    for state in object_rows(&application) {
        objects.extend(object::read(&client, &state).await?);
    }
    let masks = Masks::read(context, &home).await.with_passwords(&client, objects.iter()).await?;
    for object in &objects {
        print(context, describe::readable(object), &masks);
    }
    Ok(ExitCode::Success)
}

fn print(context: &Context, object: Value, masks: &Masks) {
    context.out.print("---");
    context.out.print_data(&plumb_crd::yaml::to_yaml(&masks.hide(object)));
}
