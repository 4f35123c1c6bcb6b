//! Removes the values of Secrets, and of fields whose names say that they hold secrets, from refusals.
//!
//! The API server quotes what it refuses: whole values in validation errors, parts of the request if it
//! cannot decode it. Such messages end up in results, events and logs, so they are removed as soon as the
//! answer arrives.

use plumb_core::object::GroupVersionKind;
use plumb_core::text::is_secret_name;

use crate::error::{ApiError, Cause, Reason, Status};

/// Shown instead of what the API server says about a field that holds a secret.
const HIDDEN_FIELD: &str =
    "the API server's message is hidden because it may quote the value of a field that holds a secret";
const HIDDEN: &str = "the API server's message is hidden because it may quote the Secret's values";

/// The answer to a write of an object of this kind, without Secret values.
pub(crate) fn without_values<T>(gvk: &GroupVersionKind, answer: Result<T, ApiError>) -> Result<T, ApiError> {
    let is_secret = gvk.group.is_empty() && gvk.kind == "Secret";
    answer.map_err(|error| match error {
        ApiError::Refused { request, status } => {
            let head = head(gvk, &status);
            let message = status.message.clone();
            let mut status = if is_secret { cleaned(*status) } else { without_secret_fields(*status) };
            if status.message != message {
                status.message.insert_str(0, &head);
            }
            ApiError::Refused { request, status: Box::new(status) }
        }
        error => error,
    })
}

/// `Secret "a" is invalid: `, with which the API server's own validation begins. It has no values, and scripts look for it.
/// Empty if the message begins otherwise, such as that of an admission webhook.
fn head(gvk: &GroupVersionKind, status: &Status) -> String {
    const END: &str = "\" is invalid: ";
    let group = if gvk.group.is_empty() { String::new() } else { format!(".{}", gvk.group) };
    let start = format!("{}{group} \"", gvk.kind);
    let name = status.message.strip_prefix(&start).and_then(|rest| rest.split_once(END));
    let is_name = |name: &str| name.chars().all(|sign| sign.is_ascii_alphanumeric() || "-._:".contains(sign));
    match name {
        Some((name, _)) if status.reason == Reason::Invalid && is_name(name) => format!("{start}{name}{END}"),
        Some(_) | None => String::new(),
    }
}

/// A refusal of any other object: what it quotes of a field such as `spec.adminPassword` is left out.
fn without_secret_fields(status: Status) -> Status {
    let is_hidden = |cause: &Cause| is_secret_field(&cause.field) && names_value(cause);
    if status.is_schema_violation() {
        let line = |line: &str| match line.split_once(": expected ") {
            Some((field, _)) if is_secret_field(field) => {
                line.split(", got ").next().unwrap_or(line).to_owned()
            }
            Some(_) | None => line.to_owned(),
        };
        let message = status.message.lines().map(line).collect::<Vec<_>>().join("\n");
        return Status { message, ..status };
    }
    if !status.causes.iter().any(is_hidden) {
        return status;
    }
    let hide = |cause: Cause| {
        if is_hidden(&cause) { Cause { message: HIDDEN_FIELD.to_owned(), ..cause } } else { cause }
    };
    let causes: Vec<Cause> = status.causes.iter().cloned().map(hide).collect();
    Status { message: listed(&causes), causes, ..status }
}

/// Does the last name of a field (`spec.users[0].password`) say that it holds a secret?
fn is_secret_field(field: &str) -> bool {
    let last =
        field.rsplit(['.', '[', ']', ' ']).find(|name| !name.is_empty() && name.parse::<u32>().is_err());
    last.is_some_and(is_secret_name)
}

fn listed(causes: &[Cause]) -> String {
    let shown = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message));
    shown.collect::<Vec<_>>().join(", ")
}

fn names_value(cause: &Cause) -> bool {
    !matches!(cause.kind.as_str(), "FieldValueForbidden" | "FieldValueRequired" | "FieldManagerConflict")
}

fn cleaned(status: Status) -> Status {
    let causes: Vec<Cause> = status.causes.iter().cloned().map(cleaned_cause).collect();
    let message = if status.is_schema_violation() {
        // One line for each field: `.data.a: expected string, got …`.
        let lines =
            status.message.lines().map(|line| line.split_once(", got ").map_or(line, |(head, _)| head));
        lines.collect::<Vec<_>>().join("\n")
    } else {
        match status.code {
            // About the whole object: it does not exist, it changed, there are too many requests, the server
            // is unavailable.
            404 | 409 | 429 | 502..=504 if !is_of_webhook(&status.message) => status.message.clone(),
            // A missing permission. A message of an admission webhook may quote anything.
            401 | 403 if is_about_rights(&status.message) => status.message.clone(),
            _ if causes.is_empty() => HIDDEN.to_owned(),
            _ => listed(&causes),
        }
    };
    Status { message, causes, ..status }
}

/// An admission webhook chooses the code of its refusal, and may quote anything.
fn is_of_webhook(message: &str) -> bool {
    message.contains("admission webhook")
}

/// `secrets "a" is forbidden: User "b" cannot patch …`: the authorizer's own message, which has no values.
fn is_about_rights(message: &str) -> bool {
    let rest = message.split_once(" is forbidden: ").map(|(_, rest)| rest);
    rest.is_some_and(|rest| {
        ["User \"", "unable to create new content in", "exceeded quota:"]
            .iter()
            .any(|start| rest.starts_with(start))
    })
}

