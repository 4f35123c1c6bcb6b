//! Git sets a field to the value that it would have anyway.

use crate::compare::{Difference, Forgiven};
use crate::drift::case::{Case, show};
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};
use crate::object::FieldPath;

/// Git writes null, which the API server drops.
pub(in crate::drift) fn null(forgiven: &Forgiven<'_>) -> Explained {
    Explained::new(
        DriftClass::PhantomDefault,
        forgiven.desired_path.clone(),
        false,
        "Git sets null, which is the same as leaving the field out",
    )
}

/// Git writes an empty list that is merged item by item. Applying it changes nothing, and leaves no owner.
pub(in crate::drift) fn no_items(forgiven: &Forgiven<'_>) -> Explained {
    Explained::new(
        DriftClass::PhantomDefault,
        forgiven.desired_path.clone(),
        false,
        "Git sets an empty list, which asks for no items: the same as leaving the field out",
    )
}

/// Git writes a zero value or a default, and the cluster lacks the field.
///
/// In built-in kinds, a missing field and `false` can differ (`automountServiceAccountToken`). So it takes a proof that the
/// API server itself dropped the value: our apply still owns the field. A custom resource passes through the Go types of its
/// operator, which drop zero values on every write.
pub(in crate::drift) fn zero(case: &Case<'_>, forgiven: &Forgiven<'_>) -> Option<Explained> {
    let dropped_by_server = case.is_ours(&forgiven.path);
    if case.is_built_in() && !dropped_by_server {
        return None;
    }
    let value = forgiven.desired.map(show).unwrap_or_default();
    let (actor, since) = if dropped_by_server { (None, None) } else { case.witnessed_writer() };
    let by = match (&actor, dropped_by_server) {
        (Some(actor), _) => format!("`{actor}` dropped it when writing the object back"),
        (None, true) => "the API server drops it".to_owned(),
        (None, false) => "a typed client dropped it when writing the object back".to_owned(),
    };
    let mut explained = Explained::new(
        DriftClass::PhantomDefault,
        forgiven.desired_path.clone(),
        false,
        format!("Git sets {value}, which is the same as leaving the field out; {by}"),
    );
    explained.actor = actor;
    explained.since = since;
    Some(explained)
}

/// The API server reads Git's empty value as "you choose", and the dry-run shows that it keeps its choice.
pub(in crate::drift) fn chosen_by_server(difference: &Difference<'_>) -> Explained {
    Explained::new(
        DriftClass::PhantomDefault,
        difference.desired_path.clone(),
        false,
        "Git leaves the value empty, so the API server chooses one; a dry-run would not change it",
    )
}

/// The dry-run drops the value too.
pub(in crate::drift) fn dropped_by_server(field: FieldPath) -> Explained {
    Explained::new(
        DriftClass::PhantomDefault,
        field,
        false,
        "Git sets an empty value, which the API server drops (a dry-run shows it)",
    )
}

pub(in crate::drift) fn fix() -> Fix {
    Fix::new(FixKind::EditGit, "remove the line from Git")
}
