//! Rendering one source from a working copy.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use plumb_core::app::Source;
use plumb_core::desired::{DesiredContext, DesiredSet, KindFilter, Scopes, build};
use plumb_core::source::{RepoPath, SourceFiles};
use plumb_core::tracking::TrackingSettings;
use plumb_render::{
    AppFacts, ClusterFacts, EditedFiles, Freshness, LocalFiles, Overrides, RenderRequest, RenderSettings,
    Rendered, Renderer,
};

use crate::error::CommandError;
use crate::render_here::RenderArgs;

/// A source of an app, in a working copy.
#[derive(Clone)]
pub(crate) struct LocalSource {
    /// Root of the working copy.
    pub(crate) root: PathBuf,
    /// The source; its path is relative to the root.
    pub(crate) source: Source,
    /// Its place among the sources of the app, from 0.
    pub(crate) index: usize,
    /// Options that files of the source set.
    pub(crate) overrides: Option<Overrides>,
    /// What charts and overlays read about the app.
    pub(crate) app: AppFacts,
    /// What charts read about the cluster, and the settings of the control plane.
    pub(crate) facts: RenderFacts,
    /// The working copies of other sources of the app, by the name they are referred to as.
    pub(crate) refs: BTreeMap<String, PathBuf>,
}

/// What a render depends on beside the files and the app.
#[derive(Clone, Debug, Default)]
pub(crate) struct RenderFacts {
    pub(crate) cluster: ClusterFacts,
    pub(crate) settings: Arc<RenderSettings>,
}

impl RenderFacts {
    /// Only the version of the cluster is known.
    pub(crate) fn of_version(kube_version: &str) -> Self {
        let cluster = ClusterFacts { kube_version: Some(kube_version.to_owned()), ..ClusterFacts::default() };
        Self { cluster, ..Self::default() }
    }
}

/// Renders sources of working copies.
pub(crate) struct LocalRenderer {
    renderer: Renderer,
}

impl LocalRenderer {
    pub(crate) fn new(args: &RenderArgs) -> Result<Self, CommandError> {
        Ok(Self { renderer: args.renderer()? })
    }

    /// Renders a source as if some of its files had other contents. Nothing is written to the working copy.
    pub(crate) fn render(
        &self,
        local: &LocalSource,
        edits: BTreeMap<RepoPath, Vec<u8>>,
        freshness: Freshness,
    ) -> Result<Rendered, CommandError> {
        let files: Arc<dyn SourceFiles> = Arc::new(LocalFiles::new(local.root.clone()));
        let edited: Arc<dyn SourceFiles> = Arc::new(EditedFiles::new(files, edits));
        let named = local.refs.iter().map(|(name, root)| {
            let files: Arc<dyn SourceFiles> = if *root == local.root {
                Arc::clone(&edited)
            } else {
                Arc::new(LocalFiles::new(root.clone()))
            };
            (name.clone(), files)
        });
        let request = RenderRequest {
            source: local.source.clone(),
            index: local.index,
            refs: named.collect(),
            files: edited,
            revision: plumb_git::checked_out(&local.root).unwrap_or_default(),
            chart_dependencies: BTreeMap::new(),
            overrides: local.overrides.clone(),
            app: local.app.clone(),
            cluster: local.facts.cluster.clone(),
            settings: Arc::clone(&local.facts.settings),
        };
        let place = || {
            let path = local.source.path.as_deref().unwrap_or(".");
            local.root.join(path).display().to_string()
        };
        let failed = |error: plumb_render::RenderError| {
            CommandError::because(format!("render {}", place()), error.full_message())
        };
        let missing = self.renderer.missing_dependencies(&request).map_err(failed)?;
        if let Some(dependency) = missing.iter().find(|dependency| !dependency.is_local()) {
            let what = format!("cannot render {}: the chart {} is not in charts/", place(), dependency.name);
            return Err(CommandError::new(what).hint("`helm dependency build` in the chart downloads it"));
        }
        self.renderer.render(&request, freshness).map_err(failed)
    }
}

/// What a rendered source asks for, where the form of its tracking marks does not matter.
pub(crate) fn desired_set(
    rendered: &Rendered,
    instance: &str,
    namespace: Option<&str>,
    scopes: &Scopes,
) -> DesiredSet {
    marked_set(rendered, (instance, &TrackingSettings::default()), namespace, scopes)
}

/// The same with the tracking marks of a control plane, for a comparison with its objects.
pub(super) fn marked_set(
    rendered: &Rendered,
    (instance, tracking): (&str, &TrackingSettings),
    namespace: Option<&str>,
    scopes: &Scopes,
) -> DesiredSet {
    build(
        rendered.manifests.clone(),
        &DesiredContext {
            app: instance,
            destination_namespace: namespace,
            destination_server: "",
            scopes,
            tracking,
            filter: &KindFilter::default(),
        },
    )
}
