//! The keys that commits may be signed with.

use std::sync::Arc;

use plumb_api::Status;
use serde_json::{Value, json};

use super::config_map;
use crate::call::{Answer, Call};
use crate::open_pgp::{self, PublicKey};

/// The keys by their id.
const KEYS: &str = "argocd-gpg-keys-cm";

fn shown(key: &PublicKey) -> Value {
    json!({"keyID": key.id, "fingerprint": key.fingerprint, "owner": key.owner, "trust": "unknown", "subType": key.kind})
}

/// The id of a key: its last 16 digits, however long the client writes it.
fn id(text: &str) -> Result<String, Status> {
    let digits = text.trim_start_matches("0x").to_uppercase();
    let is_id = digits.len() >= 16 && digits.chars().all(|digit| digit.is_ascii_hexdigit());
    let short = digits.get(digits.len().saturating_sub(16)..).filter(|_| is_id);
    short.map(str::to_owned).ok_or_else(|| Status::invalid("KeyID is malformed or empty"))
}

pub(super) async fn list(call: Arc<Call>) -> Result<Answer, Status> {
    let data = config_map::read(&call, KEYS).await?;
    let keys = data.iter().filter_map(|(id, text)| {
        let key = open_pgp::read(text).ok()?.into_iter().find(|key| key.id == *id)?;
        Some(shown(&key))
    });
    Ok(Answer::One(json!({"metadata": {}, "items": keys.collect::<Vec<_>>()})))
}

pub(super) async fn get(call: Arc<Call>) -> Result<Answer, Status> {
    let id = id(call.text("keyID"))?;
    let data = config_map::read(&call, KEYS).await?;
    let missing = || Status::not_found(format!("No such key: {id}"));
    let text = data.get(&id).ok_or_else(missing)?;
    let keys = open_pgp::read(text).map_err(|error| Status::precondition(error.to_string()))?;
    let key = keys.into_iter().find(|key| key.id == id).ok_or_else(missing)?;
    let mut answer = shown(&key);
    answer["keyData"] = json!(text);
    Ok(Answer::One(answer))
}

pub(super) async fn create(call: Arc<Call>) -> Result<Answer, Status> {
    let text = call.request.pointer("/publickey/keyData").and_then(Value::as_str).unwrap_or_default();
    if text.trim().is_empty() {
        return Err(Status::invalid("Submitted key data is empty"));
    }
    let keys =
        open_pgp::read(text).map_err(|error| Status::invalid(format!("Could not validate keys: {error}")))?;
    let upsert = call.flag("upsert") == Some(true);
    let (created, skipped) = config_map::change(&call, KEYS, |data| {
        let (mut created, mut skipped) = (Vec::new(), Vec::new());
        for key in &keys {
            if data.contains_key(&key.id) && !upsert {
                skipped.push(key.id.clone());
            } else {
                data.insert(key.id.clone(), key.armoured.clone());
                created.push(shown(key));
            }
        }
        Ok((created, skipped))
    })
    .await?;
    Ok(Answer::One(json!({"created": {"metadata": {}, "items": created}, "skipped": skipped})))
}

pub(super) async fn delete(call: Arc<Call>) -> Result<Answer, Status> {
    let id = id(call.text("keyID"))?;
    config_map::change(&call, KEYS, |data| {
        let gone = data.remove(&id);
        gone.map(drop).ok_or_else(|| Status::not_found(format!("No such key configured: {id}")))
    })
    .await?;
    Ok(Answer::One(json!({})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short() {
        assert_eq!(id("0x4aee18f83afdeb23").unwrap(), "4AEE18F83AFDEB23");
        assert_eq!(id("5DE3E0509C47EA3CF04A42D34AEE18F83AFDEB23").unwrap(), "4AEE18F83AFDEB23");
        assert!(id("4AEE").is_err() && id("4AEE18F83AFDEB2x").is_err());
    }
}
