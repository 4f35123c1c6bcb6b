//! Texts that look like credentials in places that are not made for them. The text itself is never in a hint.

use serde_json::Value;

use super::uses::{containers, items, pod_spec};
use crate::object::Manifest;
use crate::text::is_secret_name;

/// Longer texts are not searched: they are bundles of files.
const MAX_TEXT: usize = 256 << 10;
/// More hints about one object help nobody.
const MAX_HINTS: usize = 20;

/// A place that seems to hold a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenHint {
    /// The path in the object, such as `data.config.yaml`.
    pub path: String,
    /// What it looks like.
    pub looks_like: &'static str,
}

/// A kind of credential that begins in a known way.
struct Known {
    prefix: &'static str,
    looks_like: &'static str,
    /// So many characters follow at least.
    min: usize,
    more: fn(u8) -> bool,
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

const fn known(prefix: &'static str, looks_like: &'static str, min: usize, more: fn(u8) -> bool) -> Known {
    Known { prefix, looks_like, min, more }
}

const KNOWN: [Known; 17] = [
    known("AKIA", "an AWS access key id", 16, upper),
    known("ASIA", "an AWS access key id", 16, upper),
    known("ghp_", "a GitHub token", 36, word),
    known("gho_", "a GitHub token", 36, word),
    known("ghs_", "a GitHub token", 36, word),
    known("github_pat_", "a GitHub token", 22, word),
    known("glpat-", "a GitLab token", 20, word),
    known("xoxb-", "a Slack token", 20, word),
    known("xoxp-", "a Slack token", 20, word),
    known("AIza", "a Google API key", 35, word),
    known("sk_live_", "a Stripe key", 16, word),
    known("rk_live_", "a Stripe key", 16, word),
    known("npm_", "an npm token", 36, word),
    known("pypi-AgEI", "a PyPI token", 20, word),
    known("hvs.", "a Vault token", 24, word),
    known("dckr_pat_", "a Docker token", 20, word),
    known("AGE-SECRET-KEY-1", "an age key", 50, upper),
];

/// What a text looks like; `None` if it looks like no credential. `name` is the name of the field or variable.
pub fn looks_like(name: &str, text: &str) -> Option<&'static str> {
    if text.len() > MAX_TEXT {
        return None;
    }
    if has_private_key(text) {
        return Some("a private key");
    }
    let known = KNOWN.iter().find(|known| has(known, text)).map(|known| known.looks_like);
    known
        .or_else(|| has_jwt(text).then_some("a JSON web token"))
        .or_else(|| has_password_in_url(text).then_some("an address with a password"))
        .or_else(|| {
            (is_secret_name(name) && is_random(text)).then_some("a random text under the name of a secret")
        })
}

fn has(known: &Known, text: &str) -> bool {
    text.match_indices(known.prefix).any(|(at, _)| {
        let is_start = at == 0 || text.as_bytes().get(at - 1).is_none_or(|before| !word(*before));
        let rest = text.as_bytes().get(at + known.prefix.len()..).unwrap_or_default();
        is_start && rest.iter().take_while(|byte| (known.more)(**byte)).count() >= known.min
    })
}

fn has_private_key(text: &str) -> bool {
    text.match_indices("-----BEGIN ").any(|(at, _)| {
        let line = text.get(at..).unwrap_or_default().lines().next().unwrap_or_default();
        line.trim_end().ends_with("PRIVATE KEY-----") || line.contains("PRIVATE KEY BLOCK")
    })
}

/// Three parts of base64, of which the first two are JSON objects.
fn has_jwt(text: &str) -> bool {
    text.match_indices("eyJ").any(|(at, _)| {
        let rest = text.get(at..).unwrap_or_default();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')));
        let parts: Vec<&str> = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default().split('.').collect();
        matches!(parts.as_slice(), [head, body, signature]
            if head.len() > 10 && body.starts_with("eyJ") && signature.len() > 10)
    })
}

