//! Tombstones: copies of deleted objects, so that `plumb undo` can restore them. One Secret per deleted object.
//!
//! It is a Secret because the deleted object may have been one. The name is derived from the object's uid and version,
//! so that a deletion that is repeated after a crash creates no second tombstone.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use jiff::{SignedDuration, Timestamp};
use plumb_core::app::{AppId, ClusterRef};
use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_core::plan::{Tombstone, TombstoneReason};
use plumb_kube::{
    ClusterClient, Gate, OwnWrite, Refusal, Selection, TOMBSTONE_PREFIX, TOMBSTONE_TYPE, Target,
    TombstoneKept, WriteError,
};
use serde_json::json;
use sha2::{Digest, Sha256};
use tracing::debug;

/// Label with the app's name, for `plumb undo APP`.
pub const APP_LABEL: &str = "plumb.dev/app";
/// Label with the app's namespace.
pub const APP_NAMESPACE_LABEL: &str = "plumb.dev/app-namespace";
const DELETED_AT: &str = "plumb.dev/deleted-at";
const REASON: &str = "plumb.dev/reason";
const REVISION: &str = "plumb.dev/revision";
/// Address of the cluster that the object was in. If absent, it was the cluster that plumb runs in.
const SERVER: &str = "plumb.dev/server";
const OBJECT: &str = "plumb.dev/object";

/// No more than this is unpacked, as a protection against decompression bombs.
const LARGEST_OBJECT: u64 = 8 * 1024 * 1024;

/// Stores the object. The gate deletes it only after this has succeeded.
pub(crate) async fn write(
    gate: &Gate,
    namespace: &str,
    tombstone: &Tombstone,
) -> Result<TombstoneKept, WriteError> {
    let Some(secret) = secret(namespace, tombstone) else {
        let why = "its tombstone cannot be written as JSON";
        return Err(Refusal::NotDeleted { key: tombstone.key.clone(), why }.into());
    };
    gate.keep_tombstone(&tombstone.live, secret).await
}

/// Removes tombstones that are older than the settings allow. Those that cannot be read or removed stay.
pub(crate) async fn sweep(
    client: &ClusterClient,
    gate: &Gate,
    namespace: &str,
    keep: Duration,
    now: Timestamp,
) {
    let selection = Selection {
        namespace: Some(namespace.to_owned()),
        labels: Some(APP_LABEL.to_owned()),
        fields: Some(format!("type={TOMBSTONE_TYPE}")),
    };
    let gvk = GroupVersionKind::from_api_version("v1", "Secret");
    let secrets = match client.list(&gvk, &selection).await {
        Ok(secrets) => secrets,
        Err(error) => return debug!(%error, "cannot list tombstones"),
    };
    for secret in secrets.iter().filter(|secret| is_outdated(secret, keep, now)) {
        let (Some(target), Some(uid)) = (Target::of(secret), secret.uid()) else { continue };
        let delete = OwnWrite::Delete { target, uid: uid.to_owned() };
        if let Err(error) = gate.write_own(&delete).await {
            debug!(%error, "cannot remove an old tombstone");
        }
    }
}

fn is_outdated(secret: &Manifest, keep: Duration, now: Timestamp) -> bool {
    let deleted_at = secret.annotation(DELETED_AT).and_then(|at| at.parse::<Timestamp>().ok());
    let end =
        deleted_at.zip(SignedDuration::try_from(keep).ok()).and_then(|(at, keep)| at.checked_add(keep).ok());
    end.is_some_and(|end| end < now)
}

/// The Secret that holds a deleted object.
fn secret(namespace: &str, tombstone: &Tombstone) -> Option<Manifest> {
    let live = &tombstone.live;
    let mut hash = Sha256::new();
    hash.update(live.uid().unwrap_or_default());
    hash.update("/");
    hash.update(live.resource_version().unwrap_or_default());
    let name: String = hash
        .finalize()
        .iter()
        .take(10)
        .fold(String::from(TOMBSTONE_PREFIX), |name, byte| format!("{name}{byte:02x}"));
    let mut annotations = serde_json::Map::new();
    annotations.insert(DELETED_AT.to_owned(), json!(tombstone.deleted_at.to_string()));
    annotations.insert(REASON.to_owned(), json!(reason_name(tombstone.reason)));
    annotations.insert(OBJECT.to_owned(), json!(tombstone.key.to_string()));
    annotations.insert(SERVER.to_owned(), json!(tombstone.server));
    if let Some(revision) = &tombstone.revision {
        annotations.insert(REVISION.to_owned(), json!(revision));
    }
    Manifest::new(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": TOMBSTONE_TYPE,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {APP_LABEL: label_value(&tombstone.app.name), APP_NAMESPACE_LABEL: label_value(&tombstone.app.namespace)},
            "annotations": annotations,
        },
        "data": {"object": STANDARD.encode(pack(live)?)},
    }))
    .ok()
}

