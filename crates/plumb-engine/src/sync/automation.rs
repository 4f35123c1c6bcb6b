//! Starts an operation that no user requested: auto-sync, self-heal, taking over an object.

use jiff::Timestamp;
use plumb_core::app::App;
use plumb_core::automation::{
    self, Decision, DesiredFacts, Idle, Item, ItemFacts, LastOperation, Situation, StartKind, SyncStart,
};
use plumb_core::plan::AppOptions;
use plumb_core::status::{AppStatus, ObjectStatus};
use plumb_core::sync::{OperationPhase, PlannedKinds};
use plumb_crd::application as wire;
use plumb_crd::application::ConditionType;
use plumb_crd::{Application, to_operation};
use tracing::info;

use super::requested::begin;
use crate::app_run::{AppInputs, AppRun};
use crate::compare::run::Compared;
use crate::compare::state::JudgeState;
use crate::operation::active::{self, ActiveOperation};
use crate::operation::state::OperationSlot;
use crate::queue::{Trigger, TriggerReason};
use crate::status::roll_up::namespace_lacks_metadata;

/// The operation that starts now, if one does.
pub(crate) fn start_by_itself(
    run: &mut AppRun<'_>,
    inputs: AppInputs<'_>,
    compared: &Compared,
    status: &AppStatus,
    judge: &mut JudgeState,
    slot: &mut OperationSlot,
    kinds: &PlannedKinds,
) -> Option<ActiveOperation> {
    let AppInputs { application, app, context } = inputs;
    let items = items(run, inputs, compared, status, judge);
    let is_dry_run = application.status.operation_state.as_deref().is_some_and(is_dry_run);
    let last = slot.last_sync.update(last_operation(application, app), is_dry_run);
    let window = context.window(app, run.now);
    let situation = Situation {
        automation: app.sync_policy.automated,
        window: window.as_deref(),
        paused_until: inputs.pause(run.now).map(|pause| pause.until.unwrap_or(Timestamp::MAX)),
        status: status.sync,
        items: &items,
        sources: &app.sources,
        revisions: &compared.gathered.revisions,
        irrelevant_change: changes_nothing(compared, judge)
            && !namespace_lacks_metadata(inputs, compared)
            && last.as_ref().is_none_or(|last| {
                // After a failure every newer commit is another attempt, unless the path filter excludes it.
                last.phase == OperationPhase::Succeeded || compared.gathered.is_filtered
            }),
        last: last.as_ref(),
        kinds_changed: slot.failed_with.as_ref().is_some_and(|failed| failed.revived_by(kinds).is_some()),
        ledger: &judge.ledger,
        limits: context.settings.heal_limits,
    };
    let outcome = automation::decide(&situation, run.now);
    for stopped in &outcome.stopped {
        judge.ledger = std::mem::take(&mut judge.ledger).stopped(stopped);
        run.conditions.add(ConditionType::SyncError, stopped.message());
    }
    // A pause without an end is ended by a user, which requests a run by itself.
    if let Some(at) = outcome.next_check.filter(|at| *at < Timestamp::MAX) {
        run.run_at(Trigger::live(TriggerReason::Automation), at);
    }
    match outcome.decision {
        Decision::Nothing(why) => {
            if matches!(why, Idle::Window | Idle::Paused) {
                run.conditions.keep(ConditionType::SyncError);
            }
            None
        }
        Decision::Refuse(message) => {
            run.conditions.add(ConditionType::SyncError, message);
            None
        }
        Decision::Sync(start) => {
            record_heals(run, inputs, &start, &items, judge);
            begin_automated(run, inputs, compared, &start, slot)
        }
    }
}

fn begin_automated(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    compared: &Compared,
    start: &SyncStart,
    slot: &mut OperationSlot,
) -> Option<ActiveOperation> {
    let wire = active::automated(start, &inputs.application.spec, &compared.gathered.revisions);
    let asked = to_operation(&wire).ok()?;
    let n_objects = start.selected.as_ref().map_or(0, Vec::len);
    info!(kind = ?start.kind, objects = n_objects, "automated sync starts");
    let mut active = begin(run, inputs.application, slot, wire, asked);
    active.gathered = Some(compared.gathered.stored());
    Some(active)
}

