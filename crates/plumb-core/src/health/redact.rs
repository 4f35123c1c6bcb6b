//! Blanking what looks like a secret in lines that are shown: logs, termination messages, events.
//!
//! Such lines come from arbitrary programs. What follows a word like `password` and a sign, the
//! password in an address, bearer tokens and JSON web tokens are replaced. It errs on the side of blanking.

/// The replacement of a secret.
const BLANK: &str = "••••";

/// Names whose values are secrets.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
    "access_key",
    "access-key",
    "privatekey",
    "private_key",
    "private-key",
    "credential",
    "credentials",
    "authorization",
    "auth",
    "cookie",
    "session",
    "signature",
];

/// The line with secrets blanked, and not longer than `max` letters.
pub(super) fn redact(line: &str, max: usize) -> String {
    let mut out = String::with_capacity(line.len().min(max));
    let mut hides_next = false;
    for (index, word) in line.split(' ').enumerate() {
        if index > 0 {
            out.push(' ');
        }
        let is_scheme = word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic");
        if hides_next && !word.is_empty() && !is_scheme {
            out.push_str(BLANK);
            hides_next = false;
        } else {
            hides_next = is_scheme || ends_in_name(word) || (hides_next && word.is_empty());
            out.push_str(&redact_word(word));
        }
    }
    if out.chars().count() > max {
        out = out.chars().take(max).collect();
        out.push('…');
    }
    out
}

/// `password:` or `token=`, with the value in the next word.
fn ends_in_name(word: &str) -> bool {
    word.strip_suffix([':', '=']).is_some_and(is_name)
}

fn is_name(word: &str) -> bool {
    let lower = word.trim_matches(['"', '\'', '{', '(', '[', ',', '-', '&', '?']).to_lowercase();
    NAMES.iter().any(|name| lower.ends_with(name))
}

fn redact_word(word: &str) -> String {
    if looks_like_token(word) {
        return BLANK.to_owned();
    }
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((login, host)) = rest.split_once('@')
        && !login.contains('/')
    {
        let user = login.split(':').next().unwrap_or_default();
        return format!("{scheme}://{user}:{BLANK}@{host}");
    }
    // `a=1&token=x`, `{"password":"x"}`: each part by itself.
    let mut out = String::new();
    for part in word.split_inclusive(['&', ',', ';', '{', '}']) {
        match part.find(['=', ':']) {
            Some(sign) if is_name(&part[..sign]) && sign + 1 < part.len() => {
                let end = part.trim_end_matches(['&', ',', ';', '{', '}', '"', '\'']).len().max(sign + 1);
                out.push_str(&part[..=sign]);
                out.push_str(BLANK);
                out.push_str(&part[end..]);
            }
            Some(_) | None => out.push_str(part),
        }
    }
    out
}

/// A JSON web token, a key of a well-known provider, or a long run of letters and digits that no word has.
fn looks_like_token(word: &str) -> bool {
    let inner = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
    let starts = ["eyJ", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xox", "AKIA", "ASIA", "sk-"];
    if inner.len() >= 16 && starts.iter().any(|start| inner.starts_with(start)) {
        return true;
    }
    let is_run = inner.len() >= 40
        && inner
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'='));
    let has = |test: fn(&u8) -> bool| inner.as_bytes().iter().any(test);
    // A digest is all small letters and digits; a key has both cases.
    is_run && has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn secrets_are_blanked_and_the_rest_stays() {
        for (line, expected) in [
            ("connect to db:5432 failed", "connect to db:5432 failed"),
            ("password=hunter2 for user bob", "password=•••• for user bob"),
            ("DB_PASSWORD: hunter2", "DB_PASSWORD: ••••"),
            (r#"{"user":"bob","token":"abc"}"#, r#"{"user":"bob","token":••••"}"#),
            ("GET /x?token=abc&page=2", "GET /x?token=••••&page=2"),
            ("postgres://bob:hunter2@db:5432/x", "postgres://bob:••••@db:5432/x"),
            ("Authorization: Bearer abcdef", "Authorization: Bearer ••••"),
            ("got eyJhbGciOiJIUzI1NiJ9.e30.abc", "got ••••"),
            (
                "image nginx@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                "image nginx@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            ),
        ] {
            assert_eq!(redact(line, 500), expected);
        }
        assert_eq!(redact("abcdef", 3), "abc…");
    }
}
