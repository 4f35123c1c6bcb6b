//! Git changed and has not been synced yet.

use crate::compare::{Addition, Difference};
use crate::drift::case::Case;
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Evidence, Fix, FixKind, Previous};
use crate::object::FieldPath;

/// Git has a value that has not been applied yet.
pub(in crate::drift) fn difference(case: &Case<'_>, difference: &Difference<'_>) -> Explained {
    Explained::new(
        DriftClass::Behind,
        difference.path.clone(),
        true,
        format!("Git changed and has not been synced yet: {}", case.values(difference)),
    )
}

/// Git no longer has something that this app applied.
pub(in crate::drift) fn dropped(addition: &Addition<'_>) -> Explained {
    Explained::new(
        DriftClass::Behind,
        addition.path.clone(),
        true,
        format!("{} was applied by this app and has been removed from Git", addition.path),
    )
}

/// A default of Git's previous choice, which the new choice forbids.
pub(in crate::drift) fn left_over(path: FieldPath) -> Explained {
    let mut explained = Explained::new(
        DriftClass::Behind,
        path.clone(),
        true,
        format!("{path} is left over from the previous setting and is not allowed together with the new one"),
    );
    explained.take_ownership_of = Some(path);
    explained
}

/// The cluster does not have the object.
pub(in crate::drift) fn missing(evidence: &Evidence<'_>) -> Explained {
    let why = match evidence.facts.previous {
        Previous::Same => "this app applied the object, and it has been deleted from the cluster",
        Previous::Unknown | Previous::Changed(_) | Previous::Rerendered => {
            "the object is in Git but not in the cluster"
        }
    };
    Explained::new(DriftClass::Behind, FieldPath::root(), true, why)
}

pub(in crate::drift) fn fix(app: &str) -> Fix {
    Fix::new(FixKind::Sync, format!("`plumb app sync {app}`"))
}
