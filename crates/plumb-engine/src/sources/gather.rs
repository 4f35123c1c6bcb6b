//! From an app's sources to what Git asks for: resolve, read, render, build the desired set.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use plumb_core::app::{App, Operation, Source};
use plumb_core::desired::{
    Complete, DesiredContext, DesiredProblem, DesiredSet, Origin, RenderedManifest, build,
};
use plumb_core::project::{SignatureRule, shown_repo_url};
use plumb_core::source::SourceFiles;
use plumb_crd::application::{self as wire, ApplicationSource};
use plumb_crd::{Application, source_with_overrides, written_operation_sources, written_sources};
use plumb_git::{GitOptions, Mirrors, RequestObserver};
use plumb_render::{
    AppFacts, Charts, ClusterFacts, Freshness, Overrides, RenderRequest, Renderer, RendererConfig, SourceType,
};
use tokio::sync::Semaphore;

use super::path_filter;
use super::resolve::{Reach, Resolved};
use super::slow_servers::{Answered, Failure, Late, NotGathered, Patience};
use crate::apps::compressed_set::Shelf;
use crate::apps::context::Ground;
use crate::apps::followed_commits::Followed;
use crate::config::settings::StartSettings;
use crate::metrics::counters::Metrics;
use crate::queue::Look;

/// What Git asks for at one moment.
#[derive(Debug)]
pub(crate) struct Gathered {
    kept: Arc<Kept>,
    /// Everything that is asked for.
    pub(crate) desired: Arc<Complete<DesiredSet>>,
    /// A hash of the commits and of everything else that a rendering depends on.
    origin: OnceLock<u64>,
}

/// What stays of it between two runs.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// What it was gathered from; if this is the same, nothing needs to be done again.
    basis: Arc<Basis>,
    /// Resolved, one per source.
    pub(crate) revisions: Vec<String>,
    /// `Helm`, `Kustomize` …, one per source.
    pub(crate) source_types: Vec<String>,
    /// Could the same commit render differently a second time?
    pub(crate) may_vary: bool,
    /// Did the app's path filter say that the commits since the rendering are not about it?
    pub(crate) is_filtered: bool,
    /// Everything that is asked for, small.
    pub(crate) shelf: Arc<Shelf>,
    rendered_at: Instant,
}

impl Kept {
    /// What was resolved, source by source.
    pub(crate) fn followed(&self, cluster: &str) -> Vec<Followed> {
        let sources = self.basis.sources.iter().zip(&self.revisions);
        sources
            .map(|((_, source), commit)| {
                Followed::new(cluster, &source.repo_url, &source.target_revision, commit)
            })
            .collect()
    }

    /// For the next run.
    pub(crate) fn wake(self: &Arc<Self>) -> Option<Arc<Gathered>> {
        let desired = self.shelf.set()?;
        Some(Arc::new(Gathered { kept: Arc::clone(self), desired, origin: OnceLock::new() }))
    }
}

impl Deref for Gathered {
    type Target = Kept;

    fn deref(&self) -> &Kept {
        &self.kept
    }
}

/// What templates print of the time changes with the second. Two renderings within one prove nothing.
const CLOCK_STEP: Duration = Duration::from_secs(1);

/// Everything that a rendering depends on besides the commits.
#[derive(Clone, Debug, PartialEq)]
struct Basis {
    /// As they are understood, and as they are written.
    sources: Vec<(Source, ApplicationSource)>,
    namespace: Option<String>,
    instance: String,
    project: String,
    /// What the project asks the commits to prove.
    signatures: Vec<Option<SignatureRule>>,
    kube_version: String,
    api_versions: Arc<[String]>,
    settings: u64,
}

/// When, and how far, Git is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glance {
    /// How far.
    pub(crate) look: Look,
    /// What servers were asked after this moment need not be asked again.
    pub(crate) since: Instant,
    /// Are others waiting who would rather go on?
    pub(crate) patience: Patience,
}

