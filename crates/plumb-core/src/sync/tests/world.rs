//! A cluster in memory, for the tests of the state machine: it executes commands, changes the health of
//! objects, crashes the engine at any moment, and keeps a log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::health::{Health, HealthStatus};
use crate::object::ObjectKey;
use crate::plan::tests::fixture::{Fixture, time};
use crate::plan::{
    LiveFacts, NamespaceFacts, OPERATION_ANNOTATION, ObjectFacts, OperationMark, Owner, Plan, StepId,
    SyncPhase,
};
use crate::sync::*;

/// The reason of a pause.
const PAUSED: &str = "until 13:00: migration";

/// One object of the simulated cluster.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which any object may have")]
pub(super) struct SimObject {
    pub(super) uid: u64,
    pub(super) mark: Option<String>,
    pub(super) has_finalizer: bool,
    pub(super) terminating: bool,
    pub(super) health: Option<HealthStatus>,
    pub(super) in_sync: bool,
    pub(super) created: Timestamp,
    pub(super) trouble: Option<String>,
    /// A finalizer of another controller.
    pub(super) held_by: Option<String>,
    /// It is paused.
    pub(super) paused: bool,
}

pub(super) struct World {
    pub(super) fixture: Fixture,
    pub(super) objects: BTreeMap<ObjectKey, SimObject>,
    /// What the engine's watch has seen; it may lag behind.
    pub(super) cache: BTreeMap<ObjectKey, SimObject>,
    pub(super) state: Option<SyncState>,
    pub(super) recorded: Vec<ResourceResult>,
    pub(super) phase: OperationPhase,
    pub(super) message: String,
    pub(super) sent: Vec<Command>,
    pub(super) answers: Vec<StepOutcome>,
    pub(super) log: Vec<String>,
    pub(super) fails: BTreeMap<ObjectKey, String>,
    /// Kinds and names whose deletion takes a while.
    pub(super) slow: BTreeSet<ObjectKey>,
    pub(super) now: Timestamp,
    pub(super) next_check: Option<Timestamp>,
    pub(super) terminate: bool,
    pub(super) approved_at: Option<Timestamp>,
    pub(super) hold: Option<String>,
    pub(super) newer: Option<String>,
    pub(super) limits: SyncLimits,
    next_uid: u64,
}

impl World {
    pub(super) fn new(facts: &str) -> Self {
        let fixture = Fixture::parse(facts);
        let mut world = Self {
            objects: BTreeMap::new(),
            cache: BTreeMap::new(),
            state: None,
            recorded: Vec::new(),
            phase: OperationPhase::Running,
            message: String::new(),
            sent: Vec::new(),
            answers: Vec::new(),
            log: Vec::new(),
            fails: BTreeMap::new(),
            slow: BTreeSet::new(),
            now: time(crate::plan::tests::fixture::STARTED),
            next_check: None,
            terminate: false,
            approved_at: fixture.approved_at,
            hold: None,
            newer: None,
            limits: SyncLimits::default(),
            next_uid: 1,
            fixture,
        };
        for (key, facts) in world.fixture.facts.clone() {
            let Some(live) = &facts.live else { continue };
            let object = SimObject {
                in_sync: facts.in_sync,
                terminating: live.manifest.is_terminating(),
                paused: facts.paused.is_some(),
                health: has_health(&key).then_some(HealthStatus::Healthy),
                created: time("2026-11-01T00:00:00Z"),
                ..world.fresh(&key)
            };
            world.objects.insert(key, object);
        }
        world.cache = world.objects.clone();
        world
    }

    fn fresh(&mut self, key: &ObjectKey) -> SimObject {
        let uid = self.next_uid;
        self.next_uid += 1;
        SimObject {
            uid,
            mark: None,
            has_finalizer: false,
            terminating: false,
            health: has_health(key).then_some(HealthStatus::Progressing),
            in_sync: true,
            created: self.now,
            trouble: None,
            held_by: None,
            paused: false,
        }
    }

