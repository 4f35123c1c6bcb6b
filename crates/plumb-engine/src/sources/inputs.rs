//! What a rendering depends on besides the commits.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use plumb_core::app::{App, Source};
use plumb_core::project::SignatureRule;
use plumb_core::writes::Rendering;
use plumb_crd::Wire as _;
use plumb_crd::application::ApplicationSource;

use crate::apps::context::AppContext;

/// Everything that a rendering depends on besides the commits. While it and the commits stay the same, nothing has to
/// be rendered again.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RenderInputs {
    /// Each source, checked and as the Application has it.
    pub(super) sources: Vec<(Source, ApplicationSource)>,
    /// The revisions that an operation asks for in place of those of the sources.
    pub(super) asked: Vec<String>,
    pub(super) namespace: Option<String>,
    pub(super) instance: String,
    pub(super) project: String,
    /// The signatures that the project requires, source by source.
    pub(super) signatures: Vec<Option<SignatureRule>>,
    pub(super) kube_version: String,
    pub(super) api_versions: Arc<[String]>,
    /// Hash of the scopes of all kinds: a kind whose scope changes changes the keys of its objects.
    pub(super) scopes: u64,
    /// Generation of the settings.
    pub(super) settings: u64,
}

impl RenderInputs {
    /// The inputs of an app with these sources.
    pub(super) fn of(
        app: &App,
        context: &AppContext,
        sources: &[Source],
        written: Vec<ApplicationSource>,
    ) -> Self {
        let signatures = sources.iter().map(|source| context.project.signatures(&source.repo_url).cloned());
        Self {
            sources: sources.iter().cloned().zip(written).collect(),
            asked: Vec::new(),
            namespace: app.destination.namespace.clone(),
            instance: context.instance.clone(),
            project: app.project.clone(),
            signatures: signatures.collect(),
            kube_version: context.cluster.client.catalog().kube_version(),
            api_versions: context.cluster.api_versions(),
            scopes: context.cluster.scopes_hash(),
            settings: context.settings.generation,
        }
    }

    /// Identifies a rendering of these inputs at these revisions. Two renderings with the same origin that differ come
    /// from a chart that never renders the same twice.
    pub(super) fn rendering(&self, revisions: &[String], may_vary: bool) -> Rendering {
        let hash = |add: &dyn Fn(&mut DefaultHasher)| {
            let mut hasher = DefaultHasher::new();
            revisions.hash(&mut hasher);
            add(&mut hasher);
            hasher.finish()
        };
        let origin = |hasher: &mut DefaultHasher| {
            for (_, written) in &self.sources {
                written.write().to_string().hash(hasher);
            }
            (&self.namespace, &self.instance, &self.project).hash(hasher);
            (&self.kube_version, &self.api_versions, self.settings).hash(hasher);
        };
        Rendering { commit: hash(&|_| {}), origin: may_vary.then(|| hash(&origin)) }
    }
}
