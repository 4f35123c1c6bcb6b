//! One run for one app: gather → decide → act.
//!
//! The order is the whole story: check the spec, gather what Git asks, compare it with the cluster, decide
//! whether a sync starts by itself, move the operation along, write down what was seen.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use jiff::Timestamp;
use plumb_core::app::{App, Initiator, Operation, Pause};
use plumb_core::automation::{self, Decision, HealContext, Idle, Item, LastOperation, Situation, StartKind};
use plumb_core::desired::{Complete, DesiredProblem, DesiredSet, ObjectOptions, PruneOption};
use plumb_core::drift::{DriftClass, VerdictStatus};
use plumb_core::health::{Health, HealthStatus};
use plumb_core::object::ObjectKey;
use plumb_core::plan::Owner;
use plumb_core::status::{AppStatus, ObjectStatus, RollUp, SyncCode, roll_up};
use plumb_core::sync::OperationPhase;
use plumb_core::sync::deletion::FINALIZERS;
use plumb_crd::application as wire;
use plumb_crd::{Application, to_operation};
use tracing::{debug, info, warn};

use crate::compare::{Compared, Comparison};
use crate::engine::Engine;
use crate::events::Happening;
use crate::evidence::Doubt;
use crate::memory::{Ended, Fingerprint, Memory};
use crate::metrics::ON_BEHALF;
use crate::operation::{self, ActiveOperation};
use crate::project::{Ground, Groundless};
use crate::queue::{Job, Look, Trigger};
use crate::registry::Known;
use crate::sources::{Gathered, Glance};
use crate::write::{Conditions, StatusDraft};

/// So many objects that are stuck have a condition of their own; the report names all.
const MOST_STUCK: usize = 3;

/// One run.
pub(crate) async fn reconcile(engine: &Engine, job: &Job) {
    let memory = engine.memories.of(&job.app);
    let mut memory = memory.lock().await;
    let Some(known) = engine.registry.get(&job.app) else {
        engine.forget(&job.app);
        return;
    };
    let look = known.requested_refresh().map_or(job.trigger.look, |asked| asked.max(job.trigger.look));
    let labels = engine.labels_of(&known);
    engine.metrics.triggers.increment([job.trigger.reason]);
    let _measured = engine.metrics.run(&labels);
    let now = Timestamp::now();
    let glance = Glance { look, since: job.trigger.at };
    let mut run = Run { engine, known, look, glance, now, conditions: Conditions::default(), hooks: None };
    ON_BEHALF.scope(labels.clone(), run.go(&mut memory)).await;
    debug!(app = %job.app, trigger = job.trigger.reason, look = ?look, "reconciled");
}

/// One run and what it has found out so far.
pub(crate) struct Run<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) known: Arc<Known>,
    pub(crate) look: Look,
    pub(crate) glance: Glance,
    pub(crate) now: Timestamp,
    pub(crate) conditions: Conditions,
    /// What Git asks for, if this run found it out: deletion hooks decide which finalizers the app needs.
    pub(crate) hooks: Option<Arc<Gathered>>,
}

