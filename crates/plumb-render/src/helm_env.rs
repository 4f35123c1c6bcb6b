//! Where Helm looks for its own files.

use std::ffi::OsString;
use std::path::Path;

/// Variables that make Helm find its configuration, cache and plugins in empty directories.
pub(crate) fn helm_environment(scratch: &Path) -> Vec<(OsString, OsString)> {
    let home = scratch.join("home");
    [
        ("HELM_CACHE_HOME", "helm/cache"),
        ("HELM_CONFIG_HOME", "helm/config"),
        ("HELM_DATA_HOME", "helm/data"),
        ("HELM_PLUGINS", "helm/plugins"),
        ("KUBECONFIG", "kubeconfig"),
    ]
    .into_iter()
    .map(|(name, path)| (name.into(), home.join(path).into()))
    .collect()
}
