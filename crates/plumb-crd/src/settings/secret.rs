//! Secret texts, and the Secrets that contain them.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::metadata::Metadata;
use crate::wire::{WireError, read_field, read_map};

/// The label with the type of a Secret that registers something: `cluster`, `repository`, `repo-creds`.
pub const SECRET_TYPE: &str = "argocd.argoproj.io/secret-type";

/// The 32-bit FNV-1a hash that Argo CD puts into the names of these Secrets.
pub fn name_hash(texts: &[&str]) -> u32 {
    let bytes = texts.iter().flat_map(|text| text.bytes());
    bytes.fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A text that is never shown: no `Display`, no serialisation, and `Debug` prints stars.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Takes the text in.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for those who send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A Secret with its values decoded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecretData {
    /// Name, labels and annotations.
    pub metadata: Metadata,
    values: BTreeMap<String, SecretText>,
}

impl SecretData {
    /// Reads a Secret. Values that are not base64 or not text are omitted, and their keys are returned.
    pub fn read(object: &Value) -> Result<(Self, Vec<String>), WireError> {
        let map = read_map(object)?;
        let metadata = read_field(map, "metadata")?;
        let mut values = BTreeMap::new();
        let mut unreadable = Vec::new();
        for (key, value) in map.get("data").and_then(Value::as_object).into_iter().flatten() {
            match value.as_str().and_then(decode) {
                Some(text) => {
                    values.insert(key.clone(), SecretText(text));
                }
                None => unreadable.push(key.clone()),
            }
        }
        Ok((Self { metadata, values }, unreadable))
    }

    /// A Secret from decoded values.
    pub fn new(metadata: Metadata, values: BTreeMap<String, SecretText>) -> Self {
        Self { metadata, values }
    }

    /// `argocd.argoproj.io/secret-type`.
    pub fn secret_type(&self) -> Option<&str> {
        self.metadata.labels.get("argocd.argoproj.io/secret-type").map(String::as_str)
    }

    /// One value; empty counts as absent.
    pub fn get(&self, key: &str) -> Option<&SecretText> {
        self.values.get(key).filter(|text| !text.0.is_empty())
    }

    /// A value that is not secret, without surrounding space.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.get(key).map(|text| text.expose().trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// One value that is true or false; `Err` with the key if it is neither.
    pub(super) fn bool(&self, key: &str) -> Result<bool, String> {
        match self.text(key).as_deref() {
            None | Some("0" | "f" | "F" | "FALSE" | "false" | "False") => Ok(false),
            Some("1" | "t" | "T" | "TRUE" | "true" | "True") => Ok(true),
            Some(_) => Err(format!("{key}: expected true or false")),
        }
    }

    /// One value that is a whole number; `Err` with the key if it is not.
    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, String> {
        match self.text(key).map(|text| text.parse()) {
            None => Ok(None),
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(_)) => Err(format!("{key}: expected a whole number")),
        }
    }
}

fn decode(text: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(text.trim()).ok()?).ok()
}

/// What senders of webhooks must prove, from `argocd-secret`. `None`: nothing is asked of that sender, and a
/// caller that wants to be strict refuses it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookSecrets {
    /// `webhook.github.secret`.
    pub github: Option<SecretText>,
    /// `webhook.gitlab.secret`.
    pub gitlab: Option<SecretText>,
    /// `webhook.bitbucket.uuid`.
    pub bitbucket_uuid: Option<SecretText>,
    /// `webhook.bitbucketserver.secret`.
    pub bitbucket_server: Option<SecretText>,
    /// `webhook.gogs.secret`; Gitea signs alike.
    pub gogs: Option<SecretText>,
    /// `webhook.azuredevops.username`.
    pub azure_devops_username: Option<SecretText>,
    /// `webhook.azuredevops.password`.
    pub azure_devops_password: Option<SecretText>,
    /// `webhook.harbor.secret`.
    pub harbor: Option<SecretText>,
    /// `webhook.generic.secret`, for the generic sender. Not in Argo CD.
    pub generic: Option<SecretText>,
}

impl WebhookSecrets {
    /// Reads `argocd-secret`.
    pub fn read(secret: &SecretData) -> Self {
        let get = |key: &str| secret.get(key).cloned();
        Self {
            github: get("webhook.github.secret"),
            gitlab: get("webhook.gitlab.secret"),
            bitbucket_uuid: get("webhook.bitbucket.uuid"),
            bitbucket_server: get("webhook.bitbucketserver.secret"),
            gogs: get("webhook.gogs.secret"),
            azure_devops_username: get("webhook.azuredevops.username"),
            azure_devops_password: get("webhook.azuredevops.password"),
            harbor: get("webhook.harbor.secret"),
            generic: get("webhook.generic.secret"),
        }
    }
}
