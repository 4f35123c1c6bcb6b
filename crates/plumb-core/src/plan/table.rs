//! A plan as rows of text: what `--dry-run` and the page show.

use super::{Action, Group, HowToApply, Plan, PruneGuard, Step};

/// One line of a printed plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Phase, such as `Sync`.
    pub phase: String,
    /// Wave, such as `-1`.
    pub wave: String,
    /// What happens, such as `apply`.
    pub action: String,
    /// Which object, such as `apps/Deployment prod/web`.
    pub object: String,
    /// Why, such as `out of sync`.
    pub why: String,
    /// What is waited for before the next wave, such as `health`.
    pub waits_for: String,
}

impl Row {
    /// The columns' titles.
    pub const TITLES: [&'static str; 6] = ["PHASE", "WAVE", "ACTION", "OBJECT", "WHY", "WAITS FOR"];

    /// The columns.
    pub fn cells(&self) -> [&str; 6] {
        [&self.phase, &self.wave, &self.action, &self.object, &self.why, &self.waits_for]
    }
}

/// The plan as rows, in the order in which things happen; the failure branch last.
pub fn rows(plan: &Plan) -> Vec<Row> {
    let last = plan.groups.len().saturating_sub(1);
    let groups = plan.groups.iter().enumerate().map(|(index, group)| (group, index == last));
    groups
        .chain(plan.on_failure.iter().map(|group| (group, false)))
        .flat_map(|(group, is_last)| group.steps.iter().map(move |step| row(group, step, is_last)))
        .collect()
}

fn row(group: &Group, step: &Step, is_last: bool) -> Row {
    let (action, detail) = describe(&step.action);
    let waits_for = match step.action {
        // The last group ends the sync: only hooks are waited for.
        Action::Apply { .. } | Action::Unchanged | Action::Prune { .. } if is_last => "-".to_owned(),
        _ => step.waits_for.to_string(),
    };
    Row {
        phase: group.phase.to_string(),
        wave: group.wave.0.to_string(),
        action: action.to_owned(),
        object: step.id.key.to_string(),
        why: detail.map_or_else(|| step.why.to_string(), |detail| format!("{}, {detail}", step.why)),
        waits_for,
    }
}

fn describe(action: &Action) -> (&'static str, Option<String>) {
    match action {
        Action::Apply { how, takes_over, .. } => {
            (how_word(*how), takes_over.as_ref().map(|app| format!("from app {app}")))
        }
        Action::Unchanged => ("keep", None),
        Action::CreateNamespace { .. } => ("apply", None),
        Action::Prune { guard: PruneGuard::Free, .. } => ("prune", None),
        Action::Prune { guard: PruneGuard::Confirm { reasons, approved }, .. } => {
            let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
            let word = if *approved { "confirmed" } else { "waits for confirmation" };
            ("prune", Some(format!("{word}: {}", reasons.join("; "))))
        }
        Action::RunHook(hook) => {
            let policies: Vec<String> =
                hook.delete_policies.iter().map(|policy| format!("{policy:?}")).collect();
            ("run hook", Some(format!("deleted {}", policies.join(", "))))
        }
        Action::Skip(skip) => ("skip", Some(skip.to_string())),
    }
}

fn how_word(how: HowToApply) -> &'static str {
    match how {
        HowToApply::ServerSide => "apply",
        HowToApply::ServerSideOrRecreate => "apply or recreate",
        HowToApply::Create => "create",
        HowToApply::Replace => "replace",
        HowToApply::Recreate => "recreate",
    }
}
