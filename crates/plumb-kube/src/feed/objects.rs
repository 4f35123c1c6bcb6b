//! The objects of one kind as a stream, for those who want few of them and want them whole.

use std::collections::HashMap;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::follow::{FeedEvent, FeedSource, follow};
use super::head::Head;
use crate::client::ClusterClient;
use crate::error::ApiError;
use crate::read::Selection;

/// What happened to the objects of a stream.
#[derive(Clone, Debug)]
pub enum ObjectEvent {
    /// There it is, new or changed.
    Seen(Manifest),
    /// It is gone.
    Gone {
        /// Which.
        key: ObjectKey,
        /// Its uid: another object of the same name is another object.
        uid: String,
    },
    /// The first list is complete: all that exists was seen.
    Listed,
    /// The watch has trouble and is tried again; the objects that were seen may be out of date.
    Trouble(String),
}

/// A stream that never ends. Dropping it ends the watch.
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
    /// Follows the objects of a kind. The kind has to be in the catalog.
    pub fn watch_objects(
        &self,
        gvk: &GroupVersionKind,
        selection: Selection,
    ) -> Result<ObjectStream, ApiError> {
        let resource = self.catalog().find(gvk)?;
        let source = FeedSource { resource, selection };
        let (sender, events) = mpsc::unbounded_channel();
        let client = self.clone();
        let task = tokio::spawn(async move {
            let mut known = Known::new(source.resource.gvk.clone());
            follow(&client, &source, &mut |event| known.note(&event, &sender)).await;
        });
        Ok(ObjectStream { events, task: task.abort_handle() })
    }
}

/// What was told, so that a new list can be told as changes.
struct Known {
    gvk: GroupVersionKind,
    objects: HashMap<(Option<String>, String), Told>,
    round: u64,
    listed: bool,
}

struct Told {
    uid: String,
    version: String,
    round: u64,
}

impl Known {
    fn new(gvk: GroupVersionKind) -> Self {
        Self { gvk, objects: HashMap::new(), round: 0, listed: false }
    }

    fn note(&mut self, event: &FeedEvent<'_>, sender: &mpsc::UnboundedSender<ObjectEvent>) {
        // A receiver that is gone is about to abort this task.
        let tell = |event| drop(sender.send(event));
        match event {
            FeedEvent::Opened | FeedEvent::Position(_) => {}
            FeedEvent::ListBegins => self.round += 1,
            FeedEvent::Seen { raw, head } => {
                if let Some(object) = self.seen(raw, head) {
                    tell(ObjectEvent::Seen(object));
                }
            }
            FeedEvent::Gone { head } => {
                let name = (head.namespace().map(str::to_owned), head.metadata.name.to_string());
                if let Some(told) = self.objects.remove(&name) {
                    tell(ObjectEvent::Gone { key: self.key(name), uid: told.uid });
                }
            }
            FeedEvent::ListEnds(_) => {
                let round = self.round;
                let missing: Vec<_> = self.objects.extract_if(|_, told| told.round != round).collect();
                for (name, told) in missing {
                    tell(ObjectEvent::Gone { key: self.key(name), uid: told.uid });
                }
                if !self.listed {
                    self.listed = true;
                    tell(ObjectEvent::Listed);
                }
            }
            FeedEvent::Trouble(error) => tell(ObjectEvent::Trouble(error.to_string())),
        }
    }

    /// The object, unless this very state of it was told already.
    fn seen(&mut self, raw: &str, head: &Head<'_>) -> Option<Manifest> {
        let name = (head.namespace().map(str::to_owned), head.metadata.name.to_string());
        let told = Told {
            uid: head.metadata.uid.to_string(),
            version: head.metadata.resource_version.to_string(),
            round: self.round,
        };
        let before = self.objects.insert(name, told);
        let same = before.is_some_and(|before| before.version == head.metadata.resource_version);
        if same {
            return None;
        }
        let object = serde_json::from_str(raw).ok().and_then(|value| Manifest::new(value).ok());
        if object.is_none() {
            tracing::warn!(kind = %self.gvk, name = %head.metadata.name, "an object cannot be read");
        }
        object
    }

    fn key(&self, (namespace, name): (Option<String>, String)) -> ObjectKey {
        ObjectKey::new(self.gvk.group.clone(), self.gvk.kind.clone(), namespace, name)
    }
}
