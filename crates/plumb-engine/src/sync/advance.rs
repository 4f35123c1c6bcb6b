//! Moves an operation along: makes its plan, carries out its steps, and stops where only an event can help.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use plumb_core::app::App;
use plumb_core::desired::ObjectOptions;
use plumb_core::drift::{ApplyAdvice, VerdictStatus};
use plumb_core::object::{Fingerprint, GroupKind, GroupVersionKind, Manifest, ObjectKey};
use plumb_core::plan::{
    Action, DeletionProof, LiveFacts, NamespaceFacts, ObjectFacts, Owner, Plan, PlanInput, Refusal, build,
    row_of,
};
use plumb_core::status::After;
use plumb_core::sync::{
    self, Command, Observation, Observed, StepOutcome, SyncLimits, SyncState, Verb, retry_policy,
};
use plumb_crd::Application;
use plumb_crd::annotations::DELETION_APPROVED;
use tracing::{info, warn};

use crate::apps::context::Ground;
use crate::compare::judge::Doubt;
use crate::compare::run::{Compared, asked};
use crate::operation::active::ActiveOperation;
use crate::queue::{Look, Trigger};
use crate::reconcile::run::Run;
use crate::sources::gather::Gathered;
use crate::state::app_state::{AttemptRecord, AttemptResult, Memory};
use crate::sync::automation::is_by_person;
use crate::sync::executor::step::{Executor, Knowledge};
use crate::sync::observe;

/// How long a sync that prunes waits for kinds that came a moment ago to be listed.
const LISTED_WITHIN: Duration = Duration::from_secs(2);

