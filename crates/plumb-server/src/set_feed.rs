//! `ApplicationSets`: one watch for all readers and streams. It starts with the first call that needs it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use plumb_api::Status;
use plumb_core::object::Manifest;
use plumb_kube::{ObjectEvent, Selection};
use serde_json::{Value, json};
use tokio::sync::{OnceCell, broadcast, watch};
use tracing::error;

use crate::app_feed::{Item, without_kind};
use crate::backend::{Backend, Known};

/// How many changes a stream may be behind.
const BEHIND: usize = 256;
/// How long the first list may take.
const LISTED_WITHIN: Duration = Duration::from_secs(10);

/// A change of a set.
#[derive(Clone, Debug)]
pub(crate) struct SetEvent {
    /// `{type, applicationSet}`.
    pub(crate) item: Arc<Item>,
}

impl SetEvent {
    pub(crate) fn new(kind: &str, set: Value) -> Self {
        Self { item: Arc::new(Item::new(json!({"type": kind, "applicationSet": without_kind(set)}))) }
    }

    pub(crate) fn set(&self) -> &Value {
        self.item.value.get("applicationSet").unwrap_or(&Value::Null)
    }
}

/// Namespace and name.
type Id = (String, String);

/// The sets as they were last seen. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SetFeed(Arc<Shared>);

struct Shared {
    backend: Backend,
    known: RwLock<BTreeMap<Id, Arc<Value>>>,
    listed: watch::Sender<bool>,
    started: OnceCell<()>,
    changes: broadcast::Sender<SetEvent>,
}

impl SetFeed {
    pub(crate) fn new(backend: Backend) -> Self {
        Self(Arc::new(Shared {
            backend,
            known: RwLock::default(),
            listed: watch::channel(false).0,
            started: OnceCell::new(),
            changes: broadcast::channel(BEHIND).0,
        }))
    }

    /// Waits until all sets were read once. `namespace` is the only one whose sets count; `None` for all.
    pub(crate) async fn ready(&self, namespace: Option<String>) -> Result<(), Status> {
        self.0.started.get_or_init(|| async { self.start(namespace) }).await;
        let mut listed = self.0.listed.subscribe();
        match tokio::time::timeout(LISTED_WITHIN, listed.wait_for(|listed| *listed)).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Status::unavailable("the ApplicationSets cannot be read now; is their CRD installed?")),
        }
    }

    fn start(&self, namespace: Option<String>) {
        let feed = self.clone();
        let selection = Selection { namespace, ..Selection::default() };
        let stream = self.0.backend.client.watch_objects(&Known::ApplicationSet.gvk(), selection);
        let mut stream = match stream {
            Ok(stream) => stream,
            Err(why) => {
                error!(error = %why, "cannot watch ApplicationSets; their calls give no answer");
                return;
            }
        };
        tokio::spawn(async move {
            while let Some(event) = stream.next().await {
                match event {
                    ObjectEvent::Seen(object) => feed.note(&object),
                    ObjectEvent::Gone { key, .. } => {
                        feed.note_gone(key.namespace_or_empty(), &key.name);
                    }
                    ObjectEvent::Listed => drop(feed.0.listed.send_replace(true)),
                    ObjectEvent::Trouble(_) => {}
                }
            }
        });
    }

    /// Notes a set, also one that this server has just written: the next read shows it.
    pub(crate) fn note(&self, object: &Manifest) {
        let id =
            (object.namespace().unwrap_or_default().to_owned(), object.name().unwrap_or_default().to_owned());
        let mut value = object.value().clone();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let before = self.0.known.write().insert(id, Arc::new(value.clone()));
        if before.as_deref() != Some(&value) {
            let kind = if before.is_none() { "ADDED" } else { "MODIFIED" };
            // An error means that nobody listens.
            let _ = self.0.changes.send(SetEvent::new(kind, value));
        }
    }

    /// Notes that a set is gone.
    pub(crate) fn note_gone(&self, namespace: &str, name: &str) {
        let before = self.0.known.write().remove(&(namespace.to_owned(), name.to_owned()));
        if let Some(last) = before {
            let _ = self.0.changes.send(SetEvent::new("DELETED", Arc::unwrap_or_clone(last)));
        }
    }

    /// The sets in the order of namespace and name.
    pub(crate) fn all(&self) -> Vec<Arc<Value>> {
        self.0.known.read().values().cloned().collect()
    }

    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.0.known.read().get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    /// The changes from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<SetEvent> {
        self.0.changes.subscribe()
    }
}
