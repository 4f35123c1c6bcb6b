//! Texts that look like credentials in places that are not made for them. The text itself is never in a hint.

use serde_json::Value;

use super::uses::{containers, items, pod_spec};
use crate::object::Manifest;
use crate::text::is_secret_name;

/// Longer texts are not searched: they are bundles of files.
const MAX_TEXT: usize = 256 << 10;
/// More hints about one object help nobody.
const MAX_HINTS: usize = 20;
/// A longer name in a text is cut.
const MAX_NAME: usize = 63;

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

const KNOWN: [Known; 29] = [
    known("AKIA", "an AWS access key id", 16, upper),
    known("ASIA", "an AWS access key id", 16, upper),
    known("ghp_", "a GitHub token", 36, word),
    known("gho_", "a GitHub token", 36, word),
    known("ghs_", "a GitHub token", 36, word),
    known("ghu_", "a GitHub token", 36, word),
    known("ghr_", "a GitHub token", 36, word),
    known("github_pat_", "a GitHub token", 22, word),
    known("glpat-", "a GitLab token", 20, word),
    known("glptt-", "a GitLab token", 20, word),
    known("xoxa-", "a Slack token", 20, word),
    known("xapp-", "a Slack token", 20, word),
    known("xoxb-", "a Slack token", 20, word),
    known("xoxp-", "a Slack token", 20, word),
    known("AIza", "a Google API key", 35, word),
    known("ya29.", "a Google token", 20, word),
    known("sk-ant-", "an Anthropic key", 20, word),
    known("sk-proj-", "an OpenAI key", 20, word),
    known("hf_", "a Hugging Face token", 30, word),
    known("SG.", "a SendGrid key", 22, word),
    known("shpat_", "a Shopify token", 32, word),
    known("dop_v1_", "a DigitalOcean token", 40, word),
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
            let is_secret = is_secret_name(name) && !is_secret_reference(name) && looks_random(text);
            is_secret.then_some("a random text under the name of a secret")
        })
}

