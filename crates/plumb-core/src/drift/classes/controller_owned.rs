//! A controller sets the field, and is meant to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::compare::{Addition, Change, Difference, Quantity};
use crate::drift::case::{Case, is_controller, is_path, is_under, last_field, show, writer};
use crate::drift::explained::Explained;
use crate::drift::{Autoscaler, DriftClass, Fix, FixKind};
use crate::fields::{Entry, is_control_plane};
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
    is_taint_of_control_plane(case, difference).then(|| {
        let why = format!(
            "the control plane sets this taint from the state of the node: {}",
            case.values(difference)
        );
        owned(difference, why)
    })
}

/// The rules of an aggregated `ClusterRole`: its controller overwrites every other writer.
pub(in crate::drift) fn aggregated(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    let entry = case.other_writer_of(difference).filter(|_| is_aggregated(case, difference))?;
    if is_controller(entry) {
        let why = format!("`{}` fills in the rules of an aggregated ClusterRole", writer(entry));
        return Some(owned(difference, why).written_by(entry));
    }
    let why = format!(
        "clusterrole-aggregation-controller fills in the rules of an aggregated ClusterRole and overwrites other writers: {}",
        case.values(difference)
    );
    Some(owned(difference, why))
}

/// Any other value that Git sets and that a controller is there to set.
pub(in crate::drift) fn difference(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    let place = difference.whole.as_ref().unwrap_or(&difference.path);
    let entry = case.other_writer_of(difference).filter(|entry| is_controller(entry))?;
    let why = reason(case, difference, place, entry)?;
    Some(owned(difference, format!("`{}` {why}", writer(entry))).written_by(entry))
}

/// An apply keeps the live value.
fn owned(difference: &Difference<'_>, why: String) -> Explained {
    let place = difference.whole.as_ref().unwrap_or(&difference.path);
    Explained::new(DriftClass::ControllerOwned, difference.path.clone(), false, why)
        .at_difference(difference)
        .keeping(place.clone())
}

/// An autoscaler owns the replicas if it targets the object, or if a controller outside the control plane writes them
/// through the `scale` subresource, which exists for autoscalers. A custom resource may have its replicas in another field:
/// the one that is written through `scale`.
fn scaled(case: &Case<'_>, difference: &Difference<'_>, entry: Option<&Entry<'_>>) -> Option<String> {
    let is_scaled = entry.is_some_and(|entry| entry.subresource == Some("scale"));
    if !is_scaled && !is_path(&difference.path, &["spec", "replicas"]) {
        return None;
    }
    let autoscaler = case.facts().autoscalers.iter().find(|autoscaler| sets_replicas(autoscaler));
    if let Some(autoscaler) = autoscaler.filter(|_| !is_switched_off(case, difference, entry)) {
        return Some(format!(
            "{} `{}` targets this object and sets its replicas: {}",
            autoscaler.kind,
            autoscaler.name,
            case.values(difference)
        ));
    }
    let entry = entry.filter(|entry| {
        entry.subresource == Some("scale")
            && case.is_known_controller(entry)
            && !is_control_plane(entry.manager)
    })?;
    Some(format!(
        "`{}` scales this object through its `scale` subresource: {}",
        entry.manager,
        case.values(difference)
    ))
}

/// A `HorizontalPodAutoscaler` is disabled for an object that is scaled to zero. Then Git's value counts again.
fn is_switched_off(case: &Case<'_>, difference: &Difference<'_>, entry: Option<&Entry<'_>>) -> bool {
    let is_zero = |value: Option<&Value>| value.and_then(Value::as_i64) == Some(0);
    let by_autoscaler = entry.is_some_and(|entry| is_control_plane(entry.manager));
    let mut autoscalers = case.facts().autoscalers.iter().filter(|autoscaler| sets_replicas(autoscaler));
    is_zero(difference.live)
        && !is_zero(difference.desired)
        && !by_autoscaler
        && autoscalers.all(|autoscaler| autoscaler.kind == "HorizontalPodAutoscaler")
}

fn reason(
    case: &Case<'_>,
    difference: &Difference<'_>,
    place: &FieldPath,
    entry: &Entry<'_>,
) -> Option<String> {
    if is_injected_bundle(case, difference, entry) {
        return Some("injects the CA bundle".to_owned());
    }
    if is_resized_container(case, difference) {
        return Some("sets the resources that a VerticalPodAutoscaler recommends".to_owned());
    }
    if is_stricter_webhook(case, difference, entry) {
        return Some(format!(
            "owns this webhook and sets its failure policy (security-relevant): {}",
            case.values(difference)
        ));
    }
    if is_grown_volume(case, difference) {
        return Some(format!("expanded the volume, which cannot shrink again: {}", case.values(difference)));
    }
    if is_control_plane(entry.manager) && entry.subresource != Some("scale") {
        return Some(format!(
            "is part of the control plane and manages this field: {}",
            case.values(difference)
        ));
    }
    // An added item or another order changes what the list means, unless a controller is meant to do it.
    if !case.is_known_controller(entry) {
        return None;
    }
    match difference.change {
        Change::Order if difference.whole.is_some() => {
            Some("keeps this list in its own order; the items are those of Git".to_owned())
        }
        Change::Extra if difference.whole.is_some() && has_all_of_git(case, place) => Some(format!(
            "added {} to a list that Git also sets",
            difference.live.map(show).unwrap_or_default()
        )),
        Change::Order | Change::Extra | Change::Value | Change::Missing | Change::ItemMissing => None,
    }
}