    /// A client makes the object of a `PostSync` hook, with the annotation as far as the client can know it.
    pub(super) fn forge(&mut self, key: &ObjectKey) {
        let mark = OperationMark { app_uid: String::new(), ..self.fixture.mark.clone() };
        let mark = Some(mark.text(SyncPhase::PostSync, key));
        let object = SimObject { mark, health: Some(HealthStatus::Healthy), ..self.fresh(key) };
        self.objects.insert(key.clone(), object);
    }

    /// The plan as a starting or restarting engine makes it from what lives.
    pub(super) fn plan(&self) -> Result<Plan, crate::plan::Refusal> {
        let mut fixture = self.fixture.clone();
        fixture.approved_at = self.approved_at;
        fixture.facts = self.facts();
        if let Some(name) = &fixture.namespace.name {
            let key = crate::plan::tests::fixture::key("Namespace", name);
            let exists = match self.objects.get(&key) {
                Some(namespace) => !namespace.terminating,
                None => fixture.namespace.exists,
            };
            fixture.namespace = NamespaceFacts { exists, ..fixture.namespace };
        }
        fixture.build()
    }

    fn facts(&self) -> BTreeMap<ObjectKey, ObjectFacts> {
        let mut facts = BTreeMap::new();
        for (key, object) in &self.objects {
            let before = self.fixture.facts.get(key);
            let wanted = self.fixture.desired.objects.get(key).map(|object| &object.manifest);
            let was = before.and_then(|facts| facts.live.as_ref());
            let Some(manifest) = was.map(|live| &*live.manifest).or(wanted) else { continue };
            let manifest = manifest.clone().edit_metadata(|metadata| {
                metadata.insert("uid".to_owned(), json!(object.uid.to_string()));
                metadata.insert("creationTimestamp".to_owned(), json!(object.created.to_string()));
                // A recreated object is not terminating, even if its predecessor was.
                metadata.remove("deletionTimestamp");
                if object.terminating {
                    metadata.insert("deletionTimestamp".to_owned(), json!(object.created.to_string()));
                }
            });
            let owner = match was.map(|live| live.owner.clone()) {
                // An object that was written is ours.
                Some(_) | None if object.in_sync && wanted.is_some() => Owner::ThisApp,
                Some(owner) => owner,
                None => Owner::ThisApp,
            };
            let live = LiveFacts {
                options: crate::desired::ObjectOptions::parse(&manifest),
                manifest: Arc::new(manifest),
                owner,
                provenance: was.map(|live| live.provenance).unwrap_or_default(),
                holds_data: was.and_then(|live| live.holds_data.clone()),
                of_others: was.and_then(|live| live.of_others.clone()),
                never_deleted: was.and_then(|live| live.never_deleted),
            };
            let known = before.cloned().unwrap_or_default();
            let paused = object.paused.then(|| PAUSED.to_owned());
            facts.insert(
                key.clone(),
                ObjectFacts { live: Some(live), in_sync: object.in_sync, paused, ..known },
            );
        }
        facts
    }

    /// The operation is over and Git has moved on: what lives stays, and the next operation brings something else.
    pub(super) fn next_commit(&mut self, facts: &str) {
        let live = self.facts();
        let mut fixture = Fixture::parse(facts);
        fixture.mark.started_at = self.now + SignedDuration::from_secs(1);
        fixture.mark.revision = "fedcba9876543210".to_owned();
        fixture.namespace.exists |= self.fixture.namespace.exists;
        fixture.facts = live
            .into_iter()
            .map(|(key, facts)| {
                // Hooks of the new commit are compared with nothing.
                let live =
                    facts.live.filter(|_| self.objects.get(&key).is_some_and(|one| one.mark.is_none()));
                (key, ObjectFacts { live, ..facts })
            })
            .collect();
        for (key, object) in &mut self.objects {
            // Some of it is as the new commit asks already.
            object.in_sync &= !fixture.desired.objects.contains_key(key) || object.uid.is_multiple_of(2);
        }
        self.now = fixture.mark.started_at;
        self.approved_at = fixture.approved_at;
        self.fixture = fixture;
        (self.newer, self.terminate, self.state) = (None, false, None);
        (self.recorded, self.phase, self.message) = (Vec::new(), OperationPhase::Running, String::new());
        self.sent.clear();
        self.answers.clear();
    }

