//! Several apps render the object.

use crate::compare::compare;
use crate::drift::case::{Case, is_tracking_mark};
use crate::drift::explained::Explained;
use crate::drift::{Claim, DriftClass, Evidence, Fix, FixKind};
use crate::object::{FieldPath, ObjectKey};

/// Another app owns the object.
pub(in crate::drift) fn not_ours(case: &Case<'_>, owner: &str) -> Vec<Explained> {
    let mut whole = Explained::new(
        DriftClass::SharedResource,
        FieldPath::root(),
        true,
        format!(
            "apps `{owner}` and `{}` both render this object; `{owner}` tracks it and keeps it",
            case.facts().app
        ),
    );
    whole.actor = Some(owner.to_owned());
    let theirs = case.facts().claims.iter().find(|claim| claim.app == owner).and_then(|claim| claim.manifest);
    let between = theirs.map(|theirs| compare(case.desired, theirs, case.kind, Case::aside(case.kind)));
    // Where both apps ask for the same value, the owner reports the difference.
    let is_disputed = |place: &FieldPath| {
        between.as_ref().is_none_or(|between| {
            let mut places = between.differences.iter().map(|difference| &difference.desired_path);
            places.any(|other| other.starts_with(place) || place.starts_with(other))
        })
    };
    let differences = case.comparison.differences.iter();
    let disputed = differences
        .filter(|difference| !is_tracking_mark(&difference.path) && is_disputed(&difference.desired_path));
    let disputed = disputed.map(|difference| {
        let mut field = Explained::new(
            DriftClass::SharedResource,
            difference.path.clone(),
            true,
            format!("the apps disagree on {}: {}", difference.path, case.values(difference)),
        );
        field.actor = Some(owner.to_owned());
        field
    });
    std::iter::once(whole).chain(disputed).collect()
}

/// This app owns the object, and others render it too.
pub(in crate::drift) fn ours(case: &Case<'_>) -> Vec<Explained> {
    let others: Vec<&Claim<'_>> =
        case.facts().claims.iter().filter(|claim| claim.app != case.facts().app).collect();
    if others.is_empty() {
        return Vec::new();
    }
    let names = others.iter().map(|claim| claim.app).collect::<Vec<_>>().join("`, `");
    let shared = |field: FieldPath, evidence: String| {
        let mut explained = Explained::new(DriftClass::SharedResource, field, false, evidence);
        explained.actor = Some(names.clone());
        explained
    };
    let mut found = vec![shared(
        FieldPath::root(),
        format!("also rendered by app `{names}`; this app tracks it and keeps it"),
    )];
    for claim in others {
        let Some(theirs) = claim.manifest else { continue };
        let disputed = compare(case.desired, theirs, case.kind, Case::aside(case.kind)).differences;
        let disputed = disputed.into_iter().filter(|difference| !is_tracking_mark(&difference.path));
        found.extend(disputed.map(|difference| {
            shared(
                difference.desired_path.clone(),
                format!("app `{}` asks for another value at {}", claim.app, difference.desired_path),
            )
        }));
    }
    found
}

pub(in crate::drift) fn fix(evidence: &Evidence<'_>, key: &ObjectKey) -> Fix {
    let place = match evidence.desired.and_then(|desired| desired.origin.as_ref()) {
        Some(origin) => format!(" (in this app: line {} of {})", origin.line, origin.file),
        None => String::new(),
    };
    Fix::new(
        FixKind::Decide,
        format!(
            "keep {} {} in one app and remove it from the source of the other{place}; the object is not deleted, the app that still renders it takes ownership",
            key.kind, key.name
        ),
    )
}
