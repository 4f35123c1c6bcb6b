//! The cookie with the token.

use http::{HeaderValue, Response, header};

use crate::body::AnswerBody;
use crate::session::COOKIE;

/// Longest cookie that browsers keep.
const LONGEST: usize = 4093;

/// What cookies of this server look like.
#[derive(Clone, Debug)]
pub(crate) struct CookieRules {
    /// The path below which the server is reached.
    pub(crate) path: String,
    /// True if it is sent only over TLS.
    pub(crate) secure: bool,
}

impl CookieRules {
    fn attributes(&self) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        format!("path=/{}; SameSite=lax; httpOnly{secure}", self.path.trim_matches('/'))
    }

    /// The headers that set the token; several if it is too long for one.
    pub(super) fn set(&self, token: &str) -> Vec<HeaderValue> {
        let attributes = self.attributes();
        let room = LONGEST.saturating_sub(attributes.len() + COOKIE.len() + 8);
        let parts: Vec<&[u8]> = token.as_bytes().chunks(room.max(1)).collect();
        let count = parts.len();
        let header = |(index, part): (usize, &&[u8])| {
            let part = std::str::from_utf8(part).ok()?;
            let text = match (index, count) {
                (0, 0 | 1) => format!("{COOKIE}={part}; {attributes}"),
                (0, _) => format!("{COOKIE}={count}:{part}; {attributes}"),
                (index, _) => format!("{COOKIE}-{index}={part}; {attributes}"),
            };
            HeaderValue::from_str(&text).ok()
        };
        parts.iter().enumerate().filter_map(header).collect()
    }

    /// The header that sets a cookie for the time of a login.
    pub(super) fn set_for_a_while(&self, name: &str, value: &str) -> Option<HeaderValue> {
        HeaderValue::from_str(&format!("{name}={value}; {}; Max-Age=300", self.attributes())).ok()
    }

    /// The header that removes a cookie.
    pub(super) fn clear(&self, name: &str) -> Option<HeaderValue> {
        HeaderValue::from_str(&format!("{name}=; {}; Max-Age=0", self.attributes())).ok()
    }
}

/// Gives the client another token: in a header, and as a cookie to clients of REST.
pub(crate) fn renew(answer: &mut Response<AnswerBody>, token: &str, cookies: Option<&CookieRules>) {
    let Ok(value) = HeaderValue::from_str(token) else { return };
    let name = if cookies.is_some() { "grpc-metadata-renew-token" } else { "renew-token" };
    answer.headers_mut().insert(name, value);
    for cookie in cookies.into_iter().flat_map(|cookies| cookies.set(token)) {
        answer.headers_mut().append(header::SET_COOKIE, cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_parts() {
        let rules = CookieRules { path: "/argo/".to_owned(), secure: true };
        let set = rules.set("a.b.c");
        assert_eq!(set, ["argocd.token=a.b.c; path=/argo; SameSite=lax; httpOnly; Secure"]);
        let long = rules.set(&"x".repeat(9000));
        assert_eq!(long.len(), 3);
        assert!(long.iter().all(|header| header.len() <= LONGEST));
        assert!(long[0].to_str().unwrap().starts_with("argocd.token=3:xxx"));
        assert!(long[2].to_str().unwrap().starts_with("argocd.token-2=x"));
        let plain = CookieRules { path: String::new(), secure: false };
        assert_eq!(plain.set("t"), ["argocd.token=t; path=/; SameSite=lax; httpOnly"]);
    }
}
