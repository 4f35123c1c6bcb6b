//! gRPC and gRPC-Web.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use http_body::Frame;
use plumb_api::{
    Code, FrameError, Method, Status, Tables, decode, encode, frame, grpc_message, trailer_frame, unframe,
};
use serde_json::{Value, json};

use super::stream::{self, Part};
use crate::body::AnswerBody;
use crate::call::Answer;

/// How the client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// gRPC over HTTP/2: the status is in the trailers.
    Grpc,
    /// gRPC-Web: the status is in the last frame, and errors before the first message are in the headers.
    Web,
}

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

impl Dialect {
    fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Grpc => "application/grpc",
            Self::Web => "application/grpc-web+proto",
        })
    }
}

fn trailers(status: Option<&Status>) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    let code = status.map_or(0, |status| status.code.number());
    trailers.insert(STATUS, HeaderValue::from(code));
    if let Some(status) = status
        && let Ok(message) = HeaderValue::from_str(&grpc_message(&status.message))
    {
        trailers.insert(MESSAGE, message);
    }
    trailers
}

/// The answer to a call.
pub(crate) fn answer(
    dialect: Dialect,
    method: &Method,
    result: Result<Answer, Status>,
) -> Response<AnswerBody> {
    let body = match result {
        Err(status) => return error(dialect, &status),
        Ok(Answer::One(value)) => match encode(Tables::get(), method.output, &value) {
            Err(why) => {
                let status = Status::new(Code::Internal, format!("cannot write the answer: {why}"));
                return error(dialect, &status);
            }
            Ok(message) => one(dialect, &message),
        },
        Ok(Answer::Chosen(_)) => {
            return error(dialect, &Status::new(Code::Internal, "gRPC has no choice of fields"));
        }
        Ok(Answer::Stream(messages)) => {
            let output = method.output;
            stream::body(messages, None, move |part| match (part, dialect) {
                (Part::Message(item), _) => Some(Frame::data(item.framed(output))),
                (Part::End(status), Dialect::Grpc) => Some(Frame::trailers(trailers(status.as_ref()))),
                (Part::End(status), Dialect::Web) => {
                    let code = status.as_ref().map_or(0, |status| status.code.number());
                    let message = status.map(|status| status.message).unwrap_or_default();
                    Some(Frame::data(Bytes::from(trailer_frame(code, &message))))
                }
                (Part::Idle, _) => None,
            })
        }
    };
    let mut answer = Response::new(body);
    answer.headers_mut().insert(header::CONTENT_TYPE, dialect.content_type());
    answer
}

fn one(dialect: Dialect, message: &[u8]) -> AnswerBody {
    match dialect {
        Dialect::Grpc => AnswerBody::with_trailers(frame(message), trailers(None)),
        Dialect::Web => {
            let mut bytes = frame(message);
            bytes.extend(trailer_frame(0, ""));
            AnswerBody::full(bytes)
        }
    }
}

/// An error without a message: Argo CD's client reads it from the headers only.
pub(crate) fn error(dialect: Dialect, status: &Status) -> Response<AnswerBody> {
    let mut answer = Response::new(AnswerBody::default());
    *answer.headers_mut() = trailers(Some(status));
    answer.headers_mut().insert(header::CONTENT_TYPE, dialect.content_type());
    answer
}

/// The parts of an upload as one request: the fields of the query, and the chunks in their order.
pub(crate) fn uploaded(parts: Vec<Value>) -> Value {
    let mut request = json!({});
    let mut chunks = Vec::new();
    for mut part in parts {
        if let Some(chunk) = part.pointer_mut("/chunk/chunk") {
            chunks.push(chunk.take());
        } else if let Some(query) = part.get_mut("query")
            && request.as_object().is_some_and(serde_json::Map::is_empty)
        {
            request = query.take();
        }
    }
    request["chunks"] = Value::Array(chunks);
    request
}

/// The answer to a call that the tables do not have.
pub(crate) fn unimplemented(dialect: Dialect, path: &str) -> Response<AnswerBody> {
    error(dialect, &Status::new(Code::Unimplemented, format!("unknown method {path}")))
}

/// The messages of a request: one, or several if the client streams.
pub(crate) fn messages(method: &Method, bytes: &[u8], largest: usize) -> Result<Vec<Value>, Status> {
    let wrong = |why: &dyn std::fmt::Display| Status::invalid(why.to_string());
    let mut messages = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let framed = unframe(rest, largest).map_err(|error| match error {
            // The code that gRPC asks for where a server lacks a compression.
            FrameError::Compressed => Status::new(Code::Unimplemented, error.to_string()),
            FrameError::TooLarge(_) | FrameError::Damaged => wrong(&error),
        })?;
        let (message, taken) = framed.ok_or_else(|| Status::invalid("the message is incomplete"))?;
        messages.push(decode(Tables::get(), method.input, message).map_err(|error| wrong(&error))?);
        if !method.client_streams {
            break;
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_message_is_unimplemented_and_a_damaged_one_is_wrong() {
        let method = Tables::get().method("version.VersionService/Version").unwrap();
        let code = |flags: u8| {
            messages(method, &[flags, 0, 0, 0, 0], 100).map(|read| read.len()).map_err(|why| why.code)
        };
        assert_eq!(code(0), Ok(1));
        assert_eq!(code(1), Err(Code::Unimplemented));
        assert_eq!(code(2), Err(Code::InvalidArgument));
    }

    #[test]
    fn the_parts_of_an_upload_are_one_request() {
        let parts = vec![
            json!({"query": {"name": "shop", "checksum": "ab"}}),
            json!({"chunk": {"chunk": "AA=="}}),
            json!({"query": {"name": "other"}}),
            json!({"chunk": {"chunk": "AQ=="}}),
        ];
        assert_eq!(uploaded(parts), json!({"name": "shop", "checksum": "ab", "chunks": ["AA==", "AQ=="]}));
    }
}
