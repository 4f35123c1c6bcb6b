//! A mutating webhook or policy changes the field on every write.

use crate::compare::{Addition, Difference, compare};
use crate::drift::case::Case;
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};
use crate::object::Manifest;

/// ``MutatingAdmissionPolicy `mirror` `` for each policy or webhook that matches this object.
fn names(case: &Case<'_>) -> Option<String> {
    let names: Vec<String> =
        case.facts().mutators.iter().map(|mutator| format!("{} `{}`", mutator.kind, mutator.name)).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// A value that Git sets, and that the dry-run rewrites to the live value.
pub(in crate::drift) fn difference(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    let names = names(case)?;
    let mut explained = Explained::new(
        DriftClass::AdmissionMutated,
        difference.path.clone(),
        false,
        format!(
            "admission rewrites this field on every write (a dry-run shows it); matching: {names}; {}",
            case.values(difference)
        ),
    );
    explained.actor = Some(names);
    Some(explained)
}

/// A field without an owner that is not a default, and that a matching policy may have added.
pub(in crate::drift) fn addition(case: &Case<'_>, addition: &Addition<'_>) -> Option<Explained> {
    let names = names(case)?;
    let mut explained = Explained::new(
        DriftClass::AdmissionMutated,
        addition.path.clone(),
        false,
        format!(
            "added by admission when the object was written: no field manager owns it; matching: {names}"
        ),
    );
    explained.actor = Some(names);
    Some(explained)
}

/// With `IncludeMutationWebhook=true`: what a write of the object would change although Git does not ask for it. A sync
/// brings it about.
pub(in crate::drift) fn due(case: &Case<'_>, predicted: &Manifest, found: &[Explained]) -> Vec<Explained> {
    let names = names(case).unwrap_or_else(|| "admission".to_owned());
    // What the API server would make of the object, compared with the live object. Git's part is in `found`.
    let ahead = compare(predicted, case.live, case.kind, Case::aside(case.kind));
    let paths = ahead.differences.into_iter().map(|difference| difference.path);
    paths
        .filter(|path| !found.iter().any(|known| path.starts_with(&known.field) && known.counts))
        .filter(|path| {
            !found.iter().any(|known| known.keep_live.as_ref().is_some_and(|keep| path.starts_with(keep)))
        })
        .map(|path| {
            let evidence = format!(
                "admission would change {path} on the next write (a dry-run shows it); matching: {names}"
            );
            Explained::new(DriftClass::Behind, path, true, evidence)
        })
        .collect()
}

pub(in crate::drift) fn fix() -> Fix {
    Fix::new(
        FixKind::None,
        "nothing to do; to remove the difference, set in Git the value that the policy sets",
    )
}
