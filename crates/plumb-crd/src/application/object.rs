//! The whole Application object.

use std::collections::BTreeSet;

use jiff::Timestamp;
use plumb_core::app::{AppId, Pause, PausedObjects};
use plumb_core::fields::annotation_written_at;
use plumb_core::object::ObjectKey;
use plumb_core::tracking::{RecordedObjects, StatusEntry};
use serde_json::Value;

use super::operation::Operation;
use super::spec::ApplicationSpec;
use super::status::{ApplicationStatus, ResourceResult, ResourceStatus};
use crate::metadata::{Metadata, identify};
use crate::wire::{Wire, WireError, read_field, read_map};

/// An Application object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Application {
    /// Names, annotations, finalizers.
    pub metadata: Metadata,
    /// The desired state.
    pub spec: ApplicationSpec,
    /// The operation that is requested or running. While it is set, no second operation can start.
    pub operation: Option<Operation>,
    /// The observed state.
    pub status: ApplicationStatus,
    /// Fields of `status` that could not be read and count as absent. plumb rewrites the status, so an invalid one must
    /// not prevent reconciliation.
    pub unreadable_status: Vec<WireError>,
    /// When the API server recorded the annotation that pauses the app.
    pub paused_at: Option<Timestamp>,
    /// The same of the annotation that pauses objects of the app.
    pub objects_paused_at: Option<Timestamp>,
}

impl Application {
    /// `apiVersion` of an Application.
    pub const API_VERSION: &'static str = "argoproj.io/v1alpha1";
    /// `kind` of an Application.
    pub const KIND: &'static str = "Application";

    /// Reads an Application. Metadata, spec and operation must be valid. An invalid field of `status` counts as absent
    /// and is listed in [`Application::unreadable_status`].
    pub fn from_json(object: &Value) -> Result<Self, WireError> {
        let map = read_map(object)?;
        let mut unreadable_status = Vec::new();
        let status = ApplicationStatus::read_what_is_readable(map.get("status"), &mut unreadable_status);
        Ok(Self {
            metadata: read_field(map, "metadata")?,
            spec: read_field(map, "spec")?,
            operation: read_field(map, "operation")?,
            status,
            unreadable_status,
            paused_at: annotation_written_at(object, Pause::ANNOTATION),
            objects_paused_at: annotation_written_at(object, PausedObjects::ANNOTATION),
        })
    }

    /// The whole object.
    pub fn to_json(&self) -> Value {
        let mut object = serde_json::json!({
            "apiVersion": Self::API_VERSION,
            "kind": Self::KIND,
            "metadata": self.metadata.write(),
            "spec": self.spec.write(),
        });
        if let Some(operation) = &self.operation {
            object["operation"] = operation.write();
        }
        if !self.status.is_unset() {
            object["status"] = self.status.write();
        }
        object
    }

    /// Namespace and name.
    pub fn id(&self) -> AppId {
        AppId { namespace: self.metadata.namespace.clone(), name: self.metadata.name.clone() }
    }

    /// Namespace and name of an Application that [`Application::from_json`] refuses, so that a condition can still be
    /// written.
    pub fn id_of(object: &Value) -> Option<AppId> {
        identify(object).map(|(namespace, name)| AppId { namespace, name })
    }

    /// The key of an Application.
    pub fn key(id: &AppId) -> ObjectKey {
        ObjectKey::new("argoproj.io", Self::KIND, Some(id.namespace.clone()), id.name.clone())
    }

    /// The objects that it rendered when its status was last written.
    pub fn rendered_keys(&self) -> BTreeSet<ObjectKey> {
        let rendered = self.status.resources.iter().filter(|object| !object.requires_pruning && !object.hook);
        rendered.map(ResourceStatus::key).collect()
    }

    /// The objects that Git is known to have had, by the status and by the result of the last operation.
    pub fn recorded_objects(&self) -> RecordedObjects {
        let entries = self.status.resources.iter().map(|object| StatusEntry {
            key: object.key(),
            is_hook: object.hook,
            requires_pruning: object.requires_pruning,
            requires_confirmation: object.requires_deletion_confirmation,
        });
        let result = self.status.operation_state.as_ref().and_then(|state| state.sync_result.as_ref());
        let applied = result.into_iter().flat_map(|result| &result.resources);
        let applied = applied.filter(|object| object.hook_type.is_empty() && object.status == "Synced");
        RecordedObjects::from_status(entries).with(applied.map(ResourceResult::key))
    }

    /// The name of its project.
    pub fn project(&self) -> &str {
        if self.spec.project.is_empty() { "default" } else { &self.spec.project }
    }

    /// One annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.get(key).map(String::as_str)
    }

    /// True if its deletion was requested.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}
