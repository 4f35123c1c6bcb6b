//! Tokens of service accounts on clusters: a new one replaces the one that plumb uses.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use plumb_api::Status;
use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_kube::{ClusterClient, DeleteOptions, Fence, Gate, WritePermit};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::backend::{FIELD_MANAGER, delete_with, of_api, of_write};
use crate::random;

/// How long the cluster may take to fill in a token, and how often it is asked.
const FILLED_WITHIN: Duration = Duration::from_secs(30);
const ASK_EVERY: Duration = Duration::from_millis(500);
const ACCOUNT: &str = "kubernetes.io/service-account.name";

/// Whose a token is.
#[derive(Debug, PartialEq, Eq)]
struct Owner {
    namespace: String,
    account: String,
    /// The Secret that holds the token, if one does.
    secret: Option<String>,
}

/// Reads whose a token is. Its signature is the cluster's business: the token is the one that plumb uses there.
fn owner(token: &str) -> Option<Owner> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let old =
        |name: &str| Some(claims.get(format!("kubernetes.io/serviceaccount/{name}"))?.as_str()?.to_owned());
    let new = |path: &str| Some(claims.get("kubernetes.io")?.pointer(path)?.as_str()?.to_owned());
    Some(Owner {
        namespace: old("namespace").or_else(|| new("/namespace"))?,
        account: old("service-account.name").or_else(|| new("/serviceaccount/name"))?,
        secret: old("secret.name").or_else(|| new("/secret/name")),
    })
}

/// Creates another token for the account of a token. Also returns the Secret of the old one.
pub(super) async fn new_token(
    client: &ClusterClient,
    runtime: &Handle,
    token: &str,
) -> Result<(String, Option<(String, String)>), Status> {
    let owner = owner(token).ok_or_else(|| Status::invalid("the token is not one of a service account"))?;
    let client = client.clone();
    let made = runtime.spawn(async move {
        let name = format!("{}-token-{}", owner.account, random::uuid()?.get(..8).unwrap_or_default());
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": {"name": name, "namespace": owner.namespace, "annotations": {ACCOUNT: owner.account}},
        });
        let secret = Manifest::new(secret).map_err(|error| Status::invalid(error.to_string()))?;
        let key = secret.key().ok_or_else(|| Status::invalid("the Secret has no name"))?;
        let gate = Gate::new(client.clone(), Fence::of_command(), None);
        let permit = WritePermit::requested_by_user(key);
        gate.create(&permit, &secret, FIELD_MANAGER).await.map_err(|error| of_write(&error))?;
        let filled = filled(&client, &owner.namespace, &name);
        let late = |_| Status::unavailable("the cluster did not create the token in time");
        let new = tokio::time::timeout(FILLED_WITHIN, filled).await.map_err(late)??;
        Ok((new, owner.secret.map(|secret| (owner.namespace, secret))))
    });
    made.await.map_err(|_| Status::unavailable("the request was aborted"))?
}

async fn filled(client: &ClusterClient, namespace: &str, name: &str) -> Result<String, Status> {
    let gvk = GroupVersionKind::from_api_version("v1", "Secret");
    loop {
        let secret = client.get_at(&gvk, Some(namespace), name).await.map_err(|error| of_api(&error))?;
        let token = secret.as_ref().and_then(|secret| secret.value().pointer("/data/token")?.as_str());
        let token = token.and_then(|token| String::from_utf8(STANDARD.decode(token).ok()?).ok());
        if let Some(token) = token.filter(|token| !token.is_empty()) {
            return Ok(token);
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}

/// Removes the Secret of an old token, which ends it.
pub(super) async fn remove(
    client: &ClusterClient,
    runtime: &Handle,
    old: Option<(String, String)>,
) -> Result<(), Status> {
    let Some((namespace, name)) = old else { return Ok(()) };
    let client = client.clone();
    let removed = runtime.spawn(async move {
        let gvk = GroupVersionKind::from_api_version("v1", "Secret");
        let secret = client.get_at(&gvk, Some(&namespace), &name).await.map_err(|error| of_api(&error))?;
        let Some(secret) = secret else { return Ok(()) };
        let gate = Gate::new(client, Fence::of_command(), None);
        delete_with(&gate, &secret, &DeleteOptions::default()).await
    });
    removed.await.map_err(|_| Status::unavailable("the request was aborted"))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_tells_whose_it_is() {
        let token = |claims: Value| format!("a.{}.c", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let old = json!({"kubernetes.io/serviceaccount/namespace": "kube-system",
            "kubernetes.io/serviceaccount/secret.name": "manager-token-x",
            "kubernetes.io/serviceaccount/service-account.name": "manager"});
        let expected = |secret: Option<&str>| Owner {
            namespace: "kube-system".to_owned(),
            account: "manager".to_owned(),
            secret: secret.map(str::to_owned),
        };
        assert_eq!(owner(&token(old)), Some(expected(Some("manager-token-x"))));
        let bound =
            json!({"kubernetes.io": {"namespace": "kube-system", "serviceaccount": {"name": "manager"}}});
        assert_eq!(owner(&token(bound)), Some(expected(None)));
        assert_eq!(owner("opaque"), None);
    }
}
