//! The requests that change a cluster. Private to the crate: [`Gate`](crate::Gate) is the public way to
//! write.

use http::Method;
use plumb_core::desired::Propagation;
use plumb_core::object::{GroupVersionKind, Manifest};
use serde_json::{Value, json};

use crate::catalog::Resource;
use crate::client::{Answer, Call, ClusterClient};
use crate::error::ApiError;
use crate::redact_refusals::without_values;

/// How to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyOptions {
    /// The manager that will own the fields.
    pub field_manager: String,
    /// Take ownership of fields from other managers.
    pub force: bool,
    /// How the server treats fields that the schema does not have.
    pub field_validation: FieldValidation,
    /// Such as `status`.
    pub subresource: Option<String>,
}

impl Default for ApplyOptions {
    /// Forced and strict, as Argo CD's controller.
    fn default() -> Self {
        Self {
            field_manager: plumb_core::tracking::FIELD_MANAGER.to_owned(),
            force: true,
            field_validation: FieldValidation::Strict,
            subresource: None,
        }
    }
}

/// How the server treats fields that the schema does not have, and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Refuse the request.
    #[default]
    Strict,
    /// Drop them and return a warning.
    Warn,
    /// Drop them.
    Ignore,
}

impl FieldValidation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "Strict",
            Self::Warn => "Warn",
            Self::Ignore => "Ignore",
        }
    }
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object as the server has it now.
    pub manifest: Manifest,
    /// The server's warnings.
    pub warnings: Vec<String>,
    /// True if the object did not exist before.
    pub created: bool,
}

/// A partial change.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// RFC 7396.
    Merge(Value),
    /// RFC 6902.
    Json(Value),
    /// Kubernetes' own: it merges lists by the keys of their items. Only for the kinds of Kubernetes itself.
    Strategic(Value),
}

/// The object that a patch or deletion changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// Namespace, if the kind is namespaced.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
}

impl Target {
    /// The object that a manifest describes; `None` if it has no name.
    pub fn of(manifest: &Manifest) -> Option<Self> {
        Some(Self {
            gvk: manifest.gvk(),
            namespace: manifest.namespace().map(str::to_owned),
            name: manifest.name()?.to_owned(),
        })
    }
}

/// How to patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchOptions {
    /// The manager that will own the fields.
    pub field_manager: Option<String>,
    /// Such as `status`.
    pub subresource: Option<String>,
}

/// How to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// How the garbage collector treats the object's children.
    pub propagation: Propagation,
    /// Delete only if the object has this resource version.
    pub resource_version: Option<String>,
    /// Seconds that a pod gets to stop; the pod's own setting if not given.
    pub grace_seconds: Option<u32>,
}

/// The result of a deletion.
#[derive(Clone, Debug, PartialEq)]
pub enum Deleted {
    /// The object is deleted.
    Gone,
    /// The object is terminating: its finalizers, its children or its containers still have to finish.
    Going(Box<Manifest>),
    /// The object did not exist any more, or another object has its name now.
    WasAbsent,
}

/// Whether the server carries a request out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    DryRun,
    Real,
}

const JSON: &str = "application/json";

impl ClusterClient {
    pub(crate) async fn send_apply(
        &self,
        manifest: &Manifest,
        options: &ApplyOptions,
        effect: Effect,
    ) -> Result<Applied, ApiError> {
        let target = target_of(manifest)?;
        let resource = self.resource_in_scope(&target.gvk, target.namespace.as_deref(), &target.name).await?;
        let path = resource.object_path(
            target.namespace.as_deref(),
            &target.name,
            options.subresource.as_deref(),
        )?;
        let call = Call::new(Method::PATCH, path.clone())
            .query("fieldManager", &options.field_manager)
            .query("force", if options.force { "true" } else { "false" })
            .query("fieldValidation", options.field_validation.as_str());
        let call = effect.mark(call).body("application/apply-patch+yaml", body(manifest.value())?);
        applied(&path, &without_values(&target.gvk, self.call(call).await)?)
    }

    pub(crate) async fn send_create(
        &self,
        manifest: &Manifest,
        field_manager: &str,
        effect: Effect,
    ) -> Result<Applied, ApiError> {
        let name = manifest.name().or(manifest.generate_name()).unwrap_or("without name");
        let resource = self.resource_in_scope(&manifest.gvk(), manifest.namespace(), name).await?;
        if resource.namespaced && manifest.namespace().is_none() {
            return Err(malformed(manifest, "objects of this kind need a namespace and none is given"));
        }
        let path = resource.collection_path(manifest.namespace())?;
        let call = Call::new(Method::POST, path.clone()).query("fieldManager", field_manager);
        let call = effect.mark(call).body(JSON, body(manifest.value())?);
        applied(&path, &without_values(&manifest.gvk(), self.call(call).await)?)
    }

    /// Replaces an object: the state of the manifest's `resourceVersion`, or any state if the manifest has
    /// none.
    pub(crate) async fn send_replace(
        &self,
        manifest: &Manifest,
        field_manager: &str,
        subresource: Option<&str>,
        effect: Effect,
    ) -> Result<Applied, ApiError> {
        let target = target_of(manifest)?;
        let resource = self.resource_in_scope(&target.gvk, target.namespace.as_deref(), &target.name).await?;
        let path = resource.object_path(target.namespace.as_deref(), &target.name, subresource)?;
        let call = Call::new(Method::PUT, path.clone()).query("fieldManager", field_manager);
        let call = effect.mark(call).body(JSON, body(manifest.value())?);
        applied(&path, &without_values(&target.gvk, self.call(call).await)?)
    }

