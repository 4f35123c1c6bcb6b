//! U: none of the other classes could be shown.

use crate::compare::{Addition, Difference};
use crate::drift::case::{Case, writer};
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};

/// Everything that is known, so that it can be told from noise.
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
        "the record of who wrote what (managedFields) is gone".to_owned()
    } else if owners.is_empty() {
        "no field manager owns it".to_owned()
    } else {
        format!("owned by {}", owners.join(", "))
    };
    // Somebody who wrote the object, which is not yet whoever wrote this: evidence, no actor.
    let witnessed = case
        .witnessed_writer()
        .0
        .map(|writer| format!("; last to write the object beside plumb: `{writer}`"));
    Explained::new(
        DriftClass::Unexplained,
        difference.path.clone(),
        true,
        format!("{}; {owners}{}", case.values(difference), witnessed.unwrap_or_default()),
    )
    .at_difference(difference)
}

/// Git may have had it, or the server may have put it there.
pub(in crate::drift) fn addition(addition: &Addition<'_>) -> Explained {
    Explained::new(
        DriftClass::Unexplained,
        addition.path.clone(),
        true,
        format!(
            "{} is not in Git; the server could not be asked whether an apply would remove it",
            addition.path
        ),
    )
}

pub(in crate::drift) fn fix() -> Fix {
    Fix::new(FixKind::Sync, "sync to put Git's value back; if it returns, the evidence says where to look")
}
