//! The objects of one kind as a stream of whole objects. For kinds with few objects: nothing is compressed.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use futures::Stream;
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::follow::{FeedEvent, FeedSource, follow};
use super::head::Head;
use crate::client::ClusterClient;
use crate::error::ApiError;
use crate::fault_log::FaultLog;
use crate::read::Selection;

/// What happened to the objects of a stream.
#[derive(Clone, Debug)]
pub enum ObjectEvent {
    /// The object is new or has changed.
    Seen(Manifest),
    /// The object was deleted.
    Gone {
        /// The object.
        key: ObjectKey,
        /// Its uid, which tells it from a later object of the same name.
        uid: String,
    },
    /// The first list is complete: every object that exists was passed on.
    Listed,
    /// The watch failed and is retried; the objects that were passed on may be out of date. The log has it already, once and
    /// then at growing intervals.
    Trouble(String),
}

/// A stream without an end. Dropping it ends the watch.
pub struct ObjectStream {
    events: mpsc::UnboundedReceiver<ObjectEvent>,
    task: AbortHandle,
}

impl ObjectStream {
    /// The next event. `None` only if the runtime shuts down.
    pub async fn next(&mut self) -> Option<ObjectEvent> {
        self.events.recv().await
    }
}

impl Stream for ObjectStream {
    type Item = ObjectEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ObjectEvent>> {
        self.events.poll_recv(context)
    }
}

impl Drop for ObjectStream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ClusterClient {
    /// Watches the objects of a kind, which must be in the catalog.
    pub fn watch_objects(
        &self,
        gvk: &GroupVersionKind,
        selection: Selection,
    ) -> Result<ObjectStream, ApiError> {
        let resource = self.catalog().find(gvk)?;
        let source = FeedSource { resource, selection, again: Arc::default() };
        let (sender, events) = mpsc::unbounded_channel();
        let client = self.clone();
        let task = tokio::spawn(async move {
            let mut known = SeenObjects::new(source.resource.gvk.clone());
            follow(&client, &source, &mut |event| known.note(&event, &sender)).await;
        });
        Ok(ObjectStream { events, task: task.abort_handle() })
    }
}

/// The objects that were passed on, so that a new list can be turned into changes.
struct SeenObjects {
    gvk: GroupVersionKind,
    objects: HashMap<(Option<String>, String), SeenObject>,
    round: u64,
    listed: bool,
    faults: FaultLog,
}

struct SeenObject {
    uid: String,
    version: String,
    round: u64,
}

impl SeenObjects {
    fn new(gvk: GroupVersionKind) -> Self {
        Self { gvk, objects: HashMap::new(), round: 0, listed: false, faults: FaultLog::default() }
    }

    fn note(&mut self, event: &FeedEvent<'_>, sender: &mpsc::UnboundedSender<ObjectEvent>) {
        // If the receiver was dropped, this task is about to be aborted.
        let send = |event| drop(sender.send(event));
        match event {
            FeedEvent::Opened | FeedEvent::Position(_) => {}
            FeedEvent::ListBegins => self.round += 1,
            FeedEvent::Seen { raw, head } => {
                if let Some(object) = self.seen(raw, head) {
                    send(ObjectEvent::Seen(object));
                }
            }
            FeedEvent::Gone { head } => {
                let name = (head.namespace().map(str::to_owned), head.metadata.name.to_string());
                if let Some(seen) = self.objects.remove(&name) {
                    send(ObjectEvent::Gone { key: self.key(name), uid: seen.uid });
                }
            }
            FeedEvent::ListEnds(_) => {
                let round = self.round;
                let missing: Vec<_> = self.objects.extract_if(|_, seen| seen.round != round).collect();
                for (name, seen) in missing {
                    send(ObjectEvent::Gone { key: self.key(name), uid: seen.uid });
                }
                if !self.listed {
                    self.listed = true;
                    send(ObjectEvent::Listed);
                }
            }
            FeedEvent::Trouble(error) => send(ObjectEvent::Trouble(error.to_string())),
        }
        self.log(event);
    }

    /// A watch that opens may fail at once again. Only data shows that the fault is over.
    fn log(&mut self, event: &FeedEvent<'_>) {
        let kind = &self.gvk.kind;
        match event {
            FeedEvent::Opened | FeedEvent::ListBegins => {}
            FeedEvent::Trouble(error) => {
                if let Some(times) = self.faults.fault(Instant::now()) {
                    tracing::warn!(%error, times, "watch of {kind} failed; it is tried again");
                }
            }
            FeedEvent::Seen { .. }
            | FeedEvent::Gone { .. }
            | FeedEvent::Position(_)
            | FeedEvent::ListEnds(_) => {
                if let Some(times) = self.faults.over() {
                    tracing::info!(times, "watch of {kind} works again");
                }
            }
        }
    }

    /// The object, unless this state of it was passed on before.
    fn seen(&mut self, raw: &str, head: &Head<'_>) -> Option<Manifest> {
        let name = (head.namespace().map(str::to_owned), head.metadata.name.to_string());
        let seen = SeenObject {
            uid: head.metadata.uid.to_string(),
            version: head.metadata.resource_version.to_string(),
            round: self.round,
        };
        let before = self.objects.insert(name, seen);
        let same = before.is_some_and(|before| before.version == head.metadata.resource_version);
        if same {
            return None;
        }
        let object = serde_json::from_str(raw).ok().and_then(|value| Manifest::new(value).ok());
        if object.is_none() {
            tracing::warn!(kind = %self.gvk, name = %head.metadata.name, "cannot parse an object");
        }
        object
    }

    fn key(&self, (namespace, name): (Option<String>, String)) -> ObjectKey {
        ObjectKey::new(self.gvk.group.clone(), self.gvk.kind.clone(), namespace, name)
    }
}
