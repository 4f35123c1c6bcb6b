//! Deleting orphans, one at a time.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use plumb_core::app::{AppId, ClusterRef};
use plumb_core::desired::Propagation;
use plumb_core::object::Manifest;
use plumb_core::orphans::{Cause, Orphan};
use plumb_core::plan::{Tombstone, TombstoneReason};
use plumb_core::tracking::TRACKING_ANNOTATION;
use plumb_engine::tombstones;
use plumb_kube::{ClusterClient, DeleteOptions};

use super::dump;
use super::watch::{Watched, wait_until_gone};
use crate::context::{Context, delete, gate};
use crate::error::CommandError;
use crate::prompt;

/// How to delete.
pub(super) struct Plan<'args> {
    pub(super) dump: Option<&'args Path>,
    /// Ask before each one?
    pub(super) asks: bool,
    /// How long to watch after each one.
    pub(super) watch_seconds: u64,
}

/// How one deletion ended.
pub(super) enum Ended {
    /// It is gone.
    Deleted,
    /// The user answered no, or it is not what it was.
    Kept,
    /// Something became worse, or the object stays: nothing more is deleted.
    Stopped,
}

/// Deletes one orphan, after its copies were kept, and watches what could be harmed.
pub(super) async fn delete_one(
    context: &Context,
    client: &ClusterClient,
    (number, orphan, listed): (usize, &Orphan, Option<&Manifest>),
    plan: &Plan<'_>,
) -> Result<Ended, CommandError> {
    let key = &orphan.key;
    // The list may be minutes old: what is kept is what is deleted.
    let live = client.get(key).await.map_err(|error| CommandError::api(format!("read {key}"), error))?;
    let Some(live) = live else {
        context.out.note(&format!("{key} is already gone"));
        return Ok(Ended::Deleted);
    };
    if !listed.is_some_and(|listed| is_same(listed, &live)) {
        context
            .out
            .note(&format!("{key} is another object than before, or of another owner: it is not deleted"));
        return Ok(Ended::Kept);
    }
    if plan.asks && !prompt::confirm(&format!("Delete {key}?"))? {
        context.out.note(&format!("{key} was not deleted"));
        return Ok(Ended::Kept);
    }
    let tombstone = tombstone(context, orphan, &live);
    let file = plan.dump.map(|directory| dump::write(directory, number, &tombstone)).transpose()?;
    let kept = keep(context, client, &tombstone, file.is_some()).await?;
    let undo = undo(kept.as_deref(), file.as_deref());
    let watched = Watched::start(client, orphan).await?;
    let options = DeleteOptions { propagation: Propagation::Foreground, ..DeleteOptions::default() };
    delete(client, &live, &options).await?;
    if !wait_until_gone(client, &live).await? {
        context.out.print(&format!("{key} is being deleted, and something holds it back"));
        context.out.note(&format!("hint: `kubectl get` shows its finalizers. {undo}"));
        return Ok(Ended::Stopped);
    }
    let trouble = watched.trouble(client, key, plan.watch_seconds).await?;
    if trouble.is_empty() {
        context.out.print(&format!("{key} deleted. {undo}"));
        return Ok(Ended::Deleted);
    }
    context.out.print(&format!("{key} deleted. Since then:"));
    for line in trouble {
        context.out.print(&format!("  {line}"));
    }
    context.out.print(&format!("Stopped. {undo}"));
    Ok(Ended::Stopped)
}

/// Is it still the object that was listed, and nobody else's? An app may have taken it over in the meantime.
fn is_same(listed: &Manifest, live: &Manifest) -> bool {
    let mark = |object: &Manifest| object.annotation(TRACKING_ANNOTATION).map(str::to_owned);
    listed.uid() == live.uid() && mark(listed) == mark(live) && !live.is_terminating()
}

fn undo(id: Option<&str>, file: Option<&Path>) -> String {
    let restore = id.map(|id| format!("`plumb undo restore {id}`"));
    let apply = file.map(|file| format!("`kubectl apply -f {}`", file.display()));
    let ways: Vec<String> = restore.into_iter().chain(apply).collect();
    format!("To undo: {}", ways.join(" or "))
}

fn tombstone(context: &Context, orphan: &Orphan, live: &Manifest) -> Tombstone {
    let (app, reason) = match &orphan.cause {
        Cause::RemovedFromGit { app } => (app.clone(), TombstoneReason::Pruned),
        Cause::AppGone { app } => {
            let namespace = context.namespace().to_owned();
            (AppId { namespace, name: app.clone() }, TombstoneReason::AppDeleted)
        }
        Cause::ReleaseGone { release } => {
            let (namespace, name) = release.split_once('/').unwrap_or(("", release));
            let app = AppId { namespace: namespace.to_owned(), name: name.to_owned() };
            (app, TombstoneReason::AppDeleted)
        }
    };
    Tombstone {
        app,
        server: ClusterRef::IN_CLUSTER_SERVER.to_owned(),
        key: orphan.key.clone(),
        live: Arc::new(live.clone()),
        deleted_at: Timestamp::now(),
        reason,
        revision: None,
    }
}

/// Keeps a tombstone and returns its id. If that is not possible, a dump must exist.
async fn keep(
    context: &Context,
    client: &ClusterClient,
    tombstone: &Tombstone,
    has_dump: bool,
) -> Result<Option<String>, CommandError> {
    let key = &tombstone.key;
    let secrets = tombstones::secrets(context.namespace(), "", tombstone);
    let name = secrets.as_ref().and_then(|secrets| secrets.last()?.name().map(str::to_owned));
    let why = match secrets {
        None => "it is too large".to_owned(),
        Some(secrets) => match gate(client).keep_tombstone(&tombstone.live, secrets).await {
            Ok(_) => {
                let id = name.as_deref().and_then(|name| name.strip_prefix(plumb_kube::TOMBSTONE_PREFIX));
                return Ok(id.map(|id| id.chars().take(8).collect()));
            }
            Err(error) => error.to_string(),
        },
    };
    if has_dump {
        context.out.note(&format!("note: no copy of {key} in the cluster: {why}. The dump has one"));
        return Ok(None);
    }
    Err(CommandError::new(format!("cannot keep a copy of {key}: {why}"))
        .hint("--dump DIRECTORY keeps one in a file; nothing is deleted without a copy"))
}