/// If Git has only a placeholder, any writer may inject the certificates. If Git has certificates, only a known controller
/// may replace them.
fn is_injected_bundle(case: &Case<'_>, difference: &Difference<'_>, entry: &Entry<'_>) -> bool {
    let bundle = difference.desired.and_then(Value::as_str).and_then(|text| STANDARD.decode(text).ok());
    let has_certificate =
        bundle.is_some_and(|bundle| String::from_utf8_lossy(&bundle).contains("-----BEGIN"));
    last_field(&difference.path) == Some("caBundle") && (!has_certificate || case.is_known_controller(entry))
}

/// Is it in the rules of a `ClusterRole` that is aggregated from others?
fn is_aggregated(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    case.desired.kind() == "ClusterRole"
        && case.desired.value().get("aggregationRule").is_some_and(|rule| !rule.is_null())
        && is_under(&difference.path, &["rules"])
}

/// Taints that follow the conditions of a node are added to those of Git: by admission when the node is created, by the
/// node controllers afterwards.
fn is_taint_of_control_plane(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    const KEYS: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];
    let key = difference.live.and_then(|taint| taint.get("key")).and_then(Value::as_str);
    case.desired.kind() == "Node"
        && difference.change == Change::Extra
        && is_under(&difference.path, &["spec", "taints"])
        && key.is_some_and(|key| KEYS.iter().any(|prefix| key.starts_with(prefix)))
}

/// Does the list still have all items that Git asks for?
fn has_all_of_git(case: &Case<'_>, place: &FieldPath) -> bool {
    case.comparison
        .differences
        .iter()
        .filter(|difference| difference.whole.as_ref() == Some(place))
        .all(|difference| difference.change == Change::Extra)
}

fn is_resized_container(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    let is_vertical =
        case.facts().autoscalers.iter().any(|autoscaler| autoscaler.kind == "VerticalPodAutoscaler");
    is_vertical && difference.path.to_string().contains("/resources/")
}

/// The writer that injects the CA bundle of a webhook owns it; any controller may make the failure policy stricter.
fn is_stricter_webhook(case: &Case<'_>, difference: &Difference<'_>, entry: &Entry<'_>) -> bool {
    if last_field(&difference.path) != Some("failurePolicy") || !is_under(&difference.path, &["webhooks"]) {
        return false;
    }
    let stricter = difference.live.and_then(Value::as_str) == Some("Fail");
    let bundle = difference.path.parent().map(|webhook| webhook.field("clientConfig").field("caBundle"));
    let injects = bundle.is_some_and(|bundle| {
        bundle.find(case.live.value()).is_some() && entry.owns(&bundle, case.live.value())
    });
    stricter || injects
}

fn is_grown_volume(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    case.desired.kind() == "PersistentVolumeClaim"
        && is_path(&difference.path, &["spec", "resources", "requests", "storage"])
        && difference.live.and_then(Quantity::of) > difference.desired.and_then(Quantity::of)
}

/// A field that Git does not set, and that a controller is meant to set.
pub(in crate::drift) fn addition(
    case: &Case<'_>,
    addition: &Addition<'_>,
    entry: &Entry<'_>,
) -> Option<Explained> {
    let is_bookkeeping = is_under(&addition.path, &["metadata", "finalizers"])
        || is_under(&addition.path, &["metadata", "ownerReferences"]);
    let why = if is_control_plane(entry.manager) {
        "is part of the control plane and manages this field"
    } else if entry.subresource == Some("scale") && case.is_known_controller(entry) {
        "scales this object"
    } else if last_field(&addition.path) == Some("caBundle") && is_controller(entry) {
        "injects the CA bundle"
    } else if is_bookkeeping && is_controller(entry) {
        "keeps its own bookkeeping in the metadata"
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
    let autoscaler = case.facts().autoscalers.iter().find(|autoscaler| sets_replicas(autoscaler))?;
    let evidence =
        format!("{} `{}` targets this object and sets its replicas", autoscaler.kind, autoscaler.name);
    Some(Explained::new(DriftClass::ControllerOwned, addition.path.clone(), false, evidence))
}

fn sets_replicas(autoscaler: &Autoscaler) -> bool {
    autoscaler.kind != "VerticalPodAutoscaler"
}

pub(in crate::drift) fn fix(fields: &[String], is_in_git: bool) -> Fix {
    if !is_in_git {
        return Fix::new(FixKind::None, "nothing to do: Git does not set this field");
    }
    Fix::new(
        FixKind::EditGit,
        format!(
            "remove the field from Git (the live value stays), or ignore exactly this: `jsonPointers: [{}]`",
            fields.join(", ")
        ),
    )
}
