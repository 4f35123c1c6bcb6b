//! Failed requests: what the API server answered, and whether the same request can succeed later.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

/// A request that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The server refused, with a `Status` object or another body.
    #[error("{request}: {status}")]
    Refused {
        /// Method and path of the request.
        request: String,
        /// The server's answer.
        status: Box<Status>,
    },
    /// The request did not reach the server, or its answer did not arrive.
    #[error("{request}: cannot reach the API server")]
    Unreachable {
        /// Method and path of the request.
        request: String,
        /// Connection, TLS or credential failure.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No answer in time.
    #[error("{request}: the API server did not answer within {} s", after.as_secs())]
    TimedOut {
        /// Method and path of the request.
        request: String,
        /// How long plumb waited.
        after: Duration,
    },
    /// The answer has another form than this request should get.
    #[error("{request}: cannot read the answer as {expected}")]
    Unreadable {
        /// Method and path of the request.
        request: String,
        /// What was expected.
        expected: &'static str,
        /// The parser's error, if there was one.
        #[source]
        source: Option<serde_json::Error>,
    },
    /// The cluster does not serve the kind.
    #[error("the cluster does not serve the kind {kind}")]
    UnknownKind {
        /// The kind that was requested.
        kind: String,
    },
    /// The object was planned and permitted for a namespace, and its kind is cluster-scoped: the definition of the kind
    /// appeared or was replaced in between.
    #[error("cannot send {what}: the kind is cluster-scoped now, and the object was planned for a namespace")]
    OtherScope {
        /// What was to be sent.
        what: String,
    },
    /// The request cannot be written: a name with a line break, an object without a name.
    #[error("cannot send {what}: {why}")]
    Malformed {
        /// What was to be sent.
        what: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// Whether the same request can succeed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The same request will always be refused.
    Never,
    /// The cause is likely to pass: retry with backoff.
    Soon,
    /// The server named the time to wait.
    After(Duration),
    /// Not before the object, the cluster's kinds or plumb's permissions change.
    WhenChanged,
}

/// The `Status` of a refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// HTTP status.
    pub code: u16,
    /// The machine-readable reason.
    pub reason: Reason,
    /// The server's message.
    pub message: String,
    /// One entry per field or conflict that the server reports.
    pub causes: Vec<Cause>,
    /// How long the server asks the client to wait.
    pub retry_after: Option<Duration>,
}

/// One detail of a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Cause {
    /// Such as `FieldValueInvalid` or `FieldManagerConflict`.
    #[serde(default, rename = "reason")]
    pub kind: String,
    /// The server's message.
    #[serde(default)]
    pub message: String,
    /// Path of the field, as the server prints it.
    #[serde(default)]
    pub field: String,
}

/// Kubernetes' machine-readable reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of Kubernetes' StatusReason")]
pub enum Reason {
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Gone,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    RequestEntityTooLarge,
    ServerTimeout,
    ServiceUnavailable,
    StorageReadError,
    Timeout,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
    /// A reason that is not in the list, or none at all.
    Other(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(reason) => f.write_str(reason),
            known => write!(f, "{known:?}"),
        }
    }
}

impl Reason {
    fn parse(text: &str, code: u16) -> Self {
        match text {
            "AlreadyExists" => Self::AlreadyExists,
            "BadRequest" => Self::BadRequest,
            "Conflict" => Self::Conflict,
            "Expired" => Self::Expired,
            "Forbidden" => Self::Forbidden,
            "Gone" => Self::Gone,
            "InternalError" => Self::InternalError,
            "Invalid" => Self::Invalid,
            "MethodNotAllowed" => Self::MethodNotAllowed,
            "NotAcceptable" => Self::NotAcceptable,
            "NotFound" => Self::NotFound,
            "RequestEntityTooLarge" => Self::RequestEntityTooLarge,
            "ServerTimeout" => Self::ServerTimeout,
            "ServiceUnavailable" => Self::ServiceUnavailable,
            "StorageReadError" => Self::StorageReadError,
            "Timeout" => Self::Timeout,
            "TooManyRequests" => Self::TooManyRequests,
            "Unauthorized" => Self::Unauthorized,
            "UnsupportedMediaType" => Self::UnsupportedMediaType,
            "" => Self::of_code(code),
            other => Self::Other(other.to_owned()),
        }
    }

    /// Proxies and load balancers answer without a `Status`; only the code is known.
    fn of_code(code: u16) -> Self {
        match code {
            400 => Self::BadRequest,
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            405 => Self::MethodNotAllowed,
            406 => Self::NotAcceptable,
            409 => Self::Conflict,
            410 => Self::Expired,
            413 => Self::RequestEntityTooLarge,
            415 => Self::UnsupportedMediaType,
            422 => Self::Invalid,
            429 => Self::TooManyRequests,
            500 => Self::InternalError,
            502 | 503 => Self::ServiceUnavailable,
            504 => Self::Timeout,
            _ => Self::Other(String::new()),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            write!(f, "{} ({:?})", self.code, self.reason)
        } else {
            write!(f, "{} ({})", self.message, self.code)
        }
    }
}

