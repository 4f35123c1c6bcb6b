//! URLs as Go's `net/url` reads and writes them.

use std::net::Ipv6Addr;

use crate::format::quote;

/// A part of a URL: which bytes need no escape in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Path,
    Host,
    Zone,
    User,
    Query,
    Fragment,
}

impl Part {
    fn keeps(self, byte: u8) -> bool {
        let signs: &[u8] = match self {
            Self::Path => b"$&+,-./:;=@_~",
            Self::Host | Self::Zone => b"!\"$&'()*+,-.:;<=>[]_~",
            Self::User => b"$&+,-.;=_~",
            Self::Query => b"-._~",
            Self::Fragment => b"!$&()*+,-./:;=?@_~",
        };
        byte.is_ascii_alphanumeric() || signs.contains(&byte)
    }
}

/// Escapes a text for a part of a URL.
pub(crate) fn escape(text: &[u8], part: Part) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for byte in text {
        if part.keeps(*byte) {
            out.push(char::from(*byte));
        } else if *byte == b' ' && part == Part::Query {
            out.push('+');
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// User name and password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct User {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

impl User {
    pub(crate) fn text(&self) -> String {
        let name = escape(&self.name, Part::User);
        match &self.password {
            Some(password) => format!("{name}:{}", escape(password, Part::User)),
            None => name,
        }
    }
}

/// A URL. What is not in it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) scheme: Vec<u8>,
    pub(crate) opaque: Vec<u8>,
    pub(crate) user: Option<User>,
    pub(crate) host: Vec<u8>,
    pub(crate) path: Vec<u8>,
    pub(crate) query: Vec<u8>,
    pub(crate) fragment: Vec<u8>,
}

impl Url {
    /// Reads a URL; the error is Go's.
    pub(crate) fn parse(written: &str) -> Result<Self, String> {
        let (rest, fragment) = written.split_once('#').unwrap_or((written, ""));
        let failed = |of: &str, reason: String| format!("parse {}: {reason}", quote(of));
        let mut url = Self::without_fragment(rest).map_err(|reason| failed(rest, reason))?;
        url.fragment = unescape(fragment, Part::Fragment).map_err(|reason| failed(written, reason))?;
        Ok(url)
    }

    fn without_fragment(text: &str) -> Result<Self, String> {
        let mut url = Self::default();
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let (scheme, rest) = scheme(text)?;
        let scheme = scheme.to_ascii_lowercase();
        url.scheme = scheme.as_bytes().to_vec();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        url.query = query.as_bytes().to_vec();
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                url.opaque = rest.as_bytes().to_vec();
                return Ok(url);
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let mut path = rest;
        let may_have_host = !scheme.is_empty() || !rest.starts_with("///");
        if let Some(after) = rest.strip_prefix("//").filter(|_| may_have_host) {
            let (authority, slash) = after.split_at(after.find('/').unwrap_or(after.len()));
            path = slash;
            (url.user, url.host) = self::authority(&scheme, authority)?;
        }
        url.path = unescape(path, Part::Path)?;
        Ok(url)
    }

    /// The host without its port.
    pub(crate) fn hostname(&self) -> &[u8] {
        let mut host = self.host.as_slice();
        if let Some(colon) = host.iter().rposition(|byte| *byte == b':')
            && host[colon + 1..].iter().all(u8::is_ascii_digit)
        {
            host = &host[..colon];
        }
        host.strip_prefix(b"[").and_then(|inner| inner.strip_suffix(b"]")).unwrap_or(host)
    }

    /// As Go writes it.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.scheme.is_empty() {
            out.extend_from_slice(&self.scheme);
            out.push(b':');
        }
        if self.opaque.is_empty() {
            self.write_place(&mut out);
        } else {
            out.extend_from_slice(&self.opaque);
        }
        if !self.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push(b'#');
            out.extend_from_slice(escape(&self.fragment, Part::Fragment).as_bytes());
        }
        out
    }

    fn write_place(&self, out: &mut Vec<u8>) {
        let has_host = !self.host.is_empty();
        if has_host || self.user.is_some() || (!self.scheme.is_empty() && !self.path.is_empty()) {
            out.extend_from_slice(b"//");
        }
        if let Some(user) = &self.user {
            out.extend_from_slice(user.text().as_bytes());
            out.push(b'@');
        }
        out.extend_from_slice(escape(&self.host, Part::Host).as_bytes());
        let path = if self.path == b"*" { "*".to_owned() } else { escape(&self.path, Part::Path) };
        if has_host && !path.is_empty() && !path.starts_with('/') {
            out.push(b'/');
        }
        // A colon in the first segment would make it a scheme.
        if out.is_empty() && path.split('/').next().is_some_and(|segment| segment.contains(':')) {
            out.extend_from_slice(b"./");
        }
        out.extend_from_slice(path.as_bytes());
    }
}

