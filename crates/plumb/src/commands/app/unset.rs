//! `plumb app unset`

use serde_json::Value;

use crate::context::Context;
use crate::edit::json_path::{list, map, remove_empty};
use crate::edit::spec::{SourceChoice, image_name};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::select::app::{AppArg, edit_spec};

/// Remove options from the source of an Application.
///
/// Examples: `plumb app unset payments -p replicas`, `plumb app unset payments --kustomize-image web`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
    #[command(flatten)]
    choice: SourceChoice,
    /// A Helm parameter, by name.
    #[arg(long, short = 'p', value_name = "NAME")]
    parameter: Vec<String>,
    /// A Helm values file.
    #[arg(long, value_name = "FILE")]
    values: Vec<String>,
    /// Helm's inline values.
    #[arg(long)]
    values_literal: bool,
    /// Helm's `ignoreMissingValueFiles`.
    #[arg(long)]
    ignore_missing_value_files: bool,
    /// Helm's `passCredentials`.
    #[arg(long)]
    pass_credentials: bool,
    /// Kustomize's name prefix.
    #[arg(long)]
    nameprefix: bool,
    /// Kustomize's name suffix.
    #[arg(long)]
    namesuffix: bool,
    /// Kustomize's version.
    #[arg(long)]
    kustomize_version: bool,
    /// Kustomize's namespace.
    #[arg(long)]
    kustomize_namespace: bool,
    /// A Kustomize image, by name.
    #[arg(long, value_name = "NAME")]
    kustomize_image: Vec<String>,
    /// A Kustomize replica count, by name.
    #[arg(long, value_name = "NAME")]
    kustomize_replica: Vec<String>,
    /// Kustomize's `ignoreMissingComponents`.
    #[arg(long)]
    ignore_missing_components: bool,
    /// A variable for the plugin, by name.
    #[arg(long, value_name = "NAME")]
    plugin_env: Vec<String>,
    /// The name that other sources use for this one.
    #[arg(long = "ref")]
    ref_name: bool,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if is_empty(args) {
        return Err(CommandError::usage("nothing to remove: no flag given").hint("see --help"));
    }
    let client = context.client().await?;
    let target = args.app.target(context);
    let changed = edit_spec(context, &client, &target, |spec| {
        remove(args, args.choice.find(spec)?);
        Ok(())
    })
    .await?;
    let result = if changed { "updated" } else { "unchanged: none of these is set" };
    context.out.print(&format!("application '{}' {result}", target.name));
    Ok(ExitCode::Success)
}

fn is_empty(args: &Args) -> bool {
    let lists =
        [&args.parameter, &args.values, &args.kustomize_image, &args.kustomize_replica, &args.plugin_env];
    let flags = [
        args.values_literal,
        args.ignore_missing_value_files,
        args.pass_credentials,
        args.nameprefix,
        args.namesuffix,
        args.kustomize_version,
        args.kustomize_namespace,
        args.ignore_missing_components,
        args.ref_name,
    ];
    lists.iter().all(|list| list.is_empty()) && !flags.contains(&true)
}

fn remove(args: &Args, source: &mut Value) {
    let fields = [
        (args.values_literal, "helm", "values"),
        (args.values_literal, "helm", "valuesObject"),
        (args.ignore_missing_value_files, "helm", "ignoreMissingValueFiles"),
        (args.pass_credentials, "helm", "passCredentials"),
        (args.nameprefix, "kustomize", "namePrefix"),
        (args.namesuffix, "kustomize", "nameSuffix"),
        (args.kustomize_version, "kustomize", "version"),
        (args.kustomize_namespace, "kustomize", "namespace"),
        (args.ignore_missing_components, "kustomize", "ignoreMissingComponents"),
    ];
    for (wanted, tool, field) in fields {
        if wanted && let Some(tool) = source.get_mut(tool) {
            map(tool).remove(field);
        }
    }
    let is_named = |entry: &Value, names: &[String]| {
        entry.get("name").and_then(Value::as_str).is_some_and(|name| names.iter().any(|other| other == name))
    };
    keep(source, "helm", "parameters", |entry| !is_named(entry, &args.parameter));
    keep(source, "helm", "valueFiles", |entry| !args.values.iter().any(|name| entry == name));
    keep(source, "kustomize", "replicas", |entry| !is_named(entry, &args.kustomize_replica));
    keep(source, "kustomize", "images", |entry| {
        let name = entry.as_str().map(image_name);
        !args.kustomize_image.iter().any(|image| Some(image_name(image)) == name)
    });
    keep(source, "plugin", "env", |entry| !is_named(entry, &args.plugin_env));
    if args.ref_name {
        map(source).remove("ref");
    }
    for tool in ["helm", "kustomize", "plugin"] {
        remove_empty(source, tool);
    }
}

/// Keeps the entries of a list that pass, and removes an empty list.
fn keep(source: &mut Value, tool: &str, field: &str, passes: impl Fn(&Value) -> bool) {
    let Some(tool) = source.get_mut(tool) else { return };
    if let Some(entries) = tool.get_mut(field) {
        list(entries).retain(passes);
        remove_empty(tool, field);
    }
}
