//! What a new installation needs before a user can log in: the key that signs tokens, admin's first password, and a
//! certificate.

use std::time::Duration;

use plumb_api::{Code, Status};
use plumb_core::object::Manifest;
use plumb_crd::settings::SecretData;
use serde_json::{Map, Value, json};
use tracing::{info, warn};

use super::login::hash;
use crate::backend::{Backend, Known};
use crate::random;
use crate::self_signed::self_signed;
use crate::state::{SECRET, TLS_SECRET};
use crate::transport::Transport;
use base64::Engine as _;

/// Holds admin's first password until somebody deletes it.
const INITIAL: &str = "argocd-initial-admin-secret";
/// Letters of the first password.
const LETTERS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-";
const PASSWORD: usize = 16;
/// How often it is tried again after another replica was faster.
const ATTEMPTS: usize = 5;

/// When admin's first password is written again after a failure, first and at the latest.
const KEEP_AGAIN: Duration = Duration::from_secs(1);
const KEEP_LATEST: Duration = Duration::from_mins(1);

/// Creates what is missing in `argocd-secret`. Values that exist are never changed.
pub(crate) async fn prepare(backend: &Backend, namespace: &str, transport: Transport) -> Result<(), Status> {
    let needs_certificate =
        transport == Transport::Tls && backend.get(Known::Secret, namespace, TLS_SECRET).await?.is_none();
    for _ in 0..ATTEMPTS {
        let found = backend.get(Known::Secret, namespace, SECRET).await?;
        let config = backend.get(Known::ConfigMap, namespace, "argocd-cm").await?;
        let mut missing = missing(found.as_ref(), config.as_ref()).await?;
        if needs_certificate {
            missing.add_certificate(found.as_ref(), namespace)?;
        }
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
                    keep_until_done(backend, namespace, &password).await;
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

impl Missing {
    /// A certificate that changed with every start, and differed between replicas, could not be trusted by clients.
    fn add_certificate(&mut self, secret: Option<&Manifest>, namespace: &str) -> Result<(), Status> {
        let data = secret.and_then(|secret| secret.value().get("data"));
        if data.is_some_and(|data| data.get("tls.crt").is_some() || data.get("tls.key").is_some()) {
            return Ok(());
        }
        let made = self_signed(namespace).map_err(|why| Status::new(Code::Internal, why))?;
        self.values.insert("tls.crt".to_owned(), json!(made.certificate));
        self.values.insert("tls.key".to_owned(), json!(made.key));
        self.names.push("tls.crt");
        Ok(())
    }
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

/// The hash is stored by now, so no later start would make a password again: this one must not be lost.
async fn keep_until_done(backend: &Backend, namespace: &str, password: &str) {
    let mut wait = KEEP_AGAIN;
    while let Err(status) = keep_initial(backend, namespace, password).await {
        // The error of a Secret may quote its values.
        warn!(code = ?status.code, "cannot write {INITIAL}; trying again");
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(KEEP_LATEST);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_made_once() {
        let secret = |data: Value| {
            let metadata = json!({"name": SECRET, "namespace": "argocd"});
            Manifest::new(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}))
                .unwrap()
        };
        let check = |secret: Option<&Manifest>, expected: &[&str]| {
            let mut missing = Missing { values: Map::new(), names: Vec::new(), password: None };
            missing.add_certificate(secret, "argocd").unwrap();
            assert_eq!(missing.values.keys().map(String::as_str).collect::<Vec<_>>(), expected);
        };
        check(None, &["tls.crt", "tls.key"]);
        check(Some(&secret(json!({"admin.password": "eA=="}))), &["tls.crt", "tls.key"]);
        check(Some(&secret(json!({"tls.crt": "eA==", "tls.key": "eA=="}))), &[]);
        // Half a pair is of a user who has yet to write the other half.
        check(Some(&secret(json!({"tls.key": "eA=="}))), &[]);
    }
}
