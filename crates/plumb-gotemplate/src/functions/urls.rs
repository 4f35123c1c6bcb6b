//! URLs.

use std::collections::BTreeMap;

use super::table::{Row, Type, new_text, text};
use crate::budget::Fault;
use crate::url::{Part, Url, User, escape};
use crate::value::{Scope, Value};

pub(super) const ROWS: &[Row] = &[
    ("urlParse", &[Type::Text], None, |scope, given| {
        let written = text(given, 0);
        let url = Url::parse(&written).map_err(|error| Fault(format!("unable to parse url: {error}")))?;
        let hostname = url.hostname().to_vec();
        let user = url.user.as_ref().map(User::text).unwrap_or_default();
        let entries = [
            ("scheme", url.scheme),
            ("host", url.host),
            ("hostname", hostname),
            ("path", url.path),
            ("query", url.query),
            ("opaque", url.opaque),
            ("fragment", url.fragment),
            ("userinfo", user.into_bytes()),
        ];
        let entries: BTreeMap<String, Value> =
            entries.into_iter().map(|(key, part)| (key.to_owned(), Value::text(part))).collect();
        Value::map(scope, entries)
    }),
    ("urlJoin", &[Type::Map], None, join),
];

/// Go's `url.QueryEscape`.
pub(super) fn query_escape(text: &str) -> String {
    escape(text.as_bytes(), Part::Query)
}

fn join(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let Some(Value::Map(map)) = given.first() else { return Ok(Value::text("")) };
    let part = |key: &str| match map.get(key) {
        None => Ok(Vec::new()),
        Some(Value::Text(text)) => Ok(text.to_vec()),
        Some(other) => {
            let kind = other.kind_name();
            Err(Fault(format!("unable to parse {key} key, must be of type string, but {kind} found")))
        }
    };
    let mut url = Url {
        scheme: part("scheme")?,
        host: part("host")?,
        path: part("path")?,
        query: part("query")?,
        opaque: part("opaque")?,
        fragment: part("fragment")?,
        user: None,
    };
    let userinfo = part("userinfo")?;
    if !userinfo.is_empty() {
        let written = format!("proto://{}@host", String::from_utf8_lossy(&userinfo));
        let parsed = Url::parse(&written)
            .map_err(|error| Fault(format!("unable to parse userinfo in dict: {error}")))?;
        url.user = parsed.user;
    }
    new_text(scope, url.write())
}
