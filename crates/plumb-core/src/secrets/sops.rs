//! Files that SOPS encrypted. plumb has no keys for them: it must say so, and must not apply ciphertext.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// How a value begins that SOPS encrypted, as text and in base64.
const START: &str = "ENC[AES256_GCM,";
const ENCODED_START: &str = "RU5DW0FFUzI1Nl9HQ00s";

/// Is the document encrypted by SOPS? It has a block `sops` with a checksum, a version or recipients, and values that
/// begin with `ENC[`.
pub fn is_sops(document: &Value) -> bool {
    let Some(sops) = document.get("sops").and_then(Value::as_object) else { return false };
    let has = |field: &str| sops.get(field).is_some_and(|value| !value.is_null());
    (has("mac") || has("lastmodified")) && (has("version") || recipients(sops).next().is_some())
}

/// Is it a Secret with values that SOPS encrypted? A generator of Kustomize that reads an encrypted file makes one: the
/// Secret itself has no block `sops`, but the lines of that block in an encrypted file of variables are values.
///
/// A file in a value is left alone, though it may have a block `sops`: there are programs that decrypt their own files.
pub fn has_sops_values(object: &Value) -> bool {
    let is = |field: &str, text: &str| object.get(field).and_then(Value::as_str) == Some(text);
    let is_one = |(key, value): (&String, &Value)| {
        matches!(key.as_str(), "sops_mac" | "sops_version") || value.as_str().is_some_and(is_encrypted)
    };
    let fields = ["data", "stringData"].into_iter().filter_map(|field| object.get(field)?.as_object());
    is("apiVersion", "v1") && is("kind", "Secret") && fields.flatten().any(is_one)
}

/// Is the whole text a value that SOPS encrypted, as it is or in base64?
fn is_encrypted(text: &str) -> bool {
    let text = text.trim();
    if !text.starts_with(ENCODED_START) {
        return is_sops_value(text);
    }
    let decoded = STANDARD.decode(text.split_ascii_whitespace().collect::<String>());
    decoded
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .is_some_and(|text| is_sops_value(text.trim()))
}

/// Is it ciphertext of SOPS, and nothing else?
pub(super) fn is_sops_value(text: &str) -> bool {
    text.starts_with(START) && text.ends_with(']')
}

/// What the document is encrypted for: `age`, `pgp`, a cloud's service.
pub fn sops_recipients(document: &Value) -> Vec<&'static str> {
    let sops = document.get("sops").and_then(Value::as_object);
    sops.map(|sops| recipients(sops).collect()).unwrap_or_default()
}

fn recipients(sops: &serde_json::Map<String, Value>) -> impl Iterator<Item = &'static str> {
    const KINDS: [&str; 6] = ["age", "pgp", "kms", "gcp_kms", "azure_kv", "hc_vault"];
    let groups = sops.get("key_groups").and_then(Value::as_array).into_iter().flatten();
    let has = move |map: &Value, kind: &str| {
        map.get(kind).and_then(Value::as_array).is_some_and(|keys| !keys.is_empty())
    };
    let whole = Value::Object(sops.clone());
    let groups: Vec<Value> = groups.cloned().collect();
    KINDS.into_iter().filter(move |kind| has(&whole, kind) || groups.iter().any(|group| has(group, kind)))
}

/// What a user has to know about such a file.
pub fn sops_message(place: &str, document: &Value) -> String {
    let recipients = sops_recipients(document);
    let shown = if recipients.is_empty() { String::new() } else { format!(" for {}", recipients.join(", ")) };
    format!(
        "{place} is encrypted with SOPS{shown}, and plumb does not decrypt it; use a SealedSecret (`plumb seal`), an \
         ExternalSecret, or a plugin that decrypts"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_block_of_sops_makes_a_file_encrypted() {
        let age = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "ENC[AES256_GCM,data:x]"},
            "sops": {"age": [{"recipient": "age1x", "enc": "y"}], "lastmodified": "2026-01-01T00:00:00Z", "mac": "ENC[z]",
                "version": "3.9.0", "pgp": []}});
        assert!(is_sops(&age));
        assert_eq!(sops_recipients(&age), ["age"]);
        let groups = json!({"sops": {"key_groups": [{"pgp": [{"fp": "1"}]}, {"kms": [{}]}], "mac": "x"}});
        assert!(is_sops(&groups));
        assert_eq!(sops_recipients(&groups), ["pgp", "kms"]);
        for other in [
            json!({"sops": {"enabled": true, "version": "1"}}),
            json!({"sops": "x"}),
            json!({"data": {"a": "ENC[x]"}}),
            json!([1]),
        ] {
            assert!(!is_sops(&other), "{other}");
        }
        let message = sops_message("values.yaml", &age);
        assert!(message.starts_with("values.yaml is encrypted with SOPS for age, and"), "{message}");
    }

    #[test]
    fn a_secret_whose_values_are_ciphertext_has_values_of_sops() {
        let cipher = "ENC[AES256_GCM,data:x,iv:y,tag:z,type:str]";
        let secret = |data: &Value| json!({"apiVersion": "v1", "kind": "Secret", "data": data});
        for encrypted in [
            json!({"PASSWORD": STANDARD.encode(cipher)}),
            json!({"PASSWORD": STANDARD.encode(format!("{cipher}\n"))}),
            json!({"sops_mac": "x"}),
            json!({"a": "eA==", "sops_version": "My45LjA="}),
        ] {
            assert!(has_sops_values(&secret(&encrypted)), "{encrypted}");
        }
        let text = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": cipher}});
        assert!(has_sops_values(&text));
        for other in [
            secret(&json!({"a": "aHVudGVyMg=="})),
            // A file for a program that decrypts it.
            secret(&json!({"config.yaml": STANDARD.encode(format!("a: {cipher}\nsops: {{mac: x}}\n"))})),
            secret(&json!({"a": STANDARD.encode("ENC[AES256_GCM,data")})),
            secret(&json!("x")),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": cipher}}),
        ] {
            assert!(!has_sops_values(&other), "{other}");
        }
    }
}
