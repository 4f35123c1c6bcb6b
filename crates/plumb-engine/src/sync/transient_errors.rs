//! Transient errors: a kind that is not served yet because its CRD was applied a moment ago, a webhook or a conversion
//! that does not answer, a namespace that is being deleted.

use std::time::Duration;

use plumb_core::object::{Manifest, ObjectKey};
use plumb_kube::{ApiError, LiveStore, Retry, WriteError};
use serde_json::Value;

/// Why an error is transient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sync) enum Passing {
    /// The CRD was applied a moment ago and the kind is not served yet.
    NewKind,
    /// The API server, a webhook or a conversion failed.
    ServerTrouble,
    /// The namespace is being deleted. That can take long, so it is left to the retries of the operation.
    NamespaceTerminating,
}

/// How long to wait before each further attempt. The waits are short because they block a worker. Longer problems are
/// left to the retries of the operation, with the cause in the message.
pub(crate) fn pauses() -> impl Iterator<Item = Duration> {
    [100, 300, 600, 1000].into_iter().map(Duration::from_millis)
}

/// Why this error is transient; `None` if it is not. `comes_with_its_kind` returns true if the CRD of the object's kind
/// is part of the same app.
pub(in crate::sync) fn passing(
    error: &WriteError,
    comes_with_its_kind: impl FnOnce() -> bool,
) -> Option<Passing> {
    let error = error.api()?;
    let causes = error.status().map(|status| status.causes.as_slice()).unwrap_or_default();
    if causes.iter().any(|cause| cause.kind == "NamespaceTerminating") {
        return Some(Passing::NamespaceTerminating);
    }
    if matches!(error, ApiError::UnknownKind { .. }) || error.is_not_found() {
        return comes_with_its_kind().then_some(Passing::NewKind);
    }
    // Do not retry timeouts here: each attempt would take the full timeout.
    let is_slow = matches!(error, ApiError::TimedOut { .. });
    match error.retry() {
        Retry::Soon | Retry::After(_) if !is_slow => Some(Passing::ServerTrouble),
        Retry::Soon | Retry::After(_) | Retry::Never | Retry::WhenChanged => None,
    }
}

/// Since when a namespace is being deleted and what blocks the deletion, as far as known.
pub(in crate::sync) async fn why_terminating(store: &LiveStore, namespace: &str) -> Option<String> {
    let key = ObjectKey::new("", "Namespace", None, namespace);
    let live = store.get_whole(&key).await.ok()??;
    let since = live.deleting_since()?;
    Some(match what_remains(&live) {
        Some(what) => format!("since {since}: {what}"),
        None => format!("since {since}"),
    })
}

/// What remains in a namespace that is being deleted, as the API server reports it.
pub(in crate::sync) fn what_remains(namespace: &Manifest) -> Option<String> {
    let conditions = namespace.value().pointer("/status/conditions").and_then(Value::as_array);
    let message = |name: &str| {
        let mut conditions = conditions.into_iter().flatten();
        let found =
            conditions.find(|condition| condition["status"] == "True" && condition["type"] == name)?;
        found["message"].as_str().map(str::to_owned)
    };
    // The names of the finalizers help more than the number of remaining objects.
    message("NamespaceFinalizersRemaining").or_else(|| message("NamespaceContentRemaining"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_kube::{Cause, Reason, Status};

    fn refused(code: u16, reason: Reason, cause: &str) -> WriteError {
        let causes = vec![Cause { kind: cause.to_owned(), message: String::new(), field: String::new() }];
        let status = Status { code, reason, message: String::new(), causes, retry_after: None };
        ApiError::Refused { request: "PATCH /x".to_owned(), status: Box::new(status) }.into()
    }

    fn check(error: &WriteError, comes_with_its_kind: bool, expected: Option<Passing>) {
        assert_eq!(passing(error, || comes_with_its_kind), expected, "{error}");
    }

    #[test]
    fn only_transient_errors_are_retried() {
        check(
            &refused(403, Reason::Forbidden, "NamespaceTerminating"),
            false,
            Some(Passing::NamespaceTerminating),
        );
        check(&refused(403, Reason::Forbidden, ""), false, None);
        check(&refused(500, Reason::InternalError, ""), false, Some(Passing::ServerTrouble));
        check(&refused(422, Reason::Invalid, "FieldValueInvalid"), false, None);
        check(&refused(404, Reason::NotFound, ""), true, Some(Passing::NewKind));
        check(&refused(404, Reason::NotFound, ""), false, None);
        let unknown = ApiError::UnknownKind { kind: "Widget".to_owned() }.into();
        check(&unknown, true, Some(Passing::NewKind));
        check(&unknown, false, None);
        let slow =
            ApiError::TimedOut { request: "PATCH /x".to_owned(), after: Duration::from_mins(1) }.into();
        check(&slow, false, None);
    }
}
