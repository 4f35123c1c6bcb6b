//! The Secrets of a tombstone.
//!
//! They are Secrets because the deleted object may have been one. A large object is split: each part is well below the
//! size that the API server accepts. The names are derived from the object's uid and version, so that a deletion that is
//! repeated after a crash creates no second tombstone. The first Secret is written last and has the digest of the whole:
//! a tombstone without its first Secret is not one.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use plumb_core::app::{AppId, ClusterRef};
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::plan::{KeptTombstone, Tombstone, TombstoneReason};
use plumb_kube::{TOMBSTONE_PREFIX, TOMBSTONE_TYPE};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::state::tombstone_ledger::LedgerEntry;

/// Label with the app's name, for `plumb undo APP`.
pub const APP_LABEL: &str = "plumb.dev/app";
/// Label with the app's namespace.
pub const APP_NAMESPACE_LABEL: &str = "plumb.dev/app-namespace";
const PROJECT_LABEL: &str = "plumb.dev/project";
const DELETED_AT: &str = "plumb.dev/deleted-at";
const REASON: &str = "plumb.dev/reason";
const REVISION: &str = "plumb.dev/revision";
/// Address of the cluster that the object was in. If absent, it was the cluster that plumb runs in.
const SERVER: &str = "plumb.dev/server";
const OBJECT: &str = "plumb.dev/object";
/// What restoring the object does not bring back.
const LOST: &str = "plumb.dev/lost";
/// How many Secrets hold the object. If absent, one.
const PARTS: &str = "plumb.dev/parts";
/// SHA-256 of all parts together.
const DIGEST: &str = "plumb.dev/digest";
/// On further parts: the name of the first Secret.
const PART_OF: &str = "plumb.dev/part-of";

/// No more than this is kept, and no more is unpacked, as a protection against decompression bombs.
const LARGEST_OBJECT: u64 = 8 << 20;
/// No object that is kept has more parts.
const MOST_PARTS: usize = 32;
/// Bytes of one part. A Secret may hold one MiB, and grows by a third in a request.
const PART_BYTES: usize = 512 << 10;

/// A tombstone as the cluster stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTombstone {
    /// The name of its first Secret.
    pub name: String,
    /// The deleted object.
    pub tombstone: Tombstone,
}

/// The Secrets that hold a deleted object, in the order in which they are written; `None` if it is too large to be kept.
pub fn secrets(namespace: &str, project: &str, tombstone: &Tombstone) -> Option<Vec<Manifest>> {
    let packed = pack(&tombstone.live)?;
    let name = first_name(&tombstone.live);
    let parts: Vec<&[u8]> = packed.chunks(PART_BYTES).collect();
    let labels = json!({
        APP_LABEL: label_value(&tombstone.app.name),
        APP_NAMESPACE_LABEL: label_value(&tombstone.app.namespace),
        PROJECT_LABEL: label_value(project),
    });
    let secret = |name: &str, annotations: &serde_json::Value, part: &[u8]| {
        let metadata =
            json!({"name": name, "namespace": namespace, "labels": labels, "annotations": annotations});
        Manifest::new(json!({
            "apiVersion": "v1", "kind": "Secret", "type": TOMBSTONE_TYPE, "metadata": metadata,
            "data": {"object": STANDARD.encode(part)},
        }))
        .ok()
    };
    let mut secrets = Vec::new();
    for (index, part) in parts.iter().enumerate().skip(1) {
        let annotations = json!({PART_OF: name, DELETED_AT: tombstone.deleted_at.to_string()});
        secrets.push(secret(&part_name(&name, index), &annotations, part)?);
    }
    let mut annotations = json!({
        DELETED_AT: tombstone.deleted_at.to_string(),
        REASON: reason_name(tombstone.reason),
        OBJECT: tombstone.key.to_string(),
        SERVER: tombstone.server,
        PARTS: parts.len().to_string(),
        DIGEST: hex(&Sha256::digest(&packed)),
    });
    if let Some(revision) = &tombstone.revision {
        annotations[REVISION] = json!(revision);
    }
    if let Some(lost) = tombstone.lost() {
        annotations[LOST] = json!(lost);
    }
    secrets.push(secret(&name, &annotations, parts.first()?)?);
    Some(secrets)
}

