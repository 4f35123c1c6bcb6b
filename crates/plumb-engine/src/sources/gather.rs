//! From an app's sources to the desired set: resolve, read, render, build.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plumb_core::app::{App, Operation};
use plumb_core::desired::{Complete, DesiredContext, DesiredSet, RenderedManifest, build};
use plumb_core::project::shown_repo_url;
use plumb_core::source::{AddressPolicy, SourceFiles};
use plumb_crd::application::{self as wire, ApplicationSource};
use plumb_crd::{Application, source_with_overrides, written_operation_sources, written_sources};
use plumb_git::{GitOptions, Mirrors, RequestObserver};
use plumb_render::{
    AppFacts, Charts, ClusterFacts, Freshness, Overrides, RenderRequest, Rendered, Renderer, RendererConfig,
    SourceType,
};
use tokio::sync::Semaphore;

use super::error::SourceError;
use super::gathered::{Gathered, StoredGathered};
use super::inputs::RenderInputs;
use super::path_filter;
use super::resolve::{Access, Resolved};
use super::slow_servers::{Answered, NotGathered, Patience, SlowServers};
use crate::apps::context::AppContext;
use crate::config::settings::StartSettings;
use crate::metrics::counters::Metrics;
use crate::queue::{RefreshDepth, Trigger};

/// Templates may print the time in seconds, so two renderings within one second may be equal by chance.
const CLOCK_STEP: Duration = Duration::from_secs(1);

/// Whether Git and chart servers are asked, and how long a run waits for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchPolicy {
    pub(crate) depth: RefreshDepth,
    /// A server that answered after this moment need not be asked again.
    pub(crate) since: Instant,
    pub(crate) patience: Patience,
}

impl FetchPolicy {
    /// The policy for one trigger. A run yields to other apps once; after that it waits for the servers.
    pub(crate) fn of(trigger: &Trigger) -> Self {
        let patience = if trigger.gave_way { Patience::Endless } else { Patience::Short };
        Self { depth: trigger.depth, since: trigger.at, patience }
    }
}

/// Repositories and renderers, for all apps.
pub(crate) struct Sources {
    pub(super) mirrors: Mirrors,
    pub(super) charts: Charts,
    pub(super) renderer: Arc<Renderer>,
    /// Which servers may be connected to, without the exceptions of the settings.
    pub(super) addresses: AddressPolicy,
    /// Limits how many renderings run at the same time.
    render_slots: Semaphore,
    /// Servers that runs wait for.
    pub(super) slow_servers: SlowServers,
    cached: AtomicU64,
    fresh: AtomicU64,
}

/// How many renderings came from the cache, and how many ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RenderCounts {
    pub(crate) cached: u64,
    pub(crate) fresh: u64,
}

impl Sources {
    /// Uses the cache below `directory`, and creates it if it does not exist. Unless the settings say otherwise, at most
    /// half as many renderings as workers run at the same time.
    pub(crate) fn new(
        directory: &Path,
        mut renderer: RendererConfig,
        settings: StartSettings,
        n_workers: usize,
        mut git: GitOptions,
        addresses: AddressPolicy,
        metrics: &Arc<Metrics>,
    ) -> std::io::Result<Self> {
        let metrics = Arc::clone(metrics);
        git.observer = Some(RequestObserver::new(move |request| metrics.git_request(request)));
        set(&mut git.limits.timeout, settings.git_timeout);
        set(&mut renderer.limits.time, settings.render_timeout);
        set(&mut renderer.limits.directory_bytes, settings.directory_bytes);
        Ok(Self {
            mirrors: Mirrors::new(directory.join("git"), git)?,
            charts: Charts::new(directory.join("charts"), renderer.container_limits())?,
            renderer: Arc::new(Renderer::new(renderer)?),
            render_slots: Semaphore::new(settings.render_parallelism.unwrap_or(n_workers / 2).max(1)),
            addresses,
            slow_servers: SlowServers::default(),
            cached: AtomicU64::default(),
            fresh: AtomicU64::default(),
        })
    }

    /// The number of renderings since the start.
    pub(crate) fn render_counts(&self) -> RenderCounts {
        RenderCounts {
            cached: self.cached.load(Ordering::Relaxed),
            fresh: self.fresh.load(Ordering::Relaxed),
        }
    }