/// The scheme of a URL, which may be empty, and what follows.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    let is_sign = |byte: u8| b"+-.".contains(&byte);
    let end = text.bytes().position(|byte| !byte.is_ascii_alphanumeric() && !is_sign(byte));
    let starts_with_letter = text.starts_with(|first: char| first.is_ascii_alphabetic());
    match end.filter(|end| text.as_bytes()[*end] == b':') {
        Some(0) => Err("missing protocol scheme".to_owned()),
        Some(end) if starts_with_letter => Ok((&text[..end], &text[end + 1..])),
        Some(_) | None => Ok(("", text)),
    }
}

fn authority(scheme: &str, text: &str) -> Result<(Option<User>, Vec<u8>), String> {
    let Some((user, host)) = text.rsplit_once('@') else { return Ok((None, self::host(scheme, text)?)) };
    let host = self::host(scheme, host)?;
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(is_valid) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let (name, password) = user.split_once(':').map_or((user, None), |(name, word)| (name, Some(word)));
    let name = unescape(name, Part::User)?;
    let password = password.map(|password| unescape(password, Part::User)).transpose()?;
    Ok((Some(User { name, password }), host))
}

fn host(scheme: &str, text: &str) -> Result<Vec<u8>, String> {
    match text.rfind('[') {
        Some(0) => return address(text),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    // A list of hosts with ports is the usual address of some databases.
    let is_strict = matches!(scheme, "http" | "https");
    if let Some(colon) = if is_strict { text.find(':') } else { text.rfind(':') } {
        check_port(&text[colon..])?;
    }
    unescape(text, Part::Host)
}

/// `[fe80::1%25en0]:80`
fn address(text: &str) -> Result<Vec<u8>, String> {
    let Some(end) = text.rfind(']') else { return Err("missing ']' in host".to_owned()) };
    let (inner, port) = (&text[1..end], &text[end + 1..]);
    check_port(port)?;
    let inner = match inner.find("%25") {
        Some(zone) => [unescape(&inner[..zone], Part::Host)?, unescape(&inner[zone..], Part::Zone)?].concat(),
        None => unescape(inner, Part::Host)?,
    };
    let shown = String::from_utf8_lossy(&inner);
    let (number, zone) = shown.split_once('%').map_or((&*shown, None), |(number, zone)| (number, Some(zone)));
    let failed = |reason: &str| Err(format!("invalid host: ParseAddr({}): {reason}", quote(&shown)));
    if number.parse::<std::net::Ipv4Addr>().is_ok() && zone.is_none() {
        return Err("invalid IP-literal".to_owned());
    }
    if number.is_empty() && zone.is_some() {
        return failed("missing IPv6 address");
    }
    if number.parse::<Ipv6Addr>().is_err() {
        return failed("unable to parse IP");
    }
    if zone == Some("") {
        return failed("zone must be a non-empty string");
    }
    Ok([b"[", inner.as_slice(), b"]", port.as_bytes()].concat())
}

/// Nothing, or a colon and digits.
fn check_port(text: &str) -> Result<(), String> {
    let is_port = text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    if text.is_empty() || is_port { Ok(()) } else { Err(format!("invalid port {} after host", quote(text))) }
}

fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let is_host = matches!(part, Part::Host | Part::Zone);
    let mut out = Vec::new();
    let mut bytes = text.as_bytes();
    while let Some((first, rest)) = bytes.split_first() {
        if *first != b'%' {
            if is_host && first.is_ascii() && !part.keeps(*first) {
                let sign = quote(&char::from(*first).to_string());
                return Err(format!("invalid character {sign} in host name"));
            }
            out.push(*first);
            bytes = rest;
            continue;
        }
        let code = rest.get(..2).filter(|code| code.iter().all(u8::is_ascii_hexdigit));
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        let is_allowed = |byte: u8| match part {
            // A zone begins with an escaped `%`.
            Part::Host => !byte.is_ascii() || byte == b'%',
            Part::Zone => byte == b'%' || byte == b' ' || part.keeps(byte),
            Part::Path | Part::User | Part::Query | Part::Fragment => true,
        };
        let Some(byte) = byte.filter(|byte| is_allowed(*byte)) else {
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(3)]).into_owned();
            return Err(format!("invalid URL escape {}", quote(&shown)));
        };
        out.push(byte);
        bytes = &rest[2..];
    }
    Ok(out)
}
