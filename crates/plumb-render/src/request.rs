//! What is asked of the renderer.

use std::collections::BTreeMap;
use std::sync::Arc;

use plumb_core::app::Source;
use plumb_core::source::SourceFiles;
use plumb_core::turns::Tenant;
use serde_json::Value;

use crate::charts::ChartDependency;
use crate::settings::RenderSettings;

/// One source of one app at one commit.
#[derive(Clone)]
pub struct RenderRequest {
    /// The source as the Application has it.
    pub source: Source,
    /// Its index among the app's sources, from 0, for [`plumb_core::desired::Origin`].
    pub index: usize,
    /// Its files: a Git tree, or the content of a chart archive.
    pub files: Arc<dyn SourceFiles>,
    /// The commit, or the version of the chart.
    pub revision: String,
    /// The files of other sources of the app, by the name they are referred to as (`values` for `$values/…`).
    pub refs: BTreeMap<String, Arc<dyn SourceFiles>>,
    /// The dependencies that the source's chart does not contain, fetched by [`crate::Charts`].
    /// [`crate::missing_dependencies`] lists them.
    pub chart_dependencies: BTreeMap<ChartDependency, Arc<dyn SourceFiles>>,
    /// Merges `.argocd-source.yaml` over the source. `None`: overrides in Git are ignored.
    pub overrides: Option<Overrides>,
    /// The app that is rendered.
    pub app: AppFacts,
    /// The cluster that it is rendered for.
    pub cluster: ClusterFacts,
    /// The settings that rendering depends on.
    pub settings: Arc<RenderSettings>,
}

impl RenderRequest {
    /// Who waits for a place: each source of an app has a pace of its own.
    pub fn tenant(&self) -> Tenant {
        Tenant { project: self.app.project.clone(), app: format!("{}/{}", self.app.instance, self.index) }
    }
}

/// Merges the documents of `.argocd-source.yaml` and `.argocd-source-<app>.yaml`, in this order, over the source.
/// The caller provides it, because this crate does not know the wire form of a source. Errors are shown to the user
/// unchanged.
pub type Overrides = Arc<dyn Fn(&[Value]) -> Result<Source, String> + Send + Sync>;

/// The facts of the app that rendering depends on.
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

/// The facts of the destination cluster that rendering depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    /// Version of the API server, such as `1.36.2` or `v1.36.2+k3s1`.
    pub kube_version: Option<String>,
    /// `group/version` and `group/version/Kind` of everything it serves.
    pub api_versions: Arc<[String]>,
}
