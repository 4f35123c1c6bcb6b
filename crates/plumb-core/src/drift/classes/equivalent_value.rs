//! H: another spelling of the same value.

use crate::compare::{Change, Difference, Forgiven, Spelling, reprinted};
use crate::drift::case::{Case, is_controller, writer};
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};
use crate::object::{FieldPath, Segment};

/// What the typed walk recognised.
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

/// A text that a controller printed in its own way. The schema knows only "text", so it takes the writer as
/// evidence: a person who writes another text means another text. Where a text is just a text (the data of a
/// `ConfigMap`, arguments, labels), so does a controller.
pub(in crate::drift) fn difference(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    let spelling = reprinted(difference.desired?, difference.live?)?;
    if is_free_text(case, &difference.path) {
        return None;
    }
    let place = difference.whole.as_ref().unwrap_or(&difference.path);
    let entry = case.other_writer_of(difference).filter(|entry| is_controller(entry))?;
    let evidence =
        format!("{}, written by `{}`: {}", describe(spelling), writer(entry), case.values(difference));
    Some(
        Explained::new(DriftClass::EquivalentValue, difference.path.clone(), false, evidence)
            .at_difference(difference)
            .written_by(entry)
            .keeping(place.clone()),
    )
}

/// Built-in kinds have no texts that are durations, and declare their quantities. Custom resources embed parts of
/// them.
fn is_free_text(case: &Case<'_>, path: &FieldPath) -> bool {
    const FREE: [&str; 7] = ["metadata", "labels", "annotations", "args", "command", "env", "nodeSelector"];
    let is_free = |segment: &Segment| match segment {
        Segment::Field(name) => FREE.iter().any(|free| name == free),
        Segment::Index(_) => false,
    };
    case.is_built_in() || case.desired.gvk().group.is_empty() || path.segments().iter().any(is_free)
}

/// The dry-run shows that the server prints Git's value like this.
pub(in crate::drift) fn printed_by_server(case: &Case<'_>, difference: &Difference<'_>) -> Explained {
    Explained::new(
        DriftClass::EquivalentValue,
        difference.path.clone(),
        false,
        format!("{}: {}", describe(Spelling::Server), case.values(difference)),
    )
    .at_difference(difference)
}

/// A place that is spelled differently by nature, such as `stringData`.
pub(in crate::drift) fn at(field: FieldPath, spelling: Spelling) -> Explained {
    Explained::new(DriftClass::EquivalentValue, field, false, describe(spelling))
}

fn describe(spelling: Spelling) -> &'static str {
    match spelling {
        Spelling::Quantity => "the same quantity in another spelling",
        Spelling::IntOrString => "the same number, once as text; the schema takes both",
        Spelling::Duration => "the same duration in another spelling",
        Spelling::Base64 => "the same base64 without line breaks",
        Spelling::Time => "the same instant in another spelling",
        Spelling::StringData => "the server turns `stringData` into `data`",
        Spelling::Order => "the same items in another order, which means nothing here",
        Spelling::ApiVersion => "the same object in another version of its kind",
        Spelling::Server => "the server itself stores Git's value like this; a dry-run would not change it",
    }
}

pub(in crate::drift) fn fix() -> Fix {
    Fix::new(FixKind::None, "nothing needs to be done; write the cluster's spelling in Git if it bothers")
}
