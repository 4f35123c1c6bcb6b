//! The object cannot be compared or applied.

use crate::drift::case::Case;
use crate::drift::explained::Explained;
use crate::drift::{ApiFailure, DriftClass, Fix, FixKind};
use crate::object::{FieldPath, Manifest, Segment};

/// Lists in Git that have an item twice: the API server refuses to merge them.
pub(in crate::drift) fn duplicates(case: &Case<'_>) -> Vec<Explained> {
    let explain = |path: &FieldPath| {
        let mut explained = Explained::new(
            DriftClass::Blocked,
            path.clone(),
            true,
            format!(
                "{path} lists the same item twice; the API server refuses that (in a pod, the last one would win)"
            ),
        );
        explained.hint = Some("remove the duplicate from Git".to_owned());
        explained
    };
    case.comparison.duplicates.iter().map(explain).collect()
}

/// The API server refuses what Git asks for. `differing` are the fields that an apply would change.
pub(in crate::drift) fn refused(
    case: &Case<'_>,
    failure: &ApiFailure,
    differing: &[FieldPath],
) -> Vec<Explained> {
    // The API server quotes values in its messages.
    let message = |text: &str| if case.is_secret() { failure.reason.clone() } else { bounded(text) };
    let (immutable, hint) = if is_immutable(&failure.message) {
        (
            "immutable: ",
            "the field is immutable: recreate the object (sync options `Force=true,Replace=true`), or revert the change in Git",
        )
    } else {
        ("", "correct the manifest in Git so that the API server accepts it")
    };
    let blocked = |path: FieldPath, text: &str| {
        let mut explained = Explained::new(
            DriftClass::Blocked,
            path,
            true,
            format!("the API server refuses it: {immutable}{}", message(text)),
        );
        explained.hint = Some(hint.to_owned());
        explained
    };
    let at = |place: FieldPath, text: &str| -> Vec<Explained> {
        let fields = changed_within(&place, text, differing);
        let fields = if fields.is_empty() { vec![one_of_many(place, case.desired)] } else { fields };
        fields.into_iter().map(|field| blocked(field, text)).collect()
    };
    if failure.causes.is_empty() {
        return at(FieldPath::root(), &failure.message);
    }
    let place = |field: &str| FieldPath::from_server(field).with_positions(case.desired.value());
    failure.causes.iter().flat_map(|cause| at(place(&cause.field), &cause.message)).collect()
}

/// Some fields have a second form for several values, whose first item is the same (`clusterIP`, `clusterIPs`). The API
/// server names either of them in a refusal; Git sets one.
fn one_of_many(place: FieldPath, desired: &Manifest) -> FieldPath {
    let one = match place.segments() {
        [parents @ .., Segment::Field(many), Segment::Index(0)] | [parents @ .., Segment::Field(many)] => {
            many.strip_suffix('s').map(|one| {
                let mut segments = parents.to_vec();
                segments.push(Segment::Field(one.into()));
                FieldPath::from(segments)
            })
        }
        _ => None,
    };
    let is_asked = |place: &FieldPath| place.find(desired.value()).is_some();
    one.filter(|one| is_asked(one) && !is_asked(&place)).unwrap_or(place)
}

/// The fields that a refusal is about, where the API server names only the map around them: the `spec` of a
/// `StatefulSet`, in which updates to "fields other than 'replicas', 'template' …" are forbidden.
fn changed_within(place: &FieldPath, message: &str, differing: &[FieldPath]) -> Vec<FieldPath> {
    let allowed = message.split_once("other than").map_or("", |(_, names)| names);
    let allowed: Vec<FieldPath> =
        allowed.split('\'').skip(1).step_by(2).map(|name| place.field(name)).collect();
    let is_within = |path: &&FieldPath| {
        path.starts_with(place) && !allowed.iter().any(|allowed| path.starts_with(allowed))
    };
    differing.iter().filter(is_within).cloned().collect()
}

/// The API server has no code for an immutable field, only several wordings.
pub(in crate::drift) fn is_immutable(message: &str) -> bool {
    const WORDS: [&str; 8] = [
        "immutable",
        "cannot change",
        "cannot be changed",
        "can not be changed",
        "may not change",
        "may not be changed",
        "cannot be updated",
        "cannot be modified",
    ];
    WORDS.iter().any(|words| message.contains(words))
        || message.split_once("updates to ").is_some_and(|(_, rest)| rest.contains("forbidden"))
}

/// An error of the API server can quote a whole pod template.
fn bounded(text: &str) -> String {
    const MAX: usize = 300;
    if text.chars().count() <= MAX {
        return text.to_owned();
    }
    let head: String = text.chars().take(MAX / 2).collect();
    let tail: Vec<char> = text.chars().rev().take(MAX / 2).collect();
    format!("{head} … {}", tail.into_iter().rev().collect::<String>())
}

pub(in crate::drift) fn fix(hints: &[String]) -> Fix {
    Fix::new(
        FixKind::Decide,
        hints
            .first()
            .cloned()
            .unwrap_or_else(|| "correct the manifest in Git so that the API server accepts it".to_owned()),
    )
}
