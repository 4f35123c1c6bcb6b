//! N: somebody added what Git does not mention.

use super::super::case::{Case, Explained, writer};
use super::super::{DriftClass, Fix, FixKind};
use super::stale_ownership::all_that_left;
use crate::compare::Addition;
use crate::fields::Entry;

/// A field or item that someone else wrote.
pub(in crate::drift) fn addition(
    case: &Case<'_>,
    addition: &Addition<'_>,
    entry: &Entry<'_>,
    strict: bool,
) -> Explained {
    let mut explained = Explained::new(
        DriftClass::UnclaimedAddition,
        addition.path.clone(),
        strict,
        format!("`{}` added {}, which Git does not mention", writer(entry), addition.path),
    )
    .by(entry);
    if strict {
        let whole = addition.whole.clone();
        explained.take = Some(whole.unwrap_or_else(|| all_that_left(case, &addition.path, entry)));
    }
    explained
}

/// Did an earlier look find it added by the same writer? Our next apply makes theirs look older than ours, but it is no
/// leftover for that.
pub(in crate::drift) fn was_seen(case: &Case<'_>, addition: &Addition<'_>, entry: &Entry<'_>) -> bool {
    case.facts().earlier.iter().any(|finding| {
        finding.class == DriftClass::UnclaimedAddition
            && finding.actor.as_deref() == Some(entry.manager)
            && finding.fields.contains(&addition.path)
    })
}

/// An addition to an object on which nobody's name stands any more.
pub(in crate::drift) fn nobody(addition: &Addition<'_>, strict: bool) -> Explained {
    Explained::new(
        DriftClass::UnclaimedAddition,
        addition.path.clone(),
        strict,
        format!("{} is not in Git, and the record of who wrote what is gone", addition.path),
    )
}

/// Replicas that Git leaves open and somebody set: where nobody owns them, the server keeps no record of a write through
/// `scale`.
pub(in crate::drift) fn scaled(addition: &Addition<'_>, strict: bool) -> Explained {
    let mut explained = Explained::new(
        DriftClass::UnclaimedAddition,
        addition.path.clone(),
        strict,
        format!(
            "somebody scaled it to {}; Git leaves the replicas open, and the server keeps no record of who",
            addition.live
        ),
    );
    explained.take = strict.then(|| addition.path.clone());
    explained
}

pub(in crate::drift) fn fix(counts: bool) -> Fix {
    let text = if counts {
        "take it into Git, or sync to remove it (`Strict=true` counts additions)"
    } else {
        "take it into Git, or remove it by hand; Git makes no claim to it"
    };
    super::fix(FixKind::Decide, text)
}
