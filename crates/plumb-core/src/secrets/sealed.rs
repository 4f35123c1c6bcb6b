//! The `SealedSecret` that stands in Git.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::plain::PlainSecret;

const API_VERSION: &str = "bitnami.com/v1alpha1";
const KIND: &str = "SealedSecret";

/// Is the object a `SealedSecret`?
pub fn is_sealed_secret(object: &Value) -> bool {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    text("kind") == KIND
        && text("apiVersion").split_once('/').is_some_and(|(group, _)| group == "bitnami.com")
}

/// Could the controller read it as a sealed value? It is base64, and begins with the length of an RSA cipher text in two
/// bytes: 128 to 1024 bytes. A plain text, and one in base64, begins otherwise.
pub(super) fn is_sealed_value(text: &str) -> bool {
    let text: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let start = text.get(..4).and_then(|start| STANDARD.decode(start).ok());
    let length = start.and_then(|start| Some(u16::from_be_bytes(*start.first_chunk()?)));
    text.iter().all(is_base64) && length.is_some_and(|length| (128..=1024).contains(&length))
}

/// The `SealedSecret` with these encrypted values. The template repeats what the Secret shall have besides values.
pub fn sealed_secret(secret: &PlainSecret, encrypted: &BTreeMap<String, String>) -> Value {
    let mut identity = Map::new();
    identity.insert("name".to_owned(), json!(secret.name));
    if let Some(namespace) = &secret.namespace {
        identity.insert("namespace".to_owned(), json!(namespace));
    }
    let mut metadata = identity.clone();
    put(&mut metadata, "annotations", &secret.scope.annotations());

    let mut template_metadata = identity;
    let mut annotations = secret.annotations.clone();
    secret.scope.annotate(&mut annotations);
    put(&mut template_metadata, "annotations", &annotations);
    put(&mut template_metadata, "labels", &secret.labels);
    let mut template = Map::new();
    template.insert("metadata".to_owned(), Value::Object(template_metadata));
    if let Some(secret_type) = &secret.secret_type {
        template.insert("type".to_owned(), json!(secret_type));
    }
    if let Some(immutable) = secret.immutable {
        template.insert("immutable".to_owned(), json!(immutable));
    }
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": {"encryptedData": encrypted, "template": template},
    })
}

fn put(map: &mut Map<String, Value>, field: &str, texts: &BTreeMap<String, String>) {
    if !texts.is_empty() {
        map.insert(field.to_owned(), json!(texts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::{SealingScope, Values};

    #[test]
    fn plain_text_is_no_sealed_value() {
        for bits in [1024_u16, 2048, 3072, 4096, 8192] {
            let bytes = [&(bits / 8).to_be_bytes()[..], &[7; 300]].concat();
            assert!(is_sealed_value(&STANDARD.encode(bytes)), "{bits}");
        }
        assert!(is_sealed_value("AgBy\n  3i4O"), "folded");
        for plain in ["hunter2", "aHVudGVyMg==", "", "x", "••••••", "{}", "correct horse battery staple"]
        {
            assert!(!is_sealed_value(plain), "{plain}");
        }
    }

    #[test]
    fn the_template_has_everything_but_the_values() {
        let mut values = Values::default();
        values.set("password", b"hunter2".to_vec());
        let mut secret = PlainSecret::of_values("db", Some("shop"), values);
        let encrypted = BTreeMap::from([("password".to_owned(), "AgB7".to_owned())]);
        let sealed = sealed_secret(&secret, &encrypted);
        assert_eq!(
            sealed,
            json!({"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret",
                "metadata": {"name": "db", "namespace": "shop"},
                "spec": {"encryptedData": {"password": "AgB7"},
                    "template": {"metadata": {"name": "db", "namespace": "shop"}}}})
        );
        assert!(is_sealed_secret(&sealed) && !is_sealed_secret(&json!({"kind": "SealedSecret"})));

        secret.scope = SealingScope::ClusterWide;
        secret.namespace = None;
        secret.secret_type = Some("kubernetes.io/tls".to_owned());
        secret.immutable = Some(true);
        secret.labels.insert("team".to_owned(), "a".to_owned());
        // An annotation of another scope gives way.
        let other = "sealedsecrets.bitnami.com/namespace-wide".to_owned();
        secret.annotations.insert(other, "true".to_owned());
        let scope = json!({"sealedsecrets.bitnami.com/cluster-wide": "true"});
        assert_eq!(
            sealed_secret(&secret, &encrypted),
            json!({"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret",
                "metadata": {"name": "db", "annotations": scope},
                "spec": {"encryptedData": {"password": "AgB7"}, "template": {
                    "metadata": {"name": "db", "annotations": scope, "labels": {"team": "a"}},
                    "type": "kubernetes.io/tls", "immutable": true}}})
        );
    }
}
