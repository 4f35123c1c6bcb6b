//! G: the same commit renders differently each time.

use crate::compare::{Addition, Change, Difference};
use crate::drift::case::Case;
use crate::drift::explained::Explained;
use crate::drift::random_names::{asked_key_of, held_key_of};
use crate::drift::{DriftClass, Fix, FixKind};
use crate::object::FieldPath;

/// The second render of the same commit has another value here. `None` with a question noted, or no such case. In a list
/// that somebody edited only what itself is made up is excused.
pub(in crate::drift) fn difference(
    case: &Case<'_>,
    difference: &Difference<'_>,
    is_edited: bool,
) -> Option<Explained> {
    if difference.whole.is_none() && matches!(difference.change, Change::Missing | Change::ItemMissing) {
        return made_up_key(case, difference);
    }
    let whole = difference.whole.as_ref().filter(|_| !is_edited);
    let place = whole.unwrap_or(&difference.desired_path);
    let unstable = case.is_unstable(&difference.desired_path)? || case.is_unstable(place)?;
    unstable.then(|| {
        Explained::new(
            DriftClass::UnstableRender,
            difference.desired_path.clone(),
            false,
            format!("two renders of the same commit differ at {}", difference.desired_path),
        )
        .keeping(whole.unwrap_or(&difference.path).clone())
    })
}

/// What the cluster lacks is not there under this key: the chart makes up another at each rendering. Only the value made
/// up anew is no reason to do without it.
fn made_up_key(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    let held = held_key_of(case, difference)?;
    let place = &difference.desired_path;
    let why =
        format!("the chart makes up the key of {place} at each rendering; the cluster has it as {held}");
    let mut explained = Explained::new(DriftClass::UnstableRender, place.clone(), false, why);
    explained.leave_out = Some(place.clone());
    Some(explained)
}

/// What an earlier rendering called by another key than this one.
pub(in crate::drift) fn held(case: &Case<'_>, addition: &Addition<'_>) -> Option<Explained> {
    let asked = asked_key_of(case, addition)?;
    let place = &addition.path;
    let why = format!("the key of {place} was made up by an earlier rendering; this one calls it {asked}");
    Some(Explained::new(DriftClass::UnstableRender, place.clone(), false, why).keeping(place.clone()))
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
    Fix::new(
        FixKind::EditGit,
        format!(
            "pin the value in the chart's values, or ignore exactly this: `jsonPointers: [{}]`",
            fields.join(", ")
        ),
    )
}
