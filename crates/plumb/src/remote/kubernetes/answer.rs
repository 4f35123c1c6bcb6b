//! Answers in the form of an API server.

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use plumb_kube::AnswerBody;
use serde_json::{Value, json};

use crate::error::{NOT_LOGGED_IN, NOT_PERMITTED};
use crate::remote::api::Refused;

/// What an API server would answer.
pub(super) enum Answer {
    /// An object or a list.
    Json(Value),
    /// The same, with another content type.
    Typed(Value, &'static str),
    /// Plain text.
    Text(String),
    /// A body that goes on.
    Stream(AnswerBody),
}

/// A refusal: HTTP status and message.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: u16,
    pub(super) message: String,
}

impl Failure {
    pub(super) fn new(code: u16, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn missing(what: &str) -> Self {
        Self::new(404, format!("{what} not found"))
    }

    /// What the commands ask for, and the server does not offer.
    pub(super) fn unknown(what: &str) -> Self {
        Self::new(403, format!("{what} cannot be read through the server"))
    }

    /// An object that is hidden looks like one that does not exist.
    pub(super) fn hidden_is_missing(self, what: &str) -> Self {
        if self.code == 403 { Self::missing(what) } else { self }
    }

    fn reason(&self) -> &'static str {
        match self.code {
            401 => NOT_LOGGED_IN,
            403 => NOT_PERMITTED,
            _ => "",
        }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::new(refused.code, refused.message)
    }
}

pub(super) fn whole(bytes: impl Into<Bytes>) -> AnswerBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// The answer as HTTP.
pub(super) fn response(result: Result<Answer, Failure>) -> Response<AnswerBody> {
    let (status, kind, body) = match result {
        Ok(Answer::Json(value)) => (StatusCode::OK, "application/json", whole(value.to_string())),
        Ok(Answer::Typed(value, kind)) => (StatusCode::OK, kind, whole(value.to_string())),
        Ok(Answer::Text(text)) => (StatusCode::OK, "text/plain", whole(text)),
        Ok(Answer::Stream(body)) => (StatusCode::OK, "application/json", body),
        Err(failure) => {
            let code = StatusCode::from_u16(failure.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16(),
                "message": failure.message, "reason": failure.reason(),
            });
            (code, "application/json", whole(status.to_string()))
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}
