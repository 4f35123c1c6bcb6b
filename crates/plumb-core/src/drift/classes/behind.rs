//! S: Git moved on.

use super::super::case::{Case, Explained};
use super::super::{DriftClass, Evidence, Fix, FixKind, Previous};
use crate::compare::{Addition, Difference};
use crate::object::FieldPath;

/// Git has a value that was not applied yet.
pub(in crate::drift) fn difference(case: &Case<'_>, difference: &Difference<'_>) -> Explained {
    Explained::new(
        DriftClass::Behind,
        difference.path.clone(),
        true,
        format!("Git moved on and this was not synced yet: {}", case.values(difference)),
    )
}

/// Git dropped something that this app applied.
pub(in crate::drift) fn dropped(addition: &Addition<'_>) -> Explained {
    Explained::new(
        DriftClass::Behind,
        addition.path.clone(),
        true,
        format!("this app applied {}, and Git no longer has it", addition.path),
    )
}

/// The object is not there.
pub(in crate::drift) fn missing(evidence: &Evidence<'_>) -> Explained {
    let why = match evidence.facts.previous {
        Previous::Same => "this app applied the object, and it is gone from the cluster",
        Previous::Unknown | Previous::Changed(_) | Previous::Rerendered => {
            "Git has the object and the cluster does not"
        }
    };
    Explained::new(DriftClass::Behind, FieldPath::root(), true, why)
}

pub(in crate::drift) fn fix(app: &str) -> Fix {
    super::fix(FixKind::Sync, format!("`plumb app sync {app}`"))
}
