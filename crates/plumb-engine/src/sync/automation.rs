//! The operation that a run moves along: under way already, just asked for, or started by itself.

use std::sync::Arc;

use jiff::Timestamp;
use plumb_core::app::{App, Initiator, Operation};
use plumb_core::automation::{self, Decision, HealContext, Idle, Item, LastOperation, Situation, StartKind};
use plumb_core::desired::{DesiredObject, ObjectOptions, PruneOption};
use plumb_core::drift::{DriftClass, Verdict};
use plumb_core::fields::Owners;
use plumb_core::object::{Fingerprint, Manifest};
use plumb_core::plan::Owner;
use plumb_core::status::{AppStatus, ObjectStatus};
use plumb_core::sync::{OperationPhase, retry_policy};
use plumb_core::tracking::FIELD_MANAGER;
use plumb_crd::application as wire;
use plumb_crd::{Application, SpecProblem, to_operation};
use tracing::info;

use crate::apps::context::Ground;
use crate::compare::run::{Compared, asked};
use crate::operation::active::{self, ActiveOperation};
use crate::queue::{Look, Trigger};
use crate::reconcile::run::Run;
use crate::sources::gather::Gathered;
use crate::state::app_state::{AttemptResult, LastAttempt, Memory};

impl Run<'_> {
    /// The operation that is under way, if any: in this process, in another before it, or just asked for.
    pub(crate) fn current_operation(
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
            Err(problems) => return self.refused(application, memory, asked, &problems),
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

    /// An operation that nobody can carry out ends as soon as it begins, and says why; others can be asked for then.
    fn refused(
        &self,
        application: &Application,
        memory: &mut Memory,
        asked: &wire::Operation,
        problems: &[SpecProblem],
    ) -> Option<ActiveOperation> {
        let nothing = wire::Operation { sync: Some(Box::default()), ..wire::Operation::default() };
        let nothing = to_operation(&nothing).ok()?;
        let mut active = self.begin(application, memory, asked.clone(), nothing);
        let message: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let (record, _) = active.record.erred(&message.join("; "), &retry_policy(None, false), self.now);
        active.record = record;
        Some(active)
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

    pub(crate) fn start_by_itself(
        &mut self,
        application: &Application,
        app: &App,
        ground: &Ground,
        compared: &Compared,
        status: &AppStatus,
        memory: &mut Memory,
    ) -> Option<ActiveOperation> {
        let left_by = application.status.operation_state.as_deref().and_then(pruned_before);
        let items: Vec<Item> =
            status.resources.iter().map(|object| self.item(app, compared, object, left_by, memory)).collect();
        let last = last_attempt(application, app, memory);
        let window = ground.window(app, self.now);
        let limits = ground.settings.heal_limits;
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
            irrelevant_change: nothing_moved(compared, memory)
                && last.as_ref().is_none_or(|last| {
                    // After a failure every newer commit is another try, unless a filter says that it is not the app's.
                    last.phase == OperationPhase::Succeeded || compared.gathered.is_filtered
                }),
            last: last.as_ref(),
            ledger: &memory.ledger,
            limits,
        };
        let verdict = automation::decide(&situation, self.now);
        for stopped in &verdict.stopped {
            memory.ledger = std::mem::take(&mut memory.ledger).stopped(stopped);
            self.conditions.add("SyncError", stopped.message());
        }
        if let Some(at) = verdict.next_check {
            self.wake_at(app, Trigger::new(Look::Live, "automation"), at);
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
                let wire = active::automated(&start, &application.spec, &compared.gathered.revisions);
                let asked = to_operation(&wire).ok()?;
                info!(app = %app.id, kind = ?start.kind, objects = start.selected.as_ref().map_or(0, Vec::len), "sync starts by itself");
                let may_be_undone = match start.kind {
                    StartKind::SelfHeal | StartKind::CatchUp => true,
                    StartKind::NewRevision | StartKind::TakeOver => false,
                };
                if start.kind == StartKind::SelfHeal {
                    self.engine.metrics.heals.increment([&*ground.cluster.server]);
                }
                if may_be_undone {
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

    fn item(
        &self,
        app: &App,
        compared: &Compared,
        object: &ObjectStatus,
        left_by: Option<Timestamp>,
        memory: &Memory,
    ) -> Item {
        let verdict = compared.verdicts.get(&object.key);
        let live = compared.live.objects.get(&object.key);
        let desired = compared.gathered.desired.get().objects.get(&object.key);
        let options = live.map(|live| ObjectOptions::parse(live)).unwrap_or_default();
        let is_missing = live.is_none() && desired.is_some();
        let guarded = options.prune == Some(PruneOption::Never) || app.sync_policy.has("Prune=false");
        let can_heal = match verdict {
            Some(verdict) if verdict.advice.blocked => false,
            // What is not proven to have left Git is not deleted, and another try would change nothing.
            Some(verdict) if verdict.requires_pruning => {
                !guarded && compared.live.complete && !live.is_some_and(|live| live.is_terminating())
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
            is_behind: match (live, desired) {
                (_, Some(desired)) => {
                    verdict.is_some_and(is_left_behind) && !was_applied(memory, desired, &compared.gathered)
                }
                (Some(live), None) => can_heal && left_by.is_some_and(|left_by| was_left(live, left_by)),
                (None, None) => false,
            },
            moves_here: matches!(compared.owners.get(&object.key), Some(Owner::Other { renders: false, .. }))
                && desired.is_some(),
            is_paused: live.and_then(|live| self.paused(live)).is_some(),
            context: HealContext {
                desired: desired
                    .map(|desired| {
                        let now = Fingerprint::of(&desired.manifest);
                        asked(memory, &desired.key, now, &compared.gathered).to_string()
                    })
                    .unwrap_or_default(),
                opponent: counted.and_then(|finding| finding.actor.clone()),
                fields: counted
                    .map(|finding| finding.fields.iter().map(ToString::to_string).collect())
                    .unwrap_or_default(),
            },
        }
    }
}

/// Would a sync bring an object to a state of Git that has not arrived yet?
fn is_left_behind(verdict: &Verdict) -> bool {
    let mut counted = verdict.findings.iter().filter(|finding| finding.counts);
    !verdict.advice.blocked && counted.any(|finding| finding.class == DriftClass::Behind)
}

/// Did this app write exactly what Git asks now? Then a sync brings nothing that is not there.
fn was_applied(memory: &Memory, desired: &DesiredObject, gathered: &Gathered) -> bool {
    let now = Fingerprint::of(&desired.manifest);
    memory.attempts.get(&desired.key).is_some_and(|attempt| {
        matches!(attempt.result, AttemptResult::Applied)
            && attempt.asked == asked(memory, &desired.key, now, gathered)
    })
}

/// When the last operation began, if it deleted what had left Git by then. One of chosen objects tells nothing about
/// the others: they were left out.
fn pruned_before(last: &wire::OperationState) -> Option<Timestamp> {
    let sync = last.operation.sync.as_ref().filter(|sync| !sync.dry_run)?;
    (sync.prune || !sync.resources.is_empty()).then_some(last.started_at)
}

/// Is an object that left Git one of ours from before that operation? Then it was left out of it. What somebody made
/// or marked since then is a live edit, and self-heal's. Both times are of whole seconds, and an app may be made and
/// synced again within one; whoever else makes an object in that second does not do so in our name.
fn was_left(live: &Manifest, left_by: Timestamp) -> bool {
    live.created_at().is_some_and(|created| created <= left_by)
        && Owners::of(live).entries().iter().any(|entry| entry.manager == FIELD_MANAGER)
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
pub(crate) fn last_operation(application: &Application, app: &App) -> Option<LastOperation> {
    let state = application.status.operation_state.as_ref()?;
    let synced = state.sync_result.as_deref().map(|result| {
        let compared_to = wire::ComparedTo::of(&application.spec);
        let normalized =
            |source: &Option<Box<wire::ApplicationSource>>| source.as_ref().map(|source| source.normalized());
        let same = result.sources == compared_to.sources
            && (!result.sources.is_empty() || normalized(&result.source) == normalized(&compared_to.source));
        let revisions = result.all_revisions().to_vec();
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

/// The last operation that tried to sync anything: to try out is not to sync. Where only a dry run is known, nothing is
/// new, so that nothing begins by itself.
fn last_attempt(application: &Application, app: &App, memory: &mut Memory) -> Option<LastOperation> {
    let last = last_operation(application, app);
    let state = application.status.operation_state.as_deref();
    if !state.is_some_and(is_dry_run) {
        memory.last_attempt = last.clone().map_or(LastAttempt::None, LastAttempt::Known);
        return last;
    }
    match &memory.last_attempt {
        LastAttempt::Known(last) => Some(last.clone()),
        LastAttempt::None => None,
        LastAttempt::Unknown => {
            last.map(|last| LastOperation { phase: OperationPhase::Succeeded, synced: None, ..last })
        }
    }
}

fn is_dry_run(state: &wire::OperationState) -> bool {
    state.operation.sync.as_ref().is_some_and(|sync| sync.dry_run)
}

/// Was it asked for by a person? Then heals are counted anew.
pub(crate) fn is_by_person(active: &ActiveOperation) -> bool {
    match active.asked.initiated_by {
        Initiator::Automated => false,
        Initiator::User(_) | Initiator::Unnamed => true,
    }
}
