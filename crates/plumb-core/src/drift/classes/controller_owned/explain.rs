//! From a change by a controller to an explanation that does not count.

use serde_json::Value;

use super::control_plane;
use super::harmless::{
    Harmless, autoscaler_of_replicas, has_certificate, is_aggregated, is_ca_bundle, is_finalizer, shape_of,
};
use crate::compare::{Addition, Change, Difference};
use crate::drift::case::{Case, is_path, show, writer};
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};
use crate::fields::Entry;
use crate::object::FieldPath;

/// The replicas that an autoscaler sets.
pub(in crate::drift) fn autoscaled(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    let entry = case.other_writer_of(difference);
    let explained = owned(difference, scaled(case, difference, entry)?);
    Some(match entry {
        Some(entry) => explained.written_by(entry),
        None => explained,
    })
}

/// A taint that follows the state of the node.
pub(in crate::drift) fn tainted(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    (difference.change == Change::Extra && control_plane::taints(case, difference)).then(|| {
        let why = format!(
            "the control plane sets this taint from the state of the node: {}",
            case.values(difference)
        );
        owned(difference, why)
    })
}

/// The rules of an aggregated `ClusterRole`: its controller overwrites every other writer.
pub(in crate::drift) fn aggregated(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    let entry = case.other_writer_of(difference).filter(|_| is_aggregated(case, &difference.path))?;
    if case.is_controller(entry) {
        let why = format!("`{}` fills in the rules of an aggregated ClusterRole", writer(entry));
        return Some(owned(difference, why).written_by(entry));
    }
    let why = format!(
        "clusterrole-aggregation-controller fills in the rules of an aggregated ClusterRole and overwrites other writers: {}",
        case.values(difference)
    );
    Some(owned(difference, why))
}

/// Any other value that Git sets and a controller changed, in a way that does no harm.
pub(in crate::drift) fn difference(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    let entry = case.other_writer_of(difference).filter(|entry| case.is_controller(entry))?;
    let shape = shape_of(case, difference, entry)?;
    let why = match shape {
        Harmless::InjectedBundle => "injects the CA bundle where Git has a placeholder".to_owned(),
        Harmless::StricterFailurePolicy => {
            format!("made the failure policy stricter: {}", case.values(difference))
        }
        Harmless::GrownVolume => {
            format!("expanded the volume, which cannot shrink again: {}", case.values(difference))
        }
        Harmless::OfControlPlane => {
            format!("is part of the control plane and manages this field: {}", case.values(difference))
        }
        Harmless::Reordered => "keeps this list in its own order; the items are those of Git".to_owned(),
        Harmless::ItemBeside => {
            let added = difference.live.map(show).unwrap_or_default();
            format!("added {added} to a list that Git also sets")
        }
    };
    let explained = owned(difference, format!("`{}` {why}", writer(entry))).written_by(entry);
    Some(match shape {
        // The list has all items of Git. A claim must ask for storage.
        Harmless::Reordered | Harmless::GrownVolume => explained.for_git_to_take(),
        Harmless::InjectedBundle
        | Harmless::StricterFailurePolicy
        | Harmless::OfControlPlane
        | Harmless::ItemBeside => explained,
    })
}

/// An apply keeps the live value.
fn owned(difference: &Difference<'_>, why: String) -> Explained {
    let place = difference.whole.as_ref().unwrap_or(&difference.path);
    Explained::new(DriftClass::ControllerOwned, difference.path.clone(), false, why)
        .at_difference(difference)
        .keeping(place.clone())
}

/// An autoscaler that targets the object owns its replicas, and nothing else. Without such an autoscaler, a write through
/// `scale` is an edit: any client can make it, under any name.
fn scaled(case: &Case<'_>, difference: &Difference<'_>, entry: Option<&Entry<'_>>) -> Option<String> {
    let is_number = difference.desired.is_some_and(Value::is_u64);
    if !are_replicas(case, &difference.path, difference.live.filter(|_| is_number), entry) {
        return None;
    }
    let autoscaler = autoscaler_of_replicas(case).filter(|_| !is_switched_off(case, difference))?;
    Some(format!(
        "{} `{}` targets this object and sets its replicas: {}",
        autoscaler.kind,
        autoscaler.name,
        case.values(difference)
    ))
}