/// Repositories and renderers, for all apps.
pub(crate) struct Sources {
    pub(super) mirrors: Mirrors,
    pub(super) charts: Charts,
    pub(super) renderer: Arc<Renderer>,
    /// How many renderings may run.
    at_once: Semaphore,
    /// Servers that somebody waits for.
    pub(super) late: Late,
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
        mut renderer: RendererConfig,
        settings: StartSettings,
        metrics: &Arc<Metrics>,
    ) -> std::io::Result<Self> {
        let metrics = Arc::clone(metrics);
        let observer = RequestObserver::new(move |request| metrics.git_request(request));
        let mut options = GitOptions { observer: Some(observer), ..GitOptions::default() };
        set(&mut options.limits.timeout, settings.git_timeout);
        set(&mut renderer.limits.time, settings.render_timeout);
        set(&mut renderer.limits.directory_bytes, settings.directory_bytes);
        Ok(Self {
            mirrors: Mirrors::new(directory.join("git"), options)?,
            charts: Charts::new(directory.join("charts"), renderer.tools.clone(), renderer.limits.clone())?,
            renderer: Arc::new(Renderer::new(renderer)?),
            at_once: Semaphore::new(settings.render_parallelism.unwrap_or(Semaphore::MAX_PERMITS)),
            late: Late::default(),
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
        self: &Arc<Self>,
        application: &Application,
        app: &App,
        ground: &Ground,
        glance: Glance,
        known: Option<&Arc<Gathered>>,
    ) -> Result<Arc<Gathered>, NotGathered> {
        let basis = basis(app, ground, &app.sources, written_sources(&application.spec));
        let known = known.filter(|known| *known.basis == basis);
        if let Some(known) = known.filter(|_| glance.look == Look::Live) {
            return Ok(Arc::clone(known));
        }
        let resolved = self.resolve_or_give_way(ground, &basis.sources, glance).await?;
        if let Some(known) = known.filter(|_| glance.look != Look::Hard) {
            if known.revisions.iter().eq(resolved.iter().map(|source| &source.revision)) {
                return Ok(Arc::clone(known));
            }
            if path_filter::nothing_concerns(app, &known.revisions, &resolved) {
                return Ok(Arc::new(known.moved_to(&resolved)));
            }
        }
        // A hard look also shows whether the same commit still renders the same.
        let freshness = if glance.look == Look::Hard { Freshness::Renewed } else { Freshness::Cached };
        let built = self.build(app, ground, basis, resolved, freshness, glance.since).await;
        built.map(Arc::new).map_err(NotGathered::Failed)
    }

    /// Would gathering again give what is kept, without rendering anything?
    pub(crate) async fn is_current(
        self: &Arc<Self>,
        spec: &wire::ApplicationSpec,
        app: &App,
        ground: &Ground,
        glance: Glance,
        kept: &Kept,
    ) -> Result<bool, Answered> {
        let basis = basis(app, ground, &app.sources, written_sources(spec));
        if *kept.basis != basis {
            return Ok(false);
        }
        match self.resolve_or_give_way(ground, &basis.sources, glance).await {
            Ok(resolved) => Ok(kept.revisions.iter().eq(resolved.iter().map(|source| &source.revision))),
            Err(NotGathered::Failed(_)) => Ok(false),
            Err(NotGathered::Waiting(answered)) => Err(answered),
        }
    }

    /// What an operation syncs that is not what the app shows: another revision, other sources, objects that
    /// came with the request.
    pub(crate) async fn gather_for_operation(
        &self,
        application: &Application,
        app: &App,
        ground: &Ground,
        (asked, written): (&Operation, &wire::Operation),
        revisions: &[String],
    ) -> Result<Arc<Gathered>, String> {
        let sources = asked.sources.as_ref().unwrap_or(&app.sources);
        let written =
            written_operation_sources(written).unwrap_or_else(|| written_sources(&application.spec));
        let basis = basis(app, ground, sources, written);
        if let Some(texts) = &asked.manifests {
            let signed = sources.iter().find(|source| ground.project.signatures(&source.repo_url).is_some());
            if let Some(source) = signed {
                return Err(format!(
                    "the project asks for signed commits of {}: objects that come with the request are refused",
                    shown_repo_url(&source.repo_url)
                ));
            }
            let rendered = texts
                .iter()
                .map(|text| serde_json::from_str(text).map(|value| RenderedManifest { value, origin: None }))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| format!("a manifest of the operation is no JSON: {error}"))?;
            let desired = complete(desired_set(rendered, ground, app)).map_err(|failure| failure.message)?;
            return Ok(Arc::new(Gathered::new(basis, revisions.to_vec(), Vec::new(), false, desired)));
        }
        let now = Instant::now();
        let reach = Reach::of(ground);
        let resolved = self.resolve(&reach, &basis.sources, revisions, Look::GitNow, now).await?;
        let built = self.build(app, ground, basis, resolved, Freshness::Cached, now).await;
        built.map(Arc::new).map_err(|failure| failure.message)
    }

    /// What the app's sources ask for at these commits.
    pub(crate) async fn gather_at(
        &self,
        application: &Application,
        app: &App,
        ground: &Ground,
        revisions: &[String],
    ) -> Result<Gathered, String> {
        let basis = basis(app, ground, &app.sources, written_sources(&application.spec));
        let now = Instant::now();
        let reach = Reach::of(ground);
        let resolved = self.resolve(&reach, &basis.sources, revisions, Look::Live, now).await?;
        let built = self.build(app, ground, basis, resolved, Freshness::Cached, now).await;
        built.map_err(|failure| failure.message)
    }

    /// The same commits rendered once more, in other processes, at another time and with another date: what is
    /// printed of the day would else be the same until midnight. A chart that fails on that date is rendered today.
    pub(crate) async fn render_again(
        &self,
        app: &App,
        ground: &Ground,
        gathered: &Gathered,
    ) -> Option<Arc<Complete<DesiredSet>>> {
        tokio::time::sleep(CLOCK_STEP.saturating_sub(gathered.rendered_at.elapsed())).await;
        let now = Instant::now();
        let reach = Reach::of(ground);
        for freshness in [Freshness::AnotherDay, Freshness::Fresh] {
            let basis = Basis::clone(&gathered.basis);
            let resolved =
                self.resolve(&reach, &basis.sources, &gathered.revisions, Look::Live, now).await.ok()?;
            if let Ok(again) = self.build(app, ground, basis, resolved, freshness, now).await {
                return Some(again.desired);
            }
        }
        None
    }

    async fn build(
        &self,
        app: &App,
        ground: &Ground,
        basis: Basis,
        resolved: Vec<Resolved>,
        freshness: Freshness,
        since: Instant,
    ) -> Result<Gathered, Failure> {
        let mut files = Vec::with_capacity(resolved.len());
        for source in &resolved {
            files.push(self.files(ground, source).await?);
        }
        let refs: BTreeMap<String, Arc<dyn SourceFiles>> = resolved
            .iter()
            .zip(&files)
            .filter_map(|(source, files)| Some((source.source.ref_name.clone()?, Arc::clone(files))))
            .collect();
        let mut manifests = Vec::new();
        let mut types = Vec::new();
        let mut may_vary = false;
        for (index, (source, files)) in resolved.iter().zip(files).enumerate() {
            if source.is_reference() {
                types.push(String::new());
                continue;
            }
            let mut request = RenderRequest {
                source: source.source.clone(),
                index,
                files,
                revision: source.revision.clone(),
                refs: refs.clone(),
                chart_dependencies: BTreeMap::new(),
                overrides: Some(overrides(&source.written, app.multi_source)),
                app: AppFacts {
                    name: app.id.name.clone(),
                    instance: ground.instance.clone(),
                    project: app.project.clone(),
                    namespace: app.destination.namespace.clone().unwrap_or_default(),
                },
                cluster: ClusterFacts {
                    kube_version: Some(basis.kube_version.clone()),
                    api_versions: Arc::clone(&basis.api_versions),
                },
                settings: Arc::clone(&ground.settings.render),
            };
            request.chart_dependencies = self.dependencies(ground, &request, freshness, since).await?;
            let renderer = Arc::clone(&self.renderer);
            // Never closed, so there always is a place in the end.
            let place = self.at_once.acquire().await.ok();
            let output = tokio::task::spawn_blocking(move || renderer.render(&request, freshness))
                .await
                .map_err(|error| format!("rendering was cut off: {error}"))?
                .map_err(|error| error.full_message())?;
            drop(place);
            let count = if output.cached { &self.cached } else { &self.fresh };
            count.fetch_add(1, Ordering::Relaxed);
            may_vary |= output.source_type != SourceType::Directory;
            types.push(output.source_type.as_str().to_owned());
            manifests.extend(output.manifests);
        }
        let desired = complete(desired_set(manifests, ground, app))?;
        let revisions = resolved.into_iter().map(|source| source.revision).collect();
        Ok(Gathered::new(basis, revisions, types, may_vary, desired))
    }
}

