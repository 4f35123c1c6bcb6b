//! REST: JSON of the same messages.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method as Verb, Response, StatusCode, header};
use http_body::Frame;
use plumb_api::{Method, SelectedFields, Status};
use serde_json::{Value, json};

use super::cookie::CookieRules;
use super::stream::{self, Part};
use crate::body::AnswerBody;
use crate::call::Answer;

/// How often an idle stream of events sends a sign of life.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

fn with(status: StatusCode, content_type: &'static str, body: AnswerBody) -> Response<AnswerBody> {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// A form of another site can send other types than this one without asking the browser's user.
pub(crate) fn may_be_a_form(verb: &Verb, headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    *verb != Verb::GET && *verb != Verb::HEAD && content_type != Some("application/json")
}

/// A line of text.
pub(crate) fn text(status: StatusCode, line: &str) -> Response<AnswerBody> {
    with(status, "text/plain; charset=utf-8", AnswerBody::full(format!("{line}\n")))
}

fn http_status(status: &Status) -> StatusCode {
    StatusCode::from_u16(status.code.http()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// An error.
pub(crate) fn error(status: &Status) -> Response<AnswerBody> {
    let message = &status.message;
    let body = json!({"error": message, "code": status.code.number(), "message": message});
    with(http_status(status), "application/json", AnswerBody::full(body.to_string()))
}

fn stream_error(status: &Status) -> Value {
    let http = http_status(status);
    json!({"error": {
        "grpc_code": status.code.number(), "http_code": http.as_u16(), "message": status.message,
        "http_status": http.canonical_reason().unwrap_or_default(),
    }})
}

/// What a stream sent last about each Application: a change of fields that nobody asked for is not sent.
#[derive(Default)]
struct Sent(HashMap<(String, String), u64>);

impl Sent {
    /// True if the chosen fields are those that were sent last about this Application. `hash` is theirs.
    fn is_same(&mut self, message: &Value, hash: u64) -> bool {
        let text = |path: &str| message.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let (namespace, name) = (text("/application/metadata/namespace"), text("/application/metadata/name"));
        let Some(app) = namespace.zip(name) else { return false };
        if message.get("type").and_then(Value::as_str) == Some("DELETED") {
            self.0.remove(&app);
            return false;
        }
        self.0.insert(app, hash) == Some(hash)
    }
}

/// The answer to a call.
pub(crate) fn answer(
    method: &Method,
    result: Result<Answer, Status>,
    fields: Option<SelectedFields>,
    as_events: bool,
    cookies: &CookieRules,
) -> Response<AnswerBody> {
    match result {
        Err(status) if method.server_streams => {
            let body = AnswerBody::full(stream_error(&status).to_string());
            with(http_status(&status), "application/json", body)
        }
        Err(status) => error(&status),
        Ok(Answer::Chosen(text)) => with(StatusCode::OK, "application/json", AnswerBody::full(text)),
        Ok(Answer::One(value)) => {
            let shown = fields.map_or_else(|| value.to_string(), |fields| fields.of(&value).to_string());
            let mut answer = with(StatusCode::OK, "application/json", AnswerBody::full(shown));
            if method.path == "session.SessionService/Create"
                && let Some(token) = value.get("token").and_then(Value::as_str)
            {
                for cookie in cookies.set(token) {
                    answer.headers_mut().append(header::SET_COOKIE, cookie);
                }
            }
            answer
        }
        Ok(Answer::Stream(messages)) => {
            let idle = as_events.then_some(KEEP_ALIVE);
            let mut sent = Sent::default();
            let form = move |value: &Value| {
                Bytes::from(if as_events { format!("data: {value} \n\n\n") } else { format!("{value}\n") })
            };
            let body = stream::body(messages, idle, move |part| {
                let bytes = match part {
                    Part::Message(item) => {
                        let shown = item.shown(fields.as_ref());
                        if fields.is_some() && sent.is_same(&item.value, shown.hash) {
                            return None;
                        }
                        if as_events { shown.event } else { shown.line }
                    }
                    Part::End(Some(status)) => form(&stream_error(&status)),
                    Part::End(None) => return None,
                    Part::Idle => Bytes::from_static(b":\n"),
                };
                Some(Frame::data(bytes))
            });
            let kind = if as_events { "text/event-stream" } else { "application/json" };
            with(StatusCode::OK, kind, body)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_is_sent_again_only_with_other_fields() {
        let event = |kind: &str, namespace: &str, status: &str| {
            json!({"type": kind, "status": status,
                "application": {"metadata": {"namespace": namespace, "name": "shop"}}})
        };
        let mut sent = Sent::default();
        let fields = plumb_api::SelectedFields::parse("result.status");
        let mut check = |message: Value, expected: bool| {
            let hash = crate::app_feed::Item::new(message.clone()).shown(fields.as_ref()).hash;
            assert_eq!(sent.is_same(&message, hash), expected, "{message}");
        };
        check(event("ADDED", "argocd", "Synced"), false);
        check(event("MODIFIED", "argocd", "Synced"), true);
        check(event("MODIFIED", "other", "Synced"), false);
        check(event("MODIFIED", "argocd", "OutOfSync"), false);
        check(event("DELETED", "argocd", "OutOfSync"), false);
        check(event("ADDED", "argocd", "OutOfSync"), false);
    }
}
