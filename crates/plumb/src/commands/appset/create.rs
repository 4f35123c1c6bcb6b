//! `plumb appset create`

use plumb_core::object::Manifest;
use plumb_core::yaml::{Limits, parse_documents};
use plumb_crd::ApplicationSet;
use plumb_kube::{ClusterClient, Patch, Target};
use serde_json::{Value, json};

use super::set::{parse, read, wait};
use crate::context::{Context, change, create};
use crate::edit::file::read_text;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::view::describe;

/// Create `ApplicationSets` from files.
///
/// Example: `plumb appset create teams.yaml --upsert`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files with `ApplicationSets`; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    /// Change a set that exists and is different.
    #[arg(long)]
    upsert: bool,
    /// Only check the files.
    #[arg(long)]
    dry_run: bool,
    /// Wait until the Applications are generated. A set with an error is waited for until the error is gone.
    #[arg(long)]
    wait: bool,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
}

/// The sets in a file.
pub(super) fn sets_in(text: &str) -> Result<Vec<Value>, CommandError> {
    let documents = parse_documents(text, &Limits::default())
        .map_err(|error| CommandError::because("read the file", error))?;
    let values = documents.into_iter().map(|document| document.value);
    let sets: Vec<Value> = values.filter(|value| !value.is_null()).collect();
    if sets.is_empty() {
        return Err(CommandError::usage("the file is empty"));
    }
    if sets.iter().any(|set| set["kind"] != ApplicationSet::KIND) {
        return Err(CommandError::usage("the file has an object that is not an ApplicationSet"));
    }
    Ok(sets)
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let mut manifests = Vec::new();
    for file in &args.files {
        for mut set in sets_in(&read_text(file)?)? {
            if let Some(object) = set.as_object_mut() {
                object.remove("status");
            }
            if set["metadata"]["namespace"].as_str().is_none_or(str::is_empty) {
                set["metadata"]["namespace"] = json!(context.namespace());
            }
            let manifest =
                Manifest::new(set).map_err(|error| CommandError::because("read the set", error))?;
            let name = parse(&manifest)?.metadata.name;
            if name.is_empty() {
                return Err(CommandError::usage("the ApplicationSet has no name"));
            }
            manifests.push(manifest);
        }
    }
    let client = context.client().await?;
    for manifest in manifests {
        write(context, &client, args, &manifest).await?;
    }
    Ok(ExitCode::Success)
}

async fn write(
    context: &Context,
    client: &ClusterClient,
    args: &Args,
    manifest: &Manifest,
) -> Result<(), CommandError> {
    let target = Target::of(manifest).ok_or_else(|| CommandError::usage("the ApplicationSet has no name"))?;
    let name = &target.name;
    let found = client.get_at(&target.gvk, target.namespace.as_deref(), name).await;
    let found = found.map_err(|error| CommandError::api(format!("read ApplicationSet {name}"), error))?;
    let result = match found {
        _ if args.dry_run => "valid",
        None => {
            create(client, manifest).await?;
            "created"
        }
        Some(live) if live.value()["spec"] == manifest.value()["spec"] => "unchanged",
        Some(_) if !args.upsert => {
            return Err(CommandError::new(format!(
                "ApplicationSet {name} exists and its spec is different, use upsert flag to force update"
            ))
            .hint("--upsert updates it"));
        }
        Some(live) => {
            let spec = plumb_core::object::merge_patch(&live.value()["spec"], &manifest.value()["spec"]);
            change(client, &target, &Patch::Merge(json!({"spec": spec}))).await?;
            "updated"
        }
    };
    if args.wait && !args.dry_run {
        wait(context, client, &target, |set| set.is_some_and(is_up_to_date)).await?;
    }
    match args.output {
        Format::Wide => context.out.print(&format!("ApplicationSet '{name}' {result}")),
        Format::Name => context.out.print(name),
        Format::Json | Format::Yaml if args.dry_run => context.out.object(args.output, manifest.value())?,
        Format::Json | Format::Yaml => {
            let live = read(client, &target).await?;
            context.out.object(args.output, &describe::readable(&live))?;
        }
    }
    Ok(())
}

/// Did plumb generate the Applications of what the set says now?
fn is_up_to_date(set: &ApplicationSet) -> bool {
    let mut conditions = set.status.conditions.iter();
    conditions.any(|condition| condition.condition_type == "ResourcesUpToDate" && condition.status == "True")
}