/// What the annotations of a tombstone say about a deleted object. Nothing is unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TombstoneNote {
    /// The name of its first Secret.
    pub name: String,
    /// The app that the object was one of.
    pub app: AppId,
    /// The address of the cluster that it was in.
    pub server: String,
    /// The object.
    pub key: ObjectKey,
    /// When it was deleted, and why.
    pub deleted_at: Timestamp,
    /// Why it was deleted.
    pub reason: TombstoneReason,
    /// The revision that was synced.
    pub revision: Option<String>,
    /// What restoring the object does not bring back.
    pub lost: Option<String>,
    n_parts: usize,
}

impl TombstoneNote {
    /// The names of the Secrets with the object.
    pub fn secrets(&self) -> Vec<String> {
        let further = (1..self.n_parts).map(|index| part_name(&self.name, index));
        std::iter::once(self.name.clone()).chain(further).collect()
    }
}

/// What is noted about all tombstones among these Secrets.
pub fn notes(secrets: &[Manifest]) -> Vec<TombstoneNote> {
    let first = secrets.iter().filter(|secret| secret.annotation(PART_OF).is_none());
    first.filter_map(note).collect()
}

fn note(first: &Manifest) -> Option<TombstoneNote> {
    Some(TombstoneNote {
        name: first.name()?.to_owned(),
        app: app(first)?,
        server: first.annotation(SERVER).unwrap_or(ClusterRef::IN_CLUSTER_SERVER).to_owned(),
        key: key_of(first.annotation(OBJECT)?)?,
        deleted_at: deleted_at(first)?,
        reason: reason_of(first.annotation(REASON)?)?,
        revision: first.annotation(REVISION).map(str::to_owned),
        lost: first.annotation(LOST).map(str::to_owned),
        n_parts: Some(n_parts(first)).filter(|parts| *parts <= MOST_PARTS)?,
    })
}

/// Reads a key as it is shown: `GROUP/KIND NAMESPACE/NAME`, without what is empty.
fn key_of(text: &str) -> Option<ObjectKey> {
    let (kind, name) = text.split_once(' ')?;
    let (group, kind) = kind.split_once('/').unwrap_or(("", kind));
    let (namespace, name) = name.split_once('/').map_or((None, name), |(place, name)| (Some(place), name));
    let is_whole = !kind.is_empty() && !name.is_empty();
    is_whole.then(|| ObjectKey::new(group, kind, namespace.map(str::to_owned), name))
}

/// Reads all tombstones among these Secrets. One that is incomplete or damaged is left out.
pub fn read_all(secrets: &[Manifest]) -> Vec<StoredTombstone> {
    let by_name: BTreeMap<&str, &Manifest> =
        secrets.iter().filter_map(|secret| Some((secret.name()?, secret))).collect();
    let first = secrets.iter().filter(|secret| secret.annotation(PART_OF).is_none());
    first.filter_map(|secret| read(secret, &by_name)).collect()
}

fn read(first: &Manifest, all: &BTreeMap<&str, &Manifest>) -> Option<StoredTombstone> {
    let name = first.name()?;
    let n_parts = n_parts(first);
    let mut packed = part(first)?;
    for index in 1..n_parts {
        packed.extend(part(all.get(part_name(name, index).as_str())?)?);
    }
    if first.annotation(DIGEST).is_some_and(|digest| digest != hex(&Sha256::digest(&packed))) {
        return None;
    }
    let live = unpack(&packed)?;
    let tombstone = Tombstone {
        app: app(first)?,
        server: first.annotation(SERVER).unwrap_or(ClusterRef::IN_CLUSTER_SERVER).to_owned(),
        key: live.key()?,
        live: Arc::new(live),
        deleted_at: deleted_at(first)?,
        reason: reason_of(first.annotation(REASON)?)?,
        revision: first.annotation(REVISION).map(str::to_owned),
    };
    Some(StoredTombstone { name: name.to_owned(), tombstone })
}

/// What the ledger has about the tombstone that was written as these Secrets.
pub(super) fn ledger_entry(written: &[Manifest]) -> Option<LedgerEntry> {
    ledger_entries(written).pop()
}