impl Run<'_> {
    /// Goes on until the operation has ended or waits for something.
    pub(crate) async fn operate(
        &mut self,
        application: &Application,
        app: &App,
        ground: &Ground,
        compared: &Compared,
        active: &mut ActiveOperation,
        memory: &mut Memory,
    ) {
        if let Some(at) = active.retry_at {
            if is_to_end(application, active) {
                return self.terminate(app, active);
            }
            if let Some(newer) = newer_revision(active, &compared.gathered) {
                let (record, after) = active.record.superseded(&newer, self.now);
                active.record = record;
                return self.follow(app, active, &after);
            }
            if self.now < at {
                return self.wake_at(app, Trigger::new(Look::Live, "retry"), at);
            }
            active.retry();
        }
        if let Err(message) = &ground.impersonation {
            return self.err(app, active, message);
        }
        let shown = Arc::clone(&compared.gathered);
        let own;
        let compared = match self.compared_for(application, app, ground, compared, active, memory).await {
            Ok(None) => compared,
            Ok(Some(other)) => {
                own = other;
                &own
            }
            Err(_) if is_to_end(application, active) => return self.terminate(app, active),
            Err(message) => return self.err(app, active, &message),
        };
        if !is_to_end(application, active) && self.waits_for_others(ground, compared, active) {
            return;
        }
        if active.state.is_none() {
            match self.plan(application, app, ground, compared, active) {
                Ok(plan) => {
                    info!(app = %app.id, steps = plan.steps().count(), retry = active.record.retries, "sync planned");
                    let recorded = active.record.results.clone();
                    active.state = Some(SyncState::resume(Arc::new(plan), limits(ground), recorded));
                }
                Err(_) if is_to_end(application, active) => return self.terminate(app, active),
                Err(refusal) => {
                    let policy = retry_policy(Some(&active.asked.retry), active.is_automated());
                    let (record, after) = active.record.refused(&refusal, &policy, self.now);
                    active.record = record;
                    return self.follow(app, active, &after);
                }
            }
        }
        let newer = newer_revision(active, &shown);
        self.advance(application, app, ground, compared, newer.as_deref(), active, memory).await;
    }

    /// The objects judged against what this operation syncs; `None` if that is what the app shows anyway.
    async fn compared_for(
        &self,
        application: &Application,
        app: &App,
        ground: &Ground,
        compared: &Compared,
        active: &mut ActiveOperation,
        memory: &mut Memory,
    ) -> Result<Option<Compared>, String> {
        if active.gathered.is_none() {
            let asked = &active.asked;
            let revisions = match (active.pinned.is_empty(), active.follows_git) {
                (false, _) => active.pinned.clone(),
                (true, false) => asked.revisions.clone(),
                (true, true) => Vec::new(),
            };
            let is_what_is_shown = asked.sources.is_none()
                && asked.manifests.is_none()
                && (revisions.is_empty() || revisions == compared.gathered.revisions);
            active.gathered = Some(if is_what_is_shown {
                Arc::clone(&compared.gathered)
            } else {
                let asked = (asked, &active.wire);
                self.engine.sources.gather_for_operation(application, app, ground, asked, &revisions).await?
            });
        }
        let Some(gathered) = active.gathered.clone() else { return Ok(None) };
        // What is not listed yet cannot be told from what left Git.
        let looks_again = active.state.is_none()
            && active.asked.prune
            && !compared.live.complete
            && ground.cluster.store.unlisted().iter().all(|(_, trouble)| trouble.is_none())
            && ground.cluster.store.is_complete_within(LISTED_WITHIN).await;
        if Arc::ptr_eq(&gathered, &compared.gathered) && !looks_again {
            return Ok(None);
        }
        let other = self
            .compare(app, ground, &gathered, Doubt::Ask, memory)
            .await
            .map_err(|error| error.to_string())?;
        Ok(Some(other))
    }

    /// pure, apart from reading the store
    fn plan(
        &self,
        application: &Application,
        app: &App,
        ground: &Ground,
        compared: &Compared,
        active: &ActiveOperation,
    ) -> Result<Plan, Refusal> {
        let store = &ground.cluster.store;
        let facts: BTreeMap<ObjectKey, ObjectFacts> = compared
            .verdicts
            .iter()
            .map(|(key, verdict)| {
                let live = compared.live.objects.get(key).map(|live| LiveFacts {
                    manifest: Arc::clone(live),
                    options: ObjectOptions::parse(live),
                    owner: compared.owners.get(key).cloned().unwrap_or(Owner::NoApp),
                    holds_data: if verdict.requires_pruning {
                        ground.settings.protects(key).or_else(|| holds_data(store, live))
                    } else {
                        None
                    },
                });
                let facts = ObjectFacts {
                    paused: live.as_ref().and_then(|live| self.paused(&live.manifest)),
                    also_rendered_by: self
                        .engine
                        .claims
                        .others(&app.id, &ground.cluster.server, key)
                        .first()
                        .map(|other| other.instance.to_string()),
                    in_sync: !verdict.advice.needed && verdict.status == VerdictStatus::Synced,
                    live,
                };
                (key.clone(), facts)
            })
            .collect();
        let namespace = app.destination.namespace.clone();
        let namespace_key = namespace.clone().map(|name| ObjectKey::new("", "Namespace", None, name));
        let proof = DeletionProof::new(&compared.gathered.desired, &compared.live);
        let catalog = ground.cluster.client.catalog();
        build(&PlanInput {
            desired: compared.gathered.desired.get(),
            facts: &facts,
            deletions: proof.as_ref(),
            request: &active.request(),
            namespace: &NamespaceFacts {
                exists: namespace_key.and_then(|key| store.node(&key)).is_some_and(|node| !node.terminating),
                name: namespace,
                managed: app.sync_policy.managed_namespace.clone(),
            },
            budget: ground.settings.prune_budget,
            mark: &active.mark(),
            approved_at: approved_at(application),
            is_served: &|gvk: &GroupVersionKind| catalog.resource(gvk).is_some(),
            denied: &|key: &ObjectKey| ground.denies(key),
        })
    }

    #[expect(clippy::too_many_arguments, reason = "everything that a run knows of the operation")]
    async fn advance(
        &mut self,
        application: &Application,
        app: &App,
        ground: &Ground,
        compared: &Compared,
        newer: Option<&str>,
        active: &mut ActiveOperation,
        memory: &mut Memory,
    ) {
        let policy = retry_policy(Some(&active.asked.retry), active.is_automated());
        let terminate = is_to_end(application, active);
        let hold = self.hold(app, ground, active);
        let mut is_recorded = application.operation.as_ref() == Some(&active.wire)
            && application
                .status
                .operation_state
                .as_ref()
                .is_some_and(|state| state.started_at == active.record.started_at);
        let mut outcomes: Vec<StepOutcome> = Vec::new();
        while let Some(state) = active.state.take() {
            let plan = Arc::clone(state.plan());
            let sights = sights(ground, memory, &plan).await;
            let now = Timestamp::now();
            let observed = Observed {
                observations: &sights,
                outcomes: &outcomes,
                approved_at: approved_at(application),
                hold: hold.as_deref(),
                terminate,
                newer_revision: newer,
            };
            // pure
            let transition = sync::next(state, &observed, now);
            let (record, after) = active.record.after(&transition, &policy, now);
            active.record = record;
            active.state = Some(transition.state.clone());
            if after != After::GoOn {
                self.follow(app, active, &after);
                break;
            }
            if transition.commands.is_empty() {
                if let Some(at) = transition.next_check {
                    self.wake_at(app, Trigger::new(Look::Live, "sync"), at);
                }
                break;
            }
            if transition.record_first || (!is_recorded && must_be_recorded(&plan, active)) {
                is_recorded = self.write_progress(application, active).await;
                if !is_recorded {
                    // After a crash nobody would know what was done. The next run plans anew from the results.
                    active.state = None;
                    break;
                }
            }
            // client
            outcomes = self.carry_out(app, ground, compared, active, &transition.commands, memory).await;
            let commands = &transition.commands;
            outcomes = self.repaired(app, ground, compared, active, commands, outcomes, memory).await;
        }
        if let Some(state) = active.state.as_ref().filter(|state| state.plan().dry_run)
            && active.record.phase.is_completed()
        {
            // A dry run tells the plan: what would happen, why, in which wave, and what it would wait for.
            for result in &mut active.record.results {
                let Some(row) = row_of(state.plan(), &result.id) else { continue };
                let is_refused = result.phase.is_failed();
                let row = if is_refused { row.refused(std::mem::take(&mut result.message)) } else { row };
                result.message = row.text();
            }
        }
        if active.record.phase.is_completed() {
            *memory.written.lock().unwrap_or_else(PoisonError::into_inner) = HashMap::new();
        }
        if active.record.phase.is_completed() && is_by_person(active) {
            memory.ledger = std::mem::take(&mut memory.ledger).forgotten(compared.verdicts.keys());
        }
    }

    /// What the server refused although nobody had asked it before may be repairable: a default of Git's former
    /// choice stands in the way of the new one. By now its word is known: such objects are judged again, and
    /// written once more if that helps.
    #[expect(clippy::too_many_arguments, reason = "those of carry_out, and what it answered")]
    async fn repaired(
        &self,
        app: &App,
        ground: &Ground,
        compared: &Compared,
        active: &ActiveOperation,
        commands: &[Command],
        mut outcomes: Vec<StepOutcome>,
        memory: &mut Memory,
    ) -> Vec<StepOutcome> {
        let is_refused = |command: &Command, memory: &Memory| {
            let attempt = memory.attempts.get(&command.id.key).map(|attempt| &attempt.result);
            matches!(command.verb, Verb::Apply { dry_run: false, .. })
                && matches!(attempt, Some(AttemptResult::Refused(_)))
                && outcomes.iter().any(|outcome| outcome.id == command.id && outcome.result.is_err())
        };
        let refused: Vec<&Command> = commands.iter().filter(|command| is_refused(command, memory)).collect();
        if refused.is_empty() {
            return outcomes;
        }
        let Ok(again) = self.compare(app, ground, &compared.gathered, Doubt::Ask, memory).await else {
            return outcomes;
        };
        let helps = |key: &ObjectKey| {
            let before =
                compared.verdicts.get(key).and_then(|verdict| verdict.advice.managed_fields.as_ref());
            again.verdicts.get(key).is_some_and(|verdict| {
                let now = verdict.advice.managed_fields.as_ref();
                now.is_some() && now != before && !verdict.advice.blocked
            })
        };
        let repairs: Vec<Command> =
            refused.into_iter().filter(|command| helps(&command.id.key)).cloned().collect();
        if repairs.is_empty() {
            return outcomes;
        }
        for outcome in self.carry_out(app, ground, &again, active, &repairs, memory).await {
            if let Some(first) = outcomes.iter_mut().find(|first| first.id == outcome.id) {
                *first = outcome;
            }
        }
        outcomes
    }

    async fn carry_out(
        &self,
        app: &App,
        ground: &Ground,
        compared: &Compared,
        active: &ActiveOperation,
        commands: &[Command],
        memory: &mut Memory,
    ) -> Vec<StepOutcome> {
        let store = &ground.cluster.store;
        let app_paused =
            app.pause.as_ref().filter(|pause| pause.holds_at(self.now)).map(|pause| pause.reason.clone());
        let live = observe::live_of(store, commands.iter().map(|command| &command.id.key)).await;
        let knowledge = |key: &ObjectKey| {
            let live = live.get(key).cloned().flatten();
            Knowledge {
                owner: compared
                    .owners
                    .get(key)
                    .cloned()
                    .unwrap_or_else(|| hook_owner(live.as_deref(), ground)),
                advice: compared
                    .verdicts
                    .get(key)
                    .map_or_else(ApplyAdvice::default, |verdict| verdict.advice.clone()),
                denied: ground.denies(key),
                // A person who syncs a paused app by hand knows what they do.
                paused: if is_by_person(active) { None } else { app_paused.clone() },
                held: live.as_deref().and_then(|live| self.paused(live)),
                live,
            }
        };
        // Without the right service account nothing is sent; never with plumb's own permissions instead.
        let Ok(impersonation) = ground.impersonation.clone() else { return Vec::new() };
        let revisions = active.revisions();
        let executor = Executor {
            app: &app.id,
            control_plane_namespace: &self.engine.options.namespace,
            home: &self.engine.home,
            cluster: &ground.cluster,
            desired: &compared.gathered.desired,
            schemas: &compared.schemas,
            rules: &ground.rules,
            respect_ignore: active
                .state
                .as_ref()
                .is_some_and(|state| state.plan().respect_ignore_differences),
            allow_empty: is_by_person(active)
                || app.sync_policy.automated.is_some_and(|automation| automation.allow_empty),
            revision: revisions.first().map(String::as_str),
            impersonation,
            knowledge: &knowledge,
            written: &memory.written,
        };
        let results = executor.carry_out(commands).await;
        let mut outcomes = Vec::with_capacity(results.len());
        for (command, result) in commands.iter().zip(results) {
            let key = &command.id.key;
            if let (Verb::Apply { dry_run: false, .. }, Some(object)) =
                (&command.verb, compared.gathered.desired.get().objects.get(key))
            {
                let attempt = match &result {
                    Ok(_) => AttemptResult::Applied,
                    Err(error) => error
                        .api()
                        .and_then(crate::compare::judge::failure)
                        .map_or(AttemptResult::Failed, |failure| AttemptResult::Refused(Box::new(failure))),
                };
                let desired = Fingerprint::of(&object.manifest);
                let record = AttemptRecord {
                    desired,
                    asked: asked(memory, key, desired, &compared.gathered),
                    commit: compared.gathered.may_vary.then(|| compared.gathered.commit()),
                    origin: compared.gathered.may_vary.then(|| compared.gathered.origin()),
                    result: attempt,
                };
                if let Some(before) = memory.before.as_mut().filter(|_| result.is_ok()) {
                    before.overwritten.insert(key.clone());
                }
                memory.attempts.insert(key.clone(), record);
                memory.finished.remove(key);
            }
            if let Err(error) = &result {
                warn!(app = %app.id, object = %key, %error, "step failed");
            }
            outcomes.push(StepOutcome {
                id: command.id.clone(),
                result: result.map_err(|error| error.to_string()),
            });
        }
        outcomes
    }

    pub(crate) fn count_ended(&self, active: &ActiveOperation) {
        let record = &active.record;
        let finished = record.finished_at.unwrap_or(self.now);
        let took = std::time::Duration::try_from(finished.duration_since(record.started_at));
        let labels = self.engine.labels_of(&self.known);
        let phase = record.phase.name();
        self.engine.metrics.sync_ended(&labels, phase, active.asked.dry_run, took.unwrap_or_default());
    }

    /// What an operation may not go on for now: a sync window, or a person who holds the app. Whoever syncs a held app
    /// by hand knows what they do.
    fn hold(&self, app: &App, ground: &Ground, active: &ActiveOperation) -> Option<String> {
        let pause = app.pause.as_ref().filter(|pause| !is_by_person(active) && pause.holds_at(self.now));
        let paused = pause.map(|pause| format!("paused: {}", pause.reason));
        let window = || ground.operation_window(app, active, self.now);
        paused.or_else(|| window().map(|why| format!("Sync operation blocked by sync window: {why}")))
    }

    fn terminate(&self, app: &App, active: &mut ActiveOperation) {
        let (record, after) = active.record.terminated(self.now);
        active.record = record;
        self.follow(app, active, &after);
    }

    fn err(&self, app: &App, active: &mut ActiveOperation, message: &str) {
        let policy = retry_policy(Some(&active.asked.retry), active.is_automated());
        let (record, after) = active.record.erred(message, &policy, self.now);
        active.record = record;
        self.follow(app, active, &after);
    }

    fn follow(&self, app: &App, active: &mut ActiveOperation, after: &After) {
        match after {
            After::GoOn => {}
            After::RetryAt(at) => {
                active.retry_at = Some(*at);
                let look = if active.resolves_anew() { Look::GitNow } else { Look::Live };
                self.wake_at(app, Trigger::new(look, "retry"), *at);
            }
            After::Ended => {
                self.count_ended(active);
                info!(app = %app.id, phase = %active.record.phase, message = %active.record.message, "sync ended");
            }
        }
    }
}

