//! The same value, written differently.

use crate::compare::{Change, Difference, Forgiven, Spelling, reprinted};
use crate::drift::case::{Case, last_field, writer};
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};
use crate::object::{FieldPath, Segment};

/// Values that the comparison, with the schema, takes for equal.
pub(in crate::drift) fn forgiven(case: &Case<'_>, forgiven: &Forgiven<'_>, spelling: Spelling) -> Explained {
    let place = forgiven.whole.as_ref().unwrap_or(&forgiven.path);
    let mut explained =
        Explained::new(DriftClass::EquivalentValue, forgiven.path.clone(), false, describe(spelling));
    explained.git = Some(forgiven.desired_path.clone());
    explained.change = Some(Change::Value);
    match case.other_writer(place) {
        Some(entry) => {
            explained.evidence = format!("{}, written by `{}`", describe(spelling), writer(entry)).into();
            explained = explained.written_by(entry).keeping(place.clone());
        }
        None if spelling == Spelling::Order => {
            let (actor, since) = case.witnessed_writer();
            if let Some(actor) = &actor {
                explained.evidence = format!("{}, changed by `{actor}`", describe(spelling)).into();
            }
            explained.actor = actor;
            explained.since = since;
            explained = explained.keeping(place.clone());
        }
        None => {}
    }
    explained
}

/// A quantity or duration that a controller reformatted, in a field that the schema calls a string. The writer is the
/// evidence: a person who writes another string means another value. In free text (the data of a `ConfigMap`, arguments,
/// labels), so does a controller.
pub(in crate::drift) fn difference(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    let spelling = reprinted(difference.desired?, difference.live?)?;
    if is_free_text(case, &difference.path) {
        return None;
    }
    let place = difference.whole.as_ref().unwrap_or(&difference.path);
    let entry = case.other_writer_of(difference).filter(|entry| case.is_controller(entry))?;
    let evidence =
        format!("{}, written by `{}`: {}", describe(spelling), writer(entry), case.values(difference));
    Some(
        Explained::new(DriftClass::EquivalentValue, difference.path.clone(), false, evidence)
            .at_difference(difference)
            .written_by(entry)
            .keeping(place.clone()),
    )
}

/// Built-in kinds have no durations in strings, and declare their quantities. Custom resources embed parts of built-in
/// kinds, with their free text. The last word of a name says what the field holds: `imageTag`, but not `tokenTTL`.
fn is_free_text(case: &Case<'_>, path: &FieldPath) -> bool {
    const FREE: [&str; 22] = [
        "annotations",
        "args",
        "command",
        "data",
        "digest",
        "env",
        "hash",
        "host",
        "hosts",
        "id",
        "image",
        "key",
        "labels",
        "metadata",
        "name",
        "nodeSelector",
        "password",
        "revision",
        "tag",
        "token",
        "url",
        "version",
    ];
    let is_free = |segment: &Segment| match segment {
        Segment::Field(name) => FREE.iter().any(|free| name == free),
        Segment::Index(_) => false,
    };
    let ends_free = || last_field(path).is_some_and(|name| FREE.contains(&last_word(name).as_str()));
    case.is_built_in()
        || case.desired.gvk().group.is_empty()
        || path.segments().iter().any(is_free)
        || ends_free()
}

/// `tag` of `imageTag` and of `image_tag`, `id` of `clientID`, in lower case.
fn last_word(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let starts_word = |at: usize| {
        let (before, letter) = (letters.get(at.wrapping_sub(1)), letters.get(at));
        let (Some(before), Some(letter)) = (before, letter) else { return true };
        !letter.is_alphanumeric() || (letter.is_uppercase() && !before.is_uppercase())
    };
    let start = (0..letters.len()).rev().find(|at| starts_word(*at)).unwrap_or_default();
    let word = letters.iter().skip(start).filter(|letter| letter.is_alphanumeric());
    word.flat_map(|letter| letter.to_lowercase()).collect()
}

/// The dry-run shows that the API server stores Git's value like this.
pub(in crate::drift) fn printed_by_server(case: &Case<'_>, difference: &Difference<'_>) -> Explained {
    Explained::new(
        DriftClass::EquivalentValue,
        difference.path.clone(),
        false,
        format!("{}: {}", describe(Spelling::Server), case.values(difference)),
    )
    .at_difference(difference)
}

/// A field that the API server always stores in another form, such as `stringData`.
pub(in crate::drift) fn at(field: FieldPath, spelling: Spelling) -> Explained {
    Explained::new(DriftClass::EquivalentValue, field, false, describe(spelling))
}

fn describe(spelling: Spelling) -> &'static str {
    match spelling {
        Spelling::Quantity => "the same quantity, written differently",
        Spelling::IntOrString => "the same number, written as text on one side; the schema accepts both",
        Spelling::Duration => "the same duration, written differently",
        Spelling::Base64 => "the same base64, without line breaks",
        Spelling::Time => "the same time, written differently",
        Spelling::StringData => "the API server stores `stringData` as `data`",
        Spelling::Order => "the same items in another order, which has no meaning here",
        Spelling::ApiVersion => "the same object in another version of its kind",
        Spelling::Server => "the API server stores Git's value like this; a dry-run would not change it",
    }
}

pub(in crate::drift) fn fix() -> Fix {
    Fix::new(
        FixKind::None,
        "nothing to do; to remove the difference, write the value in Git as the cluster has it",
    )
}