/// `postgres://user:password@host`.
fn has_password_in_url(text: &str) -> bool {
    text.match_indices("://").any(|(at, _)| {
        let rest = text.get(at + 3..).unwrap_or_default();
        let end = rest.find(['/', '?', '#', '"', '\'', ' ', '\n']).unwrap_or(rest.len());
        let Some((user, _)) = rest.get(..end).unwrap_or_default().rsplit_once('@') else { return false };
        user.split_once(':').is_some_and(|(_, password)| !is_placeholder(password))
    })
}

fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    text.is_empty()
        || ["$", "{{", "<", "%"].iter().any(|start| text.starts_with(start))
        || text.chars().all(|c| matches!(c, 'x' | 'X' | '*' | '.'))
        || matches!(
            text.to_ascii_lowercase().as_str(),
            "password" | "pass" | "secret" | "changeme" | "change-me"
        )
}

/// Is it one word that nobody would write: long, of many different characters, with digits among letters?
fn is_random(text: &str) -> bool {
    let text = text.trim();
    let is_word = text.bytes().all(|byte| byte.is_ascii_graphic());
    let has_both =
        text.bytes().any(|byte| byte.is_ascii_digit()) && text.bytes().any(|byte| byte.is_ascii_alphabetic());
    (16..=512).contains(&text.len())
        && is_word
        && has_both
        && !text.contains("://")
        && !text.starts_with('/')
        && !is_placeholder(text)
        && bits_per_character(text) >= 3.5
}

/// Shannon's entropy.
fn bits_per_character(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let total = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
    let seen = counts.iter().filter(|count| **count > 0);
    seen.map(|count| f64::from(*count) / total).map(|share| -share * share.log2()).sum()
}

/// Looks through a `ConfigMap`, the variables and arguments of a workload, or the values of an Application.
pub fn token_hints(object: &Manifest) -> Vec<TokenHint> {
    let mut hints = Vec::new();
    let value = object.value();
    match (object.group(), object.kind()) {
        ("", "ConfigMap") => search(value.get("data"), "data", &mut hints),
        ("argoproj.io", "Application") => {
            let sources = value
                .pointer("/spec/source")
                .into_iter()
                .chain(items(value.get("spec").unwrap_or(&Value::Null), "sources"));
            for (number, source) in sources.enumerate() {
                let place = format!("spec.sources[{number}].helm");
                search(source.pointer("/helm/values"), &format!("{place}.values"), &mut hints);
                search(source.pointer("/helm/valuesObject"), &format!("{place}.valuesObject"), &mut hints);
                named(source.pointer("/helm/parameters"), &format!("{place}.parameters"), &mut hints);
            }
        }
        _ => {
            for container in pod_spec(value).into_iter().flat_map(containers) {
                let name = container.get("name").and_then(Value::as_str).unwrap_or("?");
                named(container.get("env"), &format!("container {name}: env"), &mut hints);
                search(container.get("args"), &format!("container {name}: args"), &mut hints);
                search(container.get("command"), &format!("container {name}: command"), &mut hints);
            }
        }
    }
    hints.truncate(MAX_HINTS);
    hints
}

/// A list of names with values.
fn named(list: Option<&Value>, place: &str, hints: &mut Vec<TokenHint>) {
    for item in list.and_then(Value::as_array).into_iter().flatten() {
        let text = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default();
        if let Some(looks_like) = looks_like(text("name"), text("value")) {
            hints.push(TokenHint { path: format!("{place}.{}", text("name")), looks_like });
        }
    }
}

