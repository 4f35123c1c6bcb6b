//! Blanking what looks like a secret in text that is shown: logs, termination messages, events, refusals.
//!
//! Such text comes from arbitrary programs. It errs on the side of blanking. The blank has always the same length.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::names::is_secret_name;

/// The replacement of a secret.
pub const BLANK: &str = "••••";

/// The line with secrets blanked, and not longer than `max` letters.
pub fn redact(line: &str, max: usize) -> String {
    cut(redact_text(line).into_owned(), max)
}

/// The lines with secrets blanked, each not longer than `max` letters. A secret may reach over several lines, as a
/// private key does: then there are fewer lines.
pub fn redact_lines<'a>(lines: impl IntoIterator<Item = &'a String>, max: usize) -> Vec<String> {
    let lines: Vec<&str> = lines.into_iter().map(String::as_str).collect();
    redact_text(&lines.join("\n")).split('\n').map(|line| cut(line.to_owned(), max)).collect()
}

/// The text with secrets blanked, line breaks kept.
pub fn redact_text(text: &str) -> Cow<'_, str> {
    let Some(patterns) = &*PATTERNS else { return Cow::Borrowed(BLANK) };
    let mut text = patterns.without_logins(Cow::Borrowed(text));
    for (pattern, replacement) in &patterns.fixed {
        if pattern.is_match(&text) {
            text = Cow::Owned(pattern.replace_all(&text, *replacement).into_owned());
        }
    }
    let text = patterns.without_named_values(text);
    replaced(text, &patterns.run, |found| {
        let run = &found[0];
        let has = |test: fn(&u8) -> bool| run.as_bytes().iter().any(test);
        // A digest is all small letters and digits; a key has both cases.
        let is_key = has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
        is_key.then(|| BLANK.to_owned())
    })
}

/// The text with the user and password of every address blanked. The user of an ssh address stays: it is part of where
/// the repository is. Costs little where the text has no login.
pub fn without_logins(text: &str) -> Cow<'_, str> {
    if !text.contains("://") || !text.contains('@') {
        return Cow::Borrowed(text);
    }
    match &*PATTERNS {
        Some(patterns) => patterns.without_logins(Cow::Borrowed(text)),
        None => Cow::Borrowed(BLANK),
    }
}

fn cut(text: String, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Every match for which `replace` has a replacement is replaced.
fn replaced<'t>(
    text: Cow<'t, str>,
    pattern: &Regex,
    replace: impl Fn(&Captures<'_>) -> Option<String>,
) -> Cow<'t, str> {
    let replacement = |found: &Captures<'_>| replace(found).unwrap_or_else(|| found[0].to_owned());
    match pattern.replace_all(&text, replacement) {
        Cow::Borrowed(_) => text,
        Cow::Owned(text) => Cow::Owned(text),
    }
}

struct Patterns {
    /// An address with a login.
    login: Regex,
    /// Each match is replaced as it says.
    fixed: Vec<(Regex, &'static str)>,
    /// A name and a sign, or a flag.
    name: Regex,
    /// A value, at the start of a text.
    value: Regex,
    /// A long run of letters and digits that no word has.
    run: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    let fixed: Result<Vec<_>, _> =
        SECRETS.iter().map(|(pattern, blanked)| Regex::new(pattern).map(|regex| (regex, *blanked))).collect();
    Some(Patterns {
        login: Regex::new(LOGIN).ok()?,
        fixed: fixed.ok()?,
        name: Regex::new(NAME).ok()?,
        value: Regex::new(VALUE).ok()?,
        run: Regex::new(r"[A-Za-z0-9+/_=]{40,}").ok()?,
    })
});

