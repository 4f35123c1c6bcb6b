//! A Secret that Git has in plain text: everybody who can read the repository can read it, and its history keeps it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::sealed::{is_sealed_secret, is_sealed_value};
use super::sops::is_sops_value;
use crate::desired::{DesiredHook, DesiredSet, Origin};
use crate::normalize::{change_secret_values, has_secret_values};
use crate::object::{FieldPath, Manifest, ObjectKey, Segment};
use crate::text::one_line;

/// What a message names at most; the rest is counted.
const MOST_NAMED: usize = 5;
const MOST_CHARACTERS: usize = 63;

/// The fields of a Secret whose values are in the manifest. Base64 hides nothing.
///
/// Empty for other kinds, for Secrets that a controller fills, and for values that are no secret: the certificate of an
/// authority, an empty text, ciphertext of SOPS, the text of a tool that replaces it later (`<path:…>`, `<name>`,
/// `ref+…`).
///
/// A field that no Secret has is one, too: the API server refuses it or drops it, but the value is in Git. So is a text in
/// a `SealedSecret` that is not sealed.
pub fn plain_fields(manifest: &Manifest) -> Vec<FieldPath> {
    if is_sealed_secret(manifest.value()) {
        return unsealed_fields(manifest.value());
    }
    if !has_secret_values(&manifest.gvk()) {
        return Vec::new();
    }
    let mut fields = Vec::new();
    if let Value::Object(mut object) = manifest.value().clone() {
        change_secret_values(&mut object, &mut |field, key, value| {
            if is_plain(field, key, value) {
                let field = FieldPath::root().field(field);
                fields.push(key.map_or_else(|| field.clone(), |key| field.field(key)));
            }
        });
    }
    fields.sort();
    fields
}

fn unsealed_fields(sealed: &Value) -> Vec<FieldPath> {
    let values = sealed.pointer("/spec/encryptedData").and_then(Value::as_object).into_iter().flatten();
    let is_plain = |value: &Value| match value.as_str() {
        Some(text) => !text.trim().is_empty() && !is_placeholder(text.trim()) && !is_sealed_value(text),
        None => !value.is_null(),
    };
    let place = FieldPath::root().field("spec").field("encryptedData");
    values.filter(|(_, value)| is_plain(value)).map(|(key, _)| place.field(key)).collect()
}

