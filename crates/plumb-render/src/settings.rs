//! The settings of `argocd-cm` that rendering depends on.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The settings of `argocd-cm` that rendering depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one documented, independent switch of the settings"
)]
pub struct RenderSettings {
    /// `helm.enable`
    pub helm: bool,
    /// `kustomize.enable`
    pub kustomize: bool,
    /// `jsonnet.enable`
    pub jsonnet: bool,
    /// `kustomize.buildOptions`
    pub kustomize_build_options: String,
    /// `kustomize.path.<version>` and the options that belong to it.
    pub kustomize_versions: BTreeMap<String, KustomizeVersion>,
    /// Whether Kustomize may fetch bases, and Helm values, from the network. If false, such sources are refused, and
    /// tools run without network where the system supports it.
    pub allow_network: bool,
    /// Declared plugins, by name.
    pub plugins: BTreeMap<String, Plugin>,
    /// `plumb.plugins.allow-unconfined`: run plugins even where the kernel cannot restrict their file access.
    pub allow_unconfined_plugins: bool,
}

/// A version of Kustomize that an Application can select.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KustomizeVersion {
    /// The program.
    pub program: PathBuf,
    /// Build options that replace the general ones.
    pub build_options: Option<String>,
}

/// A command declared in the settings (the `spec` of a `ConfigManagementPlugin`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plugin {
    /// The command that runs first; its output is ignored.
    pub init: Vec<String>,
    /// The command that prints the manifests.
    pub generate: Vec<String>,
    /// Which sources select it without naming it.
    pub discover: PluginDiscovery,
}

/// When a source that names no tool selects a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PluginDiscovery {
    /// Only when the source names it.
    #[default]
    Named,
    /// When a file of the app's directory matches this glob (one level, as `fileName`).
    FileName(String),
    /// When a file below the app's directory matches this glob (`find.glob`).
    Find(String),
}

impl Default for RenderSettings {
    fn default() -> Self {
        Self {
            helm: true,
            kustomize: true,
            jsonnet: true,
            kustomize_build_options: String::new(),
            kustomize_versions: BTreeMap::new(),
            allow_network: false,
            plugins: BTreeMap::new(),
            allow_unconfined_plugins: false,
        }
    }
}
