//! What is asked of the renderer, and what it may cost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plumb_core::app::Source;
use plumb_core::source::SourceFiles;
use serde_json::Value;

use crate::ChartDependency;

/// One source of one app at one commit.
#[derive(Clone)]
pub struct RenderRequest {
    /// The source as the Application has it.
    pub source: Source,
    /// Its place among the app's sources, from 0, for [`plumb_core::desired::Origin`].
    pub index: usize,
    /// Its files: a Git tree, or the content of a chart archive.
    pub files: Arc<dyn SourceFiles>,
    /// The commit, or the version of the chart.
    pub revision: String,
    /// The files of other sources of the app, by the name they are referred to as (`values` for `$values/…`).
    pub refs: BTreeMap<String, Arc<dyn SourceFiles>>,
    /// Charts that the source's chart depends on and does not bring along, fetched by [`crate::Charts`];
    /// [`crate::missing_dependencies`] says which.
    pub chart_dependencies: BTreeMap<ChartDependency, Arc<dyn SourceFiles>>,
    /// Turns the source plus what `.argocd-source.yaml` says into the source that counts. `None`: overrides in
    /// Git are not looked for.
    pub overrides: Option<Overrides>,
    /// The app that is rendered.
    pub app: AppFacts,
    /// The cluster that it is rendered for.
    pub cluster: ClusterFacts,
    /// The settings that rendering depends on.
    pub settings: Arc<RenderSettings>,
}

/// Merges the documents of `.argocd-source.yaml` and `.argocd-source-<app>.yaml`, in this order, over the source.
/// Whoever knows the wire form of a source gives it; an error is shown to the user as it is.
pub type Overrides = Arc<dyn Fn(&[Value]) -> Result<Source, String> + Send + Sync>;

/// What rendering knows about the app.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppFacts {
    /// `metadata.name`: Helm's release name by default.
    pub name: String,
    /// The name that tracking uses: `name`, or `namespace_name` outside the control plane's namespace.
    pub instance: String,
    /// The project.
    pub project: String,
    /// The destination's namespace; empty if none.
    pub namespace: String,
}

/// What rendering knows about the destination cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    /// Version of the API server, such as `1.36.2` or `v1.36.2+k3s1`.
    pub kube_version: Option<String>,
    /// `group/version` and `group/version/Kind` of everything it serves.
    pub api_versions: Arc<[String]>,
}

/// Settings of `argocd-cm` that rendering depends on.
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
    /// May Kustomize fetch bases and Helm fetch values from the network? Off: such sources are refused, and the
    /// tools run without network where the system allows to take it away.
    pub allow_network: bool,
    /// Declared plugins, by name.
    pub plugins: BTreeMap<String, Plugin>,
    /// `plumb.plugins.allow-unconfined`: may plugins run where the kernel cannot keep them from the files of others?
    pub allow_unconfined_plugins: bool,
}

/// A version of Kustomize that an Application can ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KustomizeVersion {
    /// The program.
    pub program: PathBuf,
    /// Its own build options instead of the general ones.
    pub build_options: Option<String>,
}

/// A command declared in the settings (the `spec` of a `ConfigManagementPlugin`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plugin {
    /// Run first; its output is not used.
    pub init: Vec<String>,
    /// Prints the manifests.
    pub generate: Vec<String>,
    /// Which sources it claims by itself.
    pub discover: PluginDiscovery,
}

/// When a plugin claims a source that names no tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PluginDiscovery {
    /// Only when it is named.
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

/// The programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    /// Helm.
    pub helm: PathBuf,
    /// Kustomize.
    pub kustomize: PathBuf,
    /// The command that runs [`crate::jsonnet_worker`]: plumb's own binary with a hidden argument. Jsonnet is
    /// evaluated in a process of its own, since a program in it may never end, or take all memory.
    pub jsonnet: Vec<PathBuf>,
}

impl Default for Tools {
    fn default() -> Self {
        Self { helm: PathBuf::from("helm"), kustomize: PathBuf::from("kustomize"), jsonnet: Vec::new() }
    }
}

impl Tools {
    /// With full paths, found where the sandbox would find them.
    pub(crate) fn located(self) -> Self {
        Self { helm: locate(self.helm), kustomize: locate(self.kustomize), jsonnet: self.jsonnet }
    }
}

/// The full path of a program, found where the sandbox would find it.
pub(crate) fn locate(program: PathBuf) -> PathBuf {
    if program.components().count() != 1 {
        return program;
    }
    let places = ["/usr/local/bin", "/usr/bin", "/bin"].map(|place| Path::new(place).join(&program));
    places.into_iter().find(|path| path.exists()).unwrap_or(program)
}

/// What one rendering may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest time for one run of a tool.
    pub time: Duration,
    /// Address space of a tool, in bytes.
    pub memory: u64,
    /// Most bytes that a tool may print.
    pub output: usize,
    /// Most objects in one source.
    pub objects: usize,
    /// Most bytes of manifests in a plain directory, Jsonnet left out.
    pub directory_bytes: usize,
    /// Most bytes that are written to disk for a tool.
    pub export_bytes: u64,
    /// Most files that are written to disk for a tool.
    pub export_files: usize,
    /// Limits on reading YAML.
    pub yaml: plumb_core::yaml::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(90),
            memory: 4 << 30,
            output: 64 << 20,
            objects: 20_000,
            directory_bytes: 10 << 20,
            export_bytes: 512 << 20,
            export_files: 50_000,
            yaml: plumb_core::yaml::Limits { max_bytes: 64 << 20, ..plumb_core::yaml::Limits::default() },
        }
    }
}
