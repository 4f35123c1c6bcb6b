//! Another writer added a field or item that Git does not set.

use super::stale_ownership::all_that_left;
use crate::compare::{Addition, Difference};
use crate::drift::case::{Case, is_path, is_under, writer};
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};
use crate::fields::Entry;

/// A field or item that another writer owns.
pub(in crate::drift) fn addition(case: &Case<'_>, addition: &Addition<'_>, entry: &Entry<'_>) -> Explained {
    let strict = case.is_strict();
    let mut explained = Explained::new(
        DriftClass::UnclaimedAddition,
        addition.path.clone(),
        strict,
        format!("`{}` added {}, which is not in Git", writer(entry), addition.path),
    )
    .written_by(entry);
    if strict {
        let whole = addition.whole.clone();
        explained.take_ownership_of =
            Some(whole.unwrap_or_else(|| all_that_left(case, &addition.path, entry)));
    }
    explained
}

/// Git leaves the value empty, which the API server reads as no value at all, and another writer set one.
pub(in crate::drift) fn beside_empty(
    case: &Case<'_>,
    difference: &Difference<'_>,
    entry: &Entry<'_>,
) -> Explained {
    let strict = case.is_strict();
    let why = format!(
        "`{}` set {}, which Git leaves empty; the API server reads that as no value and fills in its default: {}",
        writer(entry),
        difference.path,
        case.values(difference)
    );
    let mut explained =
        Explained::new(DriftClass::UnclaimedAddition, difference.path.clone(), strict, why).written_by(entry);
    if !strict {
        explained.leave_out = Some(difference.desired_path.clone());
    }
    explained
}

/// An addition to an object without `managedFields`.
pub(in crate::drift) fn without_record(case: &Case<'_>, addition: &Addition<'_>) -> Explained {
    Explained::new(
        DriftClass::UnclaimedAddition,
        addition.path.clone(),
        case.is_strict(),
        format!(
            "{} is not in Git, and the object has no managedFields that tell who added it",
            addition.path
        ),
    )
}

/// An addition whose entry in `managedFields` is gone.
pub(in crate::drift) fn with_erased_record(case: &Case<'_>, addition: &Addition<'_>) -> Explained {
    let strict = case.is_strict();
    let why = format!(
        "{} is not in Git, the API server does not fill it in, and managedFields do not name who added it",
        addition.path
    );
    let mut explained = Explained::new(DriftClass::UnclaimedAddition, addition.path.clone(), strict, why);
    explained.take_ownership_of = strict.then(|| addition.path.clone());
    explained
}

/// Is it a place in which the API server and the controllers of Kubernetes add nothing: an item or a key of a pod template,
/// or a key of a `ConfigMap`?
pub(in crate::drift) fn is_never_filled_in(case: &Case<'_>, addition: &Addition<'_>) -> bool {
    let gvk = case.desired.gvk();
    let template: &[&str] = match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "ConfigMap") => {
            return is_under(&addition.path, &["data"]) || is_under(&addition.path, &["binaryData"]);
        }
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
        | ("", "ReplicationController") => &["spec", "template"],
        ("batch", "CronJob") => &["spec", "jobTemplate", "spec", "template"],
        _ => return false,
    };
    let is_key_of = |map: &[&str]| {
        let place: Vec<&str> = template.iter().chain(map).copied().collect();
        addition.path.parent().is_some_and(|parent| is_path(&parent, &place))
    };
    let is_key = is_key_of(&["metadata", "labels"])
        || is_key_of(&["metadata", "annotations"])
        || is_key_of(&["spec", "nodeSelector"]);
    is_under(&addition.path, template) && (addition.is_item || is_key)
}

/// Replicas that Git does not set, and that were changed through `scale`: Kubernetes does not record the writer of a field
/// without an owner.
pub(in crate::drift) fn scaled(case: &Case<'_>, addition: &Addition<'_>) -> Explained {
    let strict = case.is_strict();
    let mut explained = Explained::new(
        DriftClass::UnclaimedAddition,
        addition.path.clone(),
        strict,
        format!(
            "scaled to {} by an unknown writer (Kubernetes does not record it for a field without an owner); Git does not set the replicas",
            addition.live
        ),
    );
    explained.take_ownership_of = strict.then(|| addition.path.clone());
    explained
}

pub(in crate::drift) fn fix(counts: bool) -> Fix {
    let text = if counts {
        "add it to Git, or sync to remove it (`Strict=true` counts additions)"
    } else {
        "add it to Git or remove it by hand; plumb leaves it alone because Git does not set this field"
    };
    Fix::new(FixKind::Decide, text)
}
