//! Requests about Applications.

use plumb_core::app::AppId;
use plumb_core::object::GroupVersionKind;
use plumb_crd::Application;
use plumb_kube::{OwnWrite, Patch, PatchOptions, Target};
use serde_json::Value;

/// Group, version and kind of Applications.
pub(crate) fn application_gvk() -> GroupVersionKind {
    GroupVersionKind::from_api_version(Application::API_VERSION, Application::KIND)
}

/// The patch of one Application.
pub(crate) fn application_patch(id: &AppId, patch: Value) -> OwnWrite {
    OwnWrite::Patch {
        target: Target {
            gvk: application_gvk(),
            namespace: Some(id.namespace.clone()),
            name: id.name.clone(),
        },
        patch: Patch::Merge(patch),
        options: PatchOptions {
            field_manager: Some("argocd-application-controller".to_owned()),
            subresource: None,
        },
    }
}
