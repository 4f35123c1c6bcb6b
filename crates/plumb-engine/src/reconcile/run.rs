//! One run for one app: gather → decide → act.
//!
//! The order is the whole story: check the spec, gather what Git asks, compare it with the cluster, decide
//! whether a sync starts by itself, move the operation along, write down what was seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use jiff::Timestamp;
use plumb_core::app::App;
use plumb_core::desired::{Complete, DesiredSet};
use plumb_core::drift::{Finding, VerdictStatus};
use plumb_core::object::ObjectKey;
use plumb_core::status::{AppStatus, SyncCode};
use plumb_core::sync::OperationPhase;
use plumb_crd::{Application, to_leaving_app};
use tracing::debug;

use crate::apps::conditions::Conditions;
use crate::apps::context::Ground;
use crate::apps::snapshot::{Known, RefreshRequest};
use crate::compare::judge::Doubt;
use crate::compare::run::{Compared, Comparison};
use crate::engine::Engine;
use crate::events::event::Happening;
use crate::metrics::counters::ON_BEHALF;
use crate::queue::{Job, Look, Trigger};
use crate::reconcile::restore::recall_runs;
use crate::sources::gather::{Gathered, Glance, Kept};
use crate::sources::slow_servers::{NotGathered, Patience};
use crate::state::app_state::{Before, Ended, Memory};
use crate::status::write::StatusDraft;
use crate::sync::automation::last_operation;

/// One run.
pub(crate) async fn reconcile(engine: &Engine, job: &Job) {
    let memory = engine.memories.of(&job.app);
    let mut memory = memory.lock().await;
    if has_no_news(engine, job, &mut memory).await {
        return;
    }
    let Some(known) = engine.registry.get(&job.app) else {
        engine.forget(&job.app);
        return;
    };
    let look = known.requested_refresh().map_or(job.trigger.look, |asked| asked.max(job.trigger.look));
    let trigger = Trigger { look, ..job.trigger };
    let labels = engine.labels_of(&known);
    engine.metrics.triggers.increment([job.trigger.reason]);
    let _measured = engine.metrics.run(&labels);
    let now = Timestamp::now();
    let glance = glance(&trigger);
    let refresh = known.refresh_request();
    let conditions = Conditions::default();
    let mut run = Run { engine, known, look, trigger, glance, now, refresh, conditions, hooks: None };
    ON_BEHALF.scope(labels.clone(), run.go(&mut memory)).await;
    debug!(app = %job.app, trigger = job.trigger.reason, look = ?look, "reconciled");
}

/// How far Git is looked at for this reason. A run gives way to others once; after that it waits.
fn glance(trigger: &Trigger) -> Glance {
    let patience = if trigger.gave_way { Patience::Endless } else { Patience::Short };
    Glance { look: trigger.look, since: trigger.at, patience }
}

/// Was all well at the last run, did nothing happen since, and does Git still say what it said? Whatever else could
/// change the verdict on an app wakes it by itself. This is what an app costs most of the time, so nothing is
/// unpacked for it.
async fn has_no_news(engine: &Engine, job: &Job, memory: &mut Memory) -> bool {
    let Trigger { look, is_news, .. } = job.trigger;
    let was_at_rest = std::mem::take(&mut memory.at_rest);
    let is_told = is_news || look > Look::Git || memory.health.is_due(Timestamp::now());
    let Some(kept) = memory.gathered.as_ref().filter(|_| was_at_rest && !is_told) else { return false };
    if look == Look::Live {
        // Somebody asked to look at this time, and the reason has gone since.
        memory.at_rest = true;
        return true;
    }
    let Some(known) = engine.registry.brief(&job.app) else { return false };
    let (Ok(application), Ok(app)) = (&known.head, &known.app) else { return false };
    if known.requested_refresh().is_some() || application.is_terminating() || app.skip_reconcile {
        return false;
    }
    let Ok(ground) = engine.ground(app) else { return false };
    let glance = glance(&job.trigger);
    match engine.sources.is_current(&application.spec, app, &ground, glance, kept).await {
        Ok(is_current) => memory.at_rest = is_current,
        Err(answered) => {
            engine.come_back(answered, &job.app, job.trigger);
            memory.at_rest = true;
        }
    }
    memory.at_rest
}