fn cleaned_cause(cause: Cause) -> Cause {
    let names_value = names_value(&cause);
    let is_open = ["metadata", "type", "immutable"].iter().any(|field| {
        cause.field.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    });
    // An annotation may hold a copy of the whole Secret.
    let is_open = is_open && !cause.field.starts_with("metadata.annotations");
    if names_value && !is_open { Cause { message: HIDDEN.to_owned(), ..cause } } else { cause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(kind: &str, code: u16, message: &str, causes: &[(&str, &str, &str)]) -> String {
        let causes: Vec<_> = causes
            .iter()
            .map(|(reason, field, message)| json!({"reason": reason, "field": field, "message": message}))
            .collect();
        let body = json!({"kind": "Status", "message": message, "code": code, "details": {"causes": causes}});
        let status = Status::from_answer(code, None, body.to_string().as_bytes());
        let error = ApiError::Refused { request: "PATCH x".to_owned(), status: Box::new(status) };
        let gvk = GroupVersionKind::from_api_version("v1", kind);
        match without_values::<()>(&gvk, Err(error)) {
            Err(error) => format!("{error} {:?}", error.status().map(|status| &status.causes)),
            Ok(()) => String::new(),
        }
    }

    #[test]
    fn what_the_server_quotes_of_a_secret_is_left_out() {
        let quoted = [
            (400, "json: error found in #10 byte of ...|canary|...", vec![]),
            (403, "admission webhook \"a\" denied the request: canary is too short", vec![]),
            (409, "admission webhook \"a\" denied the request: canary is there", vec![]),
            (503, "admission webhook \"a\" denied the request: canary cannot be checked", vec![]),
            (
                422,
                "Secret \"a\" is invalid: data[b]: Invalid value: \"canary\"",
                vec![("FieldValueInvalid", "data[b]", "Invalid value: \"canary\"")],
            ),
            (
                500,
                "failed to create typed patch object (n/a; v1, Kind=Secret): .data.b: expected string, got &{map[c:canary]}",
                vec![],
            ),
        ];
        for (code, message, causes) in quoted {
            let secret = shown("Secret", code, message, &causes);
            assert!(!secret.contains("canary"), "{secret}");
            assert!(shown("ConfigMap", code, message, &causes).contains("canary"));
        }
    }

    #[test]
    fn the_head_of_a_validation_error_stays() {
        let cause = |message: &'static str| [("FieldValueInvalid", "data[b]", message)];
        let valid = "Secret \"a\" is invalid: data[b]: Invalid value: \"canary\"";
        let said = shown("Secret", 422, valid, &cause("Invalid value: \"canary\""));
        assert!(
            said.contains("Secret \"a\" is invalid: data[b]: the API server's message is hidden"),
            "{said}"
        );
        // Only the API server's own validation names the kind and a valid name, and nothing else.
        for other in [
            "Secret \"can ary\" is invalid: data[b]: x",
            "admission webhook \"w\" denied the request: Secret \"canary\" is invalid: x",
            "Database \"canary\" is invalid: x",
        ] {
            let said = shown("Secret", 422, other, &cause("Invalid value: \"canary\""));
            assert!(!said.contains("canary") && !said.contains("is invalid"), "{other}: {said}");
        }
        assert!(!shown("Secret", 400, valid, &[]).contains("is invalid"), "another reason");
    }

    #[test]
    fn fields_with_the_names_of_secrets_are_not_quoted() {
        let password =
            ("FieldValueInvalid", "spec.users[0].password", "Invalid value: \"canary\": too short");
        let size = ("FieldValueInvalid", "spec.size", "Invalid value: \"tiny\": unknown");
        let message =
            "Database \"d\" is invalid: spec.users[0].password: Invalid value: \"canary\": too short";
        let said = shown("Database", 422, message, &[password, size]);
        assert!(!said.contains("canary") && said.contains("spec.users[0].password"), "{said}");
        assert!(said.contains("tiny"), "other fields are quoted: {said}");
        let said = shown("Database", 422, "spec.size: Invalid value: \"tiny\"", &[size]);
        assert!(said.contains("tiny"), "{said}");
    }

    #[test]
    fn what_helps_stays() {
        for (code, message, causes, kept) in [
            (403, "secrets \"a\" is forbidden: User \"me\" cannot patch resource", vec![], "cannot patch"),
            (404, "namespaces \"n\" not found", vec![], "not found"),
            (
                422,
                "Secret \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
                vec![(
                    "FieldValueForbidden",
                    "data",
                    "Forbidden: field is immutable when `immutable` is set",
                )],
                "data: Forbidden: field is immutable",
            ),
            (
                422,
                "Secret \"A\" is invalid",
                vec![("FieldValueInvalid", "metadata.name", "Invalid value: \"A\": lower case")],
                "lower case",
            ),
            (
                500,
                "failed to create typed patch object (n/a; v1, Kind=Secret): .data.b: expected string, got &{map[c:canary]}",
                vec![],
                ".data.b: expected string",
            ),
        ] {
            let said = shown("Secret", code, message, &causes);
            assert!(said.contains(kept), "{said}");
        }
    }
}
