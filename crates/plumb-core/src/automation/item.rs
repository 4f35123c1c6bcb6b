//! What the automation knows about one object.

use jiff::Timestamp;

use super::{HealContext, Item};
use crate::desired::{ObjectOptions, PruneOption};
use crate::drift::{DriftClass, Verdict};
use crate::fields::Owners;
use crate::object::{Fingerprint, Manifest};
use crate::plan::{AppOptions, Owner};
use crate::status::ObjectStatus;
use crate::tracking::FIELD_MANAGER;

/// The facts about one object that decide whether a sync of it may start without a user.
#[derive(Clone, Copy, Debug)]
pub struct ItemFacts<'a> {
    /// The object's verdict, if it was compared.
    pub verdict: Option<&'a Verdict>,
    /// The live object.
    pub live: Option<&'a Manifest>,
    /// True if the live objects were listed completely.
    pub live_complete: bool,
    /// Whose the live object is.
    pub owner: Option<&'a Owner>,
    /// What Git asks of the object.
    pub desired: Option<DesiredFacts>,
    /// Sync options of the app.
    pub options: &'a AppOptions,
    /// When the last operation started that pruned or that chose objects: see [`ItemFacts::was_left_out`].
    pub pruned_before: Option<Timestamp>,
    /// True if a user paused the object.
    pub is_paused: bool,
}

/// What Git asks of an object, compared with what plumb applied.
#[derive(Clone, Copy, Debug)]
pub struct DesiredFacts {
    /// Identifies the request: see [`WriteHistory::asked`](crate::writes::WriteHistory::asked).
    pub asked: Fingerprint,
    /// True if plumb applied exactly this.
    pub was_applied: bool,
}

impl ItemFacts<'_> {
    /// The object as the automation looks at it.
    pub fn item(&self, object: &ObjectStatus) -> Item {
        let can_heal = self.can_heal();
        let counted = self.verdict.and_then(|verdict| verdict.findings.iter().find(|finding| finding.counts));
        Item {
            key: object.key.clone(),
            status: object.status,
            requires_pruning: object.requires_pruning,
            can_heal,
            is_behind: match (self.live, self.desired) {
                (_, Some(desired)) => self.verdict.is_some_and(is_behind_git) && !desired.was_applied,
                (Some(live), None) => can_heal && self.was_left_out(live),
                (None, None) => false,
            },
            moves_here: matches!(self.owner, Some(Owner::Other { renders: false, .. }))
                && self.desired.is_some(),
            is_paused: self.is_paused,
            context: HealContext {
                desired: self.desired.map(|desired| desired.asked.to_string()).unwrap_or_default(),
                opponent: counted.and_then(|finding| finding.actor.clone()),
                fields: counted
                    .map(|finding| finding.fields.iter().map(ToString::to_string).collect())
                    .unwrap_or_default(),
            },
        }
    }

    /// True if a sync of just this object would change what counts.
    fn can_heal(&self) -> bool {
        let Some(verdict) = self.verdict else { return false };
        if verdict.advice.blocked {
            return false;
        }
        if verdict.requires_pruning {
            let options = self.live.map(ObjectOptions::parse).unwrap_or_default();
            let is_guarded =
                options.prune == Some(PruneOption::Never) || self.options.prune == PruneOption::Never;
            // An object that is not proven to have left Git is not deleted, and another attempt changes nothing.
            return !is_guarded && self.live_complete && !self.live.is_some_and(Manifest::is_terminating);
        }
        let is_missing = self.live.is_none() && self.desired.is_some();
        is_missing || !verdict.advice.heal.is_empty()
    }

    /// True if an object that left Git existed before the last pruning operation, so that the operation left it out.
    /// An object that another writer created or marked since then is a live edit, which self-heal handles. Both times
    /// are whole seconds, so an object of plumb's own from the same second counts as older.
    fn was_left_out(&self, live: &Manifest) -> bool {
        let Some(pruned_before) = self.pruned_before else { return false };
        live.created_at().is_some_and(|created| created <= pruned_before)
            && Owners::of(live).entries().iter().any(|entry| entry.manager == FIELD_MANAGER)
    }
}

/// True if a sync would bring the object to a state of Git that has not arrived yet.
fn is_behind_git(verdict: &Verdict) -> bool {
    let mut counted = verdict.findings.iter().filter(|finding| finding.counts);
    !verdict.advice.blocked && counted.any(|finding| finding.class == DriftClass::Behind)
}