/// Does a value of this name say which Secret to use? Then it is none.
pub fn is_secret_reference(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("existing") || name.starts_with("imagepullsecret")
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
pub fn looks_random(text: &str) -> bool {
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
                of_source(source, &format!("spec.sources[{number}]"), &mut hints);
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

/// What a source of an Application gives to its tool.
fn of_source(source: &Value, place: &str, hints: &mut Vec<TokenHint>) {
    for (path, name) in [("/helm/values", "helm.values"), ("/helm/valuesObject", "helm.valuesObject")] {
        search(source.pointer(path), &format!("{place}.{name}"), hints);
    }
    for (path, name) in [
        ("/helm/parameters", "helm.parameters"),
        ("/plugin/env", "plugin.env"),
        ("/plugin/parameters", "plugin.parameters"),
        ("/directory/jsonnet/extVars", "directory.jsonnet.extVars"),
        ("/directory/jsonnet/tlas", "directory.jsonnet.tlas"),
    ] {
        named(source.pointer(path), &format!("{place}.{name}"), hints);
    }
}

/// A list of names with values. Parameters of plugins have other fields for them.
fn named(list: Option<&Value>, place: &str, hints: &mut Vec<TokenHint>) {
    for item in list.and_then(Value::as_array).into_iter().flatten() {
        let name = item.get("name").and_then(Value::as_str).unwrap_or_default();
        for field in ["value", "string", "array", "map"] {
            search(item.get(field), &format!("{place}.{name}"), hints);
        }
    }
}

/// Every text in a value. The depth of a manifest is limited where it is read.
fn search(value: Option<&Value>, place: &str, hints: &mut Vec<TokenHint>) {
    if hints.len() >= MAX_HINTS {
        return;
    }
    match value {
        Some(Value::String(text)) => {
            let name = place.rsplit('.').next().unwrap_or_default();
            match looks_like(name, text) {
                Some(looks_like) => hints.push(TokenHint { path: place.to_owned(), looks_like }),
                None => search_text(text, place, hints),
            }
        }
        Some(Value::Object(map)) => {
            map.iter().for_each(|(key, value)| search(Some(value), &format!("{place}.{key}"), hints));
        }
        Some(Value::Array(items)) => {
            let mut flag = None;
            for (n, item) in items.iter().enumerate() {
                let place = format!("{place}[{n}]");
                let text = item.as_str().unwrap_or_default();
                match flag.and_then(|flag| looks_like(flag, text)) {
                    Some(looks_like) => hints.push(TokenHint { path: place, looks_like }),
                    None => search(Some(item), &place, hints),
                }
                // `--password` before its value.
                flag = Some(text).filter(|text| text.starts_with('-') && !text.contains('='));
            }
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => {}
    }
}

/// The settings in a text: lines of YAML, of properties or of variables, flags, JSON, an address of a database. At most
/// one of each line.
fn search_text(text: &str, place: &str, hints: &mut Vec<TokenHint>) {
    if text.len() > MAX_TEXT {
        return;
    }
    for line in text.lines() {
        if hints.len() >= MAX_HINTS {
            return;
        }
        let parts = line.split([' ', '\t', ',', ';', '&', '{', '}']);
        let mut settings = std::iter::once(line).chain(parts).filter_map(setting);
        let found = settings.find_map(|(name, value)| Some((name, looks_like(name, value)?)));
        if let Some((name, looks_like)) = found {
            let name: String = name.chars().take(MAX_NAME).collect();
            hints.push(TokenHint { path: format!("{place}: {name}"), looks_like });
        }
    }
}

/// `name: value`, `name=value`, `"name": "value",`, `--name=value`. The name is one word: what is before it can be a
/// secret, and names are shown.
fn setting(text: &str) -> Option<(&str, &str)> {
    let quotes = ['"', '\''];
    let (name, value) = text.split_once([':', '='])?;
    let name = name.split_ascii_whitespace().last()?.trim_matches(quotes).trim_start_matches('-');
    let value = value.split(" #").next().unwrap_or_default().trim();
    let value = value.trim_end_matches([',', ';']).trim_matches(quotes);
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    (!name.is_empty() && is_name(name)).then_some((name, value))
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
            ("existingSecret", "shop-database-credentials-v2"),
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

    #[test]
    fn texts_are_searched_for_settings() {
        let random = "q9X2mB7vK4pL8wZ1nR5t";
        let paths = |object: Value| -> Vec<String> {
            token_hints(&Manifest::new(object).unwrap()).into_iter().map(|hint| hint.path).collect()
        };
        let in_map = |text: &str| {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"f": text}});
            paths(map)
        };
        for (text, name) in [
            (format!("auth:\n  user: shop\n  password: {random} # of the database\n"), "password"),
            (format!("- 'password': \"{random}\"\n"), "password"),
            (format!("db.url=jdbc:x\ndb.password={random}\n"), "db.password"),
            (format!("export API_TOKEN={random}"), "API_TOKEN"),
            (format!("{{\"a\":{{\"user\":\"shop\",\"clientSecret\":\"{random}\"}}}}"), "clientSecret"),
            (format!("Server=db;User Id=sa;Password={random};"), "Password"),
            (format!("-Xmx1g -Ddb.password={random}"), "Ddb.password"),
            (format!("hunter2 is no name token: {random}"), "token"),
        ] {
            assert_eq!(in_map(&text), [format!("data.f: {name}")], "{text}");
        }
        for text in [
            format!("passwordFile: {random}\ntokenUrl: https://auth.example.com/v2/token1\n"),
            format!("commit: {random}\nexistingSecret: shop-database-credentials-v2"),
            "password: {{ .Values.auth.password1 }}\ntoken: ${A_TOKEN_OF_THE_SHOP_1}\n".to_owned(),
            "password:\n  length: 12345\n".to_owned(),
        ] {
            assert!(in_map(&text).is_empty(), "{text}");
        }
        let lines = format!("password: {random}\n").repeat(100);
        assert_eq!(in_map(&lines).len(), MAX_HINTS);

        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [
            {"name": "c", "args": ["--user", random, "--password", random, format!("--token={random}")]}]}});
        assert_eq!(paths(pod), ["container c: args[3]", "container c: args[4]: token"]);
        let app = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a"},
            "spec": {"source": {
                "helm": {"values": format!("auth:\n  password: {random}\n")},
                "plugin": {"env": [{"name": "API_TOKEN", "value": random}],
                    "parameters": [{"name": "secret", "string": random}, {"name": "a", "map": {"token": random}}]},
                "directory": {"jsonnet": {"extVars": [{"name": "password", "value": random}],
                    "tlas": [{"name": "user", "value": random}]}}}}});
        let expected = [
            "helm.values: password",
            "plugin.env.API_TOKEN",
            "plugin.parameters.secret",
            "plugin.parameters.a.token",
            "directory.jsonnet.extVars.password",
        ];
        assert_eq!(paths(app), expected.map(|end| format!("spec.sources[0].{end}")));
    }
}