/// Is it the field that `scale` writes? In Kubernetes' own kinds that is `/spec/replicas`. A custom resource may have its
/// replicas in another field: a whole number, and all that the entry of a write through `scale` names. The subresource in
/// `managedFields` is written by the client like the rest of the entry, so it proves nothing about any other field.
fn are_replicas(case: &Case<'_>, path: &FieldPath, live: Option<&Value>, entry: Option<&Entry<'_>>) -> bool {
    let is_scaled = || {
        entry.is_some_and(|entry| entry.subresource == Some("scale") && entry.names_only(path))
            && live.is_some_and(Value::is_u64)
    };
    is_path(path, &["spec", "replicas"]) || (!case.is_built_in() && is_scaled())
}

/// A `HorizontalPodAutoscaler` stops working for an object that is scaled to zero, unless its own minimum is zero. Then
/// Git's value counts again.
fn is_switched_off(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    let is_zero = |value: Option<&Value>| value.and_then(Value::as_i64) == Some(0);
    let mut autoscalers = case.facts().autoscalers.iter().filter(|autoscaler| autoscaler.sets_replicas());
    is_zero(difference.live)
        && !is_zero(difference.desired)
        && !autoscalers.any(|autoscaler| autoscaler.scales_to_zero)
}

/// A field that Git does not set, and that a controller is meant to set.
pub(in crate::drift) fn addition(
    case: &Case<'_>,
    addition: &Addition<'_>,
    entry: &Entry<'_>,
) -> Option<Explained> {
    let is_scaled = entry.subresource == Some("scale")
        && are_replicas(case, &addition.path, Some(addition.live), Some(entry))
        && autoscaler_of_replicas(case).is_some();
    let why = if case.is_control_plane(entry) && control_plane::is_added_by_control_plane(case, addition) {
        "is part of the control plane and manages this field"
    } else if is_scaled {
        "scales this object"
    } else if is_ca_bundle(case, &addition.path)
        && has_certificate(addition.live)
        && case.is_controller(entry)
    {
        "injects the CA bundle"
    } else if is_finalizer(case, addition, entry) {
        "keeps its own finalizer in the metadata"
    } else {
        return None;
    };
    let evidence = format!("`{}` {why}", writer(entry));
    Some(
        Explained::new(DriftClass::ControllerOwned, addition.path.clone(), false, evidence).written_by(entry),
    )
}

/// Replicas that Git does not set and an autoscaler does, without an entry in `managedFields`.
pub(in crate::drift) fn scaled_addition(case: &Case<'_>, addition: &Addition<'_>) -> Option<Explained> {
    let autoscaler = autoscaler_of_replicas(case)?;
    let evidence =
        format!("{} `{}` targets this object and sets its replicas", autoscaler.kind, autoscaler.name);
    Some(Explained::new(DriftClass::ControllerOwned, addition.path.clone(), false, evidence))
}

/// What ends it, for values that Git may leave out (`removed`) and values that Git has to set (`taken`).
pub(in crate::drift) fn fix(fields: &[String], removed: bool, taken: bool) -> Fix {
    const REMOVE: &str = "remove the field from Git (server-side apply keeps the live value; the first client-side apply \
        without the field sets its default once)";
    const TAKE: &str = "write the value of the cluster to Git (without the field, a sync would remove it from the cluster \
        or be refused)";
    let change = match (removed, taken) {
        (false, false) => return Fix::new(FixKind::None, "nothing to do: Git does not set this field"),
        (true, false) => REMOVE.to_owned(),
        (false, true) => TAKE.to_owned(),
        (true, true) => format!("{REMOVE}, or {TAKE}, as the patch does for each field"),
    };
    let fields = fields.join(", ");
    Fix::new(FixKind::EditGit, format!("{change}, or ignore exactly this: `jsonPointers: [{fields}]`"))
}
