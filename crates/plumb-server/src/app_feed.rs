//! Changes of Applications for all streams. One task reads each change once; streams share the result.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use plumb_api::{MessageId, Tables, encode};
use plumb_engine::{AppNews, Handle};
use serde_json::{Value, json};
use tokio::sync::broadcast;

/// How many changes a stream may be behind. One that reads more slowly is cut off; its client starts over.
const BEHIND: usize = 1024;

/// One message of a stream. It is encoded once for all streams.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) value: Value,
    encoded: OnceLock<Vec<u8>>,
}

impl Item {
    pub(crate) fn new(value: Value) -> Self {
        Self { value, encoded: OnceLock::new() }
    }

    /// The message in protobuf; empty if it cannot be encoded.
    pub(crate) fn encoded(&self, message: MessageId) -> &[u8] {
        self.encoded.get_or_init(|| encode(Tables::get(), message, &self.value).unwrap_or_default())
    }
}

/// A change of an Application.
#[derive(Clone, Debug)]
pub(crate) struct AppEvent {
    /// `{type, application}`.
    pub(crate) item: Arc<Item>,
}

impl AppEvent {
    pub(crate) fn new(kind: &str, application: Value) -> Self {
        Self { item: Arc::new(Item::new(json!({"type": kind, "application": without_kind(application)}))) }
    }

    pub(crate) fn application(&self) -> &Value {
        self.item.value.get("application").unwrap_or(&Value::Null)
    }
}

/// Protobuf has no field for the kind of Applications and projects, so JSON does not show it either.
pub(crate) fn without_kind(mut object: Value) -> Value {
    if let Value::Object(map) = &mut object {
        map.remove("kind");
        map.remove("apiVersion");
    }
    object
}

/// The changes of Applications.
pub(crate) struct AppFeed {
    handle: Handle,
    sender: Mutex<Option<broadcast::Sender<AppEvent>>>,
}

impl AppFeed {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle, sender: Mutex::default() }
    }

    /// The changes from now on; `None` if this process does not lead.
    pub(crate) fn subscribe(self: &Arc<Self>) -> Option<broadcast::Receiver<AppEvent>> {
        let mut sender = self.sender.lock();
        if let Some(sender) = &*sender {
            return Some(sender.subscribe());
        }
        let mut follower = self.handle.leader()?.follow();
        let (new, receiver) = broadcast::channel(BEHIND);
        *sender = Some(new);
        drop(sender);
        let feed = Arc::clone(self);
        tokio::spawn(async move {
            while let Some(news) = follower.next().await {
                let event = match news {
                    AppNews::Gone(last) => Some(AppEvent::new("DELETED", *last)),
                    AppNews::Seen { namespace, name } => {
                        let app = feed.handle.leader().and_then(|leader| leader.app(&namespace, &name));
                        app.map(|app| AppEvent::new("MODIFIED", app))
                    }
                };
                let Some(event) = event else { continue };
                if !feed.send(event) {
                    return;
                }
            }
            // The engine stopped, or this task was too slow: streams end, and their clients start over.
            *feed.sender.lock() = None;
        });
        Some(receiver)
    }

    /// Passes a change on. Returns false if nobody listens any more.
    fn send(&self, event: AppEvent) -> bool {
        let mut sender = self.sender.lock();
        let is_heard = sender.as_ref().is_some_and(|sender| sender.send(event).is_ok());
        if !is_heard {
            *sender = None;
        }
        is_heard
    }
}
