//! N: somebody added what Git does not mention.

use super::stale_ownership::all_that_left;
use crate::compare::Addition;
use crate::drift::case::{Case, writer};
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};
use crate::fields::Entry;

/// A field or item that someone else wrote.
pub(in crate::drift) fn addition(case: &Case<'_>, addition: &Addition<'_>, entry: &Entry<'_>) -> Explained {
    let strict = case.is_strict();
    let mut explained = Explained::new(
        DriftClass::UnclaimedAddition,
        addition.path.clone(),
        strict,
        format!("`{}` added {}, which Git does not mention", writer(entry), addition.path),
    )
    .written_by(entry);
    if strict {
        let whole = addition.whole.clone();
        explained.take_ownership_of =
            Some(whole.unwrap_or_else(|| all_that_left(case, &addition.path, entry)));
    }
    explained
}

/// An addition to an object on which nobody's name stands any more.
pub(in crate::drift) fn without_record(case: &Case<'_>, addition: &Addition<'_>) -> Explained {
    Explained::new(
        DriftClass::UnclaimedAddition,
        addition.path.clone(),
        case.is_strict(),
        format!("{} is not in Git, and the record of who wrote what is gone", addition.path),
    )
}

/// Replicas that Git leaves open and somebody set: where nobody owns them, the server keeps no record of a write through
/// `scale`.
pub(in crate::drift) fn scaled(case: &Case<'_>, addition: &Addition<'_>) -> Explained {
    let strict = case.is_strict();
    let mut explained = Explained::new(
        DriftClass::UnclaimedAddition,
        addition.path.clone(),
        strict,
        format!(
            "somebody scaled it to {}; Git leaves the replicas open, and the server keeps no record of who",
            addition.live
        ),
    );
    explained.take_ownership_of = strict.then(|| addition.path.clone());
    explained
}

pub(in crate::drift) fn fix(counts: bool) -> Fix {
    let text = if counts {
        "take it into Git, or sync to remove it (`Strict=true` counts additions)"
    } else {
        "take it into Git, or remove it by hand; Git makes no claim to it"
    };
    Fix::new(FixKind::Decide, text)
}
