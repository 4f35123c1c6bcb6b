//! The decision after a comparison.

use jiff::Timestamp;

use super::{HealContext, HealLedger, HealLimits, HealState, Stopped};
use crate::app::{Automation, SelectedObject, Source};
use crate::object::ObjectKey;
use crate::status::SyncCode;
use crate::sync::OperationPhase;

/// Everything the decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// `None`: every sync is started by a user.
    pub automation: Option<Automation>,
    /// Why automated syncs may not start now, in words: a sync window.
    pub window: Option<&'a str>,
    /// Paused until then.
    pub paused_until: Option<Timestamp>,
    /// The app's sync status.
    pub status: SyncCode,
    /// The app's objects, those without status too.
    pub items: &'a [Item],
    /// Sources of the spec.
    pub sources: &'a [Source],
    /// What they resolve to now, in the same order.
    pub revisions: &'a [String],
    /// Did path filtering prove that the newer revisions change nothing of this app?
    pub irrelevant_change: bool,
    /// The last operation, if there was one.
    pub last: Option<&'a LastOperation>,
    /// Did a kind of the app change since the last operation failed, so that another attempt may succeed?
    pub kinds_changed: bool,
    /// Earlier heals.
    pub ledger: &'a HealLedger,
    /// Limits of self-heal.
    pub limits: HealLimits,
}

/// One object of the app.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one object")]
pub struct Item {
    /// Which one.
    pub key: ObjectKey,
    /// Its sync status; `None` for hooks and the like.
    pub status: Option<SyncCode>,
    /// Did it leave Git?
    pub requires_pruning: bool,
    /// Would a sync of just this object change what counts? Not for classes that self-heal leaves alone, not
    /// where a guard keeps the object, not where it is already being deleted.
    pub can_heal: bool,
    /// Is it still what this app applied from an older revision, though the newest asks for something else or does
    /// not have it? After a sync of the newest revision that means that the sync left it out: it was paused, or not
    /// selected.
    pub is_behind: bool,
    /// Another app owns it and no longer renders it: it may be taken over.
    pub moves_here: bool,
    /// Is the object paused?
    pub is_paused: bool,
    /// What a heal would be about.
    pub context: HealContext,
}

/// The last operation.
#[derive(Clone, Debug, PartialEq)]
pub struct LastOperation {
    /// How it ended, or that it runs.
    pub phase: OperationPhase,
    /// Its message.
    pub message: String,
    /// What it synced; `None` if it has no `syncResult`.
    pub synced: Option<(Vec<Source>, Vec<String>)>,
    /// `autoHealAttemptsCount`.
    pub heal_attempts: u32,
}

/// What happens now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// Start, wait, refuse or do nothing.
    pub decision: Decision,
    /// Objects whose self-heal was stopped, for class `TugOfWar` and a condition each.
    pub stopped: Vec<Stopped>,
    /// Decide again at this time if nothing happens before.
    pub next_check: Option<Timestamp>,
}

/// Start, wait, refuse or do nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Start this operation.
    Sync(SyncStart),
    /// Set a `SyncError` condition with this message.
    Refuse(String),
    /// Nothing happens, and a `SyncError` of an earlier decision is cleared (unless a window or a pause is why).
    Nothing(Idle),
}

/// Why nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Not automated.
    Manual,
    /// It is paused.
    Paused,
    /// A sync window is closed.
    Window,
    /// There is nothing to sync.
    InSync,
    /// Only deletions are left, and prune is off.
    OnlyPrunes,
    /// This revision was synced, and live drift is not healed.
    NoSelfHeal,
    /// The remaining drift cannot be healed, or self-heal was stopped.
    NothingToHeal,
    /// The next heal waits for its back-off.
    BackOff,
}

/// An operation to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncStart {
    /// Why.
    pub kind: StartKind,
    /// `operation.sync.prune`.
    pub prune: bool,
    /// Only these; `None` for all.
    pub selected: Option<Vec<SelectedObject>>,
    /// `operation.sync.autoHealAttemptsCount`.
    pub heal_attempts: u32,
}

/// Why an operation starts without a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartKind {
    /// Git or the spec moved on.
    NewRevision,
    /// Live drift is reverted.
    SelfHeal,
    /// Another app no longer renders an object.
    TakeOver,
    /// The last sync of this revision failed, and a kind of the app changed since.
    ChangedKind,
    /// The last sync of this revision left an object out that nothing holds any longer.
    CatchUp,
}

/// Decides whether a sync starts without a user.
pub fn decide(situation: &Situation<'_>, now: Timestamp) -> Evaluation {
    let heals = Heals::sort(situation, now);
    let mut next_check = heals.next_turn;
    let decision = match idle(situation, now) {
        Err(Idle::Paused) => {
            next_check = situation.paused_until;
            Decision::Nothing(Idle::Paused)
        }
        Err(why) => {
            next_check = None;
            Decision::Nothing(why)
        }
        Ok(automation) => start(situation, automation, &heals),
    };
    Evaluation { decision, stopped: heals.stopped, next_check }
}

