//! Claims that a sync may delete.

use super::{LintApp, LintFinding, LintRule};
use crate::desired::PruneOption;

pub(super) fn check(app: &LintApp<'_>) -> Vec<LintFinding> {
    let is_claim = |group: &str, kind: &str| group.is_empty() && kind == "PersistentVolumeClaim";
    let claims = app.objects().filter(|object| is_claim(&object.key.group, &object.key.kind));
    let is_protected =
        |option: Option<PruneOption>| matches!(option, Some(PruneOption::Never | PruneOption::Confirm));
    claims
        .filter(|claim| !claim.options.helm_keep && !is_protected(claim.options.prune))
        .map(|claim| {
            let message = "a sync with prune deletes the claim and its data once Git no longer has it";
            let fix = "add the annotation argocd.argoproj.io/sync-options: Prune=false,Delete=false";
            LintFinding::new(LintRule::UnprotectedClaim, app.name, message, fix)
                .of(Some(claim.key.clone()), claim.origin.as_ref())
        })
        .collect()
}
