//! Refusals that pass by themselves: a kind that is served a moment after its definition was applied, a webhook or
//! a conversion that does not answer, a namespace on its way out.

use std::time::Duration;

use plumb_core::object::{Manifest, ObjectKey};
use plumb_kube::{ApiError, LiveStore, Retry, WriteError};
use serde_json::Value;

/// Why a refusal may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passing {
    /// The kind was defined a moment ago and is not served yet.
    NewKind,
    /// The server, a webhook or a conversion has trouble.
    ServerTrouble,
    /// The namespace is being deleted. That can take long, so nobody waits for it here: the operation's own
    /// retries do.
    NamespaceTerminating,
}

/// How long to wait before each further try. Short, because a worker waits with it; what lasts longer is left to
/// the operation's retries, with its cause in the message.
pub(crate) fn pauses() -> impl Iterator<Item = Duration> {
    [100, 300, 600, 1000].into_iter().map(Duration::from_millis)
}

/// Does this refusal pass by itself? `comes_with_its_kind`: is the definition of the object's kind part of the
/// same app?
pub(crate) fn passing(error: &WriteError, comes_with_its_kind: impl FnOnce() -> bool) -> Option<Passing> {
    let error = error.api()?;
    let causes = error.status().map(|status| status.causes.as_slice()).unwrap_or_default();
    if causes.iter().any(|cause| cause.kind == "NamespaceTerminating") {
        return Some(Passing::NamespaceTerminating);
    }
    if matches!(error, ApiError::UnknownKind { .. }) || error.is_not_found() {
        return comes_with_its_kind().then_some(Passing::NewKind);
    }
    // Who takes the whole time to fail would do so four times over.
    let is_slow = matches!(error, ApiError::TimedOut { .. });
    match error.retry() {
        Retry::Soon | Retry::After(_) if !is_slow => Some(Passing::ServerTrouble),
        Retry::Soon | Retry::After(_) | Retry::Never | Retry::WhenChanged => None,
    }
}

/// Since when a namespace is being deleted and what that waits for, as far as it can be told.
pub(crate) async fn why_terminating(store: &LiveStore, namespace: &str) -> Option<String> {
    let key = ObjectKey::new("", "Namespace", None, namespace);
    let live = store.get_whole(&key).await.ok()??;
    let since = live.deleting_since()?;
    Some(match what_remains(&live) {
        Some(what) => format!("since {since}: {what}"),
        None => format!("since {since}"),
    })
}

/// What is still there of a namespace that is being deleted, in the server's words.
pub(crate) fn what_remains(namespace: &Manifest) -> Option<String> {
    let conditions = namespace.value().pointer("/status/conditions").and_then(Value::as_array);
    let message = |name: &str| {
        let mut conditions = conditions.into_iter().flatten();
        let found =
            conditions.find(|condition| condition["status"] == "True" && condition["type"] == name)?;
        found["message"].as_str().map(str::to_owned)
    };
    // Who holds it says more than how much is left.
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
    fn only_what_passes_by_itself_is_tried_again() {
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