/// Has a person asked for the end of this operation?
fn is_to_end(application: &Application, active: &ActiveOperation) -> bool {
    application
        .status
        .operation_state
        .as_ref()
        .is_some_and(|state| state.phase == "Terminating" && state.started_at == active.record.started_at)
}

/// What Git asks by now, if an operation of the automation is about something older. A commit that changes nothing of
/// this app is not newer.
fn newer_revision(active: &ActiveOperation, shown: &Gathered) -> Option<String> {
    let syncs = active.gathered.as_ref().filter(|_| active.is_automated())?;
    let is_same =
        shown.revisions == syncs.revisions || shown.desired.get().asks_the_same(syncs.desired.get());
    if is_same { None } else { shown.revisions.first().cloned() }
}

/// A sync that could be repeated from the start without harm is not announced: one request less. Hooks,
/// deletions and several groups need the record to go on after a crash, and a person wants to see it running.
fn must_be_recorded(plan: &Plan, active: &ActiveOperation) -> bool {
    is_by_person(active)
        || plan.groups.len() > 1
        || plan.steps().any(|step| matches!(step.action, Action::RunHook(_) | Action::Prune { .. }))
}

/// Whose a hook's object is: it is compared with nothing, so nobody looked before.
fn hook_owner(live: Option<&Manifest>, ground: &Ground) -> Owner {
    use plumb_core::tracking::{TrackedBy, tracked_by};
    match live.map(|live| tracked_by(live, &ground.instance, &ground.settings.tracking)) {
        Some(TrackedBy::Other { app }) => Owner::Other { app, renders: true },
        Some(TrackedBy::Ours | TrackedBy::AppliedCrd) => Owner::ThisApp,
        Some(TrackedBy::Copied { .. } | TrackedBy::NoApp) | None => Owner::NoApp,
    }
}

