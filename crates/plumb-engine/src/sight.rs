//! How the objects of an app look: their health, and what keeps them from getting well.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use plumb_core::health::{self, Health, HealthStatus};
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::plan::{HOOK_FINALIZER, OPERATION_ANNOTATION};
use plumb_core::sync::{LiveSight, Sight, Trouble};
use plumb_kube::{LiveStore, Uid};
use serde_json::Value;

use crate::memory::Memory;

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

/// One object as a sync sees it.
pub(crate) fn sight(store: &LiveStore, memory: &Memory, key: &ObjectKey, live: Option<&Manifest>) -> Sight {
    let Some(live) = live else {
        return if memory.finished.get(key).is_some_and(|run| run.succeeded) {
            Sight::Collected
        } else {
            Sight::Gone
        };
    };
    let health = health::assess(live);
    let is_well = health.as_ref().is_none_or(|health| health.status == HealthStatus::Healthy);
    let finalizers = live.value().pointer("/metadata/finalizers").and_then(Value::as_array);
    Sight::Live(LiveSight {
        uid: live.uid().map(str::to_owned),
        terminating: live.is_terminating(),
        has_hook_finalizer: finalizers.is_some_and(|list| list.iter().any(|entry| entry == HOOK_FINALIZER)),
        mark: live.annotation(OPERATION_ANNOTATION).map(str::to_owned),
        health,
        since: memory.health_since.get(key).map(|(_, since)| *since),
        trouble: if is_well { None } else { trouble(store, live) },
    })
}

/// The first pod below an object that says why it does not run.
pub(crate) fn trouble(store: &LiveStore, live: &Manifest) -> Option<Trouble> {
    let mut todo = vec![Uid::new(live.uid()?)];
    let mut budget = 200;
    while let Some(uid) = todo.pop() {
        for child in store.children(&uid) {
            budget -= 1;
            if budget == 0 {
                return None;
            }
            if child.key.kind == "Pod" && child.key.group.is_empty() {
                if let Some(trouble) = store.get_kept(&child.key).and_then(|pod| pod_trouble(&pod)) {
                    return Some(trouble);
                }
            } else {
                todo.push(child.uid);
            }
        }
    }
    None
}

/// Why a pod does not run, as its containers say it.
pub(crate) fn pod_trouble(pod: &Manifest) -> Option<Trouble> {
    let name = pod.name().unwrap_or_default();
    let status = pod.value().get("status")?;
    let containers = ["initContainerStatuses", "containerStatuses"]
        .into_iter()
        .filter_map(|field| status.get(field)?.as_array())
        .flatten();
    for container in containers {
        let Some(waiting) = container.pointer("/state/waiting") else { continue };
        let reason = waiting.get("reason").and_then(Value::as_str).unwrap_or_default();
        if !(reason.ends_with("BackOff") || reason.ends_with("Error") || reason.starts_with("Err")) {
            continue;
        }
        let mut what = format!("pod {name}: {reason}");
        if let Some(restarts) =
            container.get("restartCount").and_then(Value::as_u64).filter(|count| *count > 0)
        {
            what = format!("{what}, {restarts} restarts");
        }
        let last = container.pointer("/lastState/terminated");
        if let Some(code) = last.and_then(|last| last.get("exitCode")).and_then(Value::as_i64) {
            what = format!("{what}, exit code {code}");
        }
        let message = last
            .and_then(|last| last.get("message"))
            .or_else(|| waiting.get("message"))
            .and_then(Value::as_str);
        if let Some(message) = message.filter(|message| !message.trim().is_empty()) {
            let short: String = message.trim().chars().take(200).collect();
            what = format!("{what}: {short}");
        }
        return Some(Trouble { what, since: pod_since(pod) });
    }
    let conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    let unscheduled = conditions
        .filter(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False")
        .find_map(|condition| condition["message"].as_str());
    unscheduled.map(|message| Trouble {
        what: format!("pod {name}: not scheduled: {message}"),
        since: pod_since(pod),
    })
}

fn pod_since(pod: &Manifest) -> Option<Timestamp> {
    pod.value().pointer("/metadata/creationTimestamp")?.as_str()?.parse().ok()
}

/// Health of each live object, with what keeps it from getting well in the message.
pub(crate) fn healths(
    store: &LiveStore,
    live: &BTreeMap<ObjectKey, Arc<Manifest>>,
) -> BTreeMap<ObjectKey, Health> {
    live.iter()
        .filter_map(|(key, manifest)| {
            let mut health = health::assess(manifest)?;
            if matches!(health.status, HealthStatus::Progressing | HealthStatus::Degraded)
                && let Some(trouble) = trouble(store, manifest)
            {
                health.message = if health.message.is_empty() {
                    trouble.what
                } else {
                    format!("{}; {}", health.message, trouble.what)
                };
            }
            Some((key.clone(), health))
        })
        .collect()
}
