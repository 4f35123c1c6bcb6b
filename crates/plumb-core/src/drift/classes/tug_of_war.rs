//! Self-heal restored the value several times, and another writer changed it back each time.

use crate::drift::case::Case;
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};

/// Turns an edit into a tug of war if self-heal has restored the field too often.
pub(in crate::drift) fn escalate(case: &Case<'_>, edit: Explained) -> Explained {
    let is_addition = edit.class == DriftClass::UnclaimedAddition && edit.counts;
    if !is_addition && !matches!(edit.class, DriftClass::LiveEdit | DriftClass::Unexplained) {
        return edit;
    }
    let facts = case.facts();
    let field = edit.field.to_string();
    let record = facts.heals.iter().find(|record| {
        // A pointer read from a report has list positions as fields; as text, both are the same.
        let healed = record.field.to_string();
        is_inside(&field, &healed) || is_inside(&healed, &field)
    });
    let Some(record) = record else { return edit };
    let since = case.evidence.now.checked_sub(facts.heal_limit.window).ok();
    let recent = record.healed_at.iter().filter(|at| since.is_none_or(|since| **at >= since)).count();
    if !record.stopped && recent < facts.heal_limit.rounds {
        return edit;
    }
    let opponent =
        edit.actor.as_ref().map_or_else(|| "another writer".to_owned(), |actor| format!("`{actor}`"));
    let rounds = record.healed_at.len();
    Explained {
        class: DriftClass::TugOfWar,
        evidence: format!(
            "self-heal restored it {rounds} times, and {opponent} changed it back each time; self-heal stops for this field until Git, the ignore rules or the other writer changes. {}",
            edit.evidence
        )
        .into(),
        // An apply leaves an addition alone, unless it is in a list that is replaced as a whole.
        keep_live: if is_addition {
            edit.take_ownership_of.clone().filter(|whole| *whole != edit.field)
        } else {
            Some(edit.field.clone())
        },
        take_ownership_of: None,
        ..edit
    }
}

pub(in crate::drift) fn fix(actor: Option<&str>) -> Fix {
    let opponent = actor.map_or_else(|| "the other writer".to_owned(), |actor| format!("`{actor}`"));
    Fix::new(
        FixKind::Decide,
        format!("decide who owns the field: remove it from Git, add an ignore rule, or stop {opponent}"),
    )
}

fn is_inside(pointer: &str, ancestor: &str) -> bool {
    pointer.strip_prefix(ancestor).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
