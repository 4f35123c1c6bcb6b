//! Settings that are lists of entries in a `ConfigMap`: certificates and keys.

use std::collections::BTreeMap;

use plumb_api::{Code, Status};
use plumb_core::object::Manifest;
use serde_json::{Value, json};

use crate::backend::Known;
use crate::call::Call;

/// How often a change is tried again after a conflict.
const ATTEMPTS: usize = 5;

fn entries(object: &Manifest) -> BTreeMap<String, String> {
    let data = object.value().get("data").and_then(Value::as_object).into_iter().flatten();
    data.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// The entries of a `ConfigMap`; none if it does not exist.
pub(super) async fn read(call: &Call, name: &str) -> Result<BTreeMap<String, String>, Status> {
    let found = call.shared.backend.get(Known::ConfigMap, call.namespace(), name).await?;
    Ok(found.as_ref().map(entries).unwrap_or_default())
}

/// Changes the entries of a `ConfigMap`, and creates it if it does not exist. Again if another writer was faster.
pub(super) async fn change<T>(
    call: &Call,
    name: &str,
    change: impl Fn(&mut BTreeMap<String, String>) -> Result<T, Status>,
) -> Result<T, Status> {
    for _ in 0..ATTEMPTS {
        let stored = call.shared.backend.get(Known::ConfigMap, call.namespace(), name).await?;
        let before = stored.as_ref().map(entries).unwrap_or_default();
        let mut after = before.clone();
        let result = change(&mut after)?;
        if after == before {
            return Ok(result);
        }
        let written = match &stored {
            None => {
                let object = json!({
                    "apiVersion": "v1", "kind": "ConfigMap", "data": after,
                    "metadata": {"name": name, "namespace": call.namespace(),
                        "labels": {"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/name": name}},
                });
                call.shared.backend.create(object).await
            }
            Some(stored) => {
                let mut data: BTreeMap<&String, Value> =
                    before.keys().map(|key| (key, Value::Null)).collect();
                data.extend(after.iter().map(|(key, value)| (key, json!(value))));
                let version = stored.resource_version();
                let patch = json!({"metadata": {"resourceVersion": version}, "data": data});
                call.shared.backend.patch(Known::ConfigMap, call.namespace(), name, patch).await
            }
        };
        match written {
            Ok(_) => return Ok(result),
            Err(status) if matches!(status.code, Code::Aborted | Code::AlreadyExists) => {}
            Err(status) => return Err(status),
        }
    }
    Err(Status::new(Code::Aborted, "the settings keep changing; try again"))
}
