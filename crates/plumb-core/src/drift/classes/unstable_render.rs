//! G: the same commit renders differently each time.

use super::super::case::{Case, Explained};
use super::super::{DriftClass, Fix, FixKind};
use crate::compare::Difference;
use crate::object::FieldPath;

/// The second render of the same commit has another value here. `None` with a question noted, or no such case.
pub(in crate::drift) fn difference(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    let place = difference.whole.as_ref().unwrap_or(&difference.desired_path);
    let unstable = case.is_unstable(&difference.desired_path)? || case.is_unstable(place)?;
    unstable.then(|| {
        Explained::new(
            DriftClass::UnstableRender,
            difference.desired_path.clone(),
            false,
            format!("two renders of the same commit differ at {}", difference.desired_path),
        )
        .keeping(difference.whole.clone().unwrap_or_else(|| difference.path.clone()))
    })
}

/// What was applied came from the same commit, and nobody wrote here since: only the rendering can have changed. A
/// date shows no difference between two renderings of one day.
pub(in crate::drift) fn since_applied(difference: &Difference<'_>) -> Explained {
    Explained::new(
        DriftClass::UnstableRender,
        difference.desired_path.clone(),
        false,
        format!("the same commit rendered another value at {} when it was applied", difference.desired_path),
    )
    .keeping(difference.whole.clone().unwrap_or_else(|| difference.path.clone()))
}

/// The name itself is made up at each rendering: the same object is there (or asked for) under another one.
pub(in crate::drift) fn renamed(other: &str) -> Explained {
    Explained::new(
        DriftClass::UnstableRender,
        FieldPath::from_pointer("/metadata/name"),
        false,
        format!("two renders of the same commit give it different names; the other one here is `{other}`"),
    )
}

pub(in crate::drift) fn fix(fields: &[String]) -> Fix {
    super::fix(
        FixKind::EditGit,
        format!(
            "pin the value in the chart's values, or ignore exactly this: `jsonPointers: [{}]`",
            fields.join(", ")
        ),
    )
}