    pub(crate) async fn send_patch(
        &self,
        target: &Target,
        change: &Patch,
        options: &PatchOptions,
        effect: Effect,
    ) -> Result<Applied, ApiError> {
        let resource = self.resource_in_scope(&target.gvk, target.namespace.as_deref(), &target.name).await?;
        let path = resource.object_path(
            target.namespace.as_deref(),
            &target.name,
            options.subresource.as_deref(),
        )?;
        let (content_type, change) = match change {
            Patch::Merge(change) => ("application/merge-patch+json", change),
            Patch::Json(change) => ("application/json-patch+json", change),
            Patch::Strategic(change) => ("application/strategic-merge-patch+json", change),
        };
        let mut call = effect.mark(Call::new(Method::PATCH, path.clone()));
        if let Some(manager) = &options.field_manager {
            call = call.query("fieldManager", manager);
        }
        let answer = self.call(call.body(content_type, body(change)?)).await;
        applied(&path, &without_values(&target.gvk, answer)?)
    }

    /// Deletes the object with this uid, not another object of the same name.
    pub(crate) async fn send_delete(
        &self,
        target: &Target,
        uid: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        let resource = self.resource_in_scope(&target.gvk, target.namespace.as_deref(), &target.name).await?;
        let path = resource.object_path(target.namespace.as_deref(), &target.name, None)?;
        let propagation = match options.propagation {
            Propagation::Foreground => "Foreground",
            Propagation::Background => "Background",
            Propagation::Orphan => "Orphan",
        };
        let mut preconditions = json!({"uid": uid});
        if let (Some(version), Value::Object(map)) = (&options.resource_version, &mut preconditions) {
            map.insert("resourceVersion".to_owned(), json!(version));
        }
        let delete_options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            "preconditions": preconditions,
            "gracePeriodSeconds": options.grace_seconds,
        });
        let answer =
            match self.call(Call::new(Method::DELETE, path.clone()).body(JSON, body(&delete_options)?)).await
            {
                Ok(answer) => answer,
                Err(error) if error.is_not_found() => return Ok(Deleted::WasAbsent),
                // A uid that does not match answers 409: the object to delete does not exist any more. A resource
                // version that does not match answers the same, and then the caller has to read the object again.
                Err(error) if error.is_conflict() && options.resource_version.is_none() => {
                    return self.look_after_conflict(&resource, target, uid, error).await;
                }
                Err(error) => return Err(error),
            };
        let value: Value = serde_json::from_slice(&answer.body)
            .map_err(|source| ApiError::unreadable(&path, "the answer to a deletion", Some(source)))?;
        match Manifest::new(value) {
            Ok(object) if object.kind() != "Status" && object.is_terminating() => {
                Ok(Deleted::Going(Box::new(object)))
            }
            Ok(_) | Err(_) => Ok(Deleted::Gone),
        }
    }

    async fn look_after_conflict(
        &self,
        resource: &Resource,
        target: &Target,
        uid: &str,
        error: ApiError,
    ) -> Result<Deleted, ApiError> {
        match self.get_as(resource, target.namespace.as_deref(), &target.name).await? {
            Some(object) if object.uid() == Some(uid) => Err(error),
            Some(_) | None => Ok(Deleted::WasAbsent),
        }
    }

    /// The kind in this version, if its scope is that of the object. The object was permitted as one of a namespace, or as
    /// one of the cluster: it must never become the other because the kind changed in between.
    async fn resource_in_scope(
        &self,
        gvk: &GroupVersionKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Resource, ApiError> {
        let resource = self.find_or_discover(gvk).await?;
        resource.check_scope(namespace, name)?;
        Ok(resource)
    }

    /// The kind of a CRD that was just created may not be in the catalog yet.
    async fn find_or_discover(&self, gvk: &GroupVersionKind) -> Result<Resource, ApiError> {
        match self.catalog().resource(gvk) {
            Some(resource) => Ok(resource),
            None => self.discover().await?.find(gvk),
        }
    }
}

impl Effect {
    fn mark(self, call: Call) -> Call {
        match self {
            Self::DryRun => call.query("dryRun", "All"),
            Self::Real => call,
        }
    }
}

fn applied(path: &str, answer: &Answer) -> Result<Applied, ApiError> {
    Ok(Applied { manifest: answer.manifest(path)?, warnings: answer.warnings(), created: answer.code == 201 })
}

fn target_of(manifest: &Manifest) -> Result<Target, ApiError> {
    Target::of(manifest).ok_or_else(|| malformed(manifest, "it has no name"))
}

fn malformed(manifest: &Manifest, why: &'static str) -> ApiError {
    let name = manifest.name().or(manifest.generate_name()).unwrap_or("without name");
    ApiError::Malformed { what: format!("{} {name}", manifest.kind()), why }
}

fn body(value: &Value) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(value).map_err(|_| ApiError::Malformed {
        what: "the object".to_owned(),
        why: "it cannot be written as JSON",
    })
}