/// Every text in a value. The depth of a manifest is limited where it is read.
fn search(value: Option<&Value>, place: &str, hints: &mut Vec<TokenHint>) {
    match value {
        Some(Value::String(text)) => {
            let name = place.rsplit('.').next().unwrap_or_default();
            if let Some(looks_like) = looks_like(name, text) {
                hints.push(TokenHint { path: place.to_owned(), looks_like });
            }
        }
        Some(Value::Object(map)) => {
            map.iter().for_each(|(key, value)| search(Some(value), &format!("{place}.{key}"), hints));
        }
        Some(Value::Array(items)) => {
            items
                .iter()
                .enumerate()
                .for_each(|(n, value)| search(Some(value), &format!("{place}[{n}]"), hints));
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Credentials are put together here, so that no scanner takes this file for a leak.
    fn made(prefix: &str, n: usize) -> String {
        let letters = "A1B2C3D4E5F6G7H8I9J0KLMNOPQRSTUVWXYZ2345672AB3CD4EF5GH6";
        format!("{prefix}{}", letters.repeat(2).chars().take(n).collect::<String>())
    }

    #[test]
    fn known_credentials_are_recognised() {
        for known in &KNOWN {
            let token = made(known.prefix, known.min);
            assert_eq!(looks_like("x", &token), Some(known.looks_like), "{}", known.prefix);
            assert_eq!(looks_like("x", &format!("url: https://a/?t={token}\n")), Some(known.looks_like));
            assert_eq!(looks_like("x", &made(known.prefix, known.min - 1)), None, "{}", known.prefix);
            assert_eq!(looks_like("x", &format!("Z{token}")), None, "the middle of a word: {}", known.prefix);
        }
        let key = format!("-----BEGIN {}PRIVATE KEY-----\nMII\n", "RSA ");
        assert_eq!(looks_like("x", &key), Some("a private key"));
        assert_eq!(looks_like("x", "-----BEGIN CERTIFICATE-----"), None);
        let jwt = format!("{}.eyJzdWIiOiJhIn0.{}", "eyJhbGciOiJIUzI1NiJ9", "A1B2C3D4E5F6G7H8");
        assert_eq!(looks_like("x", &format!("Bearer {jwt}")), Some("a JSON web token"));
    }

    #[test]
    fn addresses_and_names_tell_the_rest() {
        let url = |password: &str| format!("postgres://shop:{password}@db:5432/shop");
        assert_eq!(looks_like("DATABASE_URL", &url("tr0ub4dor")), Some("an address with a password"));
        for placeholder in ["$(PASSWORD)", "${DB_PASSWORD}", "{{ .password }}", "xxxx", "", "password"] {
            assert_eq!(looks_like("DATABASE_URL", &url(placeholder)), None, "{placeholder}");
        }
        assert_eq!(looks_like("URL", "https://user@host/a:b@c"), None);
        let random = "q9X2mB7vK4pL8wZ1nR5t";
        assert_eq!(looks_like("API_TOKEN", random), Some("a random text under the name of a secret"));
        for (name, text) in [
            ("COMMIT", random),
            ("PASSWORD_FILE", random),
            ("secretName", random),
            ("PASSWORD", "correct horse battery staple 12"),
            ("PASSWORD", "aaaaaaaaaaaaaaaa1111"),
            ("TOKEN", "/var/run/secrets/token-12345"),
            ("TOKEN_URL", "https://auth.example.com/token/v2"),
            ("PASSWORD", "hunter2"),
        ] {
            assert_eq!(looks_like(name, text), None, "{name}={text}");
        }
    }

    #[test]
    fn a_hint_names_the_place_and_not_the_text() {
        let token = made("ghp_", 36);
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
            "data": {"config.yaml": format!("token: {token}\n"), "motd": "hello"}});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
            "spec": {"template": {"spec": {"containers": [{"name": "web", "args": ["--token", token.as_str()],
                "env": [{"name": "T", "value": token}, {"name": "U", "valueFrom": {}}]}]}}}});
        let app = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a"},
            "spec": {"source": {"helm": {"values": format!("a: {token}"), "valuesObject": {"b": {"c": token}},
                "parameters": [{"name": "d", "value": token}]}}}});
        let hints = |object: Value| token_hints(&Manifest::new(object).unwrap());
        let paths =
            |object: Value| -> Vec<String> { hints(object).into_iter().map(|hint| hint.path).collect() };
        assert!(!format!("{:?}", hints(map.clone())).contains("A1B2"));
        assert_eq!(paths(map), ["data.config.yaml"]);
        assert_eq!(paths(deployment), ["container web: env.T", "container web: args[1]"]);
        let helm = "spec.sources[0].helm";
        let expected = [".values", ".valuesObject.b.c", ".parameters.d"].map(|end| format!("{helm}{end}"));
        assert_eq!(paths(app), expected);
    }
}
