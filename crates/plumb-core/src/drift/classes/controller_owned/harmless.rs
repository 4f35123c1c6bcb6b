//! The closed list of changes by other writers that do no harm.
//!
//! A client chooses the name of its field manager. So the name of a controller never excuses a change by itself: what
//! changed must also have one of the shapes below. An image, a command, a selector, a rule, a weaker policy or a value
//! of a `ConfigMap` has none of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::control_plane;
use super::guarded::{is_guarded, is_named_as_sequence, is_plain, is_reference, is_sequence};
use crate::compare::{Addition, Change, Difference, Quantity};
use crate::drift::Autoscaler;
use crate::drift::case::{Case, is_path, is_under, last_field};
use crate::fields::Entry;
use crate::object::FieldPath;

/// A change by another writer that does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Harmless {
    /// Certificates where Git has a placeholder.
    InjectedBundle,
    /// A failure policy that was `Ignore` and is `Fail`.
    StricterFailurePolicy,
    /// A claim that asks for more storage than Git.
    GrownVolume,
    /// A field that the control plane writes.
    OfControlPlane,
    /// The items of Git in another order.
    Reordered,
    /// An item beside those of Git.
    ItemBeside,
}

/// The harmless shape of a value that Git sets and a controller changed, if it has one.
pub(super) fn shape_of(case: &Case<'_>, difference: &Difference<'_>, entry: &Entry<'_>) -> Option<Harmless> {
    if is_injected_bundle(case, difference) {
        return Some(Harmless::InjectedBundle);
    }
    if is_stricter_failure_policy(case, difference) {
        return Some(Harmless::StricterFailurePolicy);
    }
    if is_grown_volume(case, difference) {
        return Some(Harmless::GrownVolume);
    }
    if case.is_control_plane(entry) && control_plane::replaces(case, difference) {
        return Some(Harmless::OfControlPlane);
    }
    // An added item or another order changes what a list means, unless a controller is meant to do it.
    let place = difference.whole.as_ref().filter(|_| case.is_known_controller(entry))?;
    match difference.change {
        Change::Order if !is_order_meaningful(case, difference) => Some(Harmless::Reordered),
        Change::Extra
            if is_list_to_add_to(case, place)
                && has_all_of_git(case, place)
                && difference.live.is_some_and(is_reference) =>
        {
            Some(Harmless::ItemBeside)
        }
        Change::Order | Change::Extra | Change::Value | Change::Missing | Change::ItemMissing => None,
    }
}

/// Does a controller keep this field that Git no longer sets? The same shapes as for a value that Git sets: another field
/// that was removed from Git has to go, whatever name its other owner has.
pub(in crate::drift) fn is_theirs_to_keep(
    case: &Case<'_>,
    addition: &Addition<'_>,
    entry: &Entry<'_>,
) -> bool {
    is_scaled_addition(case, addition)
        || (is_ca_bundle(case, &addition.path) && has_certificate(addition.live))
        || (case.is_control_plane(entry) && control_plane::is_added_by_control_plane(case, addition))
        || is_aggregated(case, &addition.path)
        || (case.is_known_controller(entry)
            && (is_under(&addition.path, &["metadata", "finalizers"])
                || is_list_of_references(case, &addition.path)))
}

/// The autoscalers that set replicas. A `VerticalPodAutoscaler` does not.
pub(super) fn autoscaler_of_replicas<'c>(case: &Case<'c>) -> Option<&'c Autoscaler> {
    case.facts().autoscalers.iter().find(|autoscaler| autoscaler.sets_replicas())
}

/// Is it in the rules of a `ClusterRole` that is aggregated from others, in Git and in the cluster?
pub(super) fn is_aggregated(case: &Case<'_>, path: &FieldPath) -> bool {
    let has_rule = |value: &Value| value.get("aggregationRule").is_some_and(|rule| !rule.is_null());
    case.desired.kind() == "ClusterRole"
        && case.desired.group() == "rbac.authorization.k8s.io"
        && has_rule(case.desired.value())
        && has_rule(case.live.value())
        && is_under(path, &["rules"])
}

/// Is this a certificate bundle in a place that injectors fill: of a webhook, an `APIService`, a conversion webhook?
pub(super) fn is_ca_bundle(case: &Case<'_>, path: &FieldPath) -> bool {
    let gvk = case.desired.gvk();
    let is_place = match (gvk.group.as_str(), gvk.kind.as_str()) {
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => is_under(path, &["webhooks"]),
        ("apiregistration.k8s.io", "APIService") => is_path(path, &["spec", "caBundle"]),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => is_under(path, &["spec", "conversion"]),
        _ => false,
    };
    is_place && last_field(path) == Some("caBundle")
}