impl Run<'_> {
    async fn go(&mut self, memory: &mut Memory) {
        let known = Arc::clone(&self.known);
        let (application, app) = match (&known.wire, &known.app) {
            (Ok(application), Ok(app)) => (application, app),
            (Ok(_), Err(problems)) => {
                for problem in problems {
                    self.conditions.add("InvalidSpecError", problem.to_string());
                }
                return self.write_invalid(memory).await;
            }
            (Err(error), _) => {
                self.conditions.add("InvalidSpecError", format!("the Application cannot be read: {error}"));
                return self.write_invalid(memory).await;
            }
        };
        if app.skip_reconcile {
            return;
        }
        // client: settings, project and cluster
        let ground = match self.engine.ground(app) {
            Ok(ground) => ground,
            Err(why) => return self.without_ground(application, app, why, memory).await,
        };
        let trigger = Trigger::new(self.look, "seat");
        let Some(_seat) = ground.cluster.seats.take(&self.engine.queue, &app.id, trigger) else { return };
        if application.is_terminating() {
            return self.delete(application, app, &ground, memory).await;
        }
        self.live_on(application, app, &ground, memory).await;
    }

    /// The app stands on nothing: says so, and leaves everything as it is.
    async fn without_ground(
        &mut self,
        application: &Application,
        app: &App,
        why: Groundless,
        memory: &mut Memory,
    ) {
        let deleting = application.is_terminating();
        match why {
            Groundless::NotYet | Groundless::LeftAlone => {}
            Groundless::ClusterUnknown(why) if deleting => {
                warn!(app = %app.id, why, "its cluster is not known: its objects stay where they are");
                self.drop_finalizers(application, &FINALIZERS).await;
            }
            // Its objects are there, and somebody wants them gone: that waits until they can be reached.
            Groundless::ClusterAway(why) | Groundless::ClusterUnclear(why) if deleting => {
                self.conditions.add("DeletionError", why);
                self.write_deletion(application).await;
            }
            Groundless::Refused(problems) if deleting => {
                for problem in problems {
                    self.conditions.add("DeletionError", problem);
                }
                self.write_deletion(application).await;
            }
            Groundless::ClusterAway(why) => {
                // An operation waits: it goes on when the cluster is back, unless somebody wants it to stop.
                self.conditions.add("ComparisonError", why);
                let state = application.status.operation_state.as_ref();
                if state.is_some_and(|state| state.phase == "Terminating") {
                    self.fail_operation(application, memory).await;
                }
                self.write_unreachable(application, memory).await;
            }
            Groundless::ClusterUnknown(why) | Groundless::ClusterUnclear(why) => {
                self.conditions.add("InvalidSpecError", why);
                self.fail_operation(application, memory).await;
                self.write_invalid(memory).await;
            }
            Groundless::Refused(problems) => {
                for problem in problems {
                    self.conditions.add("InvalidSpecError", problem);
                }
                self.fail_operation(application, memory).await;
                self.write_invalid(memory).await;
            }
        }
    }

    async fn live_on(&mut self, application: &Application, app: &App, ground: &Ground, memory: &mut Memory) {
        // client: Git and the renderers
        let gathered = match self.gather(application, app, ground, memory).await {
            Ok(gathered) => gathered,
            Err(message) => {
                self.conditions.add("ComparisonError", message);
                self.fail_operation(application, memory).await;
                return self.write_unknown(application, app, memory).await;
            }
        };
        self.hooks = Some(Arc::clone(&gathered));
        let touched =
            self.engine.claims.set(&app.id, &ground.cluster.server, &ground.instance, &gathered.desired);
        self.engine.wake(touched, Trigger::new(Look::Live, "claim"));
        // client: the live objects, and answers where there is doubt
        let doubt = self.doubt(application, app, ground, &gathered);
        let mut compared = match self.compare(app, ground, &gathered, doubt, memory).await {
            Ok(compared) => compared,
            Err(error) => {
                self.conditions.add("ComparisonError", format!("the cluster cannot be read: {error}"));
                return self.write_unknown(application, app, memory).await;
            }
        };
        if self.recall_last_sync(application, app, ground, &compared, memory).await
            && let Ok(again) = self.compare(app, ground, &gathered, doubt, memory).await
        {
            compared = again;
        }
        let mut status = self.roll_up(app, ground, &compared);
        let mut ended = memory.unwritten.take();
        // An end that is not written down yet comes before anything else is decided.
        if ended.is_none() {
            // pure: should a sync start by itself?
            let mut operation = self.current_operation(application, memory);
            if operation.is_none() {
                operation = self.start_by_itself(application, app, ground, &compared, &status, memory);
            }
            if let Some(mut active) = operation {
                // client: the steps of the sync
                self.operate(application, app, ground, &compared, &mut active, memory).await;
                let written = active.state.is_some();
                if active.record.phase.is_completed() {
                    ended = Some(Ended::new(active, Timestamp::now()));
                } else {
                    memory.operation = Some(active);
                }
                if written {
                    // What was applied is in the store already: this look shows its effect.
                    if let Ok(after) = self.compare(app, ground, &gathered, Doubt::Ask, memory).await {
                        compared = after;
                        status = self.roll_up(app, ground, &compared);
                    }
                }
            }
        }
        if let Some(ended) = ended.take_if(|ended| ended.settles_soon(&status)) {
            let trigger = Trigger::new(Look::Live, "settled");
            self.engine.queue.push_after(app.id.clone(), trigger, ended.may_wait());
            memory.unwritten = Some(ended);
            return;
        }
        let ended = ended.map(|ended| ended.operation);
        self.warn(&compared, ground);
        let pauses = self.pauses(app, &compared);
        let pause_ends = pauses.iter().filter_map(|(_, pause)| pause.until).min();
        if let Some(until) = pause_ends.filter(|_| pause_ends != memory.pause_ends) {
            // A pause ends by itself: what it held back is looked at then.
            self.wake_at(app, Look::Live, until, "pause ended");
        }
        memory.pause_ends = pause_ends;
        // A fight is over once the object is what Git asks: the next one begins anew.
        let in_sync = compared.verdicts.values().filter(|verdict| verdict.status == VerdictStatus::Synced);
        memory.ledger = std::mem::take(&mut memory.ledger).settled(in_sync.map(|verdict| &verdict.key));
        memory.findings =
            compared.verdicts.iter().map(|(key, verdict)| (key.clone(), verdict.findings.clone())).collect();
        self.engine.findings.set(&app.id, memory.findings.values().flatten());
        self.look_for_orphans(app, ground);
        let draft = StatusDraft {
            application,
            app,
            ground,
            compared: &compared,
            status: &status,
            ended: ended.as_ref(),
        };
        self.write(draft, memory).await;
        if ended.is_some() {
            // The next decision: something may still be red, or a new commit may be waiting.
            self.engine.queue.push(app.id.clone(), Trigger::new(Look::Live, "operation ended"));
        }
    }

    /// Will a sync write every difference anyway? Then the server need not be asked what it would make of it.
    fn doubt(&self, application: &Application, app: &App, ground: &Ground, gathered: &Gathered) -> Doubt {
        let is_held = app.pause.as_ref().is_some_and(|pause| pause.holds_at(self.now))
            || ground.window(app, self.now).is_some();
        let is_new = last_operation(application, app)
            .and_then(|last| last.synced)
            .is_some_and(|(_, revisions)| revisions != gathered.revisions);
        let syncs_by_itself = app.sync_policy.automated.is_some() && application.operation.is_none();
        if syncs_by_itself && is_new && !is_held { Doubt::SyncFollows } else { Doubt::Ask }
    }

    /// What Git asks for: what is known already, unless there is a reason to look.
    async fn gather(
        &self,
        application: &Application,
        app: &App,
        ground: &Ground,
        memory: &mut Memory,
    ) -> Result<Arc<Gathered>, String> {
        let known = memory.gathered.as_ref();
        let gathered = self.engine.sources.gather(application, app, ground, self.glance, known).await?;
        memory.gathered = Some(Arc::clone(&gathered));
        Ok(gathered)
    }

    pub(crate) async fn compare(
        &self,
        app: &App,
        ground: &Ground,
        gathered: &Arc<Gathered>,
        doubt: Doubt,
        memory: &mut Memory,
    ) -> Result<Compared, plumb_kube::ApiError> {
        self.recall_last_operation(memory, gathered);
        if memory.report.is_none() && memory.findings.is_empty() {
            // What an earlier process found out tells since when it has been so.
            for finding in self.engine.reports.findings(&app.id) {
                memory.findings.entry(finding.key.clone()).or_default().push(finding);
            }
        }
        memory.health.recall(|| self.engine.reports.ill(&app.id));
        let render_again = || -> BoxFuture<'_, Option<Arc<Complete<DesiredSet>>>> {
            async move { self.engine.sources.render_again(app, ground, gathered).await }.boxed()
        };
        let compared = Comparison {
            app,
            instance: &ground.instance,
            cluster: &ground.cluster,
            claims: &self.engine.claims,
            tracking: &ground.settings.tracking,
            settings: &ground.settings,
            testimonies: &self.engine.testimonies,
            rules: &ground.rules,
            gathered,
            doubt,
            now: self.now,
            ask_again: self.look == Look::Hard,
            render_again: &render_again,
        }
        .run(memory)
        .await?;
        if let Ok(application) = &self.known.wire {
            for (gvk, objects) in &compared.new_schemas {
                self.engine.tell(&self.known, application, Happening::schema_changed(gvk, *objects));
            }
        }
        if let Some(at) = compared.checked.look_again.filter(|at| memory.health.must_ask(*at, self.now)) {
            self.wake_at(app, Look::Live, at, "health");
        }
        Ok(compared)
    }

    /// The operation that is under way, if any: in this process, in another before it, or just asked for.
    fn current_operation(
        &mut self,
        application: &Application,
        memory: &mut Memory,
    ) -> Option<ActiveOperation> {
        let asked = application.operation.as_ref();
        if let Some(active) = memory.operation.take() {
            // Not written yet, or still the same: ours goes on. Removed by somebody: it is over.
            let is_current = asked.is_none_or(|asked| *asked == active.wire);
            if is_current && (asked.is_some() || active.state.is_none()) {
                return Some(active);
            }
            asked?;
        }
        let asked = asked?;
        let operation = match to_operation(asked) {
            Ok(operation) => operation,
            Err(problems) => {
                for problem in &problems {
                    self.conditions.add("InvalidSpecError", format!("operation: {problem}"));
                }
                return None;
            }
        };
        let state = application.status.operation_state.as_deref();
        let under_way = state.filter(|state| {
            state.operation == *asked && matches!(state.phase.as_str(), "Running" | "Terminating")
        });
        Some(match under_way {
            Some(state) => ActiveOperation::resume(asked.clone(), operation, state),
            None => self.begin(application, memory, asked.clone(), operation),
        })
    }

    fn begin(
        &self,
        application: &Application,
        memory: &mut Memory,
        wire: wire::Operation,
        asked: Operation,
    ) -> ActiveOperation {
        // Whoever asks for an operation clears the state of the last one; this process remembers it.
        let written = application.status.operation_state.as_ref().map(|state| state.started_at);
        let active = ActiveOperation::begin(wire, asked, self.now, written.max(memory.last_start));
        memory.last_start = Some(active.record.started_at);
        active
    }

    fn start_by_itself(
        &mut self,
        application: &Application,
        app: &App,
        ground: &Ground,
        compared: &Compared,
        status: &AppStatus,
        memory: &mut Memory,
    ) -> Option<ActiveOperation> {
        let items: Vec<Item> =
            status.resources.iter().map(|object| self.item(app, compared, object)).collect();
        let last = last_operation(application, app);
        let window = ground.window(app, self.now);
        let limits = automation::HealLimits::default();
        let situation = Situation {
            automation: app.sync_policy.automated,
            has_operation: false,
            is_deleting: false,
            window: window.as_deref(),
            paused_until: app
                .pause
                .as_ref()
                .filter(|pause| pause.holds_at(self.now))
                .map(|pause| pause.until.unwrap_or(Timestamp::MAX)),
            status: status.sync,
            items: &items,
            sources: &app.sources,
            revisions: &compared.gathered.revisions,
            irrelevant_change: nothing_moved(compared, memory),
            last: last.as_ref(),
            ledger: &memory.ledger,
            limits,
        };
        let verdict = automation::decide(&situation, self.now);
        for stopped in &verdict.stopped {
            memory.ledger = std::mem::take(&mut memory.ledger).stopped(stopped);
            self.conditions.add("SyncError", stopped.message());
        }
        if let Some(at) = verdict.wake_at {
            self.wake_at(app, Look::Live, at, "automation");
        }
        match verdict.decision {
            Decision::Nothing(why) => {
                if matches!(why, Idle::Window | Idle::Paused) {
                    self.conditions.keep("SyncError");
                }
                None
            }
            Decision::Refuse(message) => {
                self.conditions.add("SyncError", message);
                None
            }
            Decision::Sync(start) => {
                let wire = operation::automated(&start, &application.spec, &compared.gathered.revisions);
                let asked = to_operation(&wire).ok()?;
                info!(app = %app.id, kind = ?start.kind, objects = start.selected.as_ref().map_or(0, Vec::len), "sync starts by itself");
                if start.kind == StartKind::SelfHeal {
                    self.engine.metrics.heals.increment([&*ground.cluster.server]);
                    for item in items
                        .iter()
                        .filter(|item| start.selected.iter().flatten().any(|object| object.means(&item.key)))
                    {
                        memory.ledger = std::mem::take(&mut memory.ledger).healed(
                            &item.key,
                            &item.context,
                            &limits,
                            self.now,
                        );
                    }
                }
                let mut active = self.begin(application, memory, wire, asked);
                active.gathered = Some(Arc::clone(&compared.gathered));
                Some(active)
            }
        }
    }

    fn item(&self, app: &App, compared: &Compared, object: &ObjectStatus) -> Item {
        let verdict = compared.verdicts.get(&object.key);
        let live = compared.live.objects.get(&object.key);
        let desired = compared.gathered.desired.get().objects.get(&object.key);
        let options = live.map(|live| ObjectOptions::parse(live)).unwrap_or_default();
        let is_missing = live.is_none() && desired.is_some();
        let guarded = options.prune == Some(PruneOption::Never) || app.sync_policy.has("Prune=false");
        let can_heal = match verdict {
            Some(verdict) if verdict.advice.blocked => false,
            Some(verdict) if verdict.requires_pruning => {
                !guarded && !live.is_some_and(|live| live.is_terminating())
            }
            Some(verdict) => is_missing || !verdict.advice.heal.is_empty(),
            None => false,
        };
        let counted = verdict.and_then(|verdict| verdict.findings.iter().find(|finding| finding.counts));
        Item {
            key: object.key.clone(),
            status: object.status,
            requires_pruning: object.requires_pruning,
            can_heal,
            moves_here: matches!(compared.owners.get(&object.key), Some(Owner::Other { renders: false, .. }))
                && desired.is_some(),
            is_paused: live.and_then(|live| self.paused(live)).is_some(),
            context: HealContext {
                desired: desired
                    .map(|desired| Fingerprint::of(&desired.manifest).to_string())
                    .unwrap_or_default(),
                opponent: counted.and_then(|finding| finding.actor.clone()),
                fields: counted
                    .map(|finding| finding.fields.iter().map(ToString::to_string).collect())
                    .unwrap_or_default(),
            },
        }
    }

    /// Why an object is held by a person, if it is.
    pub(crate) fn paused(&self, live: &plumb_core::object::Manifest) -> Option<String> {
        self.pause_of(live).map(|pause| pause.reason)
    }

    fn pause_of(&self, live: &plumb_core::object::Manifest) -> Option<Pause> {
        let pause = Pause::parse(live.annotation(Pause::ANNOTATION)?);
        pause.holds_at(self.now).then_some(pause)
    }

    /// What a person holds: the app itself first, then its objects.
    pub(crate) fn pauses(&self, app: &App, compared: &Compared) -> Vec<(ObjectKey, Pause)> {
        let itself = app.pause.clone().filter(|pause| pause.holds_at(self.now)).map(|pause| {
            let key = ObjectKey {
                group: "argoproj.io".to_owned(),
                kind: Application::KIND.to_owned(),
                namespace: Some(app.id.namespace.clone()),
                name: app.id.name.clone(),
            };
            (key, pause)
        });
        let objects = compared.live.objects.iter();
        itself
            .into_iter()
            .chain(objects.filter_map(|(key, live)| Some((key.clone(), self.pause_of(live)?))))
            .collect()
    }

    fn roll_up(&self, app: &App, ground: &Ground, compared: &Compared) -> AppStatus {
        let desired = compared.gathered.desired.get();
        let version = |key: &ObjectKey| {
            let manifest = desired
                .objects
                .get(key)
                .map(|object| &object.manifest)
                .or_else(|| compared.live.objects.get(key).map(AsRef::as_ref));
            manifest.map(|manifest| manifest.gvk().version).unwrap_or_default()
        };
        let mut objects: Vec<ObjectStatus> = Vec::new();
        for verdict in compared.verdicts.values() {
            if verdict.status == VerdictStatus::NotCompared(plumb_core::drift::NotCompared::HandedOver) {
                continue;
            }
            let live = compared.live.objects.get(&verdict.key);
            let wanted = desired.objects.get(&verdict.key);
            let options = live.map(|live| ObjectOptions::parse(live)).unwrap_or_default();
            let unheard = live
                .is_some_and(|live| live.annotation("argocd.argoproj.io/ignore-healthcheck") == Some("true"));
            let confirm = |option: Option<PruneOption>| option == Some(PruneOption::Confirm);
            let mut status = ObjectStatus::of(verdict, &version(&verdict.key));
            status.is_live = live.is_some();
            status.health = if live.is_some() {
                compared.checked.healths.get(&verdict.key).cloned()
            } else {
                Some(Health::new(HealthStatus::Missing, ""))
            };
            status.wave = wanted.map(|wanted| wanted.options.wave).or(Some(options.wave));
            status.requires_confirmation = confirm(options.prune)
                || confirm(options.delete)
                || app.sync_policy.has("Prune=confirm")
                || app.sync_policy.has("Delete=confirm");
            if let Some(why) = ground.denies(&verdict.key) {
                debug!(app = %app.id, object = %verdict.key, why, "not permitted");
                status.status = Some(SyncCode::Unknown);
            }
            let is_itself = verdict.key.kind == "Application"
                && verdict.key.group == "argoproj.io"
                && verdict.key.name == app.id.name
                && verdict.key.namespace.as_deref() == Some(&app.id.namespace);
            if wanted.is_some_and(|wanted| wanted.options.skip) {
                status.role = plumb_core::health::Role::Exempt;
            } else if unheard || is_itself {
                status.role = plumb_core::health::Role::Bystander;
            }
            objects.push(status);
        }
        for key in &compared.hooks {
            objects.push(ObjectStatus {
                key: key.clone(),
                version: version(key),
                status: None,
                counts: false,
                health: compared.checked.healths.get(key).cloned(),
                role: plumb_core::health::Role::Exempt,
                is_live: true,
                is_hook: true,
                requires_pruning: true,
                requires_confirmation: false,
                wave: compared.live.objects.get(key).map(|live| ObjectOptions::parse(live).wave),
            });
        }
        for (key, error) in &compared.unreadable {
            objects.push(ObjectStatus {
                key: key.clone(),
                version: version(key),
                status: Some(SyncCode::Unknown),
                counts: true,
                health: Some(plumb_core::health::Health::unknown(error.to_string())),
                role: plumb_core::health::Role::Counts,
                is_live: true,
                is_hook: false,
                requires_pruning: false,
                requires_confirmation: false,
                wave: None,
            });
        }
        let synced_metadata = self.known.wire.as_ref().ok().and_then(|application| {
            application
                .status
                .operation_state
                .as_ref()?
                .sync_result
                .as_ref()?
                .managed_namespace_metadata
                .clone()
        });
        let asked_metadata = self.known.wire.as_ref().ok().and_then(|application| {
            application.spec.sync_policy.as_ref()?.managed_namespace_metadata.clone()
        });
        let has_synced =
            self.known.wire.as_ref().is_ok_and(|application| application.status.operation_state.is_some());
        roll_up(RollUp {
            objects,
            load_failed: false,
            invalid_spec: false,
            namespace_metadata_changed: has_synced
                && asked_metadata.is_some()
                && synced_metadata != asked_metadata,
        })
    }

    /// Conditions that follow from what was seen.
    fn warn(&mut self, compared: &Compared, ground: &Ground) {
        for (key, apps) in &compared.shared {
            let apps: Vec<&str> = apps.iter().map(String::as_str).collect();
            self.conditions.add(
                "SharedResourceWarning",
                format!("{key} is part of applications {} and {}", ground.instance, apps.join(", ")),
            );
        }
        let stuck: Vec<String> = compared
            .checked
            .ill
            .iter()
            .filter(|ill| ill.is_stuck)
            .take(MOST_STUCK)
            .map(|ill| format!("{} is {}", ill.key, ill.message))
            .collect();
        for message in stuck {
            self.conditions.add("StuckWarning", message);
        }
        for problem in &compared.gathered.desired.get().problems {
            match problem {
                DesiredProblem::Repeated { key, count, .. } => {
                    self.conditions.add(
                        "RepeatedResourceWarning",
                        format!("Resource {key} appeared {count} times among application resources."),
                    );
                }
                DesiredProblem::Excluded { key } => {
                    self.conditions.add(
                        "ExcludedResourceWarning",
                        format!("Resource {key} is excluded in the settings"),
                    );
                }
                DesiredProblem::NamespaceMissing { key } => {
                    self.conditions.add("InvalidSpecError", format!("Namespace for {key} is missing."));
                }
                DesiredProblem::NameMissing { kind, origin } => {
                    self.conditions
                        .add("ComparisonError", format!("a {kind}{} has no name", place(origin.as_ref())));
                }
                DesiredProblem::NotAnObject { reason, origin } => {
                    self.conditions.add(
                        "ComparisonError",
                        format!("a document{} is left out: {reason}", place(origin.as_ref())),
                    );
                }
                DesiredProblem::NotText { key, field, origin } => {
                    let object = key.as_ref().map_or_else(|| "an object".to_owned(), ToString::to_string);
                    self.conditions.add(
                        "ComparisonError",
                        format!("{object}{}: {field} is no text: put it in quotes", place(origin.as_ref())),
                    );
                }
            }
        }
        for (key, error) in &compared.unreadable {
            warn!(object = %key, %error, "cannot be read");
            self.conditions.add("ComparisonError", format!("{key} cannot be read: {error}"));
        }
        for problem in &ground.rule_problems {
            self.conditions.add("ComparisonError", problem.clone());
        }
        for verdict in compared.verdicts.values() {
            for finding in verdict.findings.iter().filter(|finding| finding.class == DriftClass::Blocked) {
                debug!(object = %finding.key, evidence = ?finding.evidence, "blocked");
            }
        }
    }

    /// Says how many objects of the app's namespace belong to nobody, where the project asks.
    fn look_for_orphans(&mut self, app: &App, ground: &Ground) {
        let (Some(rules), Some(namespace)) = (ground.project.orphans(), &app.destination.namespace) else {
            return self.engine.orphans.forget(&app.id);
        };
        let control_plane = &self.engine.options.namespace;
        let registry = &self.engine.registry;
        let found = crate::orphans::find(
            &ground.cluster.store,
            namespace,
            rules,
            |key| ground.denies(key).is_none(),
            |instance| registry.by_instance(instance, control_plane).is_some(),
        );
        self.engine.orphans.note(&app.id, &ground.cluster.server, namespace, found.len());
        if rules.warns() && !found.is_empty() {
            let message = format!("Application has {} orphaned resources", found.len());
            self.conditions.add("OrphanedResourceWarning", message);
        }
    }

    pub(crate) fn wake_at(&self, app: &App, look: Look, at: Timestamp, reason: &'static str) {
        let wait = at.duration_since(Timestamp::now());
        let wait = std::time::Duration::try_from(wait).unwrap_or_default();
        self.engine.queue.push_after(app.id.clone(), Trigger::new(look, reason), wait);
    }

    /// An operation cannot go on: what it needs is missing.
    async fn fail_operation(&mut self, application: &Application, memory: &mut Memory) {
        let Some(mut active) = self.current_operation(application, memory) else { return };
        let policy = plumb_core::sync::retry_policy(Some(&active.asked.retry), active.is_automated());
        let message = self.conditions.errors().join("; ");
        let (record, after) = active.record.erred(&message, &policy, self.now);
        active.record = record;
        match after {
            plumb_core::status::After::Ended => {
                self.count_ended(&active);
                self.write_ended(application, &active).await;
            }
            plumb_core::status::After::RetryAt { at, .. } => {
                active.retry_at = Some(at);
                if let Ok(app) = &self.known.app {
                    self.wake_at(app, Look::Live, at, "retry");
                }
                memory.operation = Some(active);
            }
            plumb_core::status::After::GoOn => memory.operation = Some(active),
        }
    }
}

