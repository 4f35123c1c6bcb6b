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

/// The values of a Secret.
pub(super) fn texts(secret: &Manifest) -> Map<String, Value> {
    let Ok((data, _)) = SecretData::read(secret.value()) else { return Map::new() };
    let keys =
        secret.value().get("data").and_then(Value::as_object).into_iter().flatten().map(|(key, _)| key);
    keys.filter_map(|key| Some((key.clone(), json!(data.get(key)?.expose())))).collect()
}

/// Writes labels and annotations of a cluster, where the request has them and they are chosen. plumb's own stay.
pub(super) async fn write_metadata(
    call: &Call,
    server: &str,
    sent: &Value,
    is_chosen: impl Fn(&str) -> bool,
) -> Result<(), Status> {
    let chosen: Vec<&str> = ["labels", "annotations"]
        .into_iter()
        .filter(|field| is_chosen(field) && sent.get(field).is_some_and(Value::is_object))
        .collect();
    if chosen.is_empty() {
        return Ok(());
    }
    let found = list(call, "cluster").await?.into_iter().find(|(data, _)| {
        data.get("server").is_some_and(|known| known.expose().trim_end_matches('/') == server)
    });
    let Some((_, secret)) = found else { return Ok(()) };
    let mut metadata = json!({});
    for field in chosen {
        let is_own = |key: &str| key.starts_with("argocd.argoproj.io/") || key == "managed-by";
        let before = secret.value().pointer(&format!("/metadata/{field}")).and_then(Value::as_object);
        let gone = before.into_iter().flatten().filter(|(key, _)| !is_own(key));
        let mut after: Map<String, Value> = gone.map(|(key, _)| (key.clone(), Value::Null)).collect();
        let new = sent.get(field).and_then(Value::as_object).into_iter().flatten();
        after.extend(new.filter(|(key, _)| !is_own(key)).map(|(key, value)| (key.clone(), value.clone())));
        metadata[field] = Value::Object(after);
    }
    let name = secret.name().unwrap_or_default();
    let written =
        call.shared.backend.patch(Known::Secret, call.namespace(), name, json!({"metadata": metadata})).await;
    written.map(drop).map_err(|status| Status::new(status.code, "cannot write the labels of the cluster"))
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
