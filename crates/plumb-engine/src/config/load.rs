//! Reads settings, repositories and projects once, without watching them.

use plumb_core::object::{GroupVersionKind, ObjectKey};
use plumb_crd::AppProject;
use plumb_crd::settings::SecretData;
use plumb_kube::{ApiError, ClusterClient, Selection};
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

/// Reads repositories with their credentials, and projects.
pub(crate) async fn load_registry(
    client: &ClusterClient,
    namespace: &str,
    config: &ConfigStore,
) -> Result<(), ApiError> {
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
    for project in client.list(&gvk, &all).await? {
        config.note_project(&project);
    }
    Ok(())
}