/// Is everything that Git asks for what was applied last, and has nothing left Git? Then a newer commit changed
/// nothing of this app.
fn nothing_moved(compared: &Compared, memory: &Memory) -> bool {
    let has_left = compared.verdicts.values().any(|verdict| verdict.requires_pruning);
    !has_left
        && compared.gathered.desired.get().objects.values().all(|object| {
            let attempt = memory.attempts.get(&object.key);
            attempt.is_some_and(|attempt| attempt.desired == Fingerprint::of(&object.manifest))
        })
}

/// The last operation as the automation looks at it.
fn last_operation(application: &Application, app: &App) -> Option<LastOperation> {
    let state = application.status.operation_state.as_ref()?;
    let synced = state.sync_result.as_deref().map(|result| {
        let compared_to = wire::ComparedTo::of(&application.spec);
        let normalized =
            |source: &Option<Box<wire::ApplicationSource>>| source.as_ref().map(|source| source.normalized());
        let same = result.sources == compared_to.sources
            && (!result.sources.is_empty() || normalized(&result.source) == normalized(&compared_to.source));
        let revisions = if result.revisions.is_empty() {
            vec![result.revision.clone()]
        } else {
            result.revisions.clone()
        };
        (if same { app.sources.clone() } else { Vec::new() }, revisions)
    });
    let is_automated = state.operation.initiated_by.automated;
    Some(LastOperation {
        phase: OperationPhase::from_name(&state.phase)?,
        message: state.message.clone(),
        synced,
        heal_attempts: state
            .operation
            .sync
            .as_ref()
            .filter(|_| is_automated)
            .and_then(|sync| u32::try_from(sync.auto_heal_attempts_count).ok())
            .unwrap_or(0),
    })
}

/// ` at app/web.yaml:3`, if it is known.
fn place(origin: Option<&plumb_core::desired::Origin>) -> String {
    origin.map(|origin| format!(" at {}:{}", origin.file, origin.line)).unwrap_or_default()
}

/// Was it asked for by a person? Then heals are counted anew.
pub(crate) fn is_by_person(active: &ActiveOperation) -> bool {
    match active.asked.initiated_by {
        Initiator::Automated => false,
        Initiator::User(_) | Initiator::Unnamed => true,
    }
}
