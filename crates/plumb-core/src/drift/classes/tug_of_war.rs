//! T: healed again and again, and it came back each time.

use crate::drift::case::Case;
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};

/// Turns an edit into a tug of war if the field was healed too often.
pub(in crate::drift) fn escalate(case: &Case<'_>, edit: Explained) -> Explained {
    let is_addition = edit.class == DriftClass::UnclaimedAddition && edit.counts;
    if !is_addition && !matches!(edit.class, DriftClass::LiveEdit | DriftClass::Unexplained) {
        return edit;
    }
    let facts = case.facts();
    let field = edit.field.to_string();
    let record = facts.heals.iter().find(|record| {
        // A pointer that was read back does not know list positions from fields; printed, both are the same.
        let healed = record.field.to_string();
        is_inside(&field, &healed) || is_inside(&healed, &field)
    });
    let Some(record) = record else { return edit };
    let since = case.evidence.now.checked_sub(facts.heal_limit.window).ok();
    let recent = record.healed_at.iter().filter(|at| since.is_none_or(|since| **at >= since)).count();
    if !record.stopped && recent < facts.heal_limit.rounds {
        return edit;
    }
    let opponent = edit.actor.clone().unwrap_or_else(|| "somebody".to_owned());
    let rounds = record.healed_at.len();
    Explained {
        class: DriftClass::TugOfWar,
        evidence: format!(
            "healed {rounds} times, and `{opponent}` wrote it again each time; healing has stopped until Git, the rules or the opponent change. {}",
            edit.evidence
        )
        .into(),
        // What Git does not mention stays by itself, unless it is in a list that is replaced as a whole.
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
    let opponent = actor.unwrap_or("the other writer");
    Fix::new(
        FixKind::Decide,
        format!("draw the boundary: drop the field from Git, ignore it, or stop `{opponent}`"),
    )
}

fn is_inside(pointer: &str, ancestor: &str) -> bool {
    pointer.strip_prefix(ancestor).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