impl Status {
    /// Reads the body of a refusal. A body that is not a `Status` becomes the message.
    pub(crate) fn from_answer(code: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        #[derive(Default, Deserialize)]
        struct Wire {
            #[serde(default)]
            message: Option<String>,
            #[serde(default)]
            reason: Option<String>,
            #[serde(default)]
            code: Option<u16>,
            #[serde(default)]
            details: Option<Details>,
        }
        #[derive(Default, Deserialize)]
        struct Details {
            #[serde(default)]
            causes: Option<Vec<Cause>>,
            #[serde(default, rename = "retryAfterSeconds")]
            retry_after_seconds: Option<u64>,
        }
        const MESSAGE_LIMIT: usize = 1000;

        if let Ok(wire) = serde_json::from_slice::<Wire>(body) {
            let code = wire.code.filter(|code| *code != 0).unwrap_or(code);
            let details = wire.details.unwrap_or_default();
            let stated = details.retry_after_seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
            return Self {
                code,
                reason: Reason::parse(wire.reason.as_deref().unwrap_or_default(), code),
                message: wire.message.unwrap_or_default(),
                causes: details.causes.unwrap_or_default(),
                retry_after: retry_after.or(stated),
            };
        }
        let text = String::from_utf8_lossy(body);
        Self {
            code,
            reason: Reason::of_code(code),
            message: text.trim().chars().take(MESSAGE_LIMIT).collect(),
            causes: Vec::new(),
            retry_after,
        }
    }
}

impl ApiError {
    /// The answer to `request` is not `expected`.
    pub(crate) fn unreadable(
        request: &str,
        expected: &'static str,
        source: Option<serde_json::Error>,
    ) -> Self {
        Self::Unreadable { request: request.to_owned(), expected, source }
    }

    /// The server's answer, if it gave one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Refused { status, .. } => Some(status),
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Unreadable { .. }
            | Self::UnknownKind { .. }
            | Self::OtherScope { .. }
            | Self::Malformed { .. } => None,
        }
    }

    /// HTTP status, if the server answered.
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    /// The machine-readable reason, if the server answered.
    pub fn reason(&self) -> Option<&Reason> {
        self.status().map(|status| &status.reason)
    }

    /// True if the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// True if another write came first, or another manager owns a field.
    pub fn is_conflict(&self) -> bool {
        self.reason() == Some(&Reason::Conflict)
    }

    /// True if the resource version is too old for a watch or a list to continue from.
    pub fn is_expired(&self) -> bool {
        self.code() == Some(410)
    }

    /// True if plumb lacks the permission, or its credentials are not accepted.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.code(), Some(401 | 403))
    }

    /// True if the API server or the network failed, not the request.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } => true,
            Self::Refused { status, .. } => matches!(status.code, 429 | 502 | 503 | 504),
            Self::Unreadable { .. }
            | Self::UnknownKind { .. }
            | Self::OtherScope { .. }
            | Self::Malformed { .. } => false,
        }
    }

    /// Whether the same request can succeed later.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Refused { status, .. } => status.retry(),
            Self::Unreachable { .. } | Self::TimedOut { .. } => Retry::Soon,
            Self::UnknownKind { .. } | Self::OtherScope { .. } => Retry::WhenChanged,
            Self::Unreadable { .. } | Self::Malformed { .. } => Retry::Never,
        }
    }

    /// Short name of the kind of failure, for metrics.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Refused { status, .. } => match status.code {
                401 | 403 => "forbidden",
                404 => "not_found",
                409 => "conflict",
                410 => "expired",
                422 | 400 => "invalid",
                429 => "throttled",
                500..=599 => "server",
                _ => "refused",
            },
            Self::Unreachable { .. } => "unreachable",
            Self::TimedOut { .. } => "timeout",
            Self::Unreadable { .. } => "unreadable",
            Self::UnknownKind { .. } => "unknown_kind",
            Self::OtherScope { .. } => "other_scope",
            Self::Malformed { .. } => "malformed",
        }
    }
}

/// Kubernetes answers an apply with a field that the schema does not have as an internal error, code 500,
/// whatever `fieldValidation` is. Only the text distinguishes it from a webhook that is down for a moment.
const TYPED_PATCH: &str = "failed to create typed patch object";

impl Status {
    /// True if the object does not match the schema of its kind.
    pub fn is_schema_violation(&self) -> bool {
        self.code == 500 && self.message.starts_with(TYPED_PATCH)
    }

    /// Whether the same request can succeed later.
    pub fn retry(&self) -> Retry {
        if let Some(after) = self.retry_after {
            return Retry::After(after);
        }
        if self.is_schema_violation() {
            return Retry::Never;
        }
        match self.code {
            // A terminating namespace answers 403 to creations; a webhook that is down answers 500.
            409 | 410 | 429 | 500..=599 => Retry::Soon,
            401 | 403 | 404 | 405 => Retry::WhenChanged,
            _ => Retry::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_whole() {
        let body = br#"{"kind":"Status","status":"Failure","message":"Apply failed with 1 conflict","reason":"Conflict",
            "details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"kubectl\"","field":".spec.replicas"}]},"code":409}"#;
        let status = Status::from_answer(409, None, body);
        assert_eq!(status.reason, Reason::Conflict);
        assert_eq!(status.causes[0].field, ".spec.replicas");
        assert_eq!(status.retry(), Retry::Soon);
    }

    #[test]
    fn an_answer_of_a_proxy_keeps_its_code_and_text() {
        let status = Status::from_answer(503, Some(Duration::from_secs(3)), b"<html>upstream</html>");
        assert_eq!(status.reason, Reason::ServiceUnavailable);
        assert_eq!(status.message, "<html>upstream</html>");
        assert_eq!(status.retry(), Retry::After(Duration::from_secs(3)));
        assert_eq!(Status::from_answer(404, None, b"").reason, Reason::NotFound);
        assert_eq!(Status::from_answer(403, None, b"[1,2]").reason, Reason::Forbidden);
    }

    #[test]
    fn the_seconds_of_the_body_count_when_no_header_came() {
        let body = br#"{"reason":"TooManyRequests","code":429,"details":{"retryAfterSeconds":2}}"#;
        assert_eq!(Status::from_answer(429, None, body).retry_after, Some(Duration::from_secs(2)));
    }
}