/// A password may contain `/` and `@`; a port, which follows a colon too, has only digits.
const LOGIN: &str = r#"(?x) ([A-Za-z][A-Za-z0-9+.\-]*)://
    ( [^\s/:@'"<>]*:[0-9]*[^\s/@0-9'"<>][^\s'"<>]* | [^\s/'"<>]+ )@"#;

/// Private keys, headers and the tokens of well-known providers.
const SECRETS: &[(&str, &str)] = &[
    (
        r"(?s)-----BEGIN [A-Z0-9 ]*(?:PRIVATE KEY|PGP)[A-Z0-9 ]*-----.*?(?:-----END [A-Z0-9 ]*-----|\z)",
        "••••",
    ),
    // The lines that are shown may start inside of a key.
    (r"(?s)\A.*?-----END [A-Z0-9 ]*(?:PRIVATE KEY|PGP)[A-Z0-9 ]*-----", "••••"),
    (
        r#"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|x-api-key)(["']?\s*[:=]\s*["']?)[^"'\r\n]+"#,
        "${1}${2}••••",
    ),
    (r#"(?i)\b(bearer|basic)\s+[^\s,;"'<>]+"#, "${1} ••••"),
    // `user:password@tcp(host)/database`
    (r"(?i)([\w.-]+):[^\s@/:]+@(tcp|udp|unix)\(", "${1}:••••@${2}("),
    (r"(?i)(hooks\.slack\.com/(?:services|workflows)/)[\w/-]+", "${1}••••"),
    (r"\beyJ[\w-]{8,}(?:\.[\w-]*)*", "••••"),
    (r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA)[A-Z0-9]{12,}\b", "••••"),
    (r"\b(?:gh[pousr]_|github_pat_|npm_|hf_|dckr_pat_|glsa_|shpat_|shpss_|whsec_)\w{10,}", "••••"),
    (r"\b(?:(?:sk|rk|pk)_(?:live|test)_|do[opr]_v1_)\w{10,}", "••••"),
    (r"\b(?:gl[a-z]{2,7}-|xox[a-z]-|xapp-|sk-|pypi-|AIza|AGE-SECRET-KEY-1)[\w-]{16,}", "••••"),
    (r"\b(?:ya29|hv[sbr]|SG)\.[\w.-]{16,}", "••••"),
];

/// `password=`, `"token": `, `{\"secret\":`, `--password `.
const NAME: &str =
    r#"(?x) ([A-Za-z0-9_.\-]+) (?: \\?["'] )? \s* (?: => | := | [:=] ) \s* | --?([A-Za-z0-9\-]+)[\ \t]+"#;

/// In quotes, or up to a blank. A quote that does not end reaches to the end of the text.
const VALUE: &str = r#"(?x) \A (?:
    \\" (?:[^"\\]|\\[^"])* (?:\\")? | " (?:[^"\\]|\\.)* "? | ' (?:[^'\\]|\\.)* '? | [^\s&"']+ )"#;

