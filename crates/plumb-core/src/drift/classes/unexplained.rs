//! No rule found evidence for another class.

use crate::compare::{Addition, Difference};
use crate::drift::case::{Case, writer};
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};

/// Everything that is known about the field.
pub(in crate::drift) fn difference(case: &Case<'_>, difference: &Difference<'_>) -> Explained {
    let place = difference.whole.as_ref().unwrap_or(&difference.path);
    let owners: Vec<String> = case
        .owners
        .of_place(place)
        .map(|entry| {
            format!("`{}` ({:?}, {})", writer(entry), entry.operation, entry.time_text.unwrap_or("no time"))
        })
        .collect();
    let owners = if case.owners.is_empty() {
        "the object has no managedFields".to_owned()
    } else if owners.is_empty() {
        "no field manager owns it".to_owned()
    } else {
        format!("owned by {}", owners.join(", "))
    };
    // It wrote the object, but perhaps not this field: that is evidence, but not an actor.
    let witnessed = case
        .witnessed_writer()
        .0
        .map(|writer| format!("; the last other writer of the object was `{writer}`"));
    Explained::new(
        DriftClass::Unexplained,
        difference.path.clone(),
        true,
        format!("{}; {owners}{}", case.values(difference), witnessed.unwrap_or_default()),
    )
    .at_difference(difference)
}

/// Git may have had it, or the API server may have filled it in.
pub(in crate::drift) fn addition(addition: &Addition<'_>) -> Explained {
    Explained::new(
        DriftClass::Unexplained,
        addition.path.clone(),
        true,
        format!(
            "{} is not in Git; the API server did not answer whether an apply would remove it",
            addition.path
        ),
    )
}

pub(in crate::drift) fn fix() -> Fix {
    Fix::new(
        FixKind::Sync,
        "sync to restore Git's value; if the difference returns, the evidence shows where to look",
    )
}