/// What the ledger has about these Secrets. Parts without their first Secret, which a crash left, are entries of their own,
/// so that they go in time.
pub(super) fn ledger_entries(secrets: &[Manifest]) -> Vec<LedgerEntry> {
    let first_of = |secret: &Manifest| secret.annotation(PART_OF).or(secret.name()).map(str::to_owned);
    let mut grouped: BTreeMap<String, Vec<&Manifest>> = BTreeMap::new();
    for secret in secrets {
        grouped.entry(first_of(secret).unwrap_or_default()).or_default().push(secret);
    }
    let entries = grouped.into_iter().filter_map(|(name, mut parts)| {
        // The first Secret has the shortest name.
        parts.sort_by_key(|part| (part.name().map(str::len), part.name()));
        let first = parts.first()?;
        let bytes = parts.iter().map(|part| stored_bytes(part)).sum();
        let part = |part: &&Manifest| Some((part.name()?.to_owned(), part.uid()?.to_owned()));
        Some(LedgerEntry {
            kept: KeptTombstone {
                name,
                project: first.label(PROJECT_LABEL).unwrap_or_default().to_owned(),
                app: app(first)?,
                bytes,
                deleted_at: deleted_at(first)?,
            },
            parts: parts.iter().filter_map(part).collect(),
        })
    });
    entries.collect()
}

fn app(secret: &Manifest) -> Option<AppId> {
    Some(AppId {
        namespace: secret.label(APP_NAMESPACE_LABEL)?.to_owned(),
        name: secret.label(APP_LABEL)?.to_owned(),
    })
}

fn deleted_at(secret: &Manifest) -> Option<Timestamp> {
    secret.annotation(DELETED_AT)?.parse().ok()
}

fn n_parts(first: &Manifest) -> usize {
    first.annotation(PARTS).and_then(|parts| parts.parse().ok()).unwrap_or(1)
}

fn encoded(secret: &Manifest) -> Option<&str> {
    secret.value().pointer("/data/object")?.as_str()
}

fn part(secret: &Manifest) -> Option<Vec<u8>> {
    STANDARD.decode(encoded(secret)?).ok()
}

/// Three bytes are four characters of base64. A Secret costs about 500 bytes more than its content.
fn stored_bytes(secret: &Manifest) -> u64 {
    let characters = encoded(secret).map_or(0, str::len);
    u64::try_from(characters / 4 * 3 + 500).unwrap_or(u64::MAX)
}

fn first_name(live: &Manifest) -> String {
    let identity =
        format!("{}/{}", live.uid().unwrap_or_default(), live.resource_version().unwrap_or_default());
    format!("{TOMBSTONE_PREFIX}{}", hex(&Sha256::digest(identity)[..10]))
}

