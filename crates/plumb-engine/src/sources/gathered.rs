//! The desired state of an app at one moment: whole during a run, compressed between runs.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use plumb_core::desired::{Complete, DesiredSet, Origin, Scopes};
use plumb_core::plan::SourceAtSync;
use plumb_core::project::Project;
use plumb_core::writes::Rendering;
use plumb_render::SourceType;

use super::inputs::RenderInputs;
use crate::apps::compressed_set::CompressedSet;
use crate::apps::followed_commits::TrackedRevision;
use crate::apps::large_apps::Turn;

/// The desired state of an app at one moment.
#[derive(Debug)]
pub(crate) struct Gathered {
    stored: Arc<StoredGathered>,
    pub(crate) desired: Arc<Complete<DesiredSet>>,
    /// The turn of a large app, for as long as its manifests are in memory.
    turn: Option<Turn>,
}

/// The part that stays between two runs.
#[derive(Clone, Debug)]
pub(crate) struct StoredGathered {
    pub(super) inputs: Arc<RenderInputs>,
    /// Resolved revisions, one per source.
    pub(crate) revisions: Vec<String>,
    /// `Helm`, `Kustomize` …, one per source.
    pub(crate) source_types: Vec<String>,
    /// True if rendering the same commit again may give other manifests.
    pub(crate) may_vary: bool,
    /// True if, by the app's path filter, the commits since the rendering do not affect it.
    pub(crate) is_filtered: bool,
    pub(crate) rendering: Rendering,
    pub(crate) set: Arc<CompressedSet>,
    pub(super) rendered_at: Instant,
}

impl StoredGathered {
    /// The revisions that the app tracks, with the commits that they resolved to.
    pub(crate) fn tracked(&self, cluster: &str) -> Vec<TrackedRevision> {
        let sources = self.inputs.sources.iter().zip(&self.revisions);
        sources
            .map(|((_, source), commit)| {
                TrackedRevision::new(cluster, &source.repo_url, &source.target_revision, commit)
            })
            .collect()
    }

    /// True if a plugin printed an object of this origin. Then Git may have a placeholder where the object has a value.
    pub(crate) fn is_from_plugin(&self, origin: Option<&Origin>) -> bool {
        is_from_plugin(&self.source_types, origin)
    }

    /// The sources with the commits that they resolved to.
    pub(crate) fn sources_at_sync(&self) -> Vec<SourceAtSync> {
        let sources = self.inputs.sources.iter().zip(&self.revisions);
        sources
            .map(|((source, written), revision)| SourceAtSync {
                repo_url: source.repo_url.clone(),
                target_revision: written.target_revision.clone(),
                is_chart: source.chart.is_some() || source.repo_url.starts_with("oci://"),
                revision: revision.clone(),
            })
            .collect()
    }

    /// True if the project still permits the sources, with the same signatures. If not, an operation that began under other
    /// rules resolves them again, and is refused where they are not permitted.
    pub(crate) fn is_permitted(&self, project: &Project) -> bool {
        let sources = self.inputs.sources.iter().zip(&self.inputs.signatures);
        self.inputs.project == project.name()
            && sources.into_iter().all(|((source, _), signature)| {
                project.permits_source(&source.repo_url)
                    && project.signatures(&source.repo_url) == signature.as_ref()
            })
    }

    /// Decompresses the set. `None` if it cannot be read back.
    pub(crate) fn load(self: &Arc<Self>) -> Option<Arc<Gathered>> {
        Some(Arc::new(Gathered { stored: Arc::clone(self), desired: self.set.load()?, turn: None }))
    }
}

impl Deref for Gathered {
    type Target = StoredGathered;

    fn deref(&self) -> &StoredGathered {
        &self.stored
    }
}

impl Gathered {
    pub(super) fn new(
        inputs: RenderInputs,
        revisions: Vec<String>,
        source_types: Vec<String>,
        may_vary: bool,
        desired: Arc<Complete<DesiredSet>>,
    ) -> Self {
        let stored = StoredGathered {
            rendering: inputs.rendering(&revisions, may_vary),
            inputs: Arc::new(inputs),
            revisions,
            source_types,
            may_vary,
            is_filtered: false,
            set: Arc::new(CompressedSet::new(&desired)),
            rendered_at: Instant::now(),
        };
        Self { stored: Arc::new(stored), desired, turn: None }
    }

    /// The same with the turn in which it was rendered.
    pub(super) fn during(self, turn: Option<Turn>) -> Self {
        Self { turn: self.turn.or(turn), ..self }
    }

    /// True if every kind still has the scope that the objects were built with.
    pub(crate) fn fits(&self, scopes: &Scopes) -> bool {
        self.desired.get().fits(scopes, self.inputs.namespace.is_some())
    }

    /// True if both are the same rendering.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.stored, &other.stored)
    }

    /// The part that stays until the next run.
    pub(crate) fn stored(&self) -> Arc<StoredGathered> {
        Arc::clone(&self.stored)
    }

    /// The same objects at other revisions that do not affect the app.
    pub(super) fn at(&self, revisions: Vec<String>) -> Self {
        let rendering = self.inputs.rendering(&revisions, self.may_vary);
        let stored =
            StoredGathered { revisions, rendering, is_filtered: true, ..StoredGathered::clone(&self.stored) };
        Self { stored: Arc::new(stored), desired: Arc::clone(&self.desired), turn: None }
    }
}

/// True if a plugin printed an object of this origin. Plugins tell no origin. Kustomize and some charts tell none either:
/// beside them it is not known.
fn is_from_plugin(source_types: &[String], origin: Option<&Origin>) -> bool {
    let is = |tool: &str, wanted: SourceType| tool == wanted.as_str();
    let mut tools = source_types.iter().map(String::as_str).filter(|tool| !tool.is_empty());
    origin.is_none()
        && tools.clone().any(|tool| is(tool, SourceType::Plugin))
        && tools.all(|tool| is(tool, SourceType::Plugin) || is(tool, SourceType::Directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_other_tool_can_have_printed_is_from_a_plugin() {
        let of = |tools: &[&str], origin: Option<&Origin>| {
            let tools: Vec<String> = tools.iter().map(|tool| (*tool).to_owned()).collect();
            is_from_plugin(&tools, origin)
        };
        let origin = Origin { source: 0, file: "a.yaml".to_owned(), line: 1, verbatim: true };
        assert!(of(&["Plugin"], None) && of(&["", "Directory", "Plugin"], None));
        assert!(!of(&["Directory", "Plugin"], Some(&origin)));
        assert!(!of(&["Kustomize", "Plugin"], None) && !of(&["Helm", "Plugin"], None));
        assert!(!of(&["Kustomize"], None) && !of(&["Directory"], None) && !of(&[], None));
    }
}
