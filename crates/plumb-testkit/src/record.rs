//! Everything that ever was: a watch that forgets nothing, for what must not have happened in between.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use kube::Api;
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::AbortHandle;

/// All objects of one kind that were seen since the recording began, by uid, each as it was last seen.
#[derive(Debug)]
pub struct Recording {
    seen: Arc<Mutex<BTreeMap<String, Value>>>,
    task: AbortHandle,
}

impl Recording {
    /// Begins to record. An object that comes and goes while the watch is interrupted by the server is missed;
    /// an interruption goes on where the watch stopped, so that takes an expired history.
    pub(crate) fn start(api: Api<DynamicObject>) -> Self {
        let seen = Arc::new(Mutex::new(BTreeMap::new()));
        let task = tokio::spawn(follow(api, Arc::clone(&seen)));
        Self { seen, task: task.abort_handle() }
    }

    /// What was seen so far.
    pub fn seen(&self) -> Vec<Value> {
        self.seen.lock().values().cloned().collect()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(api: Api<DynamicObject>, seen: Arc<Mutex<BTreeMap<String, Value>>>) {
    let note = |object: DynamicObject| {
        let version = object.metadata.resource_version.clone();
        if let (Some(uid), Ok(value)) = (object.metadata.uid.clone(), serde_json::to_value(object)) {
            seen.lock().insert(uid, value);
        }
        version
    };
    let mut version: Option<String> = None;
    loop {
        let from = if let Some(version) = version.take() {
            version
        } else {
            let Ok(list) = api.list(&ListParams::default()).await else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            list.items.into_iter().for_each(|object| drop(note(object)));
            list.metadata.resource_version.unwrap_or_default()
        };
        let mut last = Some(from.clone());
        if let Ok(events) = api.watch(&WatchParams::default(), &from).await {
            let mut events = events.boxed();
            while let Ok(Some(event)) = events.try_next().await {
                match event {
                    WatchEvent::Added(object)
                    | WatchEvent::Modified(object)
                    | WatchEvent::Deleted(object) => {
                        last = note(object).or(last);
                    }
                    WatchEvent::Bookmark(_) => {}
                    WatchEvent::Error(_) => last = None,
                }
            }
        }
        version = last;
    }
}
