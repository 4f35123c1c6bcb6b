//! What a new installation needs before somebody can log in: the key that signs tokens, and admin's first password.

use plumb_api::{Code, Status};
use plumb_core::object::Manifest;
use plumb_crd::settings::SecretData;
use serde_json::{Map, Value, json};
use tracing::info;

use super::login::hash;
use crate::backend::{Backend, Known};
use crate::random;
use crate::state::SECRET;
use base64::Engine as _;

/// Holds admin's first password until somebody deletes it.
const INITIAL: &str = "argocd-initial-admin-secret";
/// Letters of the first password.
const LETTERS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-";
const PASSWORD: usize = 16;
/// How often it is tried again after another replica was faster.
const ATTEMPTS: usize = 5;

/// Creates what is missing in `argocd-secret`. Values that exist are never changed.
pub(crate) async fn prepare(backend: &Backend, namespace: &str) -> Result<(), Status> {
    for _ in 0..ATTEMPTS {
        let found = backend.get(Known::Secret, namespace, SECRET).await?;
        let config = backend.get(Known::ConfigMap, namespace, "argocd-cm").await?;
        let missing = missing(found.as_ref(), config.as_ref()).await?;
        if missing.values.is_empty() {
            return Ok(());
        }
        let labels = json!({"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/name": SECRET});
        let written = match &found {
            None => {
                let metadata = json!({"name": SECRET, "namespace": namespace, "labels": labels});
                let object = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                    "metadata": metadata, "stringData": missing.values});
                backend.create(object).await
            }
            Some(found) => {
                let version = json!({"resourceVersion": found.resource_version()});
                let patch = json!({"metadata": version, "stringData": missing.values});
                backend.patch(Known::Secret, namespace, SECRET, patch).await
            }
        };
        match written {
            Ok(_) => {
                if let Some(password) = missing.password {
                    keep_initial(backend, namespace, &password).await?;
                }
                info!(values = missing.names.join(", "), "created values in argocd-secret");
                return Ok(());
            }
            Err(status) if matches!(status.code, Code::Aborted | Code::AlreadyExists) => {}
            Err(status) => return Err(status),
        }
    }
    Err(Status::unavailable("other replicas keep changing argocd-secret"))
}

/// What `argocd-secret` lacks. It has no `Debug`, because it holds secrets.
struct Missing {
    values: Map<String, Value>,
    names: Vec<&'static str>,
    password: Option<String>,
}

async fn missing(secret: Option<&Manifest>, config: Option<&Manifest>) -> Result<Missing, Status> {
    let known = secret.and_then(|object| SecretData::read(object.value()).ok()).map(|(data, _)| data);
    if secret.is_some() && known.is_none() {
        return Err(Status::precondition("argocd-secret cannot be read"));
    }
    let has = |key: &str| {
        known.as_ref().and_then(|known| known.get(key)).is_some_and(|text| !text.expose().is_empty())
    };
    let mut missing = Missing { values: Map::new(), names: Vec::new(), password: None };
    if !has("server.secretkey") {
        let key = base64::engine::general_purpose::STANDARD.encode(random::bytes::<32>()?);
        missing.values.insert("server.secretkey".to_owned(), json!(key));
        missing.names.push("server.secretkey");
    }
    let setting = config.and_then(|config| config.value().get("data")?.get("admin.enabled")?.as_str());
    if setting.is_none_or(|text| text.trim() == "true") && !has("admin.password") {
        let password = random::text(LETTERS, PASSWORD)?;
        missing.values.insert("admin.password".to_owned(), json!(hash(&password).await?));
        let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second()).unwrap_or_default();
        missing.values.insert("admin.passwordMtime".to_owned(), json!(now.to_string()));
        missing.names.push("admin.password");
        missing.password = Some(password);
    }
    Ok(missing)
}

async fn keep_initial(backend: &Backend, namespace: &str, password: &str) -> Result<(), Status> {
    let object = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": INITIAL, "namespace": namespace},
        "stringData": {"password": password},
    });
    match backend.create(object).await {
        Ok(_) => Ok(()),
        Err(status) if status.code == Code::AlreadyExists => {
            let patch = json!({"stringData": {"password": password}});
            backend.patch(Known::Secret, namespace, INITIAL, patch).await.map(drop)
        }
        Err(status) => Err(status),
    }
}
