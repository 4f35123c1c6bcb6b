//! URLs.

use std::collections::BTreeMap;

use super::table::{Row, Type, new_text, text};
use crate::budget::Fault;
use crate::format::quote;
use crate::value::{Scope, Value};

pub(super) const ROWS: &[Row] = &[
    ("urlParse", &[Type::Text], None, |scope, given| {
        let written = text(given, 0);
        let url = parse(&written)
            .map_err(|reason| Fault(format!("unable to parse url: parse {}: {reason}", quote(&written))))?;
        let entries = [
            ("scheme", url.scheme),
            ("host", url.host.clone()),
            ("hostname", hostname(&url.host).to_owned()),
            ("path", url.path),
            ("query", url.query),
            ("opaque", url.opaque),
            ("fragment", url.fragment),
            ("userinfo", url.userinfo.unwrap_or_default()),
        ];
        let entries: BTreeMap<String, Value> =
            entries.into_iter().map(|(key, part)| (key.to_owned(), Value::text(part))).collect();
        Value::map(scope, entries)
    }),
    ("urlJoin", &[Type::Map], None, join),
];

/// Go's `url.QueryEscape`.
pub(super) fn query_escape(text: &str) -> String {
    escape(text, |byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte), true)
}

fn escape(text: &str, keep: impl Fn(u8) -> bool, plus: bool) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for byte in text.bytes() {
        if keep(byte) {
            out.push(char::from(byte));
        } else if byte == b' ' && plus {
            out.push('+');
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[derive(Default)]
struct Url {
    scheme: String,
    opaque: String,
    userinfo: Option<String>,
    host: String,
    path: String,
    query: String,
    fragment: String,
}

fn hostname(host: &str) -> &str {
    if let Some(inner) = host.strip_prefix('[') {
        return inner.split(']').next().unwrap_or(inner);
    }
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn parse(text: &str) -> Result<Url, String> {
    let mut url = Url::default();
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    url.fragment = unescape(fragment)?;
    let mut rest = rest;
    if let Some((scheme, after)) = rest.split_once(':') {
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        if scheme.is_empty() {
            return Err("missing protocol scheme".to_owned());
        }
        if is_scheme {
            url.scheme = scheme.to_ascii_lowercase();
            rest = after;
        } else if !scheme.contains('/') && !scheme.contains('?') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    if let Some((before, query)) = rest.split_once('?') {
        query.clone_into(&mut url.query);
        rest = before;
    }
    if !url.scheme.is_empty() && !rest.starts_with('/') && !rest.is_empty() {
        rest.clone_into(&mut url.opaque);
        return Ok(url);
    }
    if let Some(after) = rest.strip_prefix("//").filter(|_| !rest.starts_with("///")) {
        let slash = after.find('/').unwrap_or(after.len());
        let authority = &after[..slash];
        rest = &after[slash..];
        let (userinfo, host) = match authority.rsplit_once('@') {
            Some((userinfo, host)) => (Some(userinfo.to_owned()), host),
            None => (None, authority),
        };
        if let Some((_, port)) = host.rsplit_once(':').filter(|_| !host.ends_with(']'))
            && !port.bytes().all(|byte| byte.is_ascii_digit())
        {
            return Err(format!("invalid port {} after host", quote(&format!(":{port}"))));
        }
        url.userinfo = userinfo;
        url.host = unescape(host)?;
    } else if rest.starts_with("///") {
        rest = &rest[2..];
    }
    url.path = unescape(rest)?;
    Ok(url)
}

fn unescape(text: &str) -> Result<String, String> {
    if !text.contains('%') {
        return Ok(text.to_owned());
    }
    let mut out = Vec::new();
    let mut bytes = text.as_bytes();
    while let Some((first, rest)) = bytes.split_first() {
        if *first != b'%' {
            out.push(*first);
            bytes = rest;
            continue;
        }
        let code = rest.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        let Some(byte) = byte else {
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(3)]).into_owned();
            return Err(format!("invalid URL escape {}", quote(&shown)));
        };
        out.push(byte);
        bytes = &rest[2..];
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn join(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let Some(Value::Map(map)) = given.first() else { return Ok(Value::text("")) };
    let part = |key: &str| match map.get(key) {
        None => Ok(String::new()),
        Some(Value::Text(text)) => Ok(String::from_utf8_lossy(&text).into_owned()),
        Some(other) => {
            let kind = other.kind_name();
            Err(Fault(format!("unable to parse {key} key, must be of type string, but {kind} found")))
        }
    };
    let (scheme, opaque, userinfo) = (part("scheme")?, part("opaque")?, part("userinfo")?);
    let (host, path, query, fragment) = (part("host")?, part("path")?, part("query")?, part("fragment")?);
    let mut out = String::new();
    if !scheme.is_empty() {
        out = format!("{scheme}:");
    }
    if opaque.is_empty() {
        if !scheme.is_empty() || !host.is_empty() || !userinfo.is_empty() {
            if !host.is_empty() || !path.is_empty() || !userinfo.is_empty() {
                out.push_str("//");
            }
            if !userinfo.is_empty() {
                out.push_str(&userinfo);
                out.push('@');
            }
            out.push_str(&host);
        }
        if !path.is_empty() && !path.starts_with('/') && !host.is_empty() {
            out.push('/');
        }
        let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@!*'()[]".contains(&byte);
        out.push_str(&escape(&path, keep, false));
    } else {
        out.push_str(&opaque);
    }
    if !query.is_empty() {
        out.push('?');
        out.push_str(&query);
    }
    if !fragment.is_empty() {
        let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=?@!*'()".contains(&byte);
        out.push('#');
        out.push_str(&escape(&fragment, keep, false));
    }
    new_text(scope, out)
}