/// The keys of a Secret whose values are in the manifest; of what has no key, the name of the field.
pub fn plain_keys(manifest: &Manifest) -> Vec<String> {
    let fields = plain_fields(manifest);
    let name = |field: &FieldPath| match field.segments().last() {
        Some(Segment::Field(name)) => Some(name.to_string()),
        Some(Segment::Index(_)) | None => None,
    };
    let mut keys: Vec<String> = fields.iter().filter_map(name).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn is_plain(field: &str, key: Option<&str>, value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => {
            let decoded = || {
                let bytes = STANDARD.decode(text.split_ascii_whitespace().collect::<String>()).ok()?;
                String::from_utf8(bytes).ok()
            };
            let is_encoded = field == "data" && decoded().is_some_and(|text| is_placeholder(text.trim()));
            let text = text.trim();
            !text.is_empty() && key != Some("ca.crt") && !is_placeholder(text) && !is_encoded
        }
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        // The API server refuses it, but the value is in Git.
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// The Secrets of an app whose values are in Git, hooks included. `counts` tells by the origin whether Git can have what
/// is in a manifest.
pub fn plain_secrets(desired: &DesiredSet, counts: impl Fn(Option<&Origin>) -> bool) -> Vec<ObjectKey> {
    let is_plain = |manifest: &Manifest, origin: &Option<Origin>| {
        counts(origin.as_ref()) && !plain_keys(manifest).is_empty()
    };
    let objects = desired.objects.iter().filter(|(_, object)| is_plain(&object.manifest, &object.origin));
    let hooks = desired.hooks.iter().filter(|hook| is_plain(&hook.manifest, &hook.origin));
    let hooks = hooks.map(DesiredHook::key_or_prefix);
    let mut found: Vec<ObjectKey> = objects.map(|(key, _)| key.clone()).chain(hooks).collect();
    found.sort();
    found.dedup();
    found
}

/// The plain keys of what an app would write under this name, hooks included.
pub fn plain_keys_of(desired: &DesiredSet, key: &ObjectKey) -> Vec<String> {
    desired.written_as(key).flat_map(plain_keys).collect()
}

/// Texts that hold no value: a tool replaces them when it renders, or they are ciphertext. What is in angle brackets has
/// to be one word or a path, because markup has angle brackets, too.
fn is_placeholder(text: &str) -> bool {
    let inside = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
    let is_word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    text.starts_with("ref+")
        || is_sops_value(text)
        || inside.is_some_and(|text| {
            !text.contains(['<', '>', '\n'])
                && (text.starts_with("path:") || (!text.is_empty() && is_word(text)))
        })
}

/// Keys for a message. Whoever writes to the repository chooses how many there are, and how long they are.
pub fn shown_keys(keys: &[String]) -> String {
    let named = keys.iter().take(MOST_NAMED).map(|key| shown(key)).collect::<Vec<_>>().join(", ");
    let more = keys.len().saturating_sub(MOST_NAMED);
    if more > 0 { format!("{named} and {more} more") } else { named }
}

fn shown(text: &str) -> String {
    let cut: String = text.chars().take(MOST_CHARACTERS).collect();
    let end = if cut.len() < text.len() { "…" } else { "" };
    format!("{}{end}", one_line(&cut))
}

/// One message about all plain Secrets of an app; `None` if there is none. It names Secrets and keys, no values.
pub fn plain_secrets_message<'set>(objects: impl IntoIterator<Item = &'set Manifest>) -> Option<String> {
    let plain = objects.into_iter().map(|manifest| (manifest.name().unwrap_or("?"), plain_keys(manifest)));
    let plain: Vec<String> = plain
        .filter(|(_, keys)| !keys.is_empty())
        .map(|(name, keys)| format!("{} ({})", shown(name), shown_keys(&keys)))
        .collect();
    if plain.is_empty() {
        return None;
    }
    let named = plain.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = plain.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let noun = if plain.len() == 1 { "Secret is" } else { "Secrets are" };
    Some(format!(
        "{} {noun} in plain text in the sources: {named}{more}; `plumb seal` encrypts them for Git",
        plain.len()
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::desired::{DesiredContext, KindFilter, RenderedManifest, Scopes, build};
    use crate::tracking::TrackingSettings;

    fn secret(name: &str, fields: &Value) -> Manifest {
        let mut object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        object.as_object_mut().unwrap().append(&mut fields.as_object().unwrap().clone());
        Manifest::new(object).unwrap()
    }

    #[test]
    fn base64_is_plain_text() {
        for (fields, expected) in [
            (
                json!({"data": {"b": "aHVudGVyMg=="}, "stringData": {"a": "hunter2", "b": "x"}}),
                vec!["a", "b"],
            ),
            (json!({"data": {"ca.crt": "LS0t", "token": ""}}), vec![]),
            (json!({"stringData": {"a": "<path:secret/data/db#password>", "b": "ref+vault://x"}}), vec![]),
            (json!({"data": {"a": null, "b": 7}}), vec!["b"]),
            (json!({"stringData": {"a": "<password>", "b": "ENC[AES256_GCM,data:x,tag:y]"}}), vec![]),
            (json!({"data": {"a": "PHBhdGg6c2VjcmV0L2EjYj4="}}), vec![]),
            (json!({"stringData": {"a": "<a><b>x</b></a>", "b": "<two words>"}}), vec!["a", "b"]),
            (json!({"stringdata": {"a": "x"}, "password": "x", "more": {}}), vec!["password", "stringdata"]),
            (json!({"data": "x", "stringData": ["x"]}), vec!["data", "stringData"]),
            (json!({"kind": "secret", "stringData": {"a": "x"}}), vec!["a"]),
            (json!({"type": "kubernetes.io/service-account-token"}), vec![]),
        ] {
            assert_eq!(plain_keys(&secret("a", &fields)), expected, "{fields}");
        }
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}});
        assert!(plain_keys(&Manifest::new(map).unwrap()).is_empty());
        let other =
            json!({"apiVersion": "x.io/v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "b"}});
        assert!(plain_keys(&Manifest::new(other).unwrap()).is_empty());
    }

    #[test]
    fn only_secrets_with_their_values_in_git_are_named() {
        let hook = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "b"}, "metadata": {
            "name": "hook", "annotations": {"argocd.argoproj.io/hook": "PreSync"}}});
        let sealed = json!({"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret", "metadata": {"name": "s"},
            "spec": {"encryptedData": {"a": "AgBy3i4OJSWK"}}});
        let forgotten = json!({"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret", "metadata": {"name": "f"},
            "spec": {"encryptedData": {"a": "AgBy3i4OJSWK", "b": "hunter2", "c": "aHVudGVyMg==", "d": "<path:x>"}}});
        assert_eq!(plain_keys(&Manifest::new(forgotten.clone()).unwrap()), ["b", "c"]);
        let unnamed = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"c": "b"}, "metadata": {
            "generateName": "later-", "annotations": {"argocd.argoproj.io/hook": "PreSync"}}});
        let secrets = [
            secret("plain", &json!({"data": {"a": "b"}})),
            secret("text", &json!({"stringData": {"a": "b"}})),
            secret("empty", &json!({"data": {}})),
            secret("later", &json!({"stringData": {"a": "<path:secret/data/db#password>"}})),
        ];
        let values =
            secrets.iter().map(|secret| secret.value().clone()).chain([hook, unnamed, sealed, forgotten]);
        let desired = build(
            values.map(|value| RenderedManifest { value, origin: None }).collect(),
            &DesiredContext {
                app: "shop",
                destination_namespace: Some("web"),
                destination_server: "",
                scopes: &Scopes::built_in(),
                tracking: &TrackingSettings::default(),
                filter: &KindFilter::default(),
            },
        );
        let found: Vec<String> = plain_secrets(&desired, |_| true).iter().map(ToString::to_string).collect();
        let secrets = ["Secret web/hook", "Secret web/later-", "Secret web/plain", "Secret web/text"];
        let sealed = "bitnami.com/SealedSecret web/f";
        assert_eq!(found, [&secrets[..], &[sealed]].concat());
        assert!(plain_secrets(&desired, |origin| origin.is_some()).is_empty());
        let keys = |namespace: &str, name: &str| {
            plain_keys_of(&desired, &ObjectKey::new("", "Secret", Some(namespace.to_owned()), name))
        };
        assert_eq!(keys("web", "later-2f1-presync-7"), ["c"]);
        assert_eq!(keys("web", "hook"), ["a"]);
        for (namespace, name) in [("web", "hook2"), ("web", "late"), ("other", "later-2f1-presync-7")] {
            assert!(keys(namespace, name).is_empty(), "{namespace}/{name}");
        }
    }

    #[test]
    fn the_message_names_keys_and_no_values() {
        let password = json!({"stringData": {"password": "hunter2"}});
        let all: Vec<Manifest> = (0..7).map(|n| secret(&format!("s{n}"), &password)).collect();
        let message = |n: usize| plain_secrets_message(all.iter().take(n));
        assert_eq!(message(0), None);
        assert_eq!(
            message(1).unwrap(),
            "1 Secret is in plain text in the sources: s0 (password); `plumb seal` encrypts them for Git"
        );
        let many = message(7).unwrap();
        assert!(many.starts_with("7 Secrets are") && many.contains("s4 (password) and 2 more;"), "{many}");
        assert!(!many.contains("hunter2"));
        let data: serde_json::Map<String, Value> =
            (0..9_000).map(|n| (format!("{n}\n{}", "k".repeat(900)), json!("x"))).collect();
        let flood = plain_secrets_message(&[secret("flood", &json!({"data": data}))]).unwrap();
        assert!(flood.len() < 700 && flood.contains("… and 8995 more)") && !flood.contains('\n'), "{flood}");
    }
}
