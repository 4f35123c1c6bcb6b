//! From explained differences to the verdict: status, findings, and how to write the object.

use crate::drift::case::Case;
use crate::drift::explained::Explained;
use crate::drift::findings::findings;
use crate::drift::{ApplyAdvice, DriftClass, Evidence, NotCompared, Outcome, Verdict, VerdictStatus};
use crate::fields::{TakeOver, take_over};
use crate::object::FieldPath;

/// The verdict on an object that is in Git and in the cluster: with the rewrite of `managedFields` that the apply needs.
pub(super) fn settle_pair(case: &Case<'_>, explained: Vec<Explained>) -> Outcome {
    let managed_fields = ownership_to_move(case, &explained);
    let mut verdict = verdict(case.evidence, None, explained);
    verdict.advice.managed_fields = managed_fields;
    Outcome::Settled(Box::new(verdict))
}

/// The verdict that follows from findings alone: any that counts makes the object `OutOfSync`.
pub(super) fn settle(evidence: &Evidence<'_>, explained: Vec<Explained>) -> Outcome {
    Outcome::Settled(Box::new(verdict(evidence, None, explained)))
}

/// The verdict on an object of this app that is only in the cluster: a sync with prune deletes it, no apply writes it.
pub(super) fn settle_extra(
    evidence: &Evidence<'_>,
    ignore_extraneous: bool,
    explained: Vec<Explained>,
) -> Outcome {
    Outcome::Settled(Box::new(Verdict {
        requires_pruning: true,
        counts_for_app: !ignore_extraneous,
        advice: ApplyAdvice::default(),
        ..verdict(evidence, None, explained)
    }))
}

/// The verdict on an object that has no status.
pub(super) fn settle_uncompared(
    evidence: &Evidence<'_>,
    why: NotCompared,
    explained: Vec<Explained>,
) -> Outcome {
    Outcome::Settled(Box::new(verdict(evidence, Some(why), explained)))
}

fn verdict(evidence: &Evidence<'_>, not_compared: Option<NotCompared>, explained: Vec<Explained>) -> Verdict {
    let counts = explained.iter().any(|explained| explained.counts);
    let status = match not_compared {
        Some(why) => VerdictStatus::NotCompared(why),
        None if counts => VerdictStatus::OutOfSync,
        None => VerdictStatus::Synced,
    };
    let advice = advice(&explained);
    Verdict {
        key: evidence.key.clone(),
        counts_for_app: status == VerdictStatus::OutOfSync,
        status,
        findings: findings(evidence, explained).into(),
        requires_pruning: false,
        advice,
    }
}

/// The rewrite of `managedFields` without which an apply would leave fields that have to be removed.
fn ownership_to_move(case: &Case<'_>, explained: &[Explained]) -> Option<serde_json::Value> {
    let mut places: Vec<FieldPath> =
        explained.iter().filter_map(|explained| explained.take_ownership_of.clone()).collect();
    places.sort();
    places.dedup();
    if places.is_empty() {
        return None;
    }
    let end_client_side_apply =
        explained.iter().any(|explained| explained.class == DriftClass::StaleOwnership);
    take_over(case.live, case.kind.map(|kind| kind.root), &TakeOver { places, end_client_side_apply })
}

/// How to write the object so that exactly what counts changes.
fn advice(explained: &[Explained]) -> ApplyAdvice {
    let mut advice = ApplyAdvice::default();
    for explained in explained.iter().filter(|explained| explained.counts || explained.is_kept()) {
        match explained.class {
            // One that does not count is left alone.
            DriftClass::UnclaimedAddition if !explained.counts => {}
            DriftClass::LiveEdit
            | DriftClass::StaleOwnership
            | DriftClass::UnclaimedAddition
            | DriftClass::Unexplained => {
                advice.needed = true;
                advice.heal.push(explained.field.clone());
            }
            DriftClass::Behind | DriftClass::Unadopted => advice.needed = true,
            DriftClass::Blocked => advice.blocked = true,
            DriftClass::SchemaDefault
            | DriftClass::PhantomDefault
            | DriftClass::Orphan
            | DriftClass::SharedResource
            | DriftClass::HookResidue
            | DriftClass::UnstableRender
            | DriftClass::EquivalentValue
            | DriftClass::ControllerOwned
            | DriftClass::AdmissionMutated
            | DriftClass::RejectedField => {}
            DriftClass::TugOfWar => advice.contested.push(explained.field.clone()),
        }
        advice.keep_live.extend(explained.keep_live.clone());
        advice.leave_out.extend(explained.leave_out.clone());
    }
    // One value of a list that is replaced as a whole may be kept, and another one in it be wrong: then the list goes as Git
    // has it.
    let changed: Vec<&FieldPath> = explained
        .iter()
        .filter(|known| known.counts && is_written(known.class))
        .map(|known| &known.field)
        .collect();
    advice.keep_live.retain(|kept| !changed.iter().any(|field| field.starts_with(kept)));
    let ApplyAdvice { heal, keep_live, contested, leave_out, .. } = &mut advice;
    for paths in [heal, keep_live, contested, leave_out] {
        paths.sort();
        paths.dedup();
    }
    advice
}

/// Does an apply write a field of this class, if it counts?
fn is_written(class: DriftClass) -> bool {
    matches!(
        class,
        DriftClass::LiveEdit
            | DriftClass::StaleOwnership
            | DriftClass::UnclaimedAddition
            | DriftClass::Unexplained
            | DriftClass::Behind
    )
}
