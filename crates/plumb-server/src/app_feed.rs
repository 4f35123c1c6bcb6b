//! Changes of Applications for all streams. One task reads each change once; streams share the result.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use plumb_api::{MessageId, SelectedFields, Tables, encode, frame};
use plumb_crd::Application;
use plumb_engine::{AppNews, Handle};
use serde_json::{Value, json};
use tokio::sync::broadcast;

/// How many changes a stream may be behind. One that reads more slowly is cut off; its client starts over.
const BEHIND: usize = 1024;

/// One message of a stream. It is written once for all streams.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) value: Value,
    framed: OnceLock<Bytes>,
    /// As JSON, for each choice of fields that a stream has.
    shown: Mutex<Vec<(Option<SelectedFields>, Shown)>>,
}

/// A message as the JSON of `{"result": …}`.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// As a line.
    pub(crate) line: Bytes,
    /// As a server-sent event.
    pub(crate) event: Bytes,
    /// Equal for equal texts.
    pub(crate) hash: u64,
}

impl Shown {
    fn of(value: &Value) -> Self {
        let text = value.to_string();
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Self {
            line: Bytes::from(format!("{text}\n")),
            event: Bytes::from(format!("data: {text} \n\n\n")),
            hash: hasher.finish(),
        }
    }
}

/// The streams of a page all choose the same fields. More choices than this are not kept.
const CHOICES: usize = 8;

impl Item {
    pub(crate) fn new(value: Value) -> Self {
        Self { value, framed: OnceLock::new(), shown: Mutex::default() }
    }

    /// The message in protobuf, as a frame of gRPC; empty if it cannot be encoded.
    pub(crate) fn framed(&self, message: MessageId) -> Bytes {
        let encoded = || encode(Tables::get(), message, &self.value).unwrap_or_default();
        self.framed.get_or_init(|| Bytes::from(frame(&encoded()))).clone()
    }

    /// The message in JSON, with these fields.
    pub(crate) fn shown(&self, fields: Option<&SelectedFields>) -> Shown {
        let mut known = self.shown.lock();
        if let Some((_, shown)) = known.iter().find(|(choice, _)| choice.as_ref() == fields) {
            return shown.clone();
        }
        // The paths of `fields` start at the result.
        let result = json!({"result": self.value});
        let shown = fields.map_or_else(|| Shown::of(&result), |fields| Shown::of(&fields.of(&result)));
        if known.len() < CHOICES {
            known.push((fields.cloned(), shown.clone()));
        }
        shown
    }
}

/// A change of an Application.
#[derive(Clone, Debug)]
pub(crate) struct AppEvent {
    /// `{type, application}`.
    pub(crate) item: Arc<Item>,
    /// The Application, read once for all streams; `None` if it cannot be read.
    pub(crate) typed: Option<Arc<Application>>,
}

impl AppEvent {
    pub(crate) fn new(kind: &str, application: Value) -> Self {
        let typed = Application::from_json(&application).ok().map(Arc::new);
        let value = json!({"type": kind, "application": without_kind(application)});
        Self { item: Arc::new(Item::new(value)), typed }
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
