//! Who asks.

use serde_json::{Map, Value};

/// The sender of a request, after the server has checked the token.
#[derive(Clone, Debug, PartialEq)]
pub enum Caller {
    /// There is no token, and anonymous access is on.
    Anonymous,
    /// The claims of a token that was verified.
    Claims(Map<String, Value>),
}

impl Caller {
    /// The name that policies use for the caller. A connector of Dex puts the user into `federated_claims`.
    pub(super) fn subject(&self) -> &str {
        let Self::Claims(claims) = self else { return "" };
        claims
            .get("federated_claims")
            .and_then(|federated| federated.get("user_id"))
            .and_then(Value::as_str)
            .filter(|user| !user.is_empty())
            .or_else(|| claims.get("sub").and_then(Value::as_str))
            .unwrap_or_default()
    }

    /// The values of the claims that hold groups: a text, or a list of texts.
    pub(super) fn groups<'a>(&'a self, scopes: &'a [String]) -> impl Iterator<Item = &'a str> {
        let claims = match self {
            Self::Anonymous => None,
            Self::Claims(claims) => Some(claims),
        };
        let values = scopes.iter().filter_map(move |scope| claims?.get(scope));
        values.flat_map(|value| match value {
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
            Value::String(text) => vec![text.as_str()],
            _ => Vec::new(),
        })
    }
}
