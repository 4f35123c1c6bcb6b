//! A Secret that is about to be sealed.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::scope::SealingScope;
use crate::normalize::{is_copy_annotation, is_kept_annotation};
use crate::tracking::TRACKING_ANNOTATION;

/// The API server refuses larger Secrets.
const MAX_BYTES: usize = 1 << 20;

/// Plain values by key. They never appear in `Debug` output.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Values(BTreeMap<String, Vec<u8>>);

impl Values {
    /// Can a Secret have this key?
    pub fn is_key(key: &str) -> bool {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        (1..=253).contains(&key.len()) && key.bytes().all(is_allowed) && key != "." && !key.starts_with("..")
    }

    /// Sets a value. True if the key had none before.
    pub fn set(&mut self, key: &str, value: Vec<u8>) -> bool {
        self.0.insert(key.to_owned(), value).is_none()
    }

    /// Adds other values; the first key that has a value already is returned, and nothing is added then.
    pub fn add(&mut self, mut other: Self) -> Result<(), String> {
        if let Some(key) = other.0.keys().find(|key| self.0.contains_key(*key)) {
            return Err(key.clone());
        }
        self.0.append(&mut other.0);
        Ok(())
    }

    /// Keys and values, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_slice()))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// None at all?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All keys, for a message.
    pub fn keys(&self) -> String {
        self.0.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// Calls `change` with every value, to overwrite it when it is no longer needed.
    pub fn wipe(&mut self, change: impl Fn(&mut Vec<u8>)) {
        self.0.values_mut().for_each(change);
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Values({})", self.keys())
    }
}

/// A Secret that is about to be sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainSecret {
    /// Name. Empty if the caller has to give one.
    pub name: String,
    /// Namespace, if it names one.
    pub namespace: Option<String>,
    /// Where it may be opened.
    pub scope: SealingScope,
    /// Such as `kubernetes.io/tls`.
    pub secret_type: Option<String>,
    /// No later change of the values.
    pub immutable: Option<bool>,
    /// Labels of the Secret.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Secret, without those that repeat its values.
    pub annotations: BTreeMap<String, String>,
    /// The values.
    pub values: Values,
}

/// Why an object cannot be sealed. No value is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlainSecretProblem {
    /// Another kind.
    #[error("its kind is {0}, not Secret")]
    OtherKind(String),
    /// No object at all.
    #[error("it is not a Kubernetes object")]
    NoObject,
    /// A field that is something else than the API server takes.
    #[error("{field} is not {expected}")]
    Field {
        /// Its path.
        field: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// A value of `data` that is not base64.
    #[error("the value of key {0} in `data` is not base64; plain text belongs into `stringData`")]
    NotBase64(String),
    /// A key that the API server refuses.
    #[error("a Secret cannot have the key {0:?}; use letters, digits, `-`, `_` and `.`")]
    Key(String),
    /// More than a Secret can hold.
    #[error("its values have more than {MAX_BYTES} bytes, which the API server refuses")]
    TooLarge,
    /// No values.
    #[error("it has no values")]
    Empty,
}

impl PlainSecret {
    /// A Secret without anything but values.
    pub fn of_values(name: &str, namespace: Option<&str>, values: Values) -> Self {
        Self {
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
            scope: SealingScope::Strict,
            secret_type: None,
            immutable: None,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            values,
        }
    }

    /// Reads a Secret as a manifest has it.
    pub fn read(object: &Value) -> Result<Self, PlainSecretProblem> {
        let Value::Object(fields) = object else { return Err(PlainSecretProblem::NoObject) };
        let text = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default();
        if (text("apiVersion"), text("kind")) != ("v1", "Secret") {
            let kind = if text("kind").is_empty() { "missing" } else { text("kind") };
            return Err(PlainSecretProblem::OtherKind(kind.to_owned()));
        }
        let metadata = fields.get("metadata").unwrap_or(&Value::Null);
        let labels = texts(metadata.get("labels"), "metadata.labels")?;
        let mut annotations = texts(metadata.get("annotations"), "metadata.annotations")?;
        // Copies of the whole Secret, with its values; and what others noted about the object in the cluster.
        annotations.retain(|name, _| {
            !is_copy_annotation(name) && !is_kept_annotation(name) && name != TRACKING_ANNOTATION
        });
        let mut values = Values::default();
        for (key, value) in texts(fields.get("data"), "data")? {
            let bytes = STANDARD.decode(value.split_ascii_whitespace().collect::<String>());
            values.set(&key, bytes.map_err(|_| PlainSecretProblem::NotBase64(key.clone()))?);
        }
        // As the API server does it: a key in both has the value of `stringData`.
        for (key, value) in texts(fields.get("stringData"), "stringData")? {
            values.set(&key, value.into_bytes());
        }
        let secret = Self {
            name: metadata.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            namespace: metadata.get("namespace").and_then(Value::as_str).map(str::to_owned),
            scope: SealingScope::of_annotations(|name| annotations.get(name).map(String::as_str)),
            secret_type: fields.get("type").and_then(Value::as_str).map(str::to_owned),
            immutable: fields.get("immutable").and_then(Value::as_bool),
            labels,
            annotations,
            values,
        };
        secret.check()?;
        Ok(secret)
    }