    /// The desired state from the app's own sources. `previous` was gathered before.
    pub(crate) async fn gather(
        self: &Arc<Self>,
        application: &Application,
        app: &App,
        context: &AppContext,
        policy: FetchPolicy,
        previous: Option<&Arc<Gathered>>,
    ) -> Result<Arc<Gathered>, NotGathered> {
        let inputs = RenderInputs::of(app, context, &app.sources, written_sources(&application.spec));
        let previous = previous.filter(|previous| *previous.inputs == inputs);
        if let Some(previous) = previous.filter(|_| policy.depth == RefreshDepth::Live) {
            return Ok(Arc::clone(previous));
        }
        let resolved = self.resolve_or_give_way(context, &inputs, policy).await?;
        if let Some(previous) = previous.filter(|_| policy.depth != RefreshDepth::Hard) {
            if previous.revisions.iter().eq(resolved.iter().map(|source| &source.revision)) {
                return Ok(Arc::clone(previous));
            }
            if path_filter::is_unaffected(app, &previous.revisions, &resolved) {
                return Ok(Arc::new(
                    previous.at(resolved.iter().map(|source| source.revision.clone()).collect()),
                ));
            }
        }
        // A hard refresh also shows whether the same commit still renders the same.
        let freshness =
            if policy.depth == RefreshDepth::Hard { Freshness::Renewed } else { Freshness::Cached };
        if policy.patience == Patience::Endless || policy.depth < RefreshDepth::Git {
            let built = self.build(app, context, inputs, resolved, freshness, policy.since).await;
            return built.map(Arc::new).map_err(NotGathered::Failed);
        }
        let (this, app, context) = (Arc::clone(self), app.clone(), context.clone());
        let build =
            async move { this.build(&app, &context, inputs, resolved, freshness, policy.since).await };
        self.slow_servers.wait_for(BTreeSet::new(), build).await.map(Arc::new)
    }

    /// True if gathering again would give what is stored. Renders nothing.
    pub(crate) async fn is_current(
        self: &Arc<Self>,
        spec: &wire::ApplicationSpec,
        app: &App,
        context: &AppContext,
        policy: FetchPolicy,
        stored: &StoredGathered,
    ) -> Result<bool, Answered> {
        let inputs = RenderInputs::of(app, context, &app.sources, written_sources(spec));
        if *stored.inputs != inputs {
            return Ok(false);
        }
        match self.resolve_or_give_way(context, &inputs, policy).await {
            Ok(resolved) => Ok(stored.revisions.iter().eq(resolved.iter().map(|source| &source.revision))),
            Err(NotGathered::Failed(_)) => Ok(false),
            Err(NotGathered::Waiting(answered)) => Err(answered),
        }
    }

