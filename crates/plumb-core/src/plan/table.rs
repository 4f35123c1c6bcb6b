//! A plan as rows of text: what `--dry-run` and the page show.

use super::{Action, Group, HowToApply, Plan, PruneGuard, Skip, Step, StepId};

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

    /// The separator between the parts of [`Row::text`].
    const BETWEEN: &'static str = " · ";

    /// The row without phase and object, in one line: for `syncResult.resources[].message` of a dry run, which
    /// has both beside it.
    pub fn text(&self) -> String {
        let wave = format!("wave {}", self.wave);
        [wave.as_str(), &self.action, &self.why, &self.waits_for].join(Self::BETWEEN)
    }

    /// Wave, action, why and what is waited for, out of [`Row::text`]; `None` for any other text.
    pub fn parts(text: &str) -> Option<[&str; 4]> {
        let (wave, rest) = text.strip_prefix("wave ")?.split_once(Self::BETWEEN)?;
        let (action, rest) = rest.split_once(Self::BETWEEN)?;
        let (why, waits_for) = rest.rsplit_once(Self::BETWEEN)?;
        Some([wave, action, why, waits_for])
    }

    /// The same row for what was tried and refused.
    #[must_use]
    pub fn refused(self, why: String) -> Self {
        Self { action: "refused".to_owned(), why, waits_for: "-".to_owned(), ..self }
    }

    /// The columns.
    pub fn cells(&self) -> [&str; 6] {
        [&self.phase, &self.wave, &self.action, &self.object, &self.why, &self.waits_for]
    }
}

/// The plan as rows, in the order in which things happen; the failure branch last.
pub fn rows(plan: &Plan) -> Vec<Row> {
    named_rows(plan).map(|(_, row)| row).collect()
}

/// The row of one step.
pub fn row_of(plan: &Plan, id: &StepId) -> Option<Row> {
    named_rows(plan).find(|(of, _)| *of == id).map(|(_, row)| row)
}

fn named_rows(plan: &Plan) -> impl Iterator<Item = (&StepId, Row)> {
    let last = plan.groups.len().saturating_sub(1);
    let groups = plan.groups.iter().enumerate().map(move |(index, group)| (group, index == last));
    groups.chain(plan.on_failure.iter().map(|group| (group, false))).flat_map(|(group, is_last)| {
        group.steps.iter().map(move |step| (&step.id, row(group, step, is_last)))
    })
}

fn row(group: &Group, step: &Step, is_last: bool) -> Row {
    let (action, detail) = describe(&step.action);
    let waits_for = match step.action {
        // The last group ends the sync: only hooks are waited for.
        Action::Apply { .. }
        | Action::Unchanged
        | Action::Prune { .. }
        | Action::Skip(Skip::AlreadyTerminating)
            if is_last =>
        {
            "-".to_owned()
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_back_from_its_text() {
        let row = Row {
            phase: "Sync".to_owned(),
            wave: "-1".to_owned(),
            action: "prune".to_owned(),
            object: "apps/Deployment prod/web".to_owned(),
            why: "removed from Git, waits for confirmation: 6 of 9 · at once".to_owned(),
            waits_for: "deletion".to_owned(),
        };
        let text = row.text();
        assert_eq!(Row::parts(&text), Some(["-1", "prune", row.why.as_str(), "deletion"]));
        assert_eq!(Row::parts("deployment.apps/web unchanged"), None);
    }
}
