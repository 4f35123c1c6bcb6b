//! Reads settings, repositories and projects once, without watching them.

use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use plumb_crd::AppProject;
use plumb_crd::settings::SecretData;
use plumb_kube::{ApiError, ClusterClient, Selection};
use serde_json::json;
use tracing::warn;

use super::store::ConfigStore;

/// The `ConfigMaps` that settings are read from.
pub(crate) const SETTINGS_CONFIG_MAPS: [&str; 6] = [
    "argocd-cm",
    "argocd-cmd-params-cm",
    "argocd-ssh-known-hosts-cm",
    "argocd-tls-certs-cm",
    "argocd-gpg-keys-cm",
    plumb_crd::settings::PLUGINS_CONFIG_MAP,
];

/// Reads the settings. They decide how objects are tracked, so this comes before anything else.
pub(crate) async fn load_settings(client: &ClusterClient, namespace: &str, config: &ConfigStore) {
    for name in SETTINGS_CONFIG_MAPS {
        let key = ObjectKey::new("", "ConfigMap", Some(namespace.to_owned()), name);
        match client.get(&key).await {
            Ok(Some(object)) => {
                config.note_config_map(name, Some(&object));
            }
            Ok(None) => {}
            Err(error) => warn!(%error, name, "cannot read settings; defaults apply"),
        }
    }
}

/// What is known about the projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownProjects {
    /// All of them.
    All,
    /// The cluster has none, or does not serve their kind.
    Absent,
    /// The user may not read them.
    Denied,
}

/// Reads repositories with their credentials, and projects.
pub(crate) async fn load_registry(
    client: &ClusterClient,
    namespace: &str,
    config: &ConfigStore,
) -> Result<KnownProjects, ApiError> {
    let labelled = Selection {
        namespace: Some(namespace.to_owned()),
        labels: Some("argocd.argoproj.io/secret-type".to_owned()),
        fields: None,
    };
    let gvk = GroupVersionKind::from_api_version("v1", "Secret");
    // A user who may not read Secrets can still use public repositories.
    for secret in client.list(&gvk, &labelled).await.unwrap_or_default() {
        let data = SecretData::read(secret.value()).ok().map(|(data, _)| data);
        let of_cluster = data.as_ref().and_then(SecretData::secret_type) == Some("cluster");
        config.note_secret(secret.name().unwrap_or_default(), data.filter(|_| !of_cluster));
    }
    let gvk = GroupVersionKind::from_api_version(AppProject::API_VERSION, AppProject::KIND);
    let all = Selection { namespace: Some(namespace.to_owned()), ..Selection::default() };
    let projects = match client.list(&gvk, &all).await {
        Ok(projects) => projects,
        Err(error) if error.code() == Some(403) => return Ok(KnownProjects::Denied),
        Err(error) if error.is_not_found() || matches!(error, ApiError::UnknownKind { .. }) => {
            return Ok(KnownProjects::Absent);
        }
        Err(error) => return Err(error),
    };
    for project in &projects {
        config.note_project(project);
    }
    Ok(if projects.is_empty() { KnownProjects::Absent } else { KnownProjects::All })
}

/// Notes a project that forbids nothing, for a command that only reads: the user's own rights decide what it sees.
pub(crate) fn note_permissive_project(name: &str, namespace: &str, config: &ConfigStore) {
    let project = json!({
        "apiVersion": AppProject::API_VERSION, "kind": AppProject::KIND,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "sourceRepos": ["*"], "sourceNamespaces": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    });
    if let Ok(project) = Manifest::new(project) {
        config.note_project(&project);
    }
}
