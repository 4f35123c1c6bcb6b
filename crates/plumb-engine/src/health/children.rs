//! An object with all that belongs to it, as far as it is kept: the way down to the pod.

use std::sync::Arc;

use plumb_core::health::{self, Cause, Health, Node, Symptom};
use plumb_core::object::Manifest;
use plumb_core::sync::Trouble;
use plumb_kube::{LiveStore, Uid};

use super::events_and_logs::Words;

/// So many objects are looked at below one.
const MOST_BELOW: usize = 200;
const MAX_DEPTH: usize = 8;

/// An object with what it owns.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) object: Arc<Manifest>,
    pub(crate) health: Option<Health>,
    children: Vec<Family>,
    words: Option<Words>,
}

impl Family {
    /// The object and all below it that is kept whole. What stands between and is not kept (a `StatefulSet` that an
    /// operator made) is passed through.
    pub(crate) fn of(store: &LiveStore, object: &Arc<Manifest>, health: Option<Health>) -> Self {
        let mut budget = MOST_BELOW;
        let children = match object.uid() {
            Some(uid) => below(store, &Uid::new(uid), &mut budget, MAX_DEPTH),
            None => Vec::new(),
        };
        Self { object: Arc::clone(object), health, children, words: None }
    }

    /// As the core looks at it.
    pub(crate) fn node(&self) -> Node<'_> {
        let mut node = Node::judged(&self.object, self.health.clone());
        node.children = self.children.iter().map(Self::node).collect();
        if let Some(words) = &self.words {
            node.events.clone_from(&words.events);
            node.logs.clone_from(&words.logs);
        }
        node
    }

    /// The one that a chain of causes ends at.
    pub(super) fn last_of(&self, causes: &[Cause]) -> Option<&Self> {
        let key = causes.last()?.key.as_ref()?;
        self.find(&|member| member.object.key().as_ref() == Some(key))
    }

    fn find(&self, is_it: &dyn Fn(&Self) -> bool) -> Option<&Self> {
        if is_it(self) {
            return Some(self);
        }
        self.children.iter().find_map(|child| child.find(is_it))
    }

    /// Adds what events and logs say about one of the family.
    pub(super) fn hear(&mut self, uid: &str, words: &Words) {
        if self.object.uid() == Some(uid) {
            self.words = Some(words.clone());
        } else {
            for child in &mut self.children {
                child.hear(uid, words);
            }
        }
    }
}

fn below(store: &LiveStore, uid: &Uid, budget: &mut usize, depth: usize) -> Vec<Family> {
    if depth == 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for child in store.children(uid) {
        if *budget == 0 {
            break;
        }
        *budget -= 1;
        let is_pod = child.key.kind == "Pod" && child.key.group.is_empty();
        let children = if is_pod { Vec::new() } else { below(store, &child.uid, budget, depth - 1) };
        match store.get_kept(&child.key) {
            Some(object) => {
                let health = health::assess(&object);
                found.push(Family { object: Arc::new(object), health, children, words: None });
            }
            None => found.extend(children),
        }
    }
    found
}

/// What keeps an object from getting well, if a container or the scheduler says so in plain words. A pod that is
/// merely on its way is no trouble.
pub(crate) fn trouble(store: &LiveStore, object: &Arc<Manifest>, health: Option<Health>) -> Option<Trouble> {
    let family = Family::of(store, object, health);
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
