//! Watches of the objects that `clusterDecisionResource` generators read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_kube::{ObjectEvent, ObjectStream, Selection};
use serde_json::{Value, json};
use tokio::task::{AbortHandle, JoinSet};

use crate::engine::Engine;
use crate::set_signals::DecisionKind;

/// One watch per kind that a set has asked for.
pub(super) struct Decisions {
    engine: Arc<Engine>,
    tasks: JoinSet<()>,
    watches: BTreeMap<DecisionKind, AbortHandle>,
}

impl Decisions {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self { engine, tasks: JoinSet::new(), watches: BTreeMap::new() }
    }

    /// Watches these kinds and no others. A watch that ended, because the kind was not served, begins again.
    pub(super) fn follow(&mut self, wanted: &BTreeSet<DecisionKind>) {
        while self.tasks.try_join_next().is_some() {}
        self.watches.retain(|kind, watch| {
            let is_wanted = wanted.contains(kind);
            if !is_wanted {
                watch.abort();
            }
            is_wanted && !watch.is_finished()
        });
        for kind in wanted {
            if !self.watches.contains_key(kind) {
                let watch = self.tasks.spawn(watch(Arc::clone(&self.engine), kind.clone()));
                self.watches.insert(kind.clone(), watch);
            }
        }
    }
}

/// The kind with this plural name in the group of an API version.
pub(super) fn served(engine: &Engine, (api_version, resource): &DecisionKind) -> Option<GroupVersionKind> {
    let wanted = GroupVersionKind::from_api_version(api_version, "");
    let catalog = engine.home.client.catalog();
    let mut kinds = catalog.kinds.iter();
    let (kind, _) = kinds.find(|(kind, served)| kind.group == wanted.group && served.plural == *resource)?;
    Some(GroupVersionKind::from_api_version(api_version, &kind.kind))
}

async fn watch(engine: Arc<Engine>, kind: DecisionKind) {
    let Some(gvk) = served(&engine, &kind) else { return };
    let selection = Selection { namespace: Some(engine.options.namespace.clone()), ..Selection::default() };
    let Ok(stream) = engine.home.client.watch_objects(&gvk, selection) else { return };
    note_changes(stream, || engine.set_signals.decision(&kind)).await;
}

/// Notes what changes after the first list: the generator that asked for the kind has read it.
async fn note_changes(mut stream: ObjectStream, changed: impl Fn()) {
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    let mut is_listed = false;
    while let Some(event) = stream.next().await {
        let is_news = match event {
            ObjectEvent::Seen(object) => {
                let content = content(&object);
                let name = object.name().unwrap_or_default().to_owned();
                known.insert(name, content.clone()).as_ref() != Some(&content)
            }
            ObjectEvent::Gone { key, .. } => known.remove(&key.name).is_some(),
            ObjectEvent::Listed => {
                // What changed between the answer to the generator and this list is not known.
                is_listed = true;
                true
            }
            ObjectEvent::Trouble(_) => false,
        };
        if is_listed && is_news {
            changed();
        }
    }
}

/// What a generator reads of an object.
fn content(object: &Manifest) -> Value {
    let value = object.value();
    json!({"labels": value["metadata"]["labels"], "status": value["status"]})
}
