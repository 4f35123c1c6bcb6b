//! How a sync sees the objects that it works on.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use plumb_core::app::Pause;
use plumb_core::health::{Custom, Health, HealthStatus, KnownFrom, assess_with, since};
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::plan::{HOOK_FINALIZER, OPERATION_ANNOTATION};
use plumb_core::sync::{Observation, ObservedObject, Trouble};
use plumb_kube::LiveStore;
use serde_json::Value;

use crate::apps::context::Ground;
use crate::health::children::trouble;
use crate::health::dependencies::Surroundings;
use crate::health::lua::ask;
use crate::state::app_state::Memory;
use crate::sync::transient_errors::what_remains;

/// These objects as the cluster holds them now; `None`: gone. What could not be read is left out.
pub(crate) async fn live_of<'k>(
    store: &LiveStore,
    keys: impl Iterator<Item = &'k ObjectKey>,
) -> BTreeMap<ObjectKey, Option<Arc<Manifest>>> {
    let mut live = BTreeMap::new();
    for key in keys {
        // Kept whole in nearly all cases; the rest (an untracked namespace) is read from the server.
        if let Ok(object) = store.get_whole(key).await {
            live.insert(key.clone(), object);
        }
    }
    live
}

/// These objects as a sync sees them. What could not be read is left out: that is not "gone".
pub(crate) async fn sights<'k>(
    ground: &Ground,
    memory: &Memory,
    keys: impl Iterator<Item = &'k ObjectKey>,
) -> BTreeMap<ObjectKey, Observation> {
    let store = &ground.cluster.store;
    let found = live_of(store, keys).await;
    let live: BTreeMap<ObjectKey, Arc<Manifest>> =
        found.iter().filter_map(|(key, live)| Some((key.clone(), Arc::clone(live.as_ref()?)))).collect();
    let settings = &ground.settings;
    let around = Surroundings { store, patience: &settings.patience, now: Timestamp::now() };
    let mut custom = ask(&settings.scripts, settings.generation, &live, &memory.health.answers).await;
    let look = |(key, live): (ObjectKey, Option<Arc<Manifest>>)| {
        let answer = custom.remove(&key).map_or(Custom::Absent, Custom::Judged);
        let sight = match live {
            Some(live) => Observation::Live(sight(&around, memory, &key, &live, answer)),
            None if memory.finished.get(&key).is_some_and(|run| run.succeeded) => Observation::Collected,
            None => Observation::Gone,
        };
        (key, sight)
    };
    found.into_iter().map(look).collect()
}

fn sight(
    around: &Surroundings<'_>,
    memory: &Memory,
    key: &ObjectKey,
    live: &Arc<Manifest>,
    custom: Custom,
) -> ObservedObject {
    let health = assess_with(live, |_| custom);
    let health = match health {
        // A webhook has no health that a sync would wait for: it is often applied before what answers it.
        None => None,
        health => around.judge(&memory.health, key, live, health).0,
    };
    let finalizers = live.value().pointer("/metadata/finalizers").and_then(Value::as_array);
    let finalizers: Vec<String> =
        finalizers.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    ObservedObject {
        uid: live.uid().map(str::to_owned),
        terminating: live.is_terminating(),
        leaving_since: live.deleting_since(),
        has_hook_finalizer: finalizers.iter().any(|entry| entry == HOOK_FINALIZER),
        finalizers: finalizers.into_iter().filter(|entry| entry != HOOK_FINALIZER).collect(),
        mark: live.annotation(OPERATION_ANNOTATION).map(str::to_owned),
        since: health.as_ref().and_then(|health| {
            let since = since(live, health, memory.health.past(key), Timestamp::now());
            // What is only known to be so now says nothing.
            (since.known_from != KnownFrom::Seen).then_some(since.at)
        }),
        trouble: trouble_of(around.store, live, health.as_ref()),
        held: live
            .annotation(Pause::ANNOTATION)
            .map(Pause::parse)
            .filter(|pause| pause.holds_at(around.now))
            .map(|pause| pause.reason),
        health,
    }
}

/// What keeps an object from getting well, or a namespace from going.
fn trouble_of(store: &LiveStore, live: &Arc<Manifest>, health: Option<&Health>) -> Option<Trouble> {
    if live.kind() == "Namespace" && live.group().is_empty() && live.is_terminating() {
        return what_remains(live).map(|what| Trouble { what, since: live.deleting_since() });
    }
    let health = health.filter(|health| health.status != HealthStatus::Healthy)?;
    trouble(store, live, Some(health.clone()))
}