/// Does this text hold a PEM certificate, in base64?
pub(super) fn has_certificate(bundle: &Value) -> bool {
    bundle.as_str().and_then(decoded).is_some_and(|text| text.contains("-----BEGIN CERTIFICATE-----"))
}

/// Does this bundle hold nothing that a client could trust? An empty text, or text in base64 without a PEM block. What cannot
/// be decoded may be anything.
fn is_placeholder(bundle: &Value) -> bool {
    bundle.is_null()
        || bundle
            .as_str()
            .and_then(decoded)
            .is_some_and(|text| !text.to_ascii_uppercase().contains("-----BEGIN"))
}

/// The text in base64. The API server also reads it with line breaks.
fn decoded(bundle: &str) -> Option<String> {
    let bare: String = bundle.split_ascii_whitespace().collect();
    STANDARD.decode(bare).ok().map(|text| String::from_utf8_lossy(&text).into_owned())
}

fn is_injected_bundle(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    is_ca_bundle(case, &difference.path)
        && difference.desired.is_some_and(is_placeholder)
        && difference.live.is_some_and(has_certificate)
}

fn is_stricter_failure_policy(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    case.desired.group() == "admissionregistration.k8s.io"
        && last_field(&difference.path) == Some("failurePolicy")
        && text(difference.desired).as_deref() == Some("Ignore")
        && text(difference.live).as_deref() == Some("Fail")
}

fn is_grown_volume(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    case.desired.kind() == "PersistentVolumeClaim"
        && case.desired.group().is_empty()
        && is_path(&difference.path, &["spec", "resources", "requests", "storage"])
        && difference.live.and_then(Quantity::of) > difference.desired.and_then(Quantity::of)
}

fn is_scaled_addition(case: &Case<'_>, addition: &Addition<'_>) -> bool {
    is_path(&addition.path, &["spec", "replicas"]) && autoscaler_of_replicas(case).is_some()
}

/// Does the list still have all items that Git asks for?
fn has_all_of_git(case: &Case<'_>, place: &FieldPath) -> bool {
    case.comparison
        .differences
        .iter()
        .filter(|difference| difference.whole.as_ref() == Some(place))
        .all(|difference| difference.change == Change::Extra)
}

/// May a controller add an item to this list? Of the built-in kinds only to the Secrets of a `ServiceAccount`. A custom
/// resource belongs to its controller, but not the parts that say what runs, who may do what, what is let through, and in
/// which order.
fn is_list_to_add_to(case: &Case<'_>, list: &FieldPath) -> bool {
    is_list_of_references(case, list)
        || !(is_of_kubernetes(case) || is_guarded(list) || is_named_as_sequence(list))
}

/// The schema of a kind may not be known, and an attacker must not gain by that: groups of Kubernetes have no dot, or end in
/// `k8s.io`.
fn is_of_kubernetes(case: &Case<'_>) -> bool {
    let group = case.desired.group();
    case.is_built_in() || !group.contains('.') || group.ends_with("k8s.io")
}

/// May a controller add this field inside a list that Git sets as a whole? Only a plain value, only to custom resources,
/// outside of the parts that say what runs, who may do what, and what is let through; and the share of a backend, which
/// rollouts change all the time.
pub(in crate::drift) fn may_add_inside(case: &Case<'_>, addition: &Addition<'_>, entry: &Entry<'_>) -> bool {
    let is_share = || last_field(&addition.path) == Some("weight") && addition.live.is_u64();
    case.is_known_controller(entry)
        && (is_share()
            || is_aggregated(case, &addition.path)
            || !(is_of_kubernetes(case) || is_guarded(&addition.path) || !is_plain(addition.live)))
}

fn is_list_of_references(case: &Case<'_>, path: &FieldPath) -> bool {
    case.desired.kind() == "ServiceAccount"
        && case.desired.group().is_empty()
        && (is_under(path, &["imagePullSecrets"]) || is_under(path, &["secrets"]))
}

/// Does the position of an item decide? In a kind of Kubernetes it does in any list without keys: of two search domains,
/// sources of variables or servers the first one counts.
fn is_order_meaningful(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    let items = difference.desired.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    is_of_kubernetes(case) || is_sequence(&difference.desired_path, items)
}

/// Finalizers that a controller adds keep the object until that controller has cleaned up.
pub(super) fn is_finalizer(case: &Case<'_>, addition: &Addition<'_>, entry: &Entry<'_>) -> bool {
    is_under(&addition.path, &["metadata", "finalizers"]) && case.is_controller(entry)
}
