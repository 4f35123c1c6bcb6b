//! The closed list of changes by other writers that do no harm.
//!
//! A client chooses the name of its field manager. So the name of a controller never excuses a change by itself: what
//! changed must also have one of the shapes below. An image, a command, a selector, a rule, a weaker policy or a value
//! of a `ConfigMap` has none of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::control_plane;
use crate::compare::{Addition, Change, Difference, Quantity};
use crate::drift::Autoscaler;
use crate::drift::case::{Case, is_controller, is_path, is_under, last_field};
use crate::fields::Entry;
use crate::object::{FieldPath, Segment};

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
        Change::Order if !is_order_meaningful(place) => Some(Harmless::Reordered),
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
    let decoded = bundle.as_str().and_then(|text| STANDARD.decode(text).ok());
    decoded.is_some_and(|text| String::from_utf8_lossy(&text).contains("-----BEGIN CERTIFICATE-----"))
}

fn is_injected_bundle(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    is_ca_bundle(case, &difference.path)
        && !difference.desired.is_some_and(has_certificate)
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
/// resource belongs to its controller, but not the parts that say what runs, who may do what, and what is let through.
fn is_list_to_add_to(case: &Case<'_>, list: &FieldPath) -> bool {
    let group = case.desired.group();
    // The schema of a kind may not be known, and an attacker must not gain by that: groups of Kubernetes have no dot, or
    // end in `k8s.io`.
    let is_of_kubernetes = case.is_built_in() || !group.contains('.') || group.ends_with("k8s.io");
    is_list_of_references(case, list) || (!is_of_kubernetes && !is_guarded(list))
}

/// Is this item a reference by name, as that of a pull secret? An item of another shape may add a right, a host or a step.
fn is_reference(item: &Value) -> bool {
    const FIELDS: [&str; 7] = ["name", "namespace", "kind", "group", "apiGroup", "apiVersion", "key"];
    item.as_object().is_some_and(|fields| {
        fields.contains_key("name") && fields.keys().all(|field| FIELDS.contains(&field.as_str()))
    })
}

fn is_list_of_references(case: &Case<'_>, path: &FieldPath) -> bool {
    case.desired.kind() == "ServiceAccount"
        && case.desired.group().is_empty()
        && (is_under(path, &["imagePullSecrets"]) || is_under(path, &["secrets"]))
}

/// Lists in which the first match or the position decides.
fn is_order_meaningful(list: &FieldPath) -> bool {
    const FIRST_MATCHES: [&str; 16] = [
        "acls",
        "args",
        "command",
        "containers",
        "egress",
        "filters",
        "http",
        "ingress",
        "initContainers",
        "matches",
        "paths",
        "policies",
        "routes",
        "rules",
        "tcp",
        "webhooks",
    ];
    has_segment(list, &FIRST_MATCHES)
}

/// Parts of the names of fields, in any custom resource, that say what runs, who may do what, and what is let through.
const GUARDED: [&str; 40] = [
    "access",
    "account",
    "acl",
    "admin",
    "allow",
    "approv",
    "arg",
    "auth",
    "capabilit",
    "client",
    "command",
    "container",
    "destination",
    "egress",
    "env",
    "exec",
    "from",
    "grant",
    "group",
    "hook",
    "host",
    "http",
    "image",
    "ingress",
    "issuer",
    "member",
    "owner",
    "path",
    "permission",
    "plugin",
    "polic",
    "principal",
    "role",
    "route",
    "rule",
    "select",
    "sourcerepo",
    "subject",
    "trust",
    "user",
];

/// The same for whole names: as a part of a longer name they say nothing.
const GUARDED_NAMES: [&str; 9] =
    ["scripts", "steps", "tasks", "template", "podtemplate", "to", "volumes", "deny", "keys"];

/// Does a step of the path say what runs, who may do what, or what is let through?
fn is_guarded(path: &FieldPath) -> bool {
    path.segments().iter().any(|segment| match segment {
        Segment::Field(name) => {
            let name = name.to_ascii_lowercase();
            GUARDED.iter().any(|part| name.contains(part)) || GUARDED_NAMES.contains(&name.as_str())
        }
        Segment::Index(_) => false,
    })
}

fn has_segment(path: &FieldPath, names: &[&str]) -> bool {
    path.segments().iter().any(|segment| match segment {
        Segment::Field(name) => names.iter().any(|other| name == other),
        Segment::Index(_) => false,
    })
}

/// Finalizers that a controller adds keep the object until that controller has cleaned up.
pub(super) fn is_finalizer(addition: &Addition<'_>, entry: &Entry<'_>) -> bool {
    is_under(&addition.path, &["metadata", "finalizers"]) && is_controller(entry)
}
