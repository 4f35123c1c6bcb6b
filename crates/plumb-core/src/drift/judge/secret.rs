//! A Secret, or an object with sensitive fields: the values are redacted before anything else looks at them.

use super::object::judge_visible;
use crate::desired::DesiredObject;
use crate::drift::{Answers, ApiFailure, Attempt, Claim, DryRun, Evidence, Outcome, Previous, SecondRender};
use crate::normalize::{Redactor, is_secret, without_sensitive_values};
use crate::object::Manifest;

/// Redacts the values of all manifests first, so that no finding can show one.
///
/// Long because it goes through every part of the evidence.
pub(super) fn judge_hidden(evidence: &Evidence<'_>) -> Outcome {
    let mut redactor = Redactor::default();
    let mut redact = |manifest: Option<&Manifest>| {
        manifest.map(|manifest| {
            if is_secret(manifest) {
                redactor.redact(manifest)
            } else {
                redactor.redact_fields(manifest, evidence.schemas)
            }
        })
    };
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
    let quoted = || evidence.desired.map(|desired| &desired.manifest).into_iter().chain(evidence.live);
    let clean = |failure: &ApiFailure| {
        failure.with_texts(|text| without_sensitive_values(text, quoted(), evidence.schemas))
    };
    let attempt = match facts.attempt {
        Attempt::Refused(failure) => Some(clean(failure)),
        Attempt::None | Attempt::Applied | Attempt::Failed => None,
    };
    if let Some(failure) = &attempt {
        facts.attempt = Attempt::Refused(failure);
    }
    let refused = match evidence.answers.dry_run {
        Some(DryRun::Refused(failure)) => Some(clean(failure)),
        Some(DryRun::Object(_) | DryRun::Unavailable) | None => None,
    };
    let answers = Answers {
        dry_run: match (&dry_run, &refused, evidence.answers.dry_run) {
            (Some(object), _, _) => Some(DryRun::Object(object)),
            (None, Some(failure), _) => Some(DryRun::Refused(failure)),
            (None, None, answer) => answer,
        },
        second_render: match evidence.answers.second_render {
            Some(SecondRender::Object(_)) => Some(SecondRender::Object(second.as_ref())),
            answer @ (Some(SecondRender::Unavailable) | None) => answer,
        },
        live_at: live_at.as_ref().map(Option::as_ref),
    };
    let redacted =
        Evidence { desired: desired.as_ref(), live: live.as_ref(), facts, answers, ..evidence.clone() };
    let unredacted = evidence.desired.map(|desired| &desired.manifest).filter(|manifest| is_secret(manifest));
    judge_visible(&redacted, unredacted)
}