/// The automation, if it may act at all.
fn idle(situation: &Situation<'_>, now: Timestamp) -> Result<Automation, Idle> {
    let automation = situation.automation.ok_or(Idle::Manual)?;
    if situation.paused_until.is_some_and(|until| until > now) {
        return Err(Idle::Paused);
    }
    if situation.window.is_some() {
        return Err(Idle::Window);
    }
    match situation.status {
        SyncCode::OutOfSync => {}
        SyncCode::Synced | SyncCode::Unknown => return Err(Idle::InSync),
    }
    let mut red = situation.items.iter().filter(|item| is_red(item)).peekable();
    if !automation.prune && red.peek().is_some() && red.all(|item| item.requires_pruning) {
        return Err(Idle::OnlyPrunes);
    }
    Ok(automation)
}

fn start(situation: &Situation<'_>, automation: Automation, heals: &Heals) -> Decision {
    let revisions = situation.revisions.join(", ");
    let start = match attempted(situation) {
        None => SyncStart {
            kind: StartKind::NewRevision,
            prune: automation.prune,
            selected: None,
            heal_attempts: 0,
        },
        Some(last) if last.phase != OperationPhase::Succeeded && situation.kinds_changed => SyncStart {
            kind: StartKind::ChangedKind,
            prune: automation.prune,
            selected: None,
            heal_attempts: 0,
        },
        Some(last) if last.phase != OperationPhase::Succeeded => {
            return Decision::Refuse(format!("Failed last sync attempt to {revisions}: {}", last.message));
        }
        Some(_) if !heals.moved.is_empty() => SyncStart {
            kind: StartKind::TakeOver,
            prune: false,
            selected: Some(heals.moved.clone()),
            heal_attempts: 0,
        },
        // Not a heal: no writer changed the cluster, the newest state of Git was not applied yet.
        Some(_) if !automation.self_heal && !heals.behind.is_empty() => SyncStart {
            kind: StartKind::CatchUp,
            prune: automation.prune,
            selected: Some(heals.behind.clone()),
            heal_attempts: 0,
        },
        Some(_) if !automation.self_heal => return Decision::Nothing(Idle::NoSelfHeal),
        // No object is out of sync, but the app is: its namespace lacks the managed metadata. Only a full sync fixes that.
        Some(last) if is_red_without_items(situation) && last.heal_attempts < MAX_WHOLE_HEALS => SyncStart {
            kind: StartKind::SelfHeal,
            prune: automation.prune,
            selected: None,
            heal_attempts: last.heal_attempts.saturating_add(1),
        },
        Some(_) if heals.free.is_empty() && heals.next_turn.is_some() => {
            return Decision::Nothing(Idle::BackOff);
        }
        Some(_) if heals.free.is_empty() => return Decision::Nothing(Idle::NothingToHeal),
        Some(last) => SyncStart {
            kind: StartKind::SelfHeal,
            prune: automation.prune,
            selected: Some(heals.free.clone()),
            heal_attempts: last.heal_attempts.saturating_add(1),
        },
    };
    let all_would_go =
        situation.items.iter().filter(|item| item.status.is_some()).all(|item| item.requires_pruning);
    if automation.prune && !automation.allow_empty && all_would_go {
        return Decision::Refuse(format!(
            "Skipping sync attempt to {revisions}: auto-sync will wipe out all resources"
        ));
    }
    Decision::Sync(start)
}

/// The last operation, if it was about just these sources and revisions.
fn attempted<'a>(situation: &Situation<'a>) -> Option<&'a LastOperation> {
    let last = situation.last?;
    let is_same = match &last.synced {
        Some((sources, revisions)) => {
            sources == situation.sources && (situation.irrelevant_change || revisions == situation.revisions)
        }
        None => last.phase.is_completed(),
    };
    is_same.then_some(last)
}

/// How many full syncs in a row try to heal something that is not an object of the app.
const MAX_WHOLE_HEALS: u32 = 5;

fn is_red_without_items(situation: &Situation<'_>) -> bool {
    !situation.items.iter().any(is_red)
}

fn is_red(item: &Item) -> bool {
    match item.status {
        Some(SyncCode::OutOfSync | SyncCode::Unknown) => true,
        Some(SyncCode::Synced) | None => false,
    }
}

/// What self-heal could do, object by object.
#[derive(Default)]
struct Heals {
    free: Vec<SelectedObject>,
    /// Those of `free` that a sync left out.
    behind: Vec<SelectedObject>,
    moved: Vec<SelectedObject>,
    next_turn: Option<Timestamp>,
    stopped: Vec<Stopped>,
}

impl Heals {
    fn sort(situation: &Situation<'_>, now: Timestamp) -> Self {
        let mut heals = Self::default();
        let may_prune = situation.automation.is_some_and(|automation| automation.prune);
        let red = situation.items.iter().filter(|item| is_red(item) && !item.is_paused);
        for item in red {
            if item.moves_here {
                heals.moved.push(SelectedObject::of(&item.key));
                continue;
            }
            // A stopped self-heal is reported for as long as the drift lasts, even if it can no longer be healed.
            let standing = situation.ledger.state_of(&item.key, &item.context, &situation.limits, now);
            let can_heal = (item.is_behind || item.can_heal) && (may_prune || !item.requires_pruning);
            match standing {
                HealState::Stopped(stopped) => heals.stopped.push(stopped),
                HealState::Free if can_heal => {
                    heals.free.push(SelectedObject::of(&item.key));
                    if item.is_behind {
                        heals.behind.push(SelectedObject::of(&item.key));
                    }
                }
                HealState::BackOff { until } if can_heal => {
                    heals.next_turn = Some(heals.next_turn.map_or(until, |turn| turn.min(until)));
                }
                HealState::Free | HealState::BackOff { .. } => {}
            }
        }
        heals
    }
}
