//! Ignore rules of the settings.

use plumb_core::app::IgnoreRule;
use plumb_core::ignore::IgnoreRules;
use plumb_crd::settings::{self as wire, SettingsProblem};

/// The system-wide ignore rules. If the settings say so, the rules of an aggregated role belong to its controller.
pub(super) fn ignore_rules(settings: &wire::Settings) -> Vec<IgnoreRule> {
    let aggregated = settings.compare.ignore_aggregated_roles.then(|| IgnoreRule {
        group: "rbac.authorization.k8s.io".to_owned(),
        kind: "ClusterRole".to_owned(),
        jq_path_expressions: vec!["select(.aggregationRule != null) | .rules".to_owned()],
        ..IgnoreRule::default()
    });
    let mut rules = settings.customizations.ignore_rules(settings.compare.ignore_status);
    rules.extend(aggregated);
    rules
}

/// The rules for changes that request no run: those for updates, and the ignored differences with them.
pub(super) fn update_rules(
    settings: &wire::Settings,
    problems: &mut Vec<SettingsProblem>,
) -> Option<IgnoreRules> {
    let mut rules = settings.customizations.update_rules();
    if rules.is_empty() || !settings.ignore_resource_updates {
        return None;
    }
    if settings.compare.ignore_differences_on_updates {
        rules.extend(settings.customizations.ignore_rules(wire::StatusScope::None));
    }
    let (rules, wrong) = IgnoreRules::compile(rules);
    problems.extend(wrong.into_iter().map(|problem| SettingsProblem {
        place: format!("argocd-cm ignoreResourceUpdates `{}`", problem.expression),
        reason: problem.message,
    }));
    Some(rules.for_all_apps())
}
