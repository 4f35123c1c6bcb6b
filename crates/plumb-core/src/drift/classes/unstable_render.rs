//! The same commit renders differently each time.

use serde_json::Value;

use crate::compare::{Addition, Change, Difference};
use crate::drift::case::{Case, last_field};
use crate::drift::explained::Explained;
use crate::drift::random_names::{asked_key_of, held_key_of};
use crate::drift::time_text::{are_hashes, differ_in_time};
use crate::drift::{DriftClass, Fix, FixKind};
use crate::object::{FieldPath, Segment};

/// A second render of the same commit has another value here. Also `None` while there is no second render yet; the question
/// is noted then. In a list that another writer edited, only the value that itself differs is excused.
pub(in crate::drift) fn difference(
    case: &Case<'_>,
    difference: &Difference<'_>,
    is_edited: bool,
) -> Option<Explained> {
    if difference.whole.is_none() && matches!(difference.change, Change::Missing | Change::ItemMissing) {
        return random_key(case, difference);
    }
    // Another client may have written under plumb's name: a value beside one that varies is not excused by it.
    let is_value = difference.change == Change::Value;
    let whole = difference.whole.as_ref().filter(|_| !is_edited && !is_value);
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

/// The cluster lacks the key because the chart generates another one in each render. A value that differs in each render
/// is not excused if it is missing.
fn random_key(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    let held = held_key_of(case, difference)?;
    let place = &difference.desired_path;
    let why = format!(
        "the chart generates this key randomly: this render produced {place}, the cluster has {held}"
    );
    let mut explained = Explained::new(DriftClass::UnstableRender, place.clone(), false, why);
    explained.leave_out = Some(place.clone());
    Some(explained)
}

/// A key that an earlier render generated in place of one of this render.
pub(in crate::drift) fn held(case: &Case<'_>, addition: &Addition<'_>) -> Option<Explained> {
    let asked = asked_key_of(case, addition)?;
    let place = &addition.path;
    let why = format!(
        "the chart generates this key randomly: the cluster has {place}, this render produced {asked}"
    );
    Some(Explained::new(DriftClass::UnstableRender, place.clone(), false, why).keeping(place.clone()))
}

/// Can a chart have generated this value from the time? Such values are texts that differ in a date, or the hash of something
/// with a date in an annotation, and they do not say what runs or who may do what. Another client may have written under
/// plumb's name, so only such a value is excused without a second render that shows the difference.
pub(in crate::drift) fn may_follow_the_time(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    const GUARDED: [&str; 16] = [
        "args",
        "command",
        "env",
        "externalName",
        "host",
        "hosts",
        "image",
        "roleRef",
        "rules",
        "securityContext",
        "selector",
        "serviceAccountName",
        "subjects",
        "url",
        "volumes",
        "webhooks",
    ];
    let is_guarded = |segment: &Segment| match segment {
        Segment::Field(name) => GUARDED.iter().any(|guarded| name == guarded),
        Segment::Index(_) => false,
    };
    let text = |value: Option<&'_ Value>| value.and_then(Value::as_str).map(str::to_owned);
    let (Some(desired), Some(live)) = (text(difference.desired), text(difference.live)) else { return false };
    let segments = difference.path.segments();
    let is_annotation = segments.iter().rev().nth(1).is_some_and(|segment| match segment {
        Segment::Field(name) => &**name == "annotations",
        Segment::Index(_) => false,
    });
    let name = last_field(&difference.path).unwrap_or_default();
    !case.is_secret()
        && !segments.iter().any(is_guarded)
        && (differ_in_time(name, &desired, &live) || (is_annotation && are_hashes(&desired, &live)))
}

/// The last apply came from the same commit, and only plumb wrote the field since: the render must have changed. A second
/// render cannot show that for a date: it is the same all day.
pub(in crate::drift) fn since_applied(difference: &Difference<'_>) -> Explained {
    Explained::new(
        DriftClass::UnstableRender,
        difference.desired_path.clone(),
        false,
        format!(
            "the same commit rendered a different value at {} when it was applied",
            difference.desired_path
        ),
    )
    .keeping(difference.whole.clone().unwrap_or_else(|| difference.path.clone()))
}

/// The chart generates the name of the object: the cluster has, or Git asks for, the same object under another name.
pub(in crate::drift) fn renamed(other: &str) -> Explained {
    Explained::new(
        DriftClass::UnstableRender,
        FieldPath::from_pointer("/metadata/name"),
        false,
        format!("the chart generates this name randomly; the other name of the same object is `{other}`"),
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
