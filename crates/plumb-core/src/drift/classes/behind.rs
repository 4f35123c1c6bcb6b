//! S: Git moved on.

use crate::compare::{Addition, Difference};
use crate::drift::case::Case;
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Evidence, Fix, FixKind, Previous};
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

/// A default of Git's previous choice, which the new choice forbids.
pub(in crate::drift) fn left_over(path: FieldPath) -> Explained {
    let mut explained = Explained::new(
        DriftClass::Behind,
        path.clone(),
        true,
        format!("{path} is left of Git's former choice, and the new one forbids it"),
    );
    explained.take_ownership_of = Some(path);
    explained
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
    Fix::new(FixKind::Sync, format!("`plumb app sync {app}`"))
}
