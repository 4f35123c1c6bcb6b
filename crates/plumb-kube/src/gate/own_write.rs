//! Writes of plumb's own objects.

use plumb_core::object::{GroupVersionKind, Manifest};

use super::refusal::Refusal;
use super::target::describe;
use crate::write::{ApplyOptions, Patch, PatchOptions, Target};

/// A write of plumb's own objects: status, reports, events, tombstones. It needs the lease, but no permit.
#[derive(Clone, Debug)]
pub enum OwnWrite {
    /// A report or another `plumb.dev` object.
    Apply {
        /// The object.
        manifest: Manifest,
        /// How to apply it.
        options: ApplyOptions,
    },
    /// An event, a tombstone, a report, the project `default`.
    Create {
        /// The object.
        manifest: Manifest,
        /// The manager that will own the fields.
        field_manager: String,
    },
    /// The status, an annotation or a finalizer of an `argoproj.io` or `plumb.dev` object.
    Patch {
        /// Which object.
        target: Target,
        /// The change.
        patch: Patch,
        /// How to patch it.
        options: PatchOptions,
    },
    /// An Application that its set generates. Its controller must be an `ApplicationSet`.
    CreateGenerated {
        /// The object.
        manifest: Manifest,
        /// The manager that will own the fields.
        field_manager: String,
    },
    /// An Application that its set no longer generates.
    DeleteGenerated {
        /// Which object.
        target: Target,
        /// Its uid.
        uid: String,
    },
    /// An old report or tombstone.
    Delete {
        /// Which object.
        target: Target,
        /// Its uid.
        uid: String,
    },
}

/// The `type` of the Secrets that hold deleted objects.
pub const TOMBSTONE_TYPE: &str = "plumb.dev/tombstone";
/// The prefix of their names.
pub const TOMBSTONE_PREFIX: &str = "plumb-tombstone-";

/// The `ConfigMap` with what plumb did once.
pub const STATE_CONFIG_MAP: &str = "plumb-state";
/// The `ConfigMap` through which a standby process passes pushes on to the leader.
pub const PUSHES_CONFIG_MAP: &str = "plumb-pushes";

/// The registration of plumb's own witness.
fn is_witness(gvk: &GroupVersionKind, name: &str) -> bool {
    gvk.kind == "MutatingWebhookConfiguration"
        && gvk.group == "admissionregistration.k8s.io"
        && name.starts_with("plumb-witness-")
}

/// Only plumb's own kinds, of the Secrets only tombstones, of the `ConfigMaps` only the pushes and plumb's own record, of
/// the webhooks only the witness, and a first project.
pub(super) fn own(write: &OwnWrite) -> Result<(), Refusal> {
    let is_event = |group: &str, kind: &str| kind == "Event" && matches!(group, "" | "events.k8s.io");
    let (is_own, what) = match write {
        OwnWrite::Apply { manifest, .. } | OwnWrite::Create { manifest, .. } => {
            let is_tombstone = manifest.group().is_empty()
                && manifest.kind() == "Secret"
                && manifest.value().get("type").and_then(serde_json::Value::as_str) == Some(TOMBSTONE_TYPE)
                && manifest.name().is_some_and(|name| name.starts_with(TOMBSTONE_PREFIX));
            // Created if it does not exist; never overwritten.
            let is_default_project = matches!(write, OwnWrite::Create { .. })
                && (manifest.group(), manifest.kind()) == ("argoproj.io", "AppProject")
                && manifest.name() == Some("default");
            // plumb's own record; created once.
            let is_record = matches!(write, OwnWrite::Create { .. })
                && (manifest.group(), manifest.kind()) == ("", "ConfigMap")
                && manifest.name() == Some(STATE_CONFIG_MAP);
            let is_pushes = (manifest.group(), manifest.kind()) == ("", "ConfigMap")
                && manifest.name() == Some(PUSHES_CONFIG_MAP);
            let is_own = manifest.group() == "plumb.dev"
                || is_record
                || is_pushes
                || is_tombstone
                || is_default_project
                || is_witness(&manifest.gvk(), manifest.name().unwrap_or_default())
                || is_event(manifest.group(), manifest.kind());
            (is_own, describe(manifest))
        }
        OwnWrite::CreateGenerated { manifest, .. } => {
            let owners = manifest.value()["metadata"]["ownerReferences"].as_array();
            let has_set = owners.is_some_and(|owners| {
                owners.iter().any(|owner| owner["kind"] == "ApplicationSet" && owner["controller"] == true)
            });
            let is_application = (manifest.group(), manifest.kind()) == ("argoproj.io", "Application");
            (is_application && has_set, describe(manifest))
        }
        OwnWrite::DeleteGenerated { target, uid } => {
            let is_application = target.gvk.group == "argoproj.io" && target.gvk.kind == "Application";
            (is_application && !uid.is_empty(), format!("{} {}", target.gvk, target.name))
        }
        OwnWrite::Patch { target, .. } => {
            let group = target.gvk.group.as_str();
            let is_own = matches!(group, "argoproj.io" | "plumb.dev") || is_event(group, &target.gvk.kind);
            (is_own, format!("{} {}", target.gvk, target.name))
        }
        OwnWrite::Delete { target, .. } => {
            let is_tombstone = target.gvk.group.is_empty()
                && target.gvk.kind == "Secret"
                && target.name.starts_with(TOMBSTONE_PREFIX);
            let is_own =
                target.gvk.group == "plumb.dev" || is_tombstone || is_witness(&target.gvk, &target.name);
            (is_own, format!("{} {}", target.gvk, target.name))
        }
    };
    if is_own { Ok(()) } else { Err(Refusal::NotOwn { what }) }
}
