//! From an app's sources to what Git asks for: resolve, read, render, build the desired set.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plumb_core::app::{App, Operation, Source};
use plumb_core::desired::{Complete, DesiredContext, DesiredSet, RenderedManifest, build};
use plumb_core::source::SourceFiles;
use plumb_git::{GitOptions, Mirrors, RepoAccess, RepoUrl, RequestObserver, RevisionSpec};
use plumb_render::{AppFacts, ClusterFacts, Freshness, RenderRequest, Renderer, RendererConfig, SourceType};

use crate::metrics::Metrics;
use crate::project::Ground;
use crate::queue::Look;

/// What Git asks for at one moment.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// What it was gathered from; if this is the same, nothing needs to be done again.
    basis: Basis,
    /// Resolved, one per source.
    pub(crate) revisions: Vec<String>,
    /// `Helm`, `Kustomize` …, one per source.
    pub(crate) source_types: Vec<String>,
    /// Could the same commit render differently a second time?
    pub(crate) may_vary: bool,
    /// Everything that is asked for.
    pub(crate) desired: Arc<Complete<DesiredSet>>,
}

/// Everything that a rendering depends on besides the commits.
#[derive(Clone, Debug, PartialEq)]
struct Basis {
    sources: Vec<Source>,
    namespace: Option<String>,
    instance: String,
    project: String,
    kube_version: String,
    api_versions: Vec<String>,
    settings: u64,
}

/// Repositories and renderers, for all apps.
pub(crate) struct Sources {
    mirrors: Mirrors,
    renderer: Arc<Renderer>,
    cached: AtomicU64,
    fresh: AtomicU64,
}

/// How often something was rendered, and how often it was known already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RenderCounts {
    pub(crate) cached: u64,
    pub(crate) fresh: u64,
}

impl Sources {
    /// Uses, or makes, the cache below `directory`.
    pub(crate) fn new(
        directory: &Path,
        renderer: RendererConfig,
        metrics: &Arc<Metrics>,
    ) -> std::io::Result<Self> {
        let metrics = Arc::clone(metrics);
        let observer = RequestObserver::new(move |request| metrics.git_request(request));
        let options = GitOptions { observer: Some(observer), ..GitOptions::default() };
        Ok(Self {
            mirrors: Mirrors::new(directory.join("git"), options)?,
            renderer: Arc::new(Renderer::new(renderer)?),
            cached: AtomicU64::default(),
            fresh: AtomicU64::default(),
        })
    }

    /// How often something was rendered since the start.
    pub(crate) fn render_counts(&self) -> RenderCounts {
        RenderCounts {
            cached: self.cached.load(Ordering::Relaxed),
            fresh: self.fresh.load(Ordering::Relaxed),
        }
    }

    /// What the app's own sources ask for. `known` is what was gathered before.
    pub(crate) async fn gather(
        &self,
        app: &App,
        ground: &Ground,
        look: Look,
        known: Option<&Arc<Gathered>>,
    ) -> Result<Arc<Gathered>, String> {
        let basis = basis(app, ground, &app.sources);
        if let Some(known) = known.filter(|known| look == Look::Live && known.basis == basis) {
            return Ok(Arc::clone(known));
        }
        let resolved = self.resolve(ground, &app.sources, &[], look).await?;
        let revisions: Vec<String> = resolved.iter().map(|source| source.revision.clone()).collect();
        if let Some(known) =
            known.filter(|known| look != Look::Hard && known.basis == basis && known.revisions == revisions)
        {
            return Ok(Arc::clone(known));
        }
        // A hard look also shows whether the same commit still renders the same.
        let freshness = if look == Look::Hard { Freshness::Fresh } else { Freshness::Cached };
        self.build(app, ground, basis, resolved, freshness).await.map(Arc::new)
    }

