//! The Secrets that register clusters and repositories.

use plumb_api::{Code, Status};
use plumb_core::object::Manifest;
use plumb_crd::settings::SecretData;
use serde_json::{Map, Value, json};

use crate::backend::Known;
use crate::call::Call;

/// The label with the type of a Secret.
const TYPE: &str = "argocd.argoproj.io/secret-type";

/// All Secrets of a type.
pub(super) async fn list(call: &Call, secret_type: &str) -> Result<Vec<(SecretData, Manifest)>, Status> {
    let selector = format!("{TYPE}={secret_type}");
    let found = call.shared.backend.list(Known::Secret, Some(call.namespace()), Some(&selector)).await?;
    let read = |object: Manifest| SecretData::read(object.value()).ok().map(|(data, _)| (data, object));
    Ok(found.into_iter().filter_map(read).collect())
}

/// Creates a Secret, or replaces all values of the one that exists.
pub(super) async fn write(
    call: &Call,
    existing: Option<&Manifest>,
    name: &str,
    secret_type: &str,
    values: Map<String, Value>,
) -> Result<(), Status> {
    let hidden = |status: Status| {
        // The error of a Secret may quote its values.
        let message =
            if status.code == Code::AlreadyExists { "it exists already" } else { "cannot write the Secret" };
        Status::new(status.code, message)
    };
    let values =
        Value::Object(values.into_iter().filter(|(_, value)| value != "" && !value.is_null()).collect());
    match existing {
        None => {
            let object = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringData": values,
                "metadata": {
                    "name": name, "namespace": call.namespace(), "labels": {TYPE: secret_type},
                    "annotations": {"managed-by": "argocd.argoproj.io"},
                },
            });
            call.shared.backend.create(object).await.map(drop).map_err(hidden)
        }
        Some(existing) => {
            // All old values are replaced: a credential that is no longer given must not remain.
            let patch = json!([
                {"op": "add", "path": "/data", "value": {}},
                {"op": "add", "path": "/stringData", "value": values},
            ]);
            let name = existing.name().unwrap_or_default();
            let written = call.shared.backend.patch(Known::Secret, call.namespace(), name, patch).await;
            written.map(drop).map_err(hidden)
        }
    }
}

/// The 32-bit FNV-1a hash that Argo CD puts into the names of these Secrets.
pub(super) fn fnv1a(texts: &[&str]) -> u32 {
    let bytes = texts.iter().flat_map(|text| text.bytes());
    bytes.fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// An address as permissions name it: with its project, if it is for one only.
pub(super) fn object(project: Option<&str>, address: &str) -> String {
    match project.filter(|project| !project.is_empty()) {
        Some(project) => format!("{project}/{address}"),
        None => address.to_owned(),
    }
}