pub(crate) fn approved_at(application: &Application) -> Option<Timestamp> {
    application.annotation(DELETION_APPROVED)?.parse().ok()
}

/// Data that would be lost with an object, in words.
fn holds_data(store: &plumb_kube::LiveStore, live: &Manifest) -> Option<String> {
    match (live.group(), live.kind()) {
        ("", "Namespace") => {
            let inside = store.in_namespace(live.name()?);
            let n_claims = inside.iter().filter(|node| node.key.kind == "PersistentVolumeClaim").count();
            (n_claims > 0).then(|| format!("{n_claims} volume claims in the namespace"))
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let text = |pointer: &str| live.value().pointer(pointer).and_then(serde_json::Value::as_str);
            let kind = GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?);
            let n_instances = store.count(&kind)?;
            (n_instances > 0).then(|| format!("{n_instances} {} objects", kind.kind))
        }
        _ => None,
    }
}

/// Every object of the plan as the store has it. An object that could not be read is left out: that is not
/// "gone".
async fn sights(ground: &Ground, memory: &Memory, plan: &Plan) -> BTreeMap<ObjectKey, Observation> {
    let store = &ground.cluster.store;
    let sights = observe::sights(ground, memory, plan.steps().map(|step| &step.id.key)).await;
    let written = memory.written.lock().unwrap_or_else(PoisonError::into_inner);
    sights
        .into_iter()
        // What the store shows from before our own last write says nothing about its effect.
        .filter(|(key, _)| written.get(key).is_none_or(|version| store.has_caught_up(key, version)))
        .collect()
}

fn limits(ground: &Ground) -> SyncLimits {
    SyncLimits { timeout: ground.settings.sync_timeout, ..SyncLimits::default() }
}