    /// What an operation syncs that is not what the app shows: another revision, other sources, objects that
    /// came with the request.
    pub(crate) async fn gather_for_operation(
        &self,
        app: &App,
        ground: &Ground,
        asked: &Operation,
        revisions: &[String],
    ) -> Result<Arc<Gathered>, String> {
        let sources = asked.sources.as_ref().unwrap_or(&app.sources);
        let basis = basis(app, ground, sources);
        if let Some(texts) = &asked.manifests {
            let rendered = texts
                .iter()
                .map(|text| serde_json::from_str(text).map(|value| RenderedManifest { value, origin: None }))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| format!("a manifest of the operation is no JSON: {error}"))?;
            let desired = Arc::new(Complete::rendered_without_error(desired_set(rendered, ground, app)));
            let revisions = revisions.to_vec();
            return Ok(Arc::new(Gathered {
                basis,
                revisions,
                source_types: Vec::new(),
                may_vary: false,
                desired,
            }));
        }
        let resolved = self.resolve(ground, sources, revisions, Look::GitNow).await?;
        self.build(app, ground, basis, resolved, Freshness::Cached).await.map(Arc::new)
    }

    /// The same commits rendered once more, in other processes.
    pub(crate) async fn render_again(
        &self,
        app: &App,
        ground: &Ground,
        gathered: &Gathered,
    ) -> Option<Arc<Complete<DesiredSet>>> {
        let sources = &gathered.basis.sources;
        let resolved = self.resolve(ground, sources, &gathered.revisions, Look::Live).await.ok()?;
        let again = self.build(app, ground, gathered.basis.clone(), resolved, Freshness::Fresh).await.ok()?;
        Some(again.desired)
    }

    /// The commit and the files of each source. `pinned` revisions win over what the sources say.
    async fn resolve(
        &self,
        ground: &Ground,
        sources: &[Source],
        pinned: &[String],
        look: Look,
    ) -> Result<Vec<Resolved>, String> {
        let mut resolved = Vec::with_capacity(sources.len());
        for (index, source) in sources.iter().enumerate() {
            let pinned = pinned.get(index).filter(|revision| !revision.is_empty());
            resolved.push(self.resolve_one(ground, source, pinned, look).await?);
        }
        Ok(resolved)
    }

    async fn resolve_one(
        &self,
        ground: &Ground,
        source: &Source,
        pinned: Option<&String>,
        look: Look,
    ) -> Result<Resolved, String> {
        if source.chart.is_some() || source.repo_url.starts_with("oci://") {
            return Err(format!("charts from repositories are not supported yet: {}", source.repo_url));
        }
        let url = RepoUrl::parse(&source.repo_url).map_err(|error| chain(&error))?;
        if let Some(reason) = ground.settings.broken_repository(&source.repo_url) {
            return Err(format!("repository {}: {reason}", source.repo_url));
        }
        let access: RepoAccess = ground.access(&source.repo_url);
        let spec = match pinned {
            Some(revision) => RevisionSpec::new(revision.clone()),
            None => RevisionSpec::of(source),
        };
        // A commit never changes: only names are asked for anew.
        let is_commit = pinned.is_some_and(|revision| revision.len() >= 40);
        if look >= Look::Git && !is_commit {
            self.mirrors.fetch(&url, &access).await.map_err(|error| chain(&error))?;
        }
        let (mirror, commit) =
            self.mirrors.resolve(&url, &access, &spec).await.map_err(|error| chain(&error))?;
        let files = mirror.tree(&commit).map_err(|error| chain(&error))?;
        Ok(Resolved { source: source.clone(), revision: commit.to_string(), files: Arc::new(files) })
    }

    async fn build(
        &self,
        app: &App,
        ground: &Ground,
        basis: Basis,
        resolved: Vec<Resolved>,
        freshness: Freshness,
    ) -> Result<Gathered, String> {
        let refs: BTreeMap<String, Arc<dyn SourceFiles>> = resolved
            .iter()
            .filter_map(|source| Some((source.source.ref_name.clone()?, Arc::clone(&source.files))))
            .collect();
        let mut manifests = Vec::new();
        let mut types = Vec::new();
        let mut may_vary = false;
        for (index, source) in resolved.iter().enumerate() {
            // Only referred to: it renders nothing.
            if source.source.path.is_none()
                && source.source.chart.is_none()
                && source.source.ref_name.is_some()
            {
                types.push(String::new());
                continue;
            }
            let request = RenderRequest {
                source: source.source.clone(),
                index,
                files: Arc::clone(&source.files),
                revision: source.revision.clone(),
                refs: refs.clone(),
                overrides: None,
                app: AppFacts {
                    name: app.id.name.clone(),
                    instance: ground.instance.clone(),
                    project: app.project.clone(),
                    namespace: app.destination.namespace.clone().unwrap_or_default(),
                },
                cluster: ClusterFacts {
                    kube_version: Some(basis.kube_version.clone()),
                    api_versions: basis.api_versions.clone(),
                },
                settings: Arc::clone(&ground.settings.render),
            };
            let renderer = Arc::clone(&self.renderer);
            let output = tokio::task::spawn_blocking(move || renderer.render(&request, freshness))
                .await
                .map_err(|error| format!("rendering was cut off: {error}"))?
                .map_err(|error| error.full_message())?;
            let count = if output.cached { &self.cached } else { &self.fresh };
            count.fetch_add(1, Ordering::Relaxed);
            may_vary |= output.source_type != SourceType::Directory;
            types.push(output.source_type.as_str().to_owned());
            manifests.extend(output.manifests);
        }
        let desired = Arc::new(Complete::rendered_without_error(desired_set(manifests, ground, app)));
        let revisions = resolved.into_iter().map(|source| source.revision).collect();
        Ok(Gathered { basis, revisions, source_types: types, may_vary, desired })
    }
}

/// One source with its commit and files.
struct Resolved {
    source: Source,
    revision: String,
    files: Arc<dyn SourceFiles>,
}

fn basis(app: &App, ground: &Ground, sources: &[Source]) -> Basis {
    let catalog = ground.cluster.client.catalog();
    Basis {
        sources: sources.to_vec(),
        namespace: app.destination.namespace.clone(),
        instance: ground.instance.clone(),
        project: app.project.clone(),
        kube_version: catalog.kube_version(),
        api_versions: catalog.api_versions(),
        settings: ground.settings.generation,
    }
}

fn desired_set(manifests: Vec<RenderedManifest>, ground: &Ground, app: &App) -> DesiredSet {
    let scopes = ground.cluster.scopes();
    build(
        manifests,
        &DesiredContext {
            app: &ground.instance,
            destination_namespace: app.destination.namespace.as_deref(),
            destination_server: &ground.cluster.server,
            scopes: &scopes,
            tracking: &ground.settings.tracking,
            filter: &ground.settings.filter,
        },
    )
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
