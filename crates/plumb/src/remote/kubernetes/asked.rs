//! A request to an API server, taken apart.

use bytes::Bytes;
use http::{Method, Request, header};
use serde_json::Value;

/// One request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) namespace: String,
    pub(super) plural: String,
    pub(super) name: String,
    pub(super) subresource: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) body: Value,
    /// True for a patch that is a list of operations.
    pub(super) has_operations: bool,
    /// True if the client would like a table.
    pub(super) wants_table: bool,
}

impl Asked {
    /// Reads a request.
    pub(super) fn of(request: &Request<()>, body: &Bytes) -> Self {
        let header = |name: header::HeaderName| {
            request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
        };
        let path = request.uri().path();
        let parts: Vec<String> = path.trim_matches('/').split('/').map(decoded).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => ("", "", &[] as &[&str]),
        };
        // `namespaces/NAME` alone is the namespace itself.
        let (namespace, rest) = match rest {
            ["namespaces", namespace, plural, rest @ ..] => (*namespace, Some((*plural, rest))),
            [plural, rest @ ..] => ("", Some((*plural, rest))),
            [] => ("", None),
        };
        let (plural, rest) = rest.unwrap_or_default();
        let part = |index: usize| rest.get(index).copied().unwrap_or_default().to_owned();
        let pairs = request.uri().query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        Self {
            method: request.method().clone(),
            path: path.to_owned(),
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            plural: plural.to_owned(),
            name: part(0),
            subresource: part(1),
            query: pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (decoded(name), decoded(value)))
                .collect(),
            body: serde_json::from_slice(body).unwrap_or_default(),
            has_operations: header(header::CONTENT_TYPE).starts_with("application/json-patch"),
            wants_table: header(header::ACCEPT).contains("as=Table"),
        }
    }

    /// A value of the query; empty if there is none.
    pub(super) fn query(&self, name: &str) -> &str {
        self.query
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
            .unwrap_or_default()
    }

    /// The name that a field selector asks for.
    pub(super) fn selected_name(&self) -> Option<&str> {
        self.query("fieldSelector").strip_prefix("metadata.name=")
    }

    pub(super) fn is_watch(&self) -> bool {
        self.query("watch") == "true"
    }
}

/// Percent-decoded text.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = code.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| *first == b'%');
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: [&str; 6]) {
        let request = Request::builder().uri(path).body(()).unwrap();
        let asked = Asked::of(&request, &Bytes::new());
        let parts =
            [asked.group, asked.version, asked.namespace, asked.plural, asked.name, asked.subresource];
        assert_eq!(parts, expected.map(str::to_owned), "{path}");
    }

    #[test]
    fn a_path_is_taken_apart() {
        let app = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/web?watch=true";
        check(app, ["argoproj.io", "v1alpha1", "argocd", "applications", "web", ""]);
        check(
            "/apis/argoproj.io/v1alpha1/applications",
            ["argoproj.io", "v1alpha1", "", "applications", "", ""],
        );
        check("/api/v1/namespaces/shop/pods/p/log", ["", "v1", "shop", "pods", "p", "log"]);
        check("/api/v1/namespaces/shop", ["", "v1", "", "namespaces", "shop", ""]);
        check("/apis/x.io/v1/things/a%2Fb", ["x.io", "v1", "", "things", "a/b", ""]);
        check("/version", ["", "", "", "", "", ""]);
    }

    #[test]
    fn a_query_is_decoded() {
        let uri = "/api/v1/secrets?fieldSelector=metadata.name%3Dweb&labelSelector=a%3Db%2Cc";
        let asked = Asked::of(&Request::builder().uri(uri).body(()).unwrap(), &Bytes::new());
        assert_eq!((asked.selected_name(), asked.query("labelSelector")), (Some("web"), "a=b,c"));
    }
}
