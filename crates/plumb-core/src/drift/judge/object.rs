//! One object: in Git and in the cluster, or in one of them.

use serde_json::json;

use super::secret::judge_hidden;
use super::settle::{settle, settle_extra, settle_pair, settle_uncompared};
use crate::desired::DesiredObject;
use crate::drift::case::Case;
use crate::drift::classes::{
    behind, blocked, hook_residue, orphan, shared_resource, unadopted, unstable_render,
};
use crate::drift::explained::Explained;
use crate::drift::rules::{
    FINISHED_HOOK, FINISHED_JOB, NOT_IN_CLUSTER, NOT_IN_GIT, RANDOM_NAME, REFUSED, TRACKED_BY_OTHER_APP,
    UNTRACKED, explain, explain_forgiven, explain_manifest, named,
};
use crate::drift::{Attempt, DryRun, Evidence, LiveOwner, NotCompared, Outcome, Question};
use crate::normalize::is_secret;
use crate::object::Manifest;

/// Judges one object. Every input leads to a verdict, or to questions that have no answer yet.
pub fn judge(evidence: &Evidence<'_>) -> Outcome {
    let manifest = evidence.desired.map(|desired| &desired.manifest).or(evidence.live);
    let hides =
        |manifest: &Manifest| is_secret(manifest) || evidence.schemas.has_sensitive_fields(&manifest.gvk());
    if manifest.is_some_and(hides) { judge_hidden(evidence) } else { judge_visible(evidence, None) }
}

/// `unredacted` is Git's manifest of a Secret, to see how its keys are written; the evidence is redacted.
pub(super) fn judge_visible(evidence: &Evidence<'_>, unredacted: Option<&Manifest>) -> Outcome {
    match (evidence.desired, evidence.live) {
        (Some(desired), _) if desired.options.is_hook => {
            settle_uncompared(evidence, NotCompared::Hook, Vec::new())
        }
        (Some(desired), _) if desired.options.skip => {
            settle_uncompared(evidence, NotCompared::Skip, Vec::new())
        }
        (Some(desired), Some(live)) => judge_pair(evidence, desired, live, unredacted),
        (Some(desired), None) => judge_missing(evidence, desired, unredacted),
        (None, Some(live)) => judge_extra(evidence, live),
        (None, None) => settle_uncompared(evidence, NotCompared::Absent, Vec::new()),
    }
}

/// Git asks for it, and the cluster has it.
fn judge_pair(
    evidence: &Evidence<'_>,
    desired: &DesiredObject,
    live: &Manifest,
    unredacted: Option<&Manifest>,
) -> Outcome {
    let same_version = desired.manifest.api_version() == live.api_version();
    let live = match evidence.answers.live_at {
        Some(Some(converted)) if !same_version => converted,
        Some(_) | None => live,
    };
    let case = Case::new(evidence, &desired.manifest, live, unredacted);
    match &evidence.facts.owner {
        LiveOwner::ThisApp => {}
        LiveOwner::Nobody => {
            return settle_pair(&case, not_adopted(&case, None));
        }
        LiveOwner::App(owner) if evidence.facts.claims.iter().any(|claim| claim.app == owner) => {
            return settle(
                evidence,
                named(TRACKED_BY_OTHER_APP.name, shared_resource::not_ours(&case, owner)),
            );
        }
        LiveOwner::App(owner) => {
            return settle_pair(&case, not_adopted(&case, Some(owner)));
        }
    }
    let doubtful = !case.comparison.differences.is_empty() || !case.comparison.unknown.is_empty();
    if !same_version && doubtful && evidence.answers.live_at.is_none() {
        return Outcome::Ask(vec![Question::LiveAt {
            api_version: desired.manifest.api_version().to_owned(),
        }]);
    }
    let explained = explain(&case);
    let questions = case.questions();
    if !questions.is_empty() {
        return Outcome::Ask(questions);
    }
    settle_pair(&case, explained)
}

/// No app that renders it tracks it.
fn not_adopted(case: &Case<'_>, former_owner: Option<&str>) -> Vec<Explained> {
    let mut found = named(UNTRACKED.name, unadopted::explain(case, former_owner));
    found.extend(explain_forgiven(case));
    found
}

/// Git asks for it, and the cluster does not have it.
fn judge_missing(evidence: &Evidence<'_>, desired: &DesiredObject, unredacted: Option<&Manifest>) -> Outcome {
    if let Some(collected) = hook_residue::collected(evidence, &desired.manifest) {
        return settle(evidence, vec![collected.decided_by(FINISHED_JOB.name)]);
    }
    if let Some(name) = evidence.facts.renamed {
        return settle(evidence, vec![unstable_render::renamed(name).decided_by(RANDOM_NAME.name)]);
    }
    let nothing = json!({"apiVersion": desired.manifest.api_version(), "kind": desired.manifest.kind()});
    let nothing = Manifest::new(nothing).unwrap_or_else(|_| desired.manifest.clone());
    let case = Case::new(evidence, &desired.manifest, &nothing, unredacted);
    let mut explained = explain_manifest(&case);
    let failure = match (evidence.facts.attempt, evidence.answers.dry_run) {
        (Attempt::Refused(failure), _) | (_, Some(DryRun::Refused(failure))) => Some(failure),
        (Attempt::Failed, None) => return Outcome::Ask(vec![Question::DryRun]),
        (Attempt::None | Attempt::Applied | Attempt::Failed, _) => None,
    };
    // A namespace or a kind that does not exist yet may come with the sync; that is not a refusal of this object.
    match failure.filter(|failure| failure.is_final()) {
        Some(failure) => explained.extend(named(REFUSED.name, blocked::refused(&case, failure, &[]))),
        None => explained.push(behind::missing(evidence).decided_by(NOT_IN_CLUSTER.name)),
    }
    settle(evidence, explained)
}

/// The cluster has it, and Git does not ask for it.
fn judge_extra(evidence: &Evidence<'_>, live: &Manifest) -> Outcome {
    match &evidence.facts.owner {
        LiveOwner::ThisApp => {}
        LiveOwner::Nobody | LiveOwner::App(_) => {
            return settle_uncompared(evidence, NotCompared::Absent, Vec::new());
        }
    }
    // An object that Git had is no hook because of an annotation that came later.
    if let Some(residue) = hook_residue::left_over(live).filter(|_| !evidence.facts.extraneous.was_in_git) {
        return settle_uncompared(evidence, NotCompared::Hook, vec![residue.decided_by(FINISHED_HOOK.name)]);
    }
    if evidence.facts.claims.iter().any(|claim| claim.app != evidence.facts.app) {
        return settle_uncompared(evidence, NotCompared::HandedOver, Vec::new());
    }
    if evidence.facts.extraneous.is_asked_for {
        return settle_uncompared(evidence, NotCompared::AskedFor, Vec::new());
    }
    if let Some(name) = evidence.facts.renamed {
        return settle(evidence, vec![unstable_render::renamed(name).decided_by(RANDOM_NAME.name)]);
    }
    let is_ignored = evidence.facts.extraneous.is_ignored;
    settle_extra(evidence, is_ignored, named(NOT_IN_GIT.name, orphan::explain(evidence, live)))
}
