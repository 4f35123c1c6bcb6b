//! `plumb undo`: listing and restoring deleted objects.

use jiff::Timestamp;
use plumb_core::app::ClusterRef;
use plumb_core::object::ObjectKey;
use plumb_core::plan::{Tombstone, TombstoneReason};
use plumb_engine::tombstones::{self, APP_LABEL, APP_NAMESPACE_LABEL};
use plumb_kube::{ClusterClient, Selection};
use serde_json::{Value, json};

use crate::connect;
use crate::context::{Context, FIELD_MANAGER, gate};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::output::Format;
use crate::secrets::mask::Masks;
use crate::select::app;

/// List and restore objects that plumb deleted.
///
/// Before plumb deletes an object, it saves it in a Secret. Examples: `plumb undo list payments`,
/// `plumb undo show 1f9a`, `plumb undo restore 1f9a`
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List deleted objects, the latest first.
    ///
    /// Example: `plumb undo list payments`
    List(ListArgs),
    /// Show a deleted object.
    ///
    /// The values of Secrets are hidden. Example: `plumb undo show 1f9a`
    Show(ShowArgs),
    /// Recreate deleted objects with their labels, annotations and owners.
    ///
    /// Example: `plumb undo restore 1f9a 77c0`
    Restore(RestoreArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only objects of this app: `name`, or `namespace/name`.
    #[arg(value_name = "APP", add = crate::complete::apps())]
    app: Option<String>,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// Id of the object, see `plumb undo list`; the first characters are enough.
    id: String,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

#[derive(Debug, clap::Args)]
struct RestoreArgs {
    /// Ids of the objects, see `plumb undo list`; the first characters are enough.
    #[arg(required = true)]
    ids: Vec<String>,
    /// Only check with a server-side dry-run whether it is possible.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List(args) => list(context, args).await,
        Command::Show(args) => show(context, args).await,
        Command::Restore(args) => restore(context, args).await,
    }
}

/// A tombstone with its short id.
struct Deleted {
    id: String,
    tombstone: Tombstone,
}

async fn list(context: &Context, args: &ListArgs) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let deleted = read(context, &client, args.app.as_deref()).await?;
    match args.output {
        Format::Wide if deleted.is_empty() => context.out.note("no deleted objects"),
        Format::Wide => {
            let rows: Vec<Vec<String>> = deleted.iter().map(row).collect();
            context.out.table(&["ID", "DELETED", "APP", "CLUSTER", "OBJECT", "WHY", "REVISION"], &rows);
        }
        Format::Name => deleted.iter().for_each(|deleted| context.out.print(&deleted.id)),
        Format::Json | Format::Yaml => {
            let all: Vec<Value> = deleted.iter().map(entry).collect();
            context.out.object(args.output, &Value::Array(all))?;
        }
    }
    Ok(ExitCode::Success)
}

fn row(Deleted { id, tombstone }: &Deleted) -> Vec<String> {
    let revision = tombstone.revision.as_deref().unwrap_or_default();
    vec![
        id.clone(),
        tombstone.deleted_at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        tombstone.app.to_string(),
        tombstone.server.clone(),
        tombstone.key.to_string(),
        reason(tombstone.reason).to_owned(),
        revision.chars().take(7).collect(),
    ]
}

/// An entry of the list as JSON, without the object itself.
fn entry(Deleted { id, tombstone }: &Deleted) -> Value {
    json!({
        "id": id,
        "deletedAt": tombstone.deleted_at.to_string(),
        "application": {"namespace": tombstone.app.namespace, "name": tombstone.app.name},
        "server": tombstone.server,
        "object": {
            "group": tombstone.key.group,
            "kind": tombstone.key.kind,
            "namespace": tombstone.key.namespace,
            "name": tombstone.key.name,
        },
        "reason": reason(tombstone.reason),
        "revision": tombstone.revision,
    })
}

async fn show(context: &Context, args: &ShowArgs) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let deleted = read(context, &client, None).await?;
    let Deleted { tombstone, .. } = find(&deleted, &args.id)?;
    // The kind as this cluster knows it: a copy of another cluster's object has the same kind.
    let all_kinds = context.client_of_all_kinds().await?;
    let masks = Masks::read(context, &client).await;
    let masks = masks.with_passwords(&all_kinds, std::iter::once(&*tombstone.live)).await?;
    let shown = masks.hide(tombstone.live.value().clone());
    context.out.note(&format!("from {} in cluster {}", tombstone.app, tombstone.server));
    context.out.object(args.output, &shown)?;
    Ok(ExitCode::Success)
}