/// One run and what it has found out so far.
pub(crate) struct Run<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) known: Arc<Known>,
    pub(crate) look: Look,
    trigger: Trigger,
    pub(crate) glance: Glance,
    pub(crate) now: Timestamp,
    /// The request that this run answers.
    pub(crate) refresh: Option<RefreshRequest>,
    pub(crate) conditions: Conditions,
    /// What Git asks for, if this run found it out: deletion hooks decide which finalizers the app needs.
    pub(crate) hooks: Option<Arc<Gathered>>,
}

impl Run<'_> {
    async fn go(&mut self, memory: &mut Memory) {
        let known = Arc::clone(&self.known);
        let leaving;
        let (application, app) = match (&known.wire, &known.app) {
            (Ok(application), Ok(app)) => (application, app),
            (Ok(application), Err(_)) if application.is_terminating() => {
                leaving = to_leaving_app(application);
                match &leaving {
                    Some(app) => (application, app),
                    None => return self.leave_all(application).await,
                }
            }
            (Ok(application), Err(problems)) => {
                for problem in problems {
                    self.conditions.add("InvalidSpecError", problem.to_string());
                }
                self.fail_operation(application, memory).await;
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
            Err(why) => return self.without_ground(application, why, memory).await,
        };
        let trigger = Trigger::new(self.look, "seat");
        let Some(_seat) = ground.cluster.seats.take(&self.engine.queue, &app.id, trigger) else { return };
        if application.is_terminating() {
            return self.delete(application, app, &ground, memory).await;
        }
        self.live_on(application, app, &ground, memory).await;
    }

    async fn live_on(&mut self, application: &Application, app: &App, ground: &Ground, memory: &mut Memory) {
        // client: Git and the renderers
        let mut shown = self.gather(application, app, ground, memory).await;
        if let Err(NotGathered::Waiting(answered)) = shown {
            self.engine.come_back(answered, &app.id, self.trigger);
            // A sync under way goes on with what is known; all else can wait for the answer.
            if memory.operation.is_none() {
                return;
            }
            self.refresh = None;
            self.glance.look = Look::Live;
            shown = self.gather(application, app, ground, memory).await;
        }
        let gathered = match &shown {
            Ok(gathered) => Arc::clone(gathered),
            Err(why) => {
                let (condition, message) = why.condition();
                self.conditions.add(condition, message.to_owned());
                // A sync under way has what it needs: Git may be away until it has ended.
                let under_way = memory.operation.as_ref().and_then(|active| active.gathered.clone());
                let Some(gathered) = under_way else {
                    self.fail_operation(application, memory).await;
                    return self.write_unknown(application, memory).await;
                };
                gathered
            }
        };
        if shown.is_ok() {
            self.hooks = Some(Arc::clone(&gathered));
            self.engine.commits.set(&app.id, gathered.followed(&ground.cluster.server));
            let touched =
                self.engine.claims.set(&app.id, &ground.cluster.server, &ground.instance, &gathered.shelf);
            self.engine.wake(touched, Trigger::new(Look::Live, "claim"));
        }
        // What is not known to be what Git asks is neither in sync nor out of it.
        let as_known = |status: AppStatus| match &shown {
            Ok(_) => status,
            Err(_) => AppStatus { sync: SyncCode::Unknown, ..status },
        };
        // client: the live objects, and answers where there is doubt
        let doubt = self.doubt(application, app, ground, &gathered);
        let mut compared = match self.compare(app, ground, &gathered, doubt, memory).await {
            Ok(compared) => compared,
            Err(error) => {
                self.conditions.add("ComparisonError", format!("the cluster cannot be read: {error}"));
                return self.write_unknown(application, memory).await;
            }
        };
        let applied = self.recall_last_sync(application, app, ground, &compared, memory).await;
        let ran = self.recall_unseen_runs(application, ground, &compared, memory).await;
        if (applied || ran)
            && let Ok(again) = self.compare(app, ground, &gathered, doubt, memory).await
        {
            compared = again;
        }
        let mut status = as_known(self.roll_up(app, ground, &compared));
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
                if !active.record.phase.is_completed() {
                    self.operate(application, app, ground, &compared, &mut active, memory).await;
                }
                let written = active.state.is_some();
                if active.record.phase == OperationPhase::Succeeded {
                    memory.before = None;
                }
                if active.record.phase.is_completed() {
                    ended = Some(Ended::new(active, Timestamp::now()));
                } else {
                    memory.operation = Some(active);
                }
                if written {
                    // What was applied is in the store already: this look shows its effect.
                    if let Ok(after) = self.compare(app, ground, &gathered, Doubt::Ask, memory).await {
                        compared = after;
                        status = as_known(self.roll_up(app, ground, &compared));
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
        self.warn(&compared, ground);
        let pauses = self.pauses(app, &compared);
        let pause_ends = pauses.iter().filter_map(|(_, pause)| pause.until).min();
        if let Some(until) = pause_ends.filter(|_| pause_ends != memory.pause_ends) {
            // A pause ends by itself: what it held back is looked at then.
            self.wake_at(app, Trigger::new(Look::Live, "pause ended"), until);
        }
        memory.pause_ends = pause_ends;
        // A fight is over once the object is what Git asks: the next one begins anew.
        let in_sync = compared.verdicts.values().filter(|verdict| verdict.status == VerdictStatus::Synced);
        memory.ledger = std::mem::take(&mut memory.ledger).settled(in_sync.map(|verdict| &verdict.key));
        let found = compared.verdicts.iter().filter(|(_, verdict)| !verdict.findings.is_empty());
        memory.findings = found.map(|(key, verdict)| (key.clone(), verdict.findings.clone())).collect();
        self.engine.findings.set(&app.id, memory.findings.values().flat_map(|found| found.iter()));
        self.look_for_orphans(app, ground);
        if !compared.live.complete {
            self.engine.wake_when_listed(&app.id, &ground.cluster);
        }
        let is_idle = ended.is_none() && memory.operation.is_none() && application.operation.is_none();
        memory.at_rest = is_idle && status.sync == SyncCode::Synced && self.conditions.is_empty();
        let draft = StatusDraft {
            application,
            app,
            ground,
            compared: &compared,
            status: &status,
            ended: ended.as_ref().map(|ended| &ended.operation),
        };
        if !self.write(draft, memory).await {
            // What is not written down is written next time, the end of an operation before all else.
            memory.at_rest = false;
            memory.unwritten = ended;
        } else if ended.is_some() {
            // The next decision: something may still be red, or a new commit may be waiting.
            self.engine.queue.push(app.id.clone(), Trigger::new(Look::Live, "operation ended"));
        }
        if memory.at_rest {
            memory.was_in_sync = true;
            memory.before = None;
            memory.shrink();
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
    pub(crate) async fn gather(
        &self,
        application: &Application,
        app: &App,
        ground: &Ground,
        memory: &mut Memory,
    ) -> Result<Arc<Gathered>, NotGathered> {
        let known = memory.gathered.as_ref().and_then(Kept::wake);
        let gathered =
            self.engine.sources.gather(application, app, ground, self.glance, known.as_ref()).await?;
        if known.is_none_or(|known| !Arc::ptr_eq(&known, &gathered)) {
            let was_in_sync = std::mem::take(&mut memory.was_in_sync);
            let before = memory.gathered.replace(gathered.kept()).map(|kept| Before::new(kept, was_in_sync));
            memory.before = if was_in_sync { before } else { memory.before.take().or(before) };
        }
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
        if !std::mem::replace(&mut memory.recalled.findings, true) {
            // What an earlier process found out tells since when it has been so.
            let mut earlier: BTreeMap<ObjectKey, Vec<Finding>> = BTreeMap::new();
            for finding in self.engine.reports.findings(&app.id) {
                earlier.entry(finding.key.clone()).or_default().push(finding);
            }
            memory.findings = earlier.into_iter().map(|(key, found)| (key, found.into())).collect();
            recall_runs(memory);
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
        match compared.checked.look_again {
            Some(at) if memory.health.must_ask(at, self.now) => {
                self.wake_at(app, Trigger::due("health"), at);
            }
            Some(_) => {}
            None => memory.health.look_again = None,
        }
        Ok(compared)
    }

    pub(crate) fn wake_at(&self, app: &App, trigger: Trigger, at: Timestamp) {
        let wait = at.duration_since(Timestamp::now());
        let wait = std::time::Duration::try_from(wait).unwrap_or_default();
        self.engine.queue.push_after(app.id.clone(), trigger, wait);
    }
}
