//! An object with the objects that it owns, down to its pods.

use std::sync::Arc;

use plumb_core::health::{self, Cause, Health, Node, Symptom};
use plumb_core::object::Manifest;
use plumb_core::sync::Trouble;
use plumb_kube::{LiveStore, Uid};

use super::dependencies::PermitsNamespace;
use super::events_and_logs::EventsAndLogs;

/// At most so many descendants of one object are checked.
const MAX_DESCENDANTS: usize = 200;
const MAX_DEPTH: usize = 8;

/// An object with the objects that it owns.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) object: Arc<Manifest>,
    pub(crate) health: Option<Health>,
    children: Vec<Family>,
    events_and_logs: Option<EventsAndLogs>,
}

impl Family {
    /// The object and those of its descendants that the store keeps whole. One that is not kept (a `StatefulSet` that
    /// an operator created) is replaced by its children. One in a namespace that the project does not permit is left out:
    /// an object of the cluster may own objects in any namespace.
    pub(crate) fn of(
        store: &LiveStore,
        object: &Arc<Manifest>,
        health: Option<Health>,
        permits_namespace: &PermitsNamespace<'_>,
    ) -> Self {
        let mut budget = MAX_DESCENDANTS;
        let children = match object.uid() {
            Some(uid) => descendants(store, &Uid::new(uid), &mut budget, MAX_DEPTH, permits_namespace),
            None => Vec::new(),
        };
        Self { object: Arc::clone(object), health, children, events_and_logs: None }
    }

    /// The input of the core's health functions.
    pub(crate) fn node(&self) -> Node<'_> {
        let mut node = Node::judged(&self.object, self.health.clone());
        node.children = self.children.iter().map(Self::node).collect();
        if let Some(found) = &self.events_and_logs {
            node.events.clone_from(&found.events);
            node.logs.clone_from(&found.logs);
        }
        node
    }

    /// The object that a chain of causes ends at.
    pub(super) fn last_of(&self, causes: &[Cause]) -> Option<&Self> {
        let key = causes.last()?.key.as_ref()?;
        self.find(&|member| member.object.key().as_ref() == Some(key))
    }

    fn find(&self, matches: &dyn Fn(&Self) -> bool) -> Option<&Self> {
        if matches(self) {
            return Some(self);
        }
        self.children.iter().find_map(|child| child.find(matches))
    }

    /// Attaches events and logs to the object with this uid.
    pub(super) fn hear(&mut self, uid: &str, found: &EventsAndLogs) {
        if self.object.uid() == Some(uid) {
            self.events_and_logs = Some(found.clone());
        } else {
            for child in &mut self.children {
                child.hear(uid, found);
            }
        }
    }
}

fn descendants(
    store: &LiveStore,
    uid: &Uid,
    budget: &mut usize,
    depth: usize,
    permits_namespace: &PermitsNamespace<'_>,
) -> Vec<Family> {
    if depth == 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let children = store.children(uid).into_iter();
    for child in children.filter(|child| child.key.namespace.as_deref().is_none_or(permits_namespace)) {
        if *budget == 0 {
            break;
        }
        *budget -= 1;
        let is_pod = child.key.kind == "Pod" && child.key.group.is_empty();
        let children = if is_pod {
            Vec::new()
        } else {
            descendants(store, &child.uid, budget, depth - 1, permits_namespace)
        };
        match store.get_kept(&child.key) {
            Some(object) => {
                let health = health::assess(&object);
                found.push(Family { object: Arc::new(object), health, children, events_and_logs: None });
            }
            None => found.extend(children),
        }
    }
    found
}

/// What keeps an object from becoming healthy, if the status of a container or the scheduler names it. A pod that is
/// still starting is not reported.
pub(crate) fn trouble(
    store: &LiveStore,
    object: &Arc<Manifest>,
    health: Option<Health>,
    permits_namespace: &PermitsNamespace<'_>,
) -> Option<Trouble> {
    let family = Family::of(store, object, health, permits_namespace);
    let causes = health::chain(&family.node());
    let cause = causes.last()?;
    let symptom = cause.symptoms.iter().find(|symptom| match symptom {
        Symptom::CrashLoop { .. } | Symptom::Unschedulable { .. } => true,
        Symptom::Waiting { reason, .. } => health::is_bad_wait(reason),
        _ => false,
    })?;
    let name = cause.key.as_ref().map(|key| key.name.clone()).unwrap_or_default();
    let since = family.last_of(&causes).and_then(|pod| pod.object.created_at());
    Some(Trouble { what: format!("pod {name}: {symptom}"), since })
}
