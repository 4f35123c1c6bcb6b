//! From evidence to a verdict.

use serde_json::json;

use super::DriftClass;
use super::case::{Case, Explained};
use super::classes::{
    behind, blocked, hook_residue, orphan, rejected_field, shared_resource, unadopted, unstable_render,
};
use super::evidence::{
    Answers, Attempt, Claim, DryRun, Evidence, LiveOwner, Previous, Question, SecondRender,
};
use super::explain::explain;
use super::report::findings;
use super::verdict::{ApplyAdvice, NotCompared, Outcome, Verdict, VerdictStatus};
use crate::desired::DesiredObject;
use crate::fields::{TakeOver, take_over};
use crate::normalize::{Redactor, is_secret};
use crate::object::Manifest;

/// Judges one object. Total: every input leads to a verdict, or to questions that were not answered yet.
pub fn judge(evidence: &Evidence<'_>) -> Outcome {
    let manifest = evidence.desired.map(|desired| &desired.manifest).or(evidence.live);
    if manifest.is_some_and(is_secret) { judge_secret(evidence) } else { judge_visible(evidence, None) }
}

/// Values are replaced by marks before anything looks at them, so no finding can show one.
fn judge_secret(evidence: &Evidence<'_>) -> Outcome {
    let mut redactor = Redactor::default();
    let mut redact = |manifest: Option<&Manifest>| manifest.map(|manifest| redactor.redact(manifest));
    let desired = evidence.desired.map(|desired| DesiredObject {
        manifest: redact(Some(&desired.manifest)).unwrap_or_else(|| desired.manifest.clone()),
        ..desired.clone()
    });
    let live = redact(evidence.live);
    let previous = match evidence.facts.previous {
        Previous::Changed(previous) => redact(previous),
        Previous::Unknown | Previous::Same | Previous::Rerendered => None,
    };
    let dry_run = match evidence.answers.dry_run {
        Some(DryRun::Object(object)) => redact(Some(object)),
        Some(DryRun::Refused(_) | DryRun::Unavailable) | None => None,
    };
    let second = match evidence.answers.second_render {
        Some(SecondRender::Object(second)) => redact(second),
        Some(SecondRender::Unavailable) | None => None,
    };
    let live_at = evidence.answers.live_at.map(redact);
    let claims: Vec<Claim<'_>> =
        evidence.facts.claims.iter().map(|claim| Claim { app: claim.app, manifest: None }).collect();
    let mut facts = evidence.facts.clone();
    facts.claims = &claims;
    if let Previous::Changed(_) = facts.previous {
        facts.previous = Previous::Changed(previous.as_ref());
    }
    let answers = Answers {
        dry_run: match (&dry_run, evidence.answers.dry_run) {
            (Some(object), _) => Some(DryRun::Object(object)),
            (None, answer) => answer,
        },
        second_render: match evidence.answers.second_render {
            Some(SecondRender::Object(_)) => Some(SecondRender::Object(second.as_ref())),
            answer @ (Some(SecondRender::Unavailable) | None) => answer,
        },
        live_at: live_at.as_ref().map(Option::as_ref),
    };
    let redacted =
        Evidence { desired: desired.as_ref(), live: live.as_ref(), facts, answers, ..evidence.clone() };
    judge_visible(&redacted, evidence.desired.map(|desired| &desired.manifest))
}

/// `original` is the unredacted manifest of a Secret, for the shape of its keys alone.
fn judge_visible(evidence: &Evidence<'_>, original: Option<&Manifest>) -> Outcome {
    match (evidence.desired, evidence.live) {
        (Some(desired), _) if desired.options.is_hook => {
            settle(evidence, NotCompared::Hook.into(), Vec::new())
        }
        (Some(desired), _) if desired.options.skip => settle(evidence, NotCompared::Skip.into(), Vec::new()),
        (Some(desired), Some(live)) => judge_pair(evidence, desired, live, original),
        (Some(desired), None) => judge_missing(evidence, desired, original.is_some()),
        (None, Some(live)) => judge_extra(evidence, live),
        (None, None) => settle(evidence, NotCompared::Absent.into(), Vec::new()),
    }
}

fn judge_pair(
    evidence: &Evidence<'_>,
    desired: &DesiredObject,
    live: &Manifest,
    original: Option<&Manifest>,
) -> Outcome {
    let same_version = desired.manifest.api_version() == live.api_version();
    let live = match evidence.answers.live_at {
        Some(Some(converted)) if !same_version => converted,
        Some(_) | None => live,
    };
    let case = Case::new(evidence, &desired.manifest, live, original.is_some());
    match &evidence.facts.owner {
        LiveOwner::ThisApp => {}
        LiveOwner::Nobody => return settle_pair(&case, unadopted::explain(&case, None)),
        LiveOwner::App(owner) if evidence.facts.claims.iter().any(|claim| claim.app == owner) => {
            return settle(evidence, Counted, shared_resource::not_ours(&case, owner));
        }
        LiveOwner::App(owner) => return settle_pair(&case, unadopted::explain(&case, Some(owner))),
    }
    let doubtful = !case.comparison.differences.is_empty() || !case.comparison.unknown.is_empty();
    if !same_version && doubtful && evidence.answers.live_at.is_none() {
        return Outcome::Ask(vec![Question::LiveAt {
            api_version: desired.manifest.api_version().to_owned(),
        }]);
    }
    let strict = evidence.options.or(desired.options.compare).strict;
    let explained = explain(&case, original.unwrap_or(&desired.manifest), strict);
    let questions = case.questions();
    if !questions.is_empty() {
        return Outcome::Ask(questions);
    }
    settle_pair(&case, explained)
}

