//! Streams of changes of Applications.

use std::sync::Arc;
use std::time::Duration;

use plumb_api::Status;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

use super::app_read::{AppFilter, may_get};
use crate::app_feed::{AppEvent, Item};
use crate::call::{Answer, Call};

/// How many messages wait for a reader.
const WAITING: usize = 64;
/// A reader that takes none of them for so long is cut off.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The changes of the Applications that the request means and the caller may see. Rights are checked for each change.
pub(super) async fn apps(call: Arc<Call>) -> Result<Answer, Status> {
    let filter = AppFilter::of(&call)?;
    let away = || Status::unavailable("this replica does not lead yet; try again");
    // First the subscription, then the list: no change is lost between them.
    let mut changes = call.shared.feed.subscribe().ok_or_else(away)?;
    let since: Option<u64> = call.text("resourceVersion").parse().ok();
    let first = if since.is_none() || filter.names_one() { initial(&call, &filter)? } else { Vec::new() };
    // Only the names wait: many watches at once must not hold all Applications each.
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        for (namespace, name) in first {
            let Some(app) = call.leader().ok().and_then(|leader| leader.app(&namespace, &name)) else {
                continue;
            };
            let event = AppEvent::new("ADDED", app);
            if concerns(&call, &filter, None, &event) && !send(&sender, event.item).await {
                return;
            }
        }
        loop {
            let event = tokio::select! {
                event = changes.recv() => event,
                () = sender.closed() => return,
            };
            match event {
                Ok(event) => {
                    if concerns(&call, &filter, since, &event) && !send(&sender, event.item).await {
                        return;
                    }
                }
                Err(RecvError::Lagged(_)) => {
                    let slow = Status::unavailable("the client reads too slowly; it has to start over");
                    let _ = sender.send_timeout(Err(slow), PATIENCE).await;
                    return;
                }
                Err(RecvError::Closed) => {
                    let _ = sender
                        .send_timeout(Err(Status::unavailable("the engine restarts; try again")), PATIENCE)
                        .await;
                    return;
                }
            }
        }
    });
    Ok(Answer::Stream(receiver))
}

/// Sends a message. Returns false if the reader is gone or too slow.
pub(super) async fn send(sender: &mpsc::Sender<Result<Arc<Item>, Status>>, item: Arc<Item>) -> bool {
    sender.send_timeout(Ok(item), PATIENCE).await.is_ok()
}

/// Namespaces and names of the Applications that exist.
fn initial(call: &Call, filter: &AppFilter) -> Result<Vec<(String, String)>, Status> {
    let leader = call.leader()?;
    let mut apps = leader.apps();
    apps.retain(|app| {
        let head = app.head().filter(|head| filter.matches(head, call.namespace()));
        head.is_some_and(|head| may_get(call, app.namespace(), app.name(), head.project()))
    });
    apps.sort_by(|one, other| (one.namespace(), one.name()).cmp(&(other.namespace(), other.name())));
    Ok(apps.iter().map(|app| (app.namespace().to_owned(), app.name().to_owned())).collect())
}

fn concerns(call: &Call, filter: &AppFilter, since: Option<u64>, event: &AppEvent) -> bool {
    let app = event.application();
    let text = |path: &str| app.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let version: Option<u64> = text("/metadata/resourceVersion").parse().ok();
    if since.zip(version).is_some_and(|(since, version)| version < since) {
        return false;
    }
    let Some(typed) = &event.typed else { return false };
    let metadata = &typed.metadata;
    filter.matches(typed, call.namespace())
        && may_get(call, &metadata.namespace, &metadata.name, typed.project())
}
