//! The objects of a sync as the cluster holds them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use plumb_core::app::App;
use plumb_core::fields::object_pause;
use plumb_core::health::{Custom, Health, HealthStatus, KnownFrom, assess_with, since};
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::plan::{HOOK_FINALIZER, OPERATION_ANNOTATION};
use plumb_core::sync::{Observation, ObservedObject, Trouble};
use plumb_core::writes::WriteHistory;
use plumb_kube::LiveStore;
use serde_json::Value;

use crate::app_run::AppInputs;
use crate::health::children::trouble;
use crate::health::dependencies::Dependencies;
use crate::health::history::HealthState;
use crate::health::lua::ask;
use crate::sync::transient_errors::what_remains;

/// These objects as the cluster holds them now; `None` for one that is gone. An object that could not be read is left out.
pub(super) async fn live_of<'k>(
    store: &LiveStore,
    keys: impl Iterator<Item = &'k ObjectKey>,
) -> BTreeMap<ObjectKey, Option<Arc<Manifest>>> {
    let mut live = BTreeMap::new();
    for key in keys {
        // The store has nearly all of them whole; the rest (an untracked namespace) is read from the API server.
        if let Ok(object) = store.get_whole(key).await {
            live.insert(key.clone(), object);
        }
    }
    live
}

/// These objects as a sync sees them. An object that could not be read is left out, which does not mean that it is gone.
pub(crate) async fn observations<'k>(
    inputs: AppInputs<'_>,
    health: &HealthState,
    writes: &WriteHistory,
    keys: impl Iterator<Item = &'k ObjectKey>,
) -> BTreeMap<ObjectKey, Observation> {
    let AppInputs { app, context, .. } = inputs;
    let store = &context.cluster.store;
    let (keys, denied): (Vec<&ObjectKey>, Vec<&ObjectKey>) =
        keys.partition(|key| context.denies(key).is_none());
    let found = live_of(store, keys.into_iter()).await;
    let live: BTreeMap<ObjectKey, Arc<Manifest>> =
        found.iter().filter_map(|(key, live)| Some((key.clone(), Arc::clone(live.as_ref()?)))).collect();
    let settings = &context.settings;
    let permits_namespace = |namespace: &str| context.permits_namespace(namespace);
    let dependencies = Dependencies {
        store,
        permits_namespace: &permits_namespace,
        patience: &settings.patience,
        now: Timestamp::now(),
    };
    let mut custom = ask(&settings.scripts, settings.generation, &live, &health.answers).await;
    let observe = |(key, live): (ObjectKey, Option<Arc<Manifest>>)| {
        let answer = custom.remove(&key).map_or(Custom::Absent, Custom::Judged);
        let observation = match live {
            Some(live) => Observation::Live(observed(app, &dependencies, health, &key, &live, answer)),
            None if writes.finished(&key).is_some_and(|run| run.succeeded) => Observation::Collected,
            None => Observation::Gone,
        };
        (key, observation)
    };
    // What the project does not permit does not exist for the app. The gate refuses to write it.
    let denied = denied.into_iter().map(|key| (key.clone(), Observation::Gone));
    found.into_iter().map(observe).chain(denied).collect()
}

fn observed(
    app: &App,
    dependencies: &Dependencies<'_>,
    history: &HealthState,
    key: &ObjectKey,
    live: &Arc<Manifest>,
    custom: Custom,
) -> ObservedObject {
    let health = assess_with(live, |_| custom);
    let health = match health {
        // A sync does not wait for the health of a webhook, which is often applied before the pods that serve it.
        None => None,
        health => dependencies.judge(history, key, live, health).0,
    };
    let finalizers = live.value().pointer("/metadata/finalizers").and_then(Value::as_array);
    let finalizers: Vec<String> =
        finalizers.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    ObservedObject {
        uid: live.uid().map(str::to_owned),
        terminating: live.is_terminating(),
        leaving_since: deletion_requested_at(live),
        has_hook_finalizer: finalizers.iter().any(|entry| entry == HOOK_FINALIZER),
        finalizers: finalizers.into_iter().filter(|entry| entry != HOOK_FINALIZER).collect(),
        mark: live.annotation(OPERATION_ANNOTATION).map(str::to_owned),
        since: health.as_ref().and_then(|health| {
            let since = since(live, health, history.past(key), Timestamp::now());
            // A status that was first seen now says nothing about when it began.
            (since.known_from != KnownFrom::Seen).then_some(since.at)
        }),
        trouble: trouble_of(dependencies, live, health.as_ref()),
        held: object_pause(app, key, live, dependencies.now).map(|pause| pause.reason),
        health,
    }
}

fn deletion_requested_at(live: &Manifest) -> Option<Timestamp> {
    live.value().pointer("/metadata/deletionTimestamp").and_then(Value::as_str)?.parse().ok()
}

/// What keeps an object from becoming healthy, or a namespace from being deleted.
fn trouble_of(
    dependencies: &Dependencies<'_>,
    live: &Arc<Manifest>,
    health: Option<&Health>,
) -> Option<Trouble> {
    if live.kind() == "Namespace" && live.group().is_empty() && live.is_terminating() {
        return what_remains(live).map(|what| Trouble { what, since: deletion_requested_at(live) });
    }
    let health = health.filter(|health| health.status != HealthStatus::Healthy)?;
    trouble(dependencies.store, live, Some(health.clone()), dependencies.permits_namespace)
}