    /// The desired state for an operation that does not sync the app's own sources: another revision, other
    /// sources, or manifests in the request.
    pub(crate) async fn gather_for_operation(
        &self,
        application: &Application,
        app: &App,
        context: &AppContext,
        (operation, written): (&Operation, &wire::Operation),
        revisions: &[String],
    ) -> Result<Arc<Gathered>, SourceError> {
        let sources = operation.sources.as_ref().unwrap_or(&app.sources);
        let written =
            written_operation_sources(written).unwrap_or_else(|| written_sources(&application.spec));
        let mut inputs = RenderInputs::of(app, context, sources, written);
        inputs.asked.clone_from(&operation.revisions);
        if let Some(texts) = &operation.manifests {
            let mut all = sources.iter().chain(&app.sources);
            let signed = all.find(|source| context.project.signatures(&source.repo_url).is_some());
            if let Some(source) = signed {
                return Err(SourceError::NotAllowed(format!(
                    "cannot sync manifests of the request: the project requires signed commits of {}",
                    shown_repo_url(&source.repo_url)
                )));
            }
            let rendered = texts
                .iter()
                .map(|text| serde_json::from_str(text).map(|value| RenderedManifest { value, origin: None }))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| {
                    SourceError::Manifests(format!("cannot read a manifest of the operation: {error}"))
                })?;
            let desired = complete(desired_set(rendered, context, app))?;
            return Ok(Arc::new(Gathered::new(inputs, revisions.to_vec(), Vec::new(), false, desired)));
        }
        let now = Instant::now();
        let app_access = Access::of(context);
        let resolved = self.resolve(&app_access, &inputs, revisions, RefreshDepth::GitNow, now).await?;
        let built = self.build(app, context, inputs, resolved, Freshness::Cached, now).await;
        built.map(Arc::new)
    }

    /// The desired state from the app's sources at these commits.
    pub(crate) async fn gather_at(
        &self,
        application: &Application,
        app: &App,
        context: &AppContext,
        revisions: &[String],
    ) -> Result<Gathered, SourceError> {
        let inputs = RenderInputs::of(app, context, &app.sources, written_sources(&application.spec));
        let now = Instant::now();
        let app_access = Access::of(context);
        let resolved = self.resolve(&app_access, &inputs, revisions, RefreshDepth::Live, now).await?;
        self.build(app, context, inputs, resolved, Freshness::Cached, now).await
    }

    /// Renders the same commits once more, in new processes, at another time and with another date: output
    /// that contains the date would otherwise stay the same until midnight. A chart that fails on that date
    /// is rendered with today's date.
    pub(crate) async fn render_again(
        &self,
        app: &App,
        context: &AppContext,
        gathered: &Gathered,
    ) -> Option<Arc<Complete<DesiredSet>>> {
        tokio::time::sleep(CLOCK_STEP.saturating_sub(gathered.rendered_at.elapsed())).await;
        let now = Instant::now();
        let app_access = Access::of(context);
        for freshness in [Freshness::AnotherDay, Freshness::Fresh] {
            let inputs = RenderInputs::clone(&gathered.inputs);
            let resolved = self
                .resolve(&app_access, &inputs, &gathered.revisions, RefreshDepth::Live, now)
                .await
                .ok()?;
            if let Ok(again) = self.build(app, context, inputs, resolved, freshness, now).await {
                return Some(again.desired);
            }
        }
        None
    }

    /// Renders one source on a thread of its own.
    async fn render(&self, request: RenderRequest, freshness: Freshness) -> Result<Rendered, SourceError> {
        let renderer = Arc::clone(&self.renderer);
        // The semaphore is never closed, so there is a permit in the end.
        let _permit = self.render_slots.acquire().await.ok();
        let output = tokio::task::spawn_blocking(move || renderer.render(&request, freshness)).await;
        Ok(output.map_err(|source| SourceError::Aborted { what: "rendering", source })??)
    }

    async fn build(
        &self,
        app: &App,
        context: &AppContext,
        inputs: RenderInputs,
        resolved: Vec<Resolved>,
        freshness: Freshness,
        since: Instant,
    ) -> Result<Gathered, SourceError> {
        let mut files = Vec::with_capacity(resolved.len());
        for source in &resolved {
            files.push(self.files(context, source).await?);
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
                app: app_facts(app, context),
                cluster: ClusterFacts {
                    kube_version: Some(inputs.kube_version.clone()),
                    api_versions: Arc::clone(&inputs.api_versions),
                },
                settings: Arc::clone(&context.settings.render),
            };
            request.chart_dependencies = self.dependencies(context, &request, freshness, since).await?;
            let output = self.render(request, freshness).await?;
            let count = if output.cached { &self.cached } else { &self.fresh };
            count.fetch_add(1, Ordering::Relaxed);
            may_vary |= output.source_type != SourceType::Directory;
            types.push(output.source_type.as_str().to_owned());
            manifests.extend(output.manifests);
        }
        let desired = complete(desired_set(manifests, context, app))?;
        let revisions = resolved.into_iter().map(|source| source.revision).collect();
        Ok(Gathered::new(inputs, revisions, types, may_vary, desired))
    }
}

/// The app as renderers see it.
pub(crate) fn app_facts(app: &App, context: &AppContext) -> AppFacts {
    AppFacts {
        name: app.id.name.clone(),
        instance: context.instance.clone(),
        project: app.project.clone(),
        namespace: app.destination.namespace.clone().unwrap_or_default(),
    }
}

/// Replaces the default if the settings have a value.
fn set<T>(value: &mut T, setting: Option<T>) {
    if let Some(setting) = setting {
        *value = setting;
    }
}

/// Merges `.argocd-source.yaml` files over the source as the Application has it.
pub(crate) fn overrides(written: &ApplicationSource, multi_source: bool) -> Overrides {
    let written = written.clone();
    Arc::new(move |patches| {
        source_with_overrides(&written, patches, multi_source).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            problems.join("; ")
        })
    })
}

fn desired_set(manifests: Vec<RenderedManifest>, context: &AppContext, app: &App) -> DesiredSet {
    let scopes = context.cluster.scopes();
    build(
        manifests,
        &DesiredContext {
            app: &context.instance,
            destination_namespace: app.destination.namespace.as_deref(),
            destination_server: &context.cluster.server,
            scopes: &scopes,
            tracking: &context.settings.tracking,
            filter: &context.settings.filter,
        },
    )
}

/// An incomplete set is an error: it must not lead to the deletion of the objects that it lacks.
fn complete(desired: DesiredSet) -> Result<Arc<Complete<DesiredSet>>, SourceError> {
    let incomplete = match desired.complete() {
        Ok(complete) => return Ok(Arc::new(complete)),
        Err(incomplete) => incomplete,
    };
    let message = incomplete.to_string();
    Err(if incomplete.lacks_only_namespaces() {
        SourceError::Spec(message)
    } else {
        SourceError::Manifests(message)
    })
}