/// Settles, with the rewrite of ownership that the apply needs.
fn settle_pair(case: &Case<'_>, explained: Vec<Explained>) -> Outcome {
    let managed_fields = ownership_to_move(case, &explained);
    let mut outcome = settle(case.evidence, Counted, explained);
    if let Outcome::Settled(verdict) = &mut outcome {
        verdict.advice.managed_fields = managed_fields;
    }
    outcome
}

/// The rewrite of `managedFields` without which an apply would not remove what has to go.
fn ownership_to_move(case: &Case<'_>, explained: &[Explained]) -> Option<serde_json::Value> {
    let mut places: Vec<_> = explained.iter().filter_map(|explained| explained.take.clone()).collect();
    places.sort();
    places.dedup();
    if places.is_empty() {
        return None;
    }
    let end_client_side_apply =
        explained.iter().any(|explained| explained.class == DriftClass::StaleOwnership);
    take_over(case.live, case.kind.map(|kind| kind.root), &TakeOver { places, end_client_side_apply })
}

/// Git asks for it, the cluster lacks it.
fn judge_missing(evidence: &Evidence<'_>, desired: &DesiredObject, is_secret: bool) -> Outcome {
    if let Some(collected) = hook_residue::collected(evidence, &desired.manifest) {
        return settle(evidence, Counted, vec![collected]);
    }
    if let Some(name) = evidence.facts.renamed {
        return settle(evidence, Counted, vec![unstable_render::renamed(name)]);
    }
    let nothing = json!({"apiVersion": desired.manifest.api_version(), "kind": desired.manifest.kind()});
    let nothing = Manifest::new(nothing).unwrap_or_else(|_| desired.manifest.clone());
    let case = Case::new(evidence, &desired.manifest, &nothing, is_secret);
    let mut explained = rejected_field::kept(&case);
    explained.extend(rejected_field::unknown(&case));
    explained.extend(blocked::duplicates(&case));
    let failure = match (evidence.facts.attempt, evidence.answers.dry_run) {
        (Attempt::Refused(failure), _) | (_, Some(DryRun::Refused(failure))) => Some(failure),
        (Attempt::Failed, None) => return Outcome::Ask(vec![Question::DryRun]),
        (Attempt::None | Attempt::Applied | Attempt::Failed, _) => None,
    };
    // A namespace or a kind that does not exist yet comes with the sync; that is no refusal of this object.
    match failure.filter(|failure| failure.is_final()) {
        Some(failure) => explained.extend(blocked::refused(&case, failure, &[])),
        None => explained.push(behind::missing(evidence)),
    }
    settle(evidence, Counted, explained)
}

/// The cluster has it, Git does not ask for it.
fn judge_extra(evidence: &Evidence<'_>, live: &Manifest) -> Outcome {
    match &evidence.facts.owner {
        LiveOwner::ThisApp => {}
        LiveOwner::Nobody | LiveOwner::App(_) => {
            return settle(evidence, NotCompared::Absent.into(), Vec::new());
        }
    }
    if let Some(residue) = hook_residue::left_over(live) {
        return settle(evidence, NotCompared::Hook.into(), vec![residue]);
    }
    if evidence.facts.claims.iter().any(|claim| claim.app != evidence.facts.app) {
        return settle(evidence, NotCompared::HandedOver.into(), Vec::new());
    }
    if let Some(name) = evidence.facts.renamed {
        return settle(evidence, Counted, vec![unstable_render::renamed(name)]);
    }
    let mut outcome = settle(evidence, Counted, orphan::explain(evidence, live));
    if let Outcome::Settled(verdict) = &mut outcome {
        verdict.requires_pruning = true;
        let own =
            live.annotation(crate::app::CompareOptions::ANNOTATION).map(crate::app::CompareOptions::parse);
        verdict.counts_for_app = !own.unwrap_or_default().ignore_extraneous;
        verdict.advice = ApplyAdvice::default();
    }
    outcome
}

/// What the status follows from.
#[derive(Clone, Copy)]
enum Basis {
    /// From the findings: any that counts makes it `OutOfSync`.
    Findings,
    /// It has none.
    NotCompared(NotCompared),
}

use Basis::Findings as Counted;

impl From<NotCompared> for Basis {
    fn from(why: NotCompared) -> Self {
        Self::NotCompared(why)
    }
}

fn settle(evidence: &Evidence<'_>, basis: Basis, explained: Vec<Explained>) -> Outcome {
    let counts = explained.iter().any(|explained| explained.counts);
    let status = match basis {
        Basis::NotCompared(why) => VerdictStatus::NotCompared(why),
        Basis::Findings if counts => VerdictStatus::OutOfSync,
        Basis::Findings => VerdictStatus::Synced,
    };
    let advice = advice(&explained);
    Outcome::Settled(Box::new(Verdict {
        key: evidence.key.clone(),
        counts_for_app: status == VerdictStatus::OutOfSync,
        status,
        findings: findings(evidence, explained).into(),
        requires_pruning: false,
        advice,
    }))
}

/// What writing the object should look like.
fn advice(explained: &[Explained]) -> ApplyAdvice {
    let mut advice = ApplyAdvice::default();
    for explained in explained.iter().filter(|explained| explained.counts || explained.is_kept()) {
        match explained.class {
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
            | DriftClass::RejectedField
            | DriftClass::TugOfWar => {}
        }
        advice.keep_live.extend(explained.keep.clone());
        advice.leave_out.extend(explained.leave_out.clone());
    }
    for paths in [&mut advice.heal, &mut advice.keep_live, &mut advice.leave_out] {
        paths.sort();
        paths.dedup();
    }
    advice
}
