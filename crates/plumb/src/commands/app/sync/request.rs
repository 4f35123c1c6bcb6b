//! The operation that a sync requests.

use plumb_core::object::Manifest;
use plumb_crd::{Application, Wire};
use serde_json::{Value, json};

use super::args::Args;
use crate::config;
use crate::context::Context;
use crate::edit::operation::set_options;
use crate::error::CommandError;
use crate::render_here::{self, RevisionOverride};
use crate::select::resource_filter::ResourceFilter;
use crate::select::revisions::revisions_of;
use crate::view::describe;
use crate::view::rows::object_rows;

/// The operation, with the options and retries of the spec, as argocd writes it.
pub(super) async fn build(
    context: &Context,
    application: &Application,
    args: &Args,
) -> Result<Value, CommandError> {
    let policy = application.spec.sync_policy.as_ref();
    let mut sync = json!({"prune": args.prune, "dryRun": args.dry_run});
    set_revisions(&mut sync, application, args)?;
    let strategy = args.strategy.as_deref().unwrap_or("hook");
    if args.strategy.is_some() || args.force {
        sync["syncStrategy"] = json!({strategy: {"force": args.force}});
    }
    let flags = [
        (args.replace, "Replace=true"),
        (args.server_side, "ServerSideApply=true"),
        (args.apply_out_of_sync_only, "ApplyOutOfSyncOnly=true"),
    ];
    let chosen: Vec<&str> = flags.iter().filter(|(given, _)| *given).map(|(_, option)| *option).collect();
    set_options(&mut sync, application, &chosen);
    if !args.resource.is_empty() {
        sync["resources"] = Value::Array(selected(application, &args.resource)?);
    }
    if !args.label.is_empty() {
        sync["resources"] = Value::Array(labelled(context, application, args).await?);
    }
    let mut operation = json!({"sync": sync, "initiatedBy": {"username": config::user()}});
    if !args.info.is_empty() {
        let pairs = args.info.iter().map(|pair| {
            let split = pair.split_once('=');
            let wrong = || CommandError::usage(format!("--info {pair}: expected NAME=VALUE"));
            split.map(|(name, value)| json!({"name": name, "value": value})).ok_or_else(wrong)
        });
        operation["info"] = Value::Array(pairs.collect::<Result<_, _>>()?);
    }
    match (retry(args), policy.and_then(|policy| policy.retry.as_ref())) {
        (Some(retry), _) => operation["retry"] = retry,
        (None, Some(retry)) => operation["retry"] = retry.write(),
        (None, None) => {}
    }
    Ok(operation)
}

fn set_revisions(sync: &mut Value, application: &Application, args: &Args) -> Result<(), CommandError> {
    let sources = describe::sources(application);
    if let Some(revision) = &args.revision {
        if !application.spec.sources.is_empty() {
            return Err(CommandError::usage("--revision works only for apps with one source")
                .hint("use --revisions with --source-positions or --source-names"));
        }
        let is_automated = describe::policy(application) != "Manual";
        let wanted = sources.first().map(|source| source.target_revision.as_str()).unwrap_or_default();
        if is_automated && wanted != revision && !args.dry_run {
            return Err(CommandError::new(format!(
                "cannot sync to {revision}: auto-sync currently set to {}",
                if wanted.is_empty() { "HEAD" } else { wanted }
            ))
            .hint(
                "the next automated sync would undo it: change the revision or the sync policy of the app",
            ));
        }
        sync["revision"] = json!(revision);
    }
    let revisions = revisions_of(&sources, &args.revisions, &args.source_positions, &args.source_names)?;
    if !revisions.is_empty() {
        sync["revisions"] = json!(revisions);
    }
    Ok(())
}

/// The objects of the app that match the filters.
fn selected(application: &Application, filters: &[ResourceFilter]) -> Result<Vec<Value>, CommandError> {
    let all = object_rows(application);
    let chosen: Vec<Value> = all
        .iter()
        .filter(|state| state.hook.is_empty() && ResourceFilter::any_matches(filters, state))
        .map(|state| {
            json!({"group": state.group, "kind": state.kind, "namespace": state.namespace, "name": state.name})
        })
        .collect();
    if chosen.is_empty() {
        return Err(CommandError::new(format!(
            "no object of {} matches --resource",
            application.metadata.name
        ))
        .hint(format!("`plumb app resources {}` lists its objects", application.metadata.name)));
    }
    Ok(chosen)
}

/// The objects of the app that have one of the labels in Git, at the revision of the sync.
async fn labelled(
    context: &Context,
    application: &Application,
    args: &Args,
) -> Result<Vec<Value>, CommandError> {
    let revision_override = RevisionOverride {
        revision: args.revision.clone(),
        revisions: args.revisions.clone(),
        source_positions: args.source_positions.clone(),
        source_names: args.source_names.clone(),
        ..RevisionOverride::default()
    };
    let inspector = args.render.open(context).await?;
    let rendered = render_here::gather(&inspector, application, &revision_override).await?;
    let wanted: Vec<(&str, &str)> = args.label.iter().filter_map(|label| label.split_once('=')).collect();
    let is_wanted = |manifest: &Manifest| {
        wanted.iter().any(|(name, value)| {
            let labels = manifest.value().pointer("/metadata/labels");
            labels.and_then(|labels| labels.get(name)?.as_str()) == Some(value)
        })
    };
    let chosen: Vec<Value> = rendered
        .desired()
        .objects
        .iter()
        .filter(|(_, object)| is_wanted(&object.manifest))
        .map(|(key, _)| {
            json!({"group": key.group, "kind": key.kind, "namespace": key.namespace_or_empty(), "name": key.name})
        })
        .collect();
    if chosen.is_empty() {
        let name = &application.metadata.name;
        return Err(CommandError::new(format!(
            "no object of {name} has the label {}",
            args.label.join(", ")
        ))
        .hint(format!("`plumb app manifests {name}` shows its objects with their labels")));
    }
    Ok(chosen)
}

fn retry(args: &Args) -> Option<Value> {
    let backoff = [
        ("duration", args.retry_backoff_duration.clone().map(Value::from)),
        ("maxDuration", args.retry_backoff_max_duration.clone().map(Value::from)),
        ("factor", args.retry_backoff_factor.map(Value::from)),
    ];
    let backoff: serde_json::Map<String, Value> =
        backoff.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    if args.retry_limit.is_none() && !args.retry_refresh && backoff.is_empty() {
        return None;
    }
    let mut retry = json!({"limit": args.retry_limit.unwrap_or(0), "refresh": args.retry_refresh});
    if !backoff.is_empty() {
        retry["backoff"] = Value::Object(backoff);
    }
    Some(retry)
}