/// Counts what self-heal is about to write, so that a fight with another writer ends.
fn record_heals(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    start: &SyncStart,
    items: &[Item],
    judge: &mut JudgeState,
) {
    let may_be_undone = match start.kind {
        StartKind::SelfHeal | StartKind::CatchUp => true,
        StartKind::NewRevision | StartKind::TakeOver | StartKind::ChangedKind => false,
    };
    if start.kind == StartKind::SelfHeal {
        run.engine.metrics.heals.increment([&*inputs.context.cluster.server]);
    }
    let is_selected = |item: &&Item| start.selected.iter().flatten().any(|object| object.means(&item.key));
    for item in items.iter().filter(is_selected).filter(|_| may_be_undone) {
        let limits = &inputs.context.settings.heal_limits;
        judge.ledger = std::mem::take(&mut judge.ledger).healed(&item.key, &item.context, limits, run.now);
    }
}

/// The facts about every object that the automation decides by.
fn items(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    compared: &Compared,
    status: &AppStatus,
    judge: &JudgeState,
) -> Vec<Item> {
    let options = AppOptions::parse(&inputs.app.sync_policy.options);
    let last = inputs.application.status.operation_state.as_deref();
    let pruned_before = last.and_then(pruned_before);
    let rendering = compared.gathered.rendering;
    let item = |object: &ObjectStatus| {
        let key = &object.key;
        let live = compared.live.objects.get(key).map(AsRef::as_ref);
        let desired = compared.gathered.set.fingerprint(key);
        let facts = ItemFacts {
            verdict: compared.verdicts.get(key),
            live,
            live_complete: compared.live.complete,
            owner: compared.owners.get(key),
            desired: desired.map(|desired| DesiredFacts {
                asked: judge.writes.asked(key, desired, rendering),
                was_applied: judge.writes.was_applied(key, desired, rendering),
            }),
            options: &options,
            pruned_before,
            is_paused: live.is_some_and(|live| inputs.pause_of(&object.key, live, run.now).is_some()),
        };
        facts.item(object)
    };
    status.resources.iter().map(item).collect()
}

/// When the last operation started, if it deleted what had left Git by then, or left objects out because it synced chosen
/// ones only.
fn pruned_before(last: &wire::OperationState) -> Option<Timestamp> {
    let sync = last.operation.sync.as_ref().filter(|sync| !sync.dry_run)?;
    (sync.prune || !sync.resources.is_empty()).then_some(last.started_at)
}

/// True if plumb sent everything that Git asks and nothing left Git: a newer commit changed nothing of this app.
fn changes_nothing(compared: &Compared, judge: &JudgeState) -> bool {
    let has_left = compared.verdicts.values().any(|verdict| verdict.requires_pruning);
    !has_left && judge.writes.sent_all(compared.gathered.set.fingerprints())
}

/// The facts about the last operation that the automation decides by.
pub(crate) fn last_operation(application: &Application, app: &App) -> Option<LastOperation> {
    let state = application.status.operation_state.as_ref()?;
    let synced = state.sync_result.as_deref().map(|result| {
        let compared_to = wire::ComparedTo::of(&application.spec);
        let normalized =
            |source: &Option<Box<wire::ApplicationSource>>| source.as_ref().map(|source| source.normalized());
        let same = result.sources == compared_to.sources
            && (!result.sources.is_empty() || normalized(&result.source) == normalized(&compared_to.source));
        let sources = if same { app.sources.clone() } else { Vec::new() };
        (sources, result.all_revisions().to_vec())
    });
    let sync = state.operation.sync.as_ref().filter(|_| state.operation.initiated_by.automated);
    Some(LastOperation {
        phase: OperationPhase::from_name(&state.phase)?,
        message: state.message.clone(),
        synced,
        heal_attempts: sync.and_then(|sync| u32::try_from(sync.auto_heal_attempts_count).ok()).unwrap_or(0),
    })
}

fn is_dry_run(state: &wire::OperationState) -> bool {
    state.operation.sync.as_ref().is_some_and(|sync| sync.dry_run)
}
