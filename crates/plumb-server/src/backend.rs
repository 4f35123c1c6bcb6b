//! The requests of the server to the API server, with its errors as answers of the API.

use plumb_api::{Code, Status};
use plumb_core::desired::Propagation;
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use plumb_kube::{
    ApiError, ClusterClient, DeleteOptions, DeletePermit, Fence, Gate, Patch, PatchOptions, Reason, Resource,
    Selection, Target, WriteError, WritePermit,
};
use serde_json::Value;

/// The field manager of writes through the server.
pub(crate) const FIELD_MANAGER: &str = "argocd-server";

/// Group version, kind and plural of what the server reads and writes in the control-plane namespace.
const KINDS: [(&str, &str, &str); 8] = [
    ("argoproj.io/v1alpha1", "Application", "applications"),
    ("argoproj.io/v1alpha1", "ApplicationSet", "applicationsets"),
    ("argoproj.io/v1alpha1", "AppProject", "appprojects"),
    ("plumb.dev/v1alpha1", "DriftReport", "driftreports"),
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "Event", "events"),
    ("v1", "Pod", "pods"),
    ("v1", "Secret", "secrets"),
];

/// The kinds that the server uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Application,
    ApplicationSet,
    Project,
    DriftReport,
    ConfigMap,
    Secret,
}

impl Known {
    pub(crate) fn gvk(self) -> GroupVersionKind {
        let (version, kind) = match self {
            Self::Application => ("argoproj.io/v1alpha1", "Application"),
            Self::ApplicationSet => ("argoproj.io/v1alpha1", "ApplicationSet"),
            Self::Project => ("argoproj.io/v1alpha1", "AppProject"),
            Self::DriftReport => ("plumb.dev/v1alpha1", "DriftReport"),
            Self::ConfigMap => ("v1", "ConfigMap"),
            Self::Secret => ("v1", "Secret"),
        };
        GroupVersionKind::from_api_version(version, kind)
    }
}

/// The API server of the control plane.
#[derive(Clone)]
pub(crate) struct Backend {
    pub(crate) client: ClusterClient,
    gate: Gate,
}

impl Backend {
    pub(crate) fn new(client: ClusterClient) -> Self {
        let resources = KINDS.map(|(version, kind, plural)| Resource {
            gvk: GroupVersionKind::from_api_version(version, kind),
            plural: plural.to_owned(),
            namespaced: true,
        });
        client.assume_kinds(&resources);
        // A user's write needs no lease: the caller's permission was checked.
        let gate = Gate::new(client.clone(), Fence::of_command(), None);
        Self { client, gate }
    }

    pub(crate) async fn get(
        &self,
        kind: Known,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Manifest>, Status> {
        self.client.get_at(&kind.gvk(), Some(namespace), name).await.map_err(|error| of_api(&error))
    }

    pub(crate) async fn list(
        &self,
        kind: Known,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<Manifest>, Status> {
        let selection = Selection {
            namespace: namespace.map(str::to_owned),
            labels: labels.map(str::to_owned),
            fields: None,
        };
        self.client.list(&kind.gvk(), &selection).await.map_err(|error| of_api(&error))
    }

    pub(crate) async fn create(&self, object: Value) -> Result<Manifest, Status> {
        let object = Manifest::new(object).map_err(|error| Status::invalid(error.to_string()))?;
        let key = object.key().ok_or_else(|| Status::invalid("the object has no name"))?;
        let written = self.gate.create(&WritePermit::requested_by_user(key), &object, FIELD_MANAGER).await;
        written.map(|applied| applied.manifest).map_err(|error| of_write(&error))
    }

    pub(crate) async fn patch(
        &self,
        kind: Known,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Manifest, Status> {
        let target = target(&kind.gvk(), namespace, name);
        let patch = if patch.is_array() { Patch::Json(patch) } else { Patch::Merge(patch) };
        patch_with(&self.gate, &target, &patch).await
    }

    /// Deletes an object that was read just now.
    pub(crate) async fn delete(&self, object: &Manifest) -> Result<(), Status> {
        // With foreground propagation an object without children would stay until the garbage collector has looked.
        let options = DeleteOptions { propagation: Propagation::Background, ..DeleteOptions::default() };
        delete_with(&self.gate, object, &options).await
    }
}

/// Patches one object.
pub(crate) async fn patch_with(gate: &Gate, target: &Target, patch: &Patch) -> Result<Manifest, Status> {
    let key = ObjectKey::new(
        target.gvk.group.clone(),
        target.gvk.kind.clone(),
        target.namespace.clone(),
        target.name.clone(),
    );
    let options = PatchOptions { field_manager: Some(FIELD_MANAGER.to_owned()), subresource: None };
    let written = gate.patch(&WritePermit::requested_by_user(key), target, patch, &options).await;
    written.map(|applied| applied.manifest).map_err(|error| of_write(&error))
}

/// Deletes one object by its uid.
pub(crate) async fn delete_with(
    gate: &Gate,
    object: &Manifest,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let (Some(key), Some(target)) = (object.key(), Target::of(object)) else {
        return Err(Status::invalid("the object has no name"));
    };
    let permit = DeletePermit::requested_by_user(key, object.uid().unwrap_or_default());
    gate.delete(&permit, &target, options).await.map(drop).map_err(|error| of_write(&error))
}

pub(crate) fn target(gvk: &GroupVersionKind, namespace: &str, name: &str) -> Target {
    let namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
    Target { gvk: gvk.clone(), namespace, name: name.to_owned() }
}

/// An error of the API server.
pub(crate) fn of_api(error: &ApiError) -> Status {
    let code = match error.reason() {
        Some(Reason::AlreadyExists) => Code::AlreadyExists,
        _ if error.is_not_found() => Code::NotFound,
        _ if error.is_conflict() => Code::Aborted,
        _ if error.is_forbidden() => Code::PermissionDenied,
        _ if error.is_unavailable() => Code::Unavailable,
        _ => match error.code() {
            Some(400) => Code::FailedPrecondition,
            Some(401) => Code::Unauthenticated,
            Some(405) => Code::Unimplemented,
            Some(422) => Code::InvalidArgument,
            Some(429) => Code::ResourceExhausted,
            Some(504) => Code::DeadlineExceeded,
            Some(500) => Code::Internal,
            _ => Code::Unknown,
        },
    };
    Status::new(code, error.to_string())
}

pub(crate) fn of_write(error: &WriteError) -> Status {
    match error.api() {
        Some(api) => of_api(api),
        None => Status::new(Code::FailedPrecondition, error.to_string()),
    }
}
