//! What a merge destroys, as findings.

use super::{LintFinding, LintRule};
use crate::change::{Outcome, RepositoryChange};

/// The deletions of data and the changes that the API server will refuse.
pub fn of_merge(change: &RepositoryChange) -> Vec<LintFinding> {
    let mut findings = Vec::new();
    for object in &change.objects {
        let finding = |rule: LintRule, message: String, fix: &str| {
            LintFinding::new(rule, &object.app, message, fix)
                .of(Some(object.key.clone()), object.origin.as_ref())
        };
        match &object.outcome {
            Outcome::Deleted { data: Some(data) } => {
                let message = format!("this merge deletes the object, and with it {data}");
                let fix = "back it up, or keep it with argocd.argoproj.io/sync-options: Prune=false before removing it";
                // The file is gone, or has no such document any more.
                findings
                    .push(finding(LintRule::DeletesData, message, fix).of(Some(object.key.clone()), None));
            }
            Outcome::Changed { refused, .. } if !refused.is_empty() => {
                let shown: Vec<String> = refused.iter().map(ToString::to_string).collect();
                let message = format!("the API server refuses to change {}", shown.join(", "));
                let fix = "give the object a new name, or recreate it: argocd.argoproj.io/sync-options: \
                           Replace=true,Force=true";
                findings.push(finding(LintRule::ImmutableField, message, fix).at(refused.clone()));
            }
            Outcome::Added
            | Outcome::Deleted { .. }
            | Outcome::Left { .. }
            | Outcome::Moved { .. }
            | Outcome::Changed { .. } => {}
        }
    }
    findings
}