    /// Starts the engine, or starts it again after a crash: everything in its memory is lost.
    pub(super) fn boot(&mut self) {
        self.cache = self.objects.clone();
        self.sent.clear();
        self.answers.clear();
        let plan = self.plan().expect("a plan");
        self.state = Some(SyncState::resume(Arc::new(plan), self.limits, self.recorded.clone()));
    }

    pub(super) fn observations(&self) -> BTreeMap<ObjectKey, Observation> {
        let Some(state) = &self.state else { return BTreeMap::new() };
        state
            .plan()
            .steps()
            .map(|step| {
                let key = step.id.key.clone();
                let sight = self
                    .cache
                    .get(&key)
                    .map_or(Observation::Gone, |object| Observation::Live(object.observation()));
                (key, sight)
            })
            .collect()
    }

    /// One call of the state machine, with all answers that have come. The status is written if the machine
    /// asks for it first; else that is left to [`World::record`].
    pub(super) fn step(&mut self) -> Transition {
        let answers = std::mem::take(&mut self.answers);
        for answer in &answers {
            self.see(&answer.id.key);
        }
        let state = self.state.take().expect("a running engine");
        let observations = self.sights_of(&state);
        let observed = Observed {
            observations: &observations,
            outcomes: &answers,
            approved_at: self.approved_at,
            hold: self.hold.as_deref(),
            terminate: self.terminate,
            newer_revision: self.newer.as_deref(),
        };
        let transition = next(state, &observed, self.now);
        self.state = Some(transition.state.clone());
        self.phase = transition.phase;
        self.message.clone_from(&transition.message);
        self.next_check = transition.next_check;
        if transition.record_first {
            self.record();
        }
        self.sent.extend(transition.commands.iter().cloned());
        transition
    }

    fn sights_of(&mut self, state: &SyncState) -> BTreeMap<ObjectKey, Observation> {
        self.state = Some(state.clone());
        self.observations()
    }

    /// The engine writes its results to the cluster.
    pub(super) fn record(&mut self) {
        if let Some(state) = &self.state {
            self.recorded = state.results().to_vec();
        }
    }

    /// A watch event arrives.
    pub(super) fn see(&mut self, key: &ObjectKey) {
        match self.objects.get(key) {
            Some(object) => self.cache.insert(key.clone(), object.clone()),
            None => self.cache.remove(key),
        };
    }