impl Patterns {
    fn without_logins<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        replaced(text, &self.login, |found| {
            let (scheme, login) = (&found[1], &found[2]);
            if !scheme.to_ascii_lowercase().contains("ssh") {
                return Some(format!("{scheme}://{BLANK}@"));
            }
            let user = login.split(':').next().unwrap_or_default();
            Some(format!("{scheme}://{user}@"))
        })
    }

    /// Blanks the value after each name of a secret.
    fn without_named_values<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        let mut shown = String::new();
        let mut done = 0;
        while let Some(found) = self.name.captures_at(&text, done) {
            let name = found.get(1).or_else(|| found.get(2)).map_or("", |name| name.as_str());
            let begins = found.get(0).map_or(text.len(), |all| all.end());
            shown.push_str(&text[done..begins]);
            done = begins;
            if !is_secret_name(name) {
                continue;
            }
            let Some(value) = self.value.find(&text[begins..]) else { continue };
            // `secret: token: x`: the value is not the next name.
            let next = value.as_str().strip_suffix([':', '=']);
            if next.is_some_and(is_secret_name) {
                continue;
            }
            done += value.end();
            shown.push_str(BLANK);
        }
        if done == 0 {
            return text;
        }
        shown.push_str(&text[done..]);
        Cow::Owned(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_blanked_and_the_rest_stays() {
        for (line, expected) in [
            ("connect to db:5432 failed", "connect to db:5432 failed"),
            ("password=hunter2 for user bob", "password=•••• for user bob"),
            ("DB_PASSWORD: hunter2", "DB_PASSWORD: ••••"),
            ("bad secret: token: abc", "bad secret: token: ••••"),
            ("config error: password=hunter2", "config error: password=••••"),
            ("password='hunter two' tried", "password=•••• tried"),
            (r#"{"user":"bob","token":"abc"}"#, r#"{"user":"bob","token":••••}"#),
            (r#"{"clientSecret": "a b", "n": 1}"#, r#"{"clientSecret": ••••, "n": 1}"#),
            (r#"body={\"token\":\"abc\",\"n\":1}"#, r#"body={\"token\":••••,\"n\":1}"#),
            ("GET /x?token=abc&page=2", "GET /x?token=••••&page=2"),
            ("login --password hunter2 --user bob", "login --password •••• --user bob"),
            ("postgres://bob:hunter2@db:5432/x", "postgres://••••@db:5432/x"),
            ("clone https://t0ken@host/x failed", "clone https://••••@host/x failed"),
            ("clone https://bob:p@ss/w@host/x failed", "clone https://••••@host/x failed"),
            ("ssh://git:pw@host/x and ssh://git@host/x", "ssh://git@host/x and ssh://git@host/x"),
            ("https://host:8443/x@v2", "https://host:8443/x@v2"),
            ("root:hunter2@tcp(db:3306)/x", "root:••••@tcp(db:3306)/x"),
            ("Server=db;User Id=sa;Password=hunter2;", "Server=db;User Id=sa;Password=••••"),
            ("AccountName=a;AccountKey=abc==", "AccountName=a;AccountKey=••••"),
            ("Authorization: Bearer abcdef", "Authorization: ••••"),
            ("sent bearer abcdef to host", "sent bearer •••• to host"),
            ("Cookie: a=b; c=d", "Cookie: ••••"),
            ("got eyJhbGciOiJIUzI1NiJ9.e30.abc", "got ••••"),
            ("<eyJhbGciOiJIUzI1NiJ9.e30.abc>", "<••••>"),
            ("key AKIAIOSFODNN7EXAMPLE used", "key •••• used"),
            ("ghp_0123456789abcdef glpat-0123456789abcdefghij", "•••• ••••"),
            ("xoxb-1234567890-abcdefghij", "••••"),
            ("a -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- b", "a •••• b"),
            ("abc\n-----END PRIVATE KEY-----\nrest", "••••\nrest"),
            (
                "image nginx@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                "image nginx@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            ),
            ("couldn't find key password in Secret shop/db", "couldn't find key password in Secret shop/db"),
        ] {
            assert_eq!(redact(line, 500), expected);
        }
        assert_eq!(redact("abcdef", 3), "abc…");
    }

    #[test]
    fn the_length_of_a_secret_does_not_show() {
        let shown =
            ["x", "longer", "much-longer-than-that"].map(|secret| redact(&format!("token={secret}"), 500));
        assert!(shown.iter().all(|text| *text == shown[0]));
    }

    #[test]
    fn a_key_of_several_lines_is_blanked_as_a_whole() {
        let lines =
            ["start", "-----BEGIN EC PRIVATE KEY-----", "MHcC", "-----END EC PRIVATE KEY-----", "end"];
        assert_eq!(redact_lines(&lines.map(str::to_owned), 100), ["start", "••••", "end"]);
    }

    #[test]
    fn logins_of_addresses() {
        assert_eq!(without_logins("cannot fetch https://u:p@h/x: no"), "cannot fetch https://••••@h/x: no");
        assert!(matches!(without_logins("https://h/x"), Cow::Borrowed(_)));
    }
}