impl Gathered {
    fn new(
        basis: Basis,
        revisions: Vec<String>,
        source_types: Vec<String>,
        may_vary: bool,
        desired: Arc<Complete<DesiredSet>>,
    ) -> Self {
        let shelf = Arc::new(Shelf::new(&desired));
        let rendered_at = Instant::now();
        let is_filtered = false;
        let basis = Arc::new(basis);
        let kept = Kept { basis, revisions, source_types, may_vary, is_filtered, shelf, rendered_at };
        Self { kept: Arc::new(kept), desired, origin: OnceLock::new() }
    }

    /// What stays until the next run.
    pub(crate) fn kept(&self) -> Arc<Kept> {
        Arc::clone(&self.kept)
    }

    /// Two renderings with the same origin that differ tell of a chart that never renders the same twice.
    pub(crate) fn origin(&self) -> u64 {
        *self.origin.get_or_init(|| {
            let mut hasher = DefaultHasher::new();
            format!("{:?} {:?}", self.revisions, self.basis).hash(&mut hasher);
            hasher.finish()
        })
    }

    /// The commits, in short.
    pub(crate) fn commit(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.revisions.hash(&mut hasher);
        hasher.finish()
    }

    /// The same objects at other commits, none of which concerns the app.
    fn moved_to(&self, resolved: &[Resolved]) -> Self {
        let revisions = resolved.iter().map(|source| source.revision.clone()).collect();
        let kept = Kept { revisions, is_filtered: true, ..Kept::clone(self) };
        Self { kept: Arc::new(kept), desired: Arc::clone(&self.desired), origin: OnceLock::new() }
    }
}