/// Reads a tombstone; `None` if the Secret is not one.
pub fn read(secret: &Manifest) -> Option<Tombstone> {
    let packed = STANDARD.decode(secret.value().pointer("/data/object")?.as_str()?).ok()?;
    let live = unpack(&packed)?;
    Some(Tombstone {
        app: AppId {
            namespace: secret.label(APP_NAMESPACE_LABEL)?.to_owned(),
            name: secret.label(APP_LABEL)?.to_owned(),
        },
        server: secret.annotation(SERVER).unwrap_or(ClusterRef::IN_CLUSTER_SERVER).to_owned(),
        key: live.key()?,
        live: Arc::new(live),
        deleted_at: secret.annotation(DELETED_AT)?.parse::<Timestamp>().ok()?,
        reason: reason_of(secret.annotation(REASON)?)?,
        revision: secret.annotation(REVISION).map(str::to_owned),
    })
}

fn pack(manifest: &Manifest) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&serde_json::to_vec(manifest.value()).ok()?).ok()?;
    encoder.finish().ok()
}

fn unpack(packed: &[u8]) -> Option<Manifest> {
    let mut text = Vec::new();
    GzDecoder::new(packed).take(LARGEST_OBJECT).read_to_end(&mut text).ok()?;
    Manifest::new(serde_json::from_slice(&text).ok()?).ok()
}

fn reason_name(reason: TombstoneReason) -> &'static str {
    match reason {
        TombstoneReason::Pruned => "Pruned",
        TombstoneReason::AppDeleted => "AppDeleted",
        TombstoneReason::Recreated => "Recreated",
    }
}

fn reason_of(name: &str) -> Option<TombstoneReason> {
    [TombstoneReason::Pruned, TombstoneReason::AppDeleted, TombstoneReason::Recreated]
        .into_iter()
        .find(|reason| reason_name(*reason) == name)
}

/// Labels have at most 63 characters; a longer name is truncated.
fn label_value(text: &str) -> String {
    let cut: String = text.chars().take(63).collect();
    cut.trim_end_matches(|character: char| !character.is_ascii_alphanumeric()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tombstone_holds_the_whole_object() {
        let live = json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": "aHVudGVyMg=="},
            "metadata": {"name": "db", "namespace": "prod", "uid": "u1", "resourceVersion": "7"}});
        let live = Arc::new(Manifest::new(live).unwrap());
        let tombstone = Tombstone {
            app: AppId { namespace: "argocd".into(), name: "payments".into() },
            server: "https://east".into(),
            key: live.key().unwrap(),
            live,
            deleted_at: "2026-11-15T19:00:00Z".parse().unwrap(),
            reason: TombstoneReason::Pruned,
            revision: Some("3f2c".into()),
        };
        let secret = secret("argocd", &tombstone).unwrap();
        assert_eq!(read(&secret), Some(tombstone.clone()));
        let without_server = secret.clone().edit_metadata(|metadata| {
            metadata.get_mut("annotations").unwrap().as_object_mut().unwrap().remove(SERVER);
        });
        let in_cluster = Tombstone { server: ClusterRef::IN_CLUSTER_SERVER.into(), ..tombstone };
        assert_eq!(read(&without_server), Some(in_cluster), "without the annotation, it is the home cluster");
        assert!(!secret.value().to_string().contains("aHVudGVyMg"), "only in compressed form");
        assert!(secret.name().unwrap().starts_with(TOMBSTONE_PREFIX));
        let month = Duration::from_hours(30 * 24);
        assert!(!is_outdated(&secret, month, "2026-12-15T18:59:59Z".parse().unwrap()));
        assert!(is_outdated(&secret, month, "2026-12-15T19:00:01Z".parse().unwrap()));
    }
}
