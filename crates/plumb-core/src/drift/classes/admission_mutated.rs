//! J: admission rewrites it every time.

use super::super::case::{Case, Explained};
use super::super::{DriftClass, Fix, FixKind};
use crate::compare::{Addition, Difference};

/// `MutatingAdmissionPolicy mirror`, for each configuration that matches this object.
fn names(case: &Case<'_>) -> Option<String> {
    let names: Vec<String> =
        case.facts().mutators.iter().map(|mutator| format!("{} `{}`", mutator.kind, mutator.name)).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// A value of Git that the dry-run rewrites to what the cluster has.
pub(in crate::drift) fn difference(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    let names = names(case)?;
    let mut explained = Explained::new(
        DriftClass::AdmissionMutated,
        difference.path.clone(),
        false,
        format!(
            "rewritten on every write, a dry-run shows it; matching: {names}; {}",
            case.values(difference)
        ),
    );
    explained.actor = Some(names);
    Some(explained)
}

/// Something that nobody owns, no default explains, and a matching configuration can have added.
pub(in crate::drift) fn addition(case: &Case<'_>, addition: &Addition<'_>) -> Option<Explained> {
    let names = names(case)?;
    let mut explained = Explained::new(
        DriftClass::AdmissionMutated,
        addition.path.clone(),
        false,
        format!("added when the object was written (no field manager owns it); matching: {names}"),
    );
    explained.actor = Some(names);
    Some(explained)
}

pub(in crate::drift) fn fix() -> Fix {
    super::fix(FixKind::None, "nothing needs to be done; or write in Git what the policy makes of it")
}
