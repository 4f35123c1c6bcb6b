//! A Secret that Git has in plain text: everybody who can read the repository can read it, and its history keeps it.

use serde_json::Value;

use crate::desired::DesiredSet;
use crate::object::{Manifest, ObjectKey};
use crate::text::one_line;

/// What a message names at most; the rest is counted.
const MOST_NAMED: usize = 5;
const MOST_CHARACTERS: usize = 63;

/// The keys of a Secret whose values are in the manifest. Base64 hides nothing.
///
/// Empty for other kinds, for Secrets that a controller fills, and for values that are no secret: the certificate of an
/// authority, an empty text, the text of a tool that replaces it later (`<path:…>`, `ref+…`).
pub fn plain_keys(manifest: &Manifest) -> Vec<&str> {
    if manifest.kind() != "Secret" || !manifest.group().is_empty() {
        return Vec::new();
    }
    let is_plain = |(key, value): &(&String, &Value)| match value {
        Value::String(text) => !text.is_empty() && *key != "ca.crt" && !is_placeholder(text),
        Value::Null => false,
        // The API server refuses it, but the value is in Git.
        _ => true,
    };
    let fields =
        ["data", "stringData"].into_iter().filter_map(|field| manifest.value().get(field)?.as_object());
    let mut keys: Vec<&str> = fields.flatten().filter(is_plain).map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The Secrets of an app whose values are in Git, hooks included.
pub fn plain_secrets(desired: &DesiredSet) -> Vec<ObjectKey> {
    let is_plain = |manifest: &Manifest| !plain_keys(manifest).is_empty();
    let objects = desired.objects.iter().filter(|(_, object)| is_plain(&object.manifest));
    let hooks = desired.hooks.iter().filter(|hook| is_plain(&hook.manifest));
    let hooks =
        hooks.filter_map(|hook| hook.manifest.clone().with_namespace(hook.namespace.as_deref()).key());
    let mut found: Vec<ObjectKey> = objects.map(|(key, _)| key.clone()).chain(hooks).collect();
    found.sort();
    found.dedup();
    found
}

/// Texts that a plugin replaces when it renders. What plumb sees after rendering has none of them, so a text that still
/// has one holds no value.
fn is_placeholder(text: &str) -> bool {
    text.starts_with("ref+") || (text.starts_with("<path:") && text.ends_with('>'))
}

/// Keys for a message. Whoever writes to the repository chooses how many there are, and how long they are.
pub fn shown_keys(keys: &[&str]) -> String {
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
            "spec": {"encryptedData": {"a": "b"}}});
        let secrets = [
            secret("plain", &json!({"data": {"a": "b"}})),
            secret("text", &json!({"stringData": {"a": "b"}})),
            secret("empty", &json!({"data": {}})),
            secret("later", &json!({"stringData": {"a": "<path:secret/data/db#password>"}})),
        ];
        let values = secrets.iter().map(|secret| secret.value().clone()).chain([hook, sealed]);
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
        let found: Vec<String> = plain_secrets(&desired).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["Secret web/hook", "Secret web/plain", "Secret web/text"]);
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
