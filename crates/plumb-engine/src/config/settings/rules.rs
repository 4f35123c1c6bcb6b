//! Ignore rules of the settings.

use plumb_core::ignore::IgnoreRules;
use plumb_crd::settings::{self as wire, SettingsProblem};

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
