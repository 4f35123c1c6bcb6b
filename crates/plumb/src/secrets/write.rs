//! Reading and writing the Secrets that register clusters and repositories.

use plumb_core::object::Manifest;
use plumb_crd::settings::{SECRET_TYPE, SecretData};
use plumb_kube::{ClusterClient, Selection, Target};
use serde_json::{Map, Value, json};

use crate::context::{Context, change, create};
use crate::error::CommandError;
use crate::kinds;

/// All Secrets of a type, parsed and as objects.
pub(crate) async fn list(
    context: &Context,
    client: &ClusterClient,
    secret_type: &str,
) -> Result<Vec<(SecretData, Manifest)>, CommandError> {
    let found = context.list(client, &kinds::secret(), &selection(context, secret_type)).await?;
    Ok(found
        .into_iter()
        .filter_map(|object| SecretData::read(object.value()).ok().map(|(data, _)| (data, object)))
        .collect())
}

/// Selects the Secrets of a type.
pub(crate) fn selection(context: &Context, secret_type: &str) -> Selection {
    Selection {
        namespace: Some(context.namespace().to_owned()),
        labels: Some(format!("{SECRET_TYPE}={secret_type}")),
        fields: None,
    }
}

/// Writes a Secret: creates it, or with `upsert` replaces its values.
pub(crate) async fn write(
    context: &Context,
    client: &ClusterClient,
    secret: NewSecret<'_>,
    upsert: bool,
) -> Result<&'static str, CommandError> {
    let target = Target {
        gvk: kinds::secret(),
        namespace: Some(context.namespace().to_owned()),
        name: secret.name.to_owned(),
    };
    let existing = client
        .get_at(&target.gvk, target.namespace.as_deref(), &target.name)
        .await
        .map_err(|error| CommandError::api(format!("read secret {}", target.name), error))?;
    let mut labels = Map::new();
    labels.insert(SECRET_TYPE.to_owned(), json!(secret.secret_type));
    labels.extend(secret.labels);
    let mut annotations = Map::new();
    annotations.insert("managed-by".to_owned(), json!("argocd.argoproj.io"));
    annotations.extend(secret.annotations);
    let object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": target.name, "namespace": target.namespace, "labels": labels, "annotations": annotations,
        },
        "stringData": secret.values,
    });
    match existing {
        None => {
            let object =
                Manifest::new(object).map_err(|error| CommandError::because("build the secret", error))?;
            create(client, &object).await?;
            Ok("added")
        }
        Some(_) if !upsert => {
            Err(CommandError::new(format!("{} is already registered", secret.what))
                .hint("--upsert replaces it"))
        }
        Some(_) => {
            // All old values are replaced: a credential that is no longer given must not remain.
            let patch = json!([
                {"op": "add", "path": "/metadata/labels", "value": labels},
                {"op": "add", "path": "/metadata/annotations", "value": annotations},
                {"op": "add", "path": "/data", "value": {}},
                {"op": "add", "path": "/stringData", "value": secret.values},
            ]);
            change(client, &target, &plumb_kube::Patch::Json(patch)).await?;
            Ok("updated")
        }
    }
}

/// A Secret to write. It has no `Debug`, because it holds credentials.
pub(crate) struct NewSecret<'a> {
    pub(crate) name: &'a str,
    pub(crate) secret_type: &'static str,
    /// What it registers, for messages.
    pub(crate) what: &'a str,
    pub(crate) labels: Map<String, Value>,
    pub(crate) annotations: Map<String, Value>,
    pub(crate) values: Map<String, Value>,
}
