//! Hooks whose objects stay in the cluster.

use super::{LintApp, LintFinding, LintRule, Severity};

const POLICIES: [&str; 2] = ["argocd.argoproj.io/hook-delete-policy", "helm.sh/hook-delete-policy"];

pub(super) fn check(app: &LintApp<'_>) -> Vec<LintFinding> {
    let mut findings = Vec::new();
    for hook in app.hooks().filter(|hook| !hook.phases.is_empty()) {
        // A Job that is collected by itself leaves nothing behind.
        let is_collected = hook.manifest.value().pointer("/spec/ttlSecondsAfterFinished").is_some();
        let has_policy = POLICIES.iter().any(|policy| hook.manifest.annotation(policy).is_some());
        if has_policy || is_collected {
            continue;
        }
        let is_named = hook.manifest.name().is_some();
        let (message, severity) = if is_named {
            ("the hook has no delete policy: its object stays until the next sync", Severity::Hint)
        } else {
            (
                "the hook has generateName and no delete policy: each sync leaves one more object",
                Severity::Warning,
            )
        };
        let fix =
            "add the annotation argocd.argoproj.io/hook-delete-policy: BeforeHookCreation,HookSucceeded";
        let finding = LintFinding::new(LintRule::HookDeletePolicy, app.name, message, fix);
        findings.push(finding.of(hook.key(), hook.origin.as_ref()).with_severity(severity));
    }
    findings
}
