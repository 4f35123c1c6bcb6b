//! Files that SOPS encrypted. plumb has no keys for them: it must say so, and must not apply ciphertext.

use serde_json::Value;

/// Is the document encrypted by SOPS? It has a block `sops` with a checksum, a version or recipients, and values that
/// begin with `ENC[`.
pub fn is_sops(document: &Value) -> bool {
    let Some(sops) = document.get("sops").and_then(Value::as_object) else { return false };
    let has = |field: &str| sops.get(field).is_some_and(|value| !value.is_null());
    (has("mac") || has("lastmodified")) && (has("version") || recipients(sops).next().is_some())
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
}
