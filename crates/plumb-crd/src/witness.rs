//! The registration of the witness with the API server; `plumb_core::witness` says what it is for.

use plumb_core::tracking::{FIELD_MANAGER, TRACKING_ANNOTATION};
use serde_json::{Value, json};

use crate::install::labels;

/// Name of the registration of an installation.
pub fn name(control_plane_namespace: &str) -> String {
    format!("plumb-witness-{control_plane_namespace}")
}

/// Is this the registration of a witness, of whatever installation?
pub fn is_witness(name: &str) -> bool {
    name.starts_with("plumb-witness-")
}

/// The registration: where the witness answers, and with which certificate (PEM, base64).
///
/// Whatever happens to the witness, nobody is held up: a failure is ignored, and an answer is waited for no
/// longer than a second. It is asked only about what the conditions let through, which the API server checks
/// by itself: changes to the content of tracked objects by anybody but plumb. It belongs to the control-plane
/// namespace, so that it goes with it.
pub fn registration(control_plane_namespace: &str, namespace_uid: &str, url: &str, ca_bundle: &str) -> Value {
    let owner = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "name": control_plane_namespace,
        "uid": namespace_uid,
    });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {
            "name": name(control_plane_namespace),
            "labels": labels(),
            "ownerReferences": [owner],
        },
        "webhooks": [{
            "name": "witness.plumb.dev",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": url, "caBundle": ca_bundle},
            "failurePolicy": "Ignore",
            "matchPolicy": "Equivalent",
            "reinvocationPolicy": "Never",
            "sideEffects": "None",
            "timeoutSeconds": 1,
            // Without subresources: whoever writes through `status` or `scale` sets fields, and is named there.
            "rules": [{
                "apiGroups": ["*"],
                "apiVersions": ["*"],
                "operations": ["UPDATE"],
                "resources": ["*"],
                "scope": "*",
            }],
            "matchConditions": match_conditions(),
        }],
    })
}

fn match_conditions() -> Value {
    // Controllers copy annotations to what they make (a Deployment's to its ReplicaSets): the tracking id must
    // speak of this object.
    let id = format!("object.metadata.?annotations['{TRACKING_ANNOTATION}'].orValue('')");
    let tracked = format!(
        "{id}.contains('/' + object.kind + ':') && {id}.endsWith('/' + object.metadata.?name.orValue('-'))"
    );
    let by_somebody_else = format!("request.options.?fieldManager.orValue('') != '{FIELD_MANAGER}'");
    // Annotations are where controllers keep their books; they would hide whoever wrote the content.
    let of_content = "object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({}) \
         || object.exists(field, !(field in ['metadata', 'status']) \
         && !(field in oldObject && object[field] == oldObject[field])) \
         || oldObject.exists(field, !(field in ['metadata', 'status']) && !(field in object))";
    // Whoever takes an annotation or a finalizer away leaves no trace, either; the control plane does so all the time.
    let gone = |field: &str, none: &str| {
        let of = |object: &str| format!("{object}.metadata.?{field}.orValue({none})");
        format!("{}.exists(entry, !(entry in {}))", of("oldObject"), of("object"))
    };
    let taken_away = format!(
        "!request.options.?fieldManager.orValue('').startsWith('kube-') && ({} || {})",
        gone("annotations", "{}"),
        gone("finalizers", "[]")
    );
    // The API server evaluates every condition of the list for every update in the cluster, even if the first one is
    // not met. As one expression it stops at the first part that is not, which for nearly all updates is the second.
    json!([{
        "name": "content-of-tracked-by-somebody-else",
        "expression": format!("{by_somebody_else} && {tracked} && ({of_content} || {taken_away})"),
    }])
}
