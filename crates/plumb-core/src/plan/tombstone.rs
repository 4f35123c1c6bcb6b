//! What is kept of an object before it is deleted.

use std::sync::Arc;

use jiff::Timestamp;

use crate::app::AppId;
use crate::object::{Manifest, ObjectKey};

/// Everything that bringing an object back needs. The engine stores it, compressed, before the deletion; a
/// deletion whose tombstone could not be stored does not happen.
#[derive(Clone, Debug, PartialEq)]
pub struct Tombstone {
    /// Whose it was.
    pub app: AppId,
    /// Address of the cluster that it was in.
    pub server: String,
    /// Which object.
    pub key: ObjectKey,
    /// The object as it was, status and server-kept metadata included.
    pub live: Arc<Manifest>,
    /// When.
    pub deleted_at: Timestamp,
    /// Why.
    pub reason: TombstoneReason,
    /// The revision that no longer had it, where that was the reason.
    pub revision: Option<String>,
}

/// Why an object was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TombstoneReason {
    /// It left Git.
    Pruned,
    /// Its app was deleted.
    AppDeleted,
    /// It was deleted to be created anew (`Force=true`).
    Recreated,
}

impl Tombstone {
    /// The object as it can be created again: without what only the server sets. Owner references stay, they
    /// are part of what it was.
    pub fn restorable(&self) -> Manifest {
        const SERVER_KEPT: [&str; 7] = [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "managedFields",
        ];
        let manifest = Manifest::clone(&self.live).edit_metadata(|metadata| {
            for field in SERVER_KEPT {
                metadata.remove(field);
            }
        });
        let mut value = manifest.clone().into_value();
        if let Some(map) = value.as_object_mut() {
            map.remove("status");
        }
        Manifest::new(value).unwrap_or(manifest)
    }

    /// What restoring the object does not bring back, in words; empty if it comes back whole.
    pub fn lost(&self) -> Option<&'static str> {
        match (self.key.group.as_str(), self.key.kind.as_str()) {
            ("", "PersistentVolumeClaim") => Some(
                "the claim comes back, its data only if the volume was kept (reclaim policy Retain) and is still free",
            ),
            ("", "PersistentVolume") => {
                Some("the volume object comes back, not what its storage held if that was deleted")
            }
            ("", "Namespace") => {
                Some("the namespace comes back empty: restore what was in it from its own tombstones")
            }
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                Some("the definition comes back, its instances were deleted with it")
            }
            ("batch", "Job") => Some("the Job comes back as a new one and runs again"),
            ("", "Pod") => Some("the Pod comes back as a new one"),
            _ => None,
        }
    }
}