/// Takes what somebody set in place of the default.
fn set<T>(value: &mut T, asked: Option<T>) {
    if let Some(asked) = asked {
        *value = asked;
    }
}

/// What `.argocd-source.yaml` files are merged over.
pub(crate) fn overrides(written: &ApplicationSource, multi_source: bool) -> Overrides {
    let written = written.clone();
    Arc::new(move |patches| {
        source_with_overrides(&written, patches, multi_source).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            problems.join("; ")
        })
    })
}

fn basis(app: &App, ground: &Ground, sources: &[Source], written: Vec<ApplicationSource>) -> Basis {
    let catalog = ground.cluster.client.catalog();
    Basis {
        sources: sources.iter().cloned().zip(written).collect(),
        namespace: app.destination.namespace.clone(),
        instance: ground.instance.clone(),
        project: app.project.clone(),
        signatures: sources
            .iter()
            .map(|source| ground.project.signatures(&source.repo_url).cloned())
            .collect(),
        kube_version: catalog.kube_version(),
        api_versions: ground.cluster.api_versions(),
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

/// A set that lacks something that Git asks for must not lead to a deletion, so it is no set at all.
fn complete(desired: DesiredSet) -> Result<Arc<Complete<DesiredSet>>, Failure> {
    if desired.is_whole() {
        return Ok(Arc::new(Complete::rendered_without_error(desired)));
    }
    let mut problems = desired.problems.iter().filter(|problem| problem.loses_an_object());
    let message = problems.clone().map(lost).collect::<Vec<_>>().join("; ");
    let only_places = problems.all(|problem| matches!(problem, DesiredProblem::NamespaceMissing { .. }));
    Err(if only_places { Failure::of_spec(message) } else { message.into() })
}

fn lost(problem: &DesiredProblem) -> String {
    let place = |origin: &Option<Origin>| {
        origin.as_ref().map(|origin| format!(" at {}:{}", origin.file, origin.line)).unwrap_or_default()
    };
    match problem {
        DesiredProblem::NameMissing { kind, origin } => format!("a {kind}{} has no name", place(origin)),
        DesiredProblem::NotAnObject { reason, origin } => {
            format!("a document{} is no object: {reason}", place(origin))
        }
        DesiredProblem::NamespaceMissing { key } => format!("Namespace for {key} is missing."),
        // None of these loses anything.
        DesiredProblem::Repeated { key, .. } | DesiredProblem::Excluded { key } => key.to_string(),
        DesiredProblem::NotText { field, .. } => field.to_string(),
    }
}