    pub(super) fn tick(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// The server carries one command out; the answer waits to be delivered.
    pub(super) fn execute(&mut self, index: usize) {
        let command = self.sent.remove(index);
        let key = command.id.key.clone();
        let result = match self.fails.get(&key) {
            Some(error) => Err(error.clone()),
            None => Ok(Success { message: self.carry_out(&command), images: Vec::new() }),
        };
        self.answers.push(StepOutcome { id: command.id, result });
    }

    /// The server refuses one command.
    pub(super) fn refuse(&mut self, index: usize) {
        let command = self.sent.remove(index);
        self.answers.push(StepOutcome { id: command.id, result: Err("not now".to_owned()) });
    }

    fn carry_out(&mut self, command: &Command) -> String {
        let key = &command.id.key;
        let name = format!("{}/{}", key.kind, key.name);
        match &command.verb {
            Verb::Apply { dry_run: true, .. } | Verb::ApplyManifest { dry_run: true, .. } => {
                self.log.push(format!("try {name}"));
            }
            Verb::Apply { how, .. } => {
                self.log.push(format!("apply {name}"));
                if *how == crate::plan::HowToApply::Recreate {
                    self.objects.remove(key);
                    self.log.push(format!("recreate {name}"));
                }
                self.write(key, None);
            }
            Verb::ApplyManifest { manifest, .. } => {
                let mark = manifest.0.annotation(OPERATION_ANNOTATION).map(str::to_owned);
                let is_new = self.objects.get(key).is_none_or(|object| object.terminating);
                let word = if mark.is_some() { "hook" } else { "apply" };
                if is_new {
                    self.log.push(
                        format!("{word} {name} {}", mark.clone().unwrap_or_default()).trim_end().to_owned(),
                    );
                } else {
                    self.log.push(format!("{word} {name} over the old one"));
                }
                self.write(key, mark);
            }
            Verb::Prune { uid, .. } => self.delete(key, uid.as_deref(), "prune"),
            Verb::DeleteHook { uid, .. } => {
                self.release(key);
                self.delete(key, uid.as_deref(), "delete hook");
            }
            Verb::ReleaseHook => {
                self.log.push(format!("release {name}"));
                self.release(key);
            }
        }
        format!("{} ok", name.to_lowercase())
    }

    fn write(&mut self, key: &ObjectKey, mark: Option<String>) {
        let created = self.fresh(key);
        let object = self.objects.entry(key.clone()).or_insert(created);
        if mark.is_some() {
            // A hook applied over a finished one stays finished.
            object.has_finalizer = true;
            object.mark = mark;
        } else if !object.in_sync {
            object.health = object.health.map(|_| HealthStatus::Progressing);
        }
        object.in_sync = true;
    }

    fn release(&mut self, key: &ObjectKey) {
        if let Some(object) = self.objects.get_mut(key) {
            object.has_finalizer = false;
            if object.terminating {
                self.objects.remove(key);
            }
        }
    }

    fn delete(&mut self, key: &ObjectKey, uid: Option<&str>, word: &str) {
        let Some(object) = self.objects.get_mut(key) else { return };
        if uid.is_some_and(|uid| uid != object.uid.to_string()) {
            return;
        }
        self.log.push(format!("{word} {}/{}", key.kind, key.name));
        if object.has_finalizer || self.slow.contains(key) {
            object.terminating = true;
        } else {
            self.objects.remove(key);
        }
    }

    /// What terminates is gone at last.
    pub(super) fn finish_deletion(&mut self, key: &ObjectKey) {
        if self.objects.get(key).is_some_and(|object| object.terminating && !object.has_finalizer) {
            self.objects.remove(key);
        }
    }

    pub(super) fn results(&self) -> &[ResourceResult] {
        self.state.as_ref().map(SyncState::results).unwrap_or_default()
    }
}

impl SimObject {
    fn observation(&self) -> ObservedObject {
        ObservedObject {
            uid: Some(self.uid.to_string()),
            terminating: self.terminating,
            leaving_since: self.terminating.then(|| time("2026-11-15T11:59:00Z")),
            finalizers: self.held_by.iter().cloned().collect(),
            has_hook_finalizer: self.has_finalizer,
            mark: self.mark.clone(),
            health: self.health.map(|status| Health { status, message: String::new() }),
            since: None,
            trouble: self
                .trouble
                .clone()
                .map(|what| Trouble { what, since: Some(time("2026-11-15T11:58:00Z")) }),
            held: self.paused.then(|| PAUSED.to_owned()),
        }
    }
}

/// Kinds that take a while to become healthy.
pub(super) fn has_health(key: &ObjectKey) -> bool {
    matches!(key.kind.as_str(), "Deployment" | "Job" | "StatefulSet" | "CustomResourceDefinition")
}

/// A command in a few words.
pub(super) fn describe(command: &Command) -> String {
    let StepId { phase, key } = &command.id;
    let verb = match &command.verb {
        Verb::Apply { dry_run: true, .. } | Verb::ApplyManifest { dry_run: true, .. } => "try",
        Verb::Apply { .. } | Verb::ApplyManifest { .. } => "apply",
        Verb::Prune { .. } => "prune",
        Verb::DeleteHook { .. } => "delete hook",
        Verb::ReleaseHook => "release",
    };
    format!("{verb} {phase} {}/{}", key.kind, key.name)
}