    /// Would the API server take the values?
    pub fn check(&self) -> Result<(), PlainSecretProblem> {
        if self.values.is_empty() {
            return Err(PlainSecretProblem::Empty);
        }
        if let Some((key, _)) = self.values.iter().find(|(key, _)| !Values::is_key(key)) {
            return Err(PlainSecretProblem::Key(key.to_owned()));
        }
        let n_bytes: usize = self.values.iter().map(|(_, value)| value.len()).sum();
        if n_bytes > MAX_BYTES { Err(PlainSecretProblem::TooLarge) } else { Ok(()) }
    }

    /// The label of the encryption.
    pub fn label(&self) -> String {
        self.scope.label(self.namespace.as_deref().unwrap_or_default(), &self.name)
    }
}

/// A map of texts. A value that is null counts as empty, as the API server reads it.
fn texts(map: Option<&Value>, field: &str) -> Result<BTreeMap<String, String>, PlainSecretProblem> {
    let problem = |field: String, expected| PlainSecretProblem::Field { field, expected };
    let map = match map {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(map)) => map,
        Some(_) => return Err(problem(field.to_owned(), "a map")),
    };
    map.iter()
        .map(|(key, value)| match value {
            Value::String(text) => Ok((key.clone(), text.clone())),
            Value::Null => Ok((key.clone(), String::new())),
            _ => Err(problem(format!("{field}.{key}"), "text; write it in quotes")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_is_read_as_the_api_server_reads_it() {
        let read = PlainSecret::read(&json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth", "immutable": true,
            "metadata": {"name": "db", "namespace": "shop", "labels": {"team": "a"}, "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{\"data\":\"aHVudGVyMg==\"}",
                "kapp.k14s.io/original": "{\"data\":\"aHVudGVyMg==\"}",
                "plumb.dev/last-writer": "x", "argocd.argoproj.io/tracking-id": "shop:/Secret:shop/db",
                "sealedsecrets.bitnami.com/namespace-wide": "true", "note": "x"}},
            "data": {"password": "aHVu\ndGVyMg==", "user": "YQ==", "none": null},
            "stringData": {"user": "admin"},
        }))
        .unwrap();
        let values: Vec<(&str, &[u8])> = read.values.iter().collect();
        assert_eq!(values, [("none", &b""[..]), ("password", b"hunter2"), ("user", b"admin")]);
        assert_eq!(read.label(), "shop");
        let annotations: Vec<&str> = read.annotations.keys().map(String::as_str).collect();
        assert_eq!(annotations, ["note", "sealedsecrets.bitnami.com/namespace-wide"]);
        let shown = format!("{read:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("104, 117"), "{shown}");
    }

    #[test]
    fn what_is_no_secret_is_refused_without_its_values() {
        let secret = |fields: Value| {
            let mut object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
            object.as_object_mut().unwrap().append(&mut fields.as_object().unwrap().clone());
            object
        };
        for (object, message) in [
            (json!([1]), "it is not a Kubernetes object"),
            (json!({}), "its kind is missing, not Secret"),
            (json!({"apiVersion": "v1", "kind": "ConfigMap"}), "its kind is ConfigMap, not Secret"),
            (
                secret(json!({"data": {"a": "hunter2!"}})),
                "the value of key a in `data` is not base64; plain text belongs into `stringData`",
            ),
            (secret(json!({"stringData": {"a": 4242}})), "stringData.a is not text; write it in quotes"),
            (secret(json!({"data": "hunter2"})), "data is not a map"),
            (
                secret(json!({"stringData": {"a b": "x"}})),
                "a Secret cannot have the key \"a b\"; use letters, digits, `-`, `_` and `.`",
            ),
            (secret(json!({})), "it has no values"),
            (
                secret(json!({"stringData": {"a": "x".repeat(MAX_BYTES + 1)}})),
                "its values have more than 1048576 bytes, which the API server refuses",
            ),
        ] {
            let error = PlainSecret::read(&object).unwrap_err().to_string();
            assert_eq!(error, message);
            assert!(!error.contains("hunter2") && !error.contains("4242"));
        }
    }
}