async fn restore(context: &Context, args: &RestoreArgs) -> Result<ExitCode, CommandError> {
    let home = context.client_of_all_kinds().await?;
    let deleted = read(context, &home, None).await?;
    let mut code = ExitCode::Success;
    for id in &args.ids {
        let Deleted { tombstone, .. } = find(&deleted, id)?;
        let server = ClusterRef::Server(tombstone.server.clone());
        let client = connect::reach(context, &home, &server).await?;
        match recreate(&client, tombstone, args.dry_run).await? {
            Restored::Created => context.out.print(&format!("{} restored", tombstone.key)),
            Restored::Tried => context.out.print(&format!("{} can be restored", tombstone.key)),
            Restored::CreatedWithout(what) => {
                context.out.print(&format!("{} restored without {what}", tombstone.key));
            }
            Restored::Exists => {
                context.out.note(&format!("{} already exists and was not changed", tombstone.key));
                code = ExitCode::No;
                continue;
            }
        }
        if let Some(lost) = tombstone.lost() {
            context.out.note(&format!("note: {lost}"));
        }
        if tombstone.reason == TombstoneReason::Pruned {
            context.out.note(&format!(
                "note: it is still missing from Git, so {} will prune it again. Add it to Git to keep it",
                tombstone.app
            ));
        }
    }
    Ok(code)
}

enum Restored {
    Created,
    /// Without this field, which the cluster cannot assign again.
    CreatedWithout(&'static str),
    Tried,
    Exists,
}

async fn recreate(
    client: &ClusterClient,
    tombstone: &Tombstone,
    dry_run: bool,
) -> Result<Restored, CommandError> {
    let what = || format!("restore {}", tombstone.key);
    let api = |error| CommandError::api(what(), error);
    if client.get(&tombstone.key).await.map_err(api)?.is_some() {
        return Ok(Restored::Exists);
    }
    let elsewhere = tombstone.restorable_elsewhere();
    // A claim on a volume that no longer exists would stay pending.
    let is_volume_gone = match tombstone.volume() {
        Some(volume) => !has_volume(client, volume).await.map_err(api)?,
        None => false,
    };
    let (object, created) = match &elsewhere {
        Some(elsewhere) if is_volume_gone => {
            (elsewhere.clone(), Restored::CreatedWithout("its volume, which no longer exists"))
        }
        Some(_) | None => (tombstone.restorable(), Restored::Created),
    };
    if dry_run {
        let options =
            plumb_kube::ApplyOptions { field_manager: FIELD_MANAGER.to_owned(), ..Default::default() };
        client.dry_run_apply(&object, &options).await.map_err(api)?;
        return Ok(Restored::Tried);
    }
    let permit = plumb_kube::WritePermit::requested_by_user(tombstone.key.clone());
    let Err(error) = gate(client).create(&permit, &object, FIELD_MANAGER).await else {
        return Ok(created);
    };
    match (error.api().and_then(plumb_kube::ApiError::reason), elsewhere) {
        (Some(plumb_kube::Reason::AlreadyExists), _) => Ok(Restored::Exists),
        // Another object may have its IP address by now.
        (Some(plumb_kube::Reason::Invalid), Some(elsewhere)) => {
            match gate(client).create(&permit, &elsewhere, FIELD_MANAGER).await {
                Ok(_) => Ok(Restored::CreatedWithout("its IP addresses, which are in use")),
                Err(_) => Err(CommandError::write(what(), error)),
            }
        }
        (_, _) => Err(CommandError::write(what(), error)),
    }
}

async fn has_volume(client: &ClusterClient, name: &str) -> Result<bool, plumb_kube::ApiError> {
    Ok(client.get(&ObjectKey::new("", "PersistentVolume", None, name)).await?.is_some())
}

/// All tombstones, the latest first.
async fn read(
    context: &Context,
    client: &ClusterClient,
    app: Option<&str>,
) -> Result<Vec<Deleted>, CommandError> {
    let labels = app.map_or_else(
        || APP_LABEL.to_owned(),
        |app| {
            let place = app::target(context, app, None);
            let namespace = place.namespace.unwrap_or_default();
            format!("{APP_LABEL}={},{APP_NAMESPACE_LABEL}={namespace}", place.name)
        },
    );
    let selection = Selection {
        namespace: Some(context.namespace().to_owned()),
        labels: Some(labels),
        fields: Some(format!("type={}", plumb_kube::TOMBSTONE_TYPE)),
    };
    let secrets = context.list(client, &kinds::secret(), &selection).await?;
    let mut deleted: Vec<Deleted> = tombstones::read_all(&secrets)
        .into_iter()
        .filter_map(|stored| {
            let id = stored.name.strip_prefix(plumb_kube::TOMBSTONE_PREFIX)?;
            Some(Deleted { id: id.chars().take(8).collect(), tombstone: stored.tombstone })
        })
        .collect();
    let latest = |deleted: &Deleted| -> Timestamp { deleted.tombstone.deleted_at };
    deleted.sort_by(|a, b| latest(b).cmp(&latest(a)).then_with(|| a.tombstone.key.cmp(&b.tombstone.key)));
    Ok(deleted)
}

fn find<'b>(deleted: &'b [Deleted], id: &str) -> Result<&'b Deleted, CommandError> {
    let mut found = deleted.iter().filter(|deleted| deleted.id.starts_with(id));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(CommandError::new(format!("no deleted object with id {id}"))
            .hint("`plumb undo list` lists deleted objects")),
        (Some(_), Some(_)) => Err(CommandError::usage(format!("id {id} is ambiguous; give more characters"))),
    }
}

fn reason(reason: TombstoneReason) -> &'static str {
    match reason {
        TombstoneReason::Pruned => "removed from Git",
        TombstoneReason::AppDeleted => "its app was deleted",
        TombstoneReason::Recreated => "recreated",
    }
}
