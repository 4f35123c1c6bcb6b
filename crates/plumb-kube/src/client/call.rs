//! One request before it is sent.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};

use crate::catalog::percent_encode;

/// Longer than the API server itself waits for its slowest admission chain.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// One request before it is sent.
pub(crate) struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) body: Bytes,
    pub(super) headers: HeaderMap,
    pub(super) timeout: Duration,
    /// An urgent request, such as a lease renewal, takes no slot of the limiter.
    pub(super) urgent: bool,
}

impl Call {
    pub(crate) fn new(method: Method, path: String) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        Self {
            method,
            path,
            query: String::new(),
            body: Bytes::new(),
            headers,
            timeout: REQUEST_TIMEOUT,
            urgent: false,
        }
    }

    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        if !self.query.is_empty() {
            self.query.push('&');
        }
        self.query.push_str(name);
        self.query.push('=');
        self.query.push_str(&percent_encode(value));
        self
    }

    pub(crate) fn body(mut self, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        self.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        self.body = body.into();
        self
    }

    pub(crate) fn accepting(mut self, accept: &'static str) -> Self {
        self.headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        self
    }

    pub(crate) fn if_none_match(mut self, etag: &str) -> Self {
        if let Ok(etag) = HeaderValue::from_str(etag) {
            self.headers.insert(header::IF_NONE_MATCH, etag);
        }
        self
    }

    pub(crate) fn urgent(mut self, timeout: Duration) -> Self {
        self.urgent = true;
        self.timeout = timeout;
        self
    }

    pub(super) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub(super) fn uri(&self) -> String {
        if self.query.is_empty() { self.path.clone() } else { format!("{}?{}", self.path, self.query) }
    }
}
