//! A backup of an object, made before it is deleted.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::app::AppId;
use crate::object::{Manifest, ObjectKey};

/// Everything needed to restore an object. The engine stores it, compressed, before the deletion; a
/// deletion whose tombstone could not be stored does not happen.
#[derive(Clone, Debug, PartialEq)]
pub struct Tombstone {
    /// The app that owned it.
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
    /// It was removed from Git.
    Pruned,
    /// Its app was deleted.
    AppDeleted,
    /// It was deleted to be recreated (`Force=true`).
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
        match (self.key.group.as_str(), self.key.kind.as_str()) {
            ("batch", "Job") => drop_generated_selector(&mut value),
            ("", "PersistentVolumeClaim") => drop_binding(&mut value),
            _ => {}
        }
        Manifest::new(value).unwrap_or(manifest)
    }

    /// The object without resources that the cluster may have given to another object: the addresses of a Service,
    /// the volume of a claim. `None` if there is nothing to do without.
    pub fn restorable_elsewhere(&self) -> Option<Manifest> {
        let whole = self.restorable();
        let mut value = whole.clone().into_value();
        let spec = value.get_mut("spec")?.as_object_mut()?;
        match (self.key.group.as_str(), self.key.kind.as_str()) {
            // A Service without an address was asked for: it has none to lose.
            ("", "Service") if spec.get("clusterIP").is_some_and(|address| address != "None") => {
                for field in ["clusterIP", "clusterIPs", "healthCheckNodePort"] {
                    spec.remove(field);
                }
                let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
                for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
                    port.remove("nodePort");
                }
            }
            ("", "PersistentVolumeClaim") => {
                spec.remove("volumeName");
            }
            _ => {}
        }
        Manifest::new(value).ok().filter(|manifest| *manifest != whole)
    }

    /// The volume that a claim had, if it was one that had one.
    pub fn volume(&self) -> Option<&str> {
        let is_claim = self.key.group.is_empty() && self.key.kind == "PersistentVolumeClaim";
        let name = self.live.value().pointer("/spec/volumeName")?.as_str()?;
        (is_claim && !name.is_empty()).then_some(name)
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
            ("", "Service") if self.live.value().pointer("/spec/type") == Some(&json!("LoadBalancer")) => {
                Some("the Service comes back, its load balancer may have another address")
            }
            ("batch", "Job") => Some("the Job comes back as a new one and runs again"),
            ("", "Pod") => Some("the Pod comes back as a new one"),
            _ => None,
        }
    }
}

/// The server makes a Job's selector from its uid, and refuses one that is another's.
fn drop_generated_selector(job: &mut Value) {
    const GENERATED: [&str; 4] =
        ["controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"];
    if job.pointer("/spec/manualSelector") == Some(&json!(true)) {
        return;
    }
    if let Some(spec) = job.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("selector");
    }
    for labels in ["/metadata/labels", "/spec/template/metadata/labels"] {
        remove(job, labels, &GENERATED);
    }
}

/// A claim that says it is bound, to a volume that knows another claim of its name, is lost. Without the marks it is
/// bound again.
fn drop_binding(claim: &mut Value) {
    const MARKS: [&str; 3] = [
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/bound-by-controller",
        "volume.kubernetes.io/selected-node",
    ];
    remove(claim, "/metadata/annotations", &MARKS);
}

fn remove(object: &mut Value, map: &str, keys: &[&str]) {
    if let Some(map) = object.pointer_mut(map).and_then(Value::as_object_mut) {
        map.retain(|key, _| !keys.contains(&key.as_str()));
    }
}