fn part_name(first: &str, index: usize) -> String {
    format!("{first}-{index}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn pack(manifest: &Manifest) -> Option<Vec<u8>> {
    let text = serde_json::to_vec(manifest.value()).ok()?;
    if u64::try_from(text.len()).ok()? > LARGEST_OBJECT {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&text).ok()?;
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
    use serde_json::Value;

    fn tombstone(data: &Value) -> Tombstone {
        let live = json!({"apiVersion": "v1", "kind": "Secret", "data": data,
            "metadata": {"name": "db", "namespace": "prod", "uid": "u1", "resourceVersion": "7"}});
        let live = Arc::new(Manifest::new(live).unwrap());
        Tombstone {
            app: AppId { namespace: "argocd".into(), name: "payments".into() },
            server: "https://east".into(),
            key: live.key().unwrap(),
            live,
            deleted_at: Timestamp::from_second(1_000_000).unwrap(),
            reason: TombstoneReason::Pruned,
            revision: Some("3f2c".into()),
        }
    }

    /// Text that does not compress: digests of numbers.
    fn noise(bytes: usize) -> String {
        (0..bytes.div_ceil(64)).map(|n| hex(&Sha256::digest(n.to_string()))).collect::<String>()
    }

    fn with_uids(secrets: Vec<Manifest>) -> Vec<Manifest> {
        let with_uid = |(n, secret): (usize, Manifest)| {
            secret.edit_metadata(|metadata| drop(metadata.insert("uid".to_owned(), json!(n.to_string()))))
        };
        secrets.into_iter().enumerate().map(with_uid).collect()
    }

    #[test]
    fn a_tombstone_holds_the_whole_object() {
        let tombstone = tombstone(&json!({"password": "aHVudGVyMg=="}));
        let secrets = secrets("argocd", "default", &tombstone).unwrap();
        let [secret] = secrets.as_slice() else { panic!("one Secret is enough") };
        let read =
            |secret: &Manifest| read_all(std::slice::from_ref(secret)).pop().map(|read| read.tombstone);
        assert_eq!(read(secret), Some(tombstone.clone()));
        let without_server = secret.clone().edit_metadata(|metadata| {
            metadata.get_mut("annotations").unwrap().as_object_mut().unwrap().remove(SERVER);
        });
        let in_cluster = Tombstone { server: ClusterRef::IN_CLUSTER_SERVER.into(), ..tombstone };
        assert_eq!(read(&without_server), Some(in_cluster), "without the annotation, it is the home cluster");
        assert!(!secret.value().to_string().contains("aHVudGVyMg"), "only in compressed form");
        assert!(secret.name().unwrap().starts_with(TOMBSTONE_PREFIX));
    }

    #[test]
    fn the_annotations_tell_what_is_kept_without_unpacking_it() {
        let tombstone = tombstone(&json!({"random": noise(3 << 20)}));
        let mut secrets = secrets("argocd", "default", &tombstone).unwrap();
        for secret in &mut secrets {
            let mut value = secret.value().clone();
            value["data"] = json!({"object": "no archive"});
            *secret = Manifest::new(value).unwrap();
        }
        assert_eq!(read_all(&secrets), []);
        let noted = notes(&secrets);
        let [note] = noted.as_slice() else { panic!("one object is kept") };
        assert_eq!((&note.app, &note.key, &note.server), (&tombstone.app, &tombstone.key, &tombstone.server));
        assert_eq!((note.deleted_at, note.reason), (tombstone.deleted_at, tombstone.reason));
        let mut names: Vec<String> =
            secrets.iter().filter_map(|secret| secret.name().map(str::to_owned)).collect();
        names.rotate_right(1);
        assert_eq!(note.secrets(), names, "the first Secret is written last");
        let forged = secrets.pop().unwrap().edit_metadata(|metadata| {
            metadata["annotations"][PARTS] = json!("4000000000");
        });
        assert_eq!(notes(&[forged]), []);
    }

    #[test]
    fn a_key_is_read_as_it_is_shown() {
        for key in [
            ObjectKey::new("apps", "Deployment", Some("prod".to_owned()), "web"),
            ObjectKey::new("", "Namespace", None, "prod"),
            ObjectKey::new("rbac.authorization.k8s.io", "ClusterRole", None, "system:x"),
        ] {
            assert_eq!(key_of(&key.to_string()), Some(key));
        }
        for wrong in ["", "Pod", "Pod ", " x", "apps/ x"] {
            assert_eq!(key_of(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_large_object_is_split_and_comes_back_whole() {
        let tombstone = tombstone(&json!({"random": noise(3 << 20)}));
        let secrets = with_uids(secrets("argocd", "default", &tombstone).unwrap());
        assert!(secrets.len() >= 3, "{}", secrets.len());
        for secret in &secrets {
            assert!(secret.value().to_string().len() < 1 << 20, "each is accepted by the API server");
        }
        let read: Vec<Tombstone> = read_all(&secrets).into_iter().map(|read| read.tombstone).collect();
        assert_eq!(read, [tombstone]);
        let entries = ledger_entries(&secrets);
        assert_eq!((entries.len(), entries[0].parts.len()), (1, secrets.len()));
        assert!(entries[0].kept.bytes > 1 << 20);
        assert_eq!(
            Some(entries[0].parts[0].0.as_str()),
            secrets.last().and_then(Manifest::name),
            "first part first"
        );
        // Without one of its parts, or with a damaged one, it is not there at all.
        assert_eq!(read_all(&secrets[1..]), []);
        let mut damaged = secrets.clone();
        let mut value = damaged[0].value().clone();
        value["data"]["object"] = json!("AAAA");
        damaged[0] = Manifest::new(value).unwrap();
        assert_eq!(read_all(&damaged), []);
        // What a crash left is found by its age.
        assert_eq!(ledger_entries(&secrets[..1]).len(), 1);
    }

    #[test]
    fn an_object_beyond_the_limit_is_not_kept() {
        assert!(secrets("argocd", "default", &tombstone(&json!({"zeros": "0".repeat(9 << 20)}))).is_none());
    }
}
