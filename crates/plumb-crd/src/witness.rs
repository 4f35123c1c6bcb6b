//! The registration of the witness with the API server. `plumb_core::witness` describes its purpose.

use std::fmt::Write as _;

use plumb_core::tracking::{FIELD_MANAGER, TRACKING_ANNOTATION};
use plumb_core::witness::LAST_WRITER_ANNOTATION;
use serde_json::{Value, json};

use crate::install::labels;

/// Name of the registration of an installation.
pub fn name(control_plane_namespace: &str) -> String {
    format!("plumb-witness-{control_plane_namespace}")
}

/// True for the registration of a witness of any installation.
pub fn is_witness(name: &str) -> bool {
    name.starts_with("plumb-witness-")
}

/// The registration: where the witness answers, with which certificate (PEM, base64), and which user is plumb. Without a
/// user, the field manager alone tells plumb's writes from others.
///
/// The witness never blocks a request: the API server ignores its failures and waits at most one second for an answer.
/// The API server itself evaluates the match conditions, so it calls the witness only for changes to the content of
/// tracked objects by writers other than plumb. The control-plane namespace owns the registration, so that both are
/// deleted together.
pub fn registration(
    control_plane_namespace: &str,
    namespace_uid: &str,
    url: &str,
    ca_bundle: &str,
    own_user: Option<&str>,
) -> Value {
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
            // Without subresources: a writer of `status` or `scale` sets fields and is recorded in managedFields.
            "rules": [{
                "apiGroups": ["*"],
                "apiVersions": ["*"],
                "operations": ["UPDATE"],
                "resources": ["*"],
                "scope": "*",
            }],
            "matchConditions": match_conditions(own_user),
        }],
    })
}

fn match_conditions(own_user: Option<&str>) -> Value {
    // Controllers copy annotations to the objects that they create (a Deployment's to its ReplicaSets), so the tracking
    // id must name this object.
    let id = format!("object.metadata.?annotations['{TRACKING_ANNOTATION}'].orValue('')");
    let tracked = format!(
        "{id}.contains('/' + object.kind + ':') && {id}.endsWith('/' + object.metadata.?name.orValue('-'))"
    );
    // A client chooses the name of its manager. The API server authenticated the user.
    let by_another_manager = format!("request.options.?fieldManager.orValue('') != '{FIELD_MANAGER}'");
    let by_another_writer = match own_user {
        Some(user) => format!("({by_another_manager} || request.userInfo.username != {})", cel_text(user)),
        None => by_another_manager,
    };
    // Controllers store their state in annotations. Those changes would hide the writer of the content.
    let of_content = "object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({}) \
         || object.exists(field, !(field in ['metadata', 'status']) \
         && !(field in oldObject && object[field] == oldObject[field])) \
         || oldObject.exists(field, !(field in ['metadata', 'status']) && !(field in object))";
    // managedFields does not record who removes an annotation or a finalizer. The control plane removes them often.
    let gone = |field: &str, none: &str| {
        let of = |object: &str| format!("{object}.metadata.?{field}.orValue({none})");
        format!("{}.exists(entry, !(entry in {}))", of("oldObject"), of("object"))
    };
    // Without this, a client could write the witness's own annotation.
    let note =
        |object: &str| format!("{object}.metadata.?annotations['{LAST_WRITER_ANNOTATION}'].orValue('')");
    let forged = format!("{} != {}", note("object"), note("oldObject"));
    let taken_away = format!(
        "!request.options.?fieldManager.orValue('').startsWith('kube-') && ({} || {})",
        gone("annotations", "{}"),
        gone("finalizers", "[]")
    );
    // The API server evaluates every condition of the list for every update in the cluster, even if the first one is
    // false. One expression stops at the first part that is false, which is the second one for nearly all updates.
    json!([{
        "name": "content-of-tracked-by-somebody-else",
        "expression": format!("{by_another_writer} && {tracked} && ({of_content} || {forged} || {taken_away})"),
    }])
}

/// A text of the expression language of match conditions.
fn cel_text(text: &str) -> String {
    let mut quoted = String::from("'");
    for character in text.chars() {
        match character {
            ' '..='~' if !matches!(character, '\'' | '\\') => quoted.push(character),
            other => {
                // Writing to a `String` cannot fail.
                let _ = write!(quoted, "\\U{:08x}", u32::from(other));
            }
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_quoted_for_the_expression() {
        assert_eq!(cel_text("system:serviceaccount:argocd:plumb"), "'system:serviceaccount:argocd:plumb'");
        assert_eq!(cel_text("o' || true || 'x\\"), "'o\\U00000027 || true || \\U00000027x\\U0000005c'");
    }

    #[test]
    fn plumb_is_known_by_its_user_and_not_by_its_manager_alone() {
        let expression = |user| {
            let registration = registration("argocd", "uid", "https://h/", "ca", user);
            registration["webhooks"][0]["matchConditions"][0]["expression"]
                .as_str()
                .map(str::to_owned)
                .unwrap()
        };
        assert!(
            expression(Some("me")).contains("!= 'argocd-controller' || request.userInfo.username != 'me')")
        );
        assert!(!expression(None).contains("username"));
    }
}
