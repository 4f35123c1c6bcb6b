//! From an app's sources to the desired set: resolve, read, render, build.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plumb_core::app::{App, Operation};
use plumb_core::desired::{Complete, DesiredContext, DesiredSet, RenderedManifest, build};
use plumb_core::project::{normalize_repo_url, shown_repo_url};
use plumb_core::source::{AddressPolicy, SourceFiles};
use plumb_crd::application::{self as wire, ApplicationSource};
use plumb_crd::{Application, source_with_overrides, written_operation_sources, written_sources};
use plumb_git::{GitOptions, Mirrors, RequestObserver};
use plumb_render::{
    AppFacts, Charts, ClusterFacts, Freshness, Overrides, RenderRequest, Rendered, Renderer, RendererConfig,
    SourceType,
};
use tracing::{Instrument as _, info};

use super::error::SourceError;
use super::gathered::{Gathered, StoredGathered};
use super::inputs::RenderInputs;
use super::parked::{Asked, Earlier, Outcome, Parked};
use super::path_filter;
use super::render_slots::RenderSlots;
use super::resolve::{Access, Resolved};
use super::slow_servers::{Answered, Asking, NotGathered, Patience, SlowServers, span_of};
use crate::apps::context::AppContext;
use crate::apps::large_apps::{LargeApps, Turn};
use crate::config::settings::StartSettings;
use crate::metrics::counters::Metrics;
use crate::queue::{Queue, RefreshDepth, Trigger};

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
    /// The policy for one trigger.
    pub(crate) fn of(trigger: &Trigger) -> Self {
        Self { depth: trigger.depth, since: trigger.at, patience: Patience::Short }
    }
}

/// What an operation syncs that does not sync the app's own sources.
#[derive(Clone, Copy)]
pub(crate) struct OperationSources<'o> {
    pub(crate) operation: &'o Operation,
    pub(crate) written: &'o wire::Operation,
    /// Revisions in place of those of the sources.
    pub(crate) revisions: &'o [String],
}

/// Repositories and renderers, for all apps.
pub(crate) struct Sources {
    pub(super) mirrors: Mirrors,
    pub(super) charts: Charts,
    pub(super) renderer: Arc<Renderer>,
    /// Which servers may be connected to, without the exceptions of the settings.
    pub(super) addresses: AddressPolicy,
    /// Limits how many renderings are planned, looked up in the cache, and read from plain files at the same time.
    pub(super) read_slots: RenderSlots,
    /// Limits how many tools run at the same time.
    pub(super) tool_slots: RenderSlots,
    pub(super) large_apps: LargeApps,
    /// Local checkouts that are read in place of repositories, by the normalized URL of the repository.
    pub(super) checkouts: BTreeMap<String, String>,
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
    /// half as many tools as workers run at the same time, and never more than have memory.
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
        let charts = Charts::new(directory.join("charts"), renderer.container_limits())?;
        let renderer = Arc::new(Renderer::new(renderer)?);
        let n_tools = settings.render_parallelism.unwrap_or(n_workers / 2).min(renderer.n_tools());
        Ok(Self {
            mirrors: Mirrors::new(directory.join("git"), git)?,
            charts,
            renderer,
            read_slots: RenderSlots::new(n_workers / 2),
            tool_slots: RenderSlots::new(n_tools),
            large_apps: LargeApps::new(Queue::default()),
            checkouts: BTreeMap::new(),
            addresses,
            slow_servers: SlowServers::default(),
            cached: AtomicU64::default(),
            fresh: AtomicU64::default(),
        })
    }

    /// The same, where large apps take turns with runs.
    pub(crate) fn with_turns(self, large_apps: LargeApps) -> Self {
        Self { large_apps, ..self }
    }

    /// The same, with local checkouts in place of these repositories. The project is still asked about the repository.
    pub(crate) fn with_checkouts(self, checkouts: BTreeMap<String, String>) -> Self {
        Self { checkouts, ..self }
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
        parked: &mut Parked,
    ) -> Result<Arc<Gathered>, NotGathered> {
        let inputs = RenderInputs::of(app, context, &app.sources, written_sources(&application.spec));
        let previous = previous.filter(|previous| *previous.inputs == inputs);
        if let Some(previous) = previous.filter(|_| policy.depth == RefreshDepth::Live) {
            parked.note_not_needed();
            return Ok(Arc::clone(previous));
        }
        let FetchPolicy { depth, since, patience } = policy;
        let asked = Asked { inputs, revisions: Vec::new(), depth, since };
        let known = previous.map(|previous| previous.stored());
        match (self.outcome(app, context, asked, known, patience, parked).await?, previous) {
            (Outcome::Same, Some(previous)) => Ok(Arc::clone(previous)),
            (Outcome::Moved(revisions), Some(previous)) => Ok(Arc::new(previous.at(revisions))),
            (Outcome::Built(gathered), _) => Ok(Arc::new(*gathered)),
            // Not expected: without a known set, one is built.
            (Outcome::Same | Outcome::Moved(_), None) => {
                Err(NotGathered::Failed(SourceError::Manifests(vec![
                    "the known manifests were dropped".to_owned(),
                ])))
            }
        }
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
        let servers = servers(&inputs);
        let (this, access) = (Arc::clone(self), Access::of(context));
        let request = |asking: Asking| async move {
            // Held to the end: nothing is rendered.
            let _asking = asking;
            this.resolve(&access, &inputs, &[], policy.depth, policy.since).await
        };
        let request = |asking: Asking| request(asking).instrument(span_of(&app.id));
        match self.slow_servers.ask(servers, request).await {
            Ok(Ok(resolved)) => {
                Ok(stored.revisions.iter().eq(resolved.iter().map(|source| &source.revision)))
            }
            Ok(Err(_)) => Ok(false),
            Err(request) => Err(request.answered()),
        }
    }

    /// The desired state for an operation that does not sync the app's own sources: another revision, other
    /// sources, or manifests in the request.
    pub(crate) async fn gather_for_operation(
        self: &Arc<Self>,
        application: &Application,
        app: &App,
        context: &AppContext,
        asked: OperationSources<'_>,
        (since, patience): (Instant, Patience),
        parked: &mut Parked,
    ) -> Result<Arc<Gathered>, NotGathered> {
        let OperationSources { operation, written, revisions } = asked;
        let sources = operation.sources.as_ref().unwrap_or(&app.sources);
        let written =
            written_operation_sources(written).unwrap_or_else(|| written_sources(&application.spec));
        let mut inputs = RenderInputs::of(app, context, sources, written);
        inputs.asked.clone_from(&operation.revisions);
        if operation.manifests.is_some() {
            let built = of_request(app, context, operation, inputs, revisions);
            return built.map(Arc::new).map_err(NotGathered::Failed);
        }
        let revisions = revisions.to_vec();
        let asked = Asked { inputs, revisions, depth: RefreshDepth::GitNow, since };
        self.built(app, context, asked, patience, parked).await.map(Arc::new)
    }

    /// The desired state from the app's sources at these commits.
    pub(crate) async fn gather_at(
        self: &Arc<Self>,
        application: &Application,
        app: &App,
        context: &AppContext,
        revisions: &[String],
        parked: &mut Parked,
    ) -> Result<Gathered, NotGathered> {
        let inputs = RenderInputs::of(app, context, &app.sources, written_sources(&application.spec));
        let (revisions, since) = (revisions.to_vec(), Instant::now());
        let asked = Asked { inputs, revisions, depth: RefreshDepth::Live, since };
        self.built(app, context, asked, Patience::Short, parked).await
    }

    /// A set that is not compared with a known one.
    async fn built(
        self: &Arc<Self>,
        app: &App,
        context: &AppContext,
        asked: Asked,
        patience: Patience,
        parked: &mut Parked,
    ) -> Result<Gathered, NotGathered> {
        match self.outcome(app, context, asked, None, patience, parked).await? {
            Outcome::Built(gathered) => Ok(*gathered),
            // Not expected: without a known set, one is built.
            Outcome::Same | Outcome::Moved(_) => {
                Err(NotGathered::Failed(SourceError::Manifests(vec!["there are no manifests".to_owned()])))
            }
        }
    }

    /// Asks the sources, or takes the result of an earlier request for the same.
    async fn outcome(
        self: &Arc<Self>,
        app: &App,
        context: &AppContext,
        asked: Asked,
        known: Option<Arc<StoredGathered>>,
        patience: Patience,
        parked: &mut Parked,
    ) -> Result<Outcome, NotGathered> {
        match parked.earlier(&asked).await {
            Earlier::Running(answered) => return Err(NotGathered::Waiting(answered)),
            Earlier::Ended(Err(error)) => return Err(NotGathered::Failed(error)),
            Earlier::Ended(Ok(outcome)) if known.is_some() || outcome.is_whole() => return Ok(outcome),
            // There is none, or the set that it was compared with is no longer known.
            Earlier::None | Earlier::Ended(Ok(_)) => {}
        }
        let servers = servers(&asked.inputs);
        let span = span_of(&app.id);
        let (this, app, context, request) = (Arc::clone(self), app.clone(), context.clone(), asked.clone());
        let gather = |asking: Asking| async move {
            let resolved = {
                let _asking = asking;
                let access = Access::of(&context);
                this.resolve(&access, &request.inputs, &request.revisions, request.depth, request.since)
                    .await?
            };
            this.compare_or_build(&app, &context, request, known, resolved).await
        };
        let gather = |asking: Asking| gather(asking).instrument(span);
        if patience == Patience::Endless {
            return gather(Asking::by_a_command()).await.map_err(NotGathered::Failed);
        }
        match self.slow_servers.ask(servers, gather).await {
            Ok(result) => {
                parked.note_taken(&asked);
                result.map_err(NotGathered::Failed)
            }
            Err(request) => Err(NotGathered::Waiting(parked.keep(asked, request))),
        }
    }

    /// Renders what was resolved, unless the known set is of the same commits or the commits do not affect the app.
    async fn compare_or_build(
        &self,
        app: &App,
        context: &AppContext,
        asked: Asked,
        known: Option<Arc<StoredGathered>>,
        resolved: Vec<Resolved>,
    ) -> Result<Outcome, SourceError> {
        let is_hard = asked.depth == RefreshDepth::Hard;
        if let Some(known) = known.filter(|_| !is_hard) {
            if known.revisions.iter().eq(resolved.iter().map(|source| &source.revision)) {
                return Ok(Outcome::Same);
            }
            if path_filter::is_unaffected(app, &known.revisions, &resolved) {
                return Ok(Outcome::Moved(resolved.into_iter().map(|source| source.revision).collect()));
            }
        }
        // A hard refresh also shows whether the same commit still renders the same.
        let freshness = if is_hard { Freshness::Renewed } else { Freshness::Cached };
        let built = self.build(app, context, asked.inputs, resolved, freshness, asked.since).await?;
        Ok(Outcome::Built(Box::new(built)))
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

    /// Reads and renders what the sources resolved to. If an object of a mirror cannot be read, the mirror is made again
    /// and the same commits are read once more.
    async fn build(
        &self,
        app: &App,
        context: &AppContext,
        inputs: RenderInputs,
        mut resolved: Vec<Resolved>,
        freshness: Freshness,
        since: Instant,
    ) -> Result<Gathered, SourceError> {
        let revisions: Vec<String> = resolved.iter().map(|source| source.revision.clone()).collect();
        let mut built = self.render_all(app, context, &inputs, &resolved, freshness, since).await;
        if built.as_ref().is_err_and(SourceError::is_damage) {
            let app_access = Access::of(context);
            let now = Instant::now();
            resolved = self.resolve(&app_access, &inputs, &revisions, RefreshDepth::Live, now).await?;
            built = self.render_all(app, context, &inputs, &resolved, freshness, since).await;
        }
        let RenderedSources { types, may_vary, desired, turn } = built?;
        Ok(Gathered::new(inputs, revisions, types, may_vary, desired).during(turn))
    }

    async fn render_all(
        &self,
        app: &App,
        context: &AppContext,
        inputs: &RenderInputs,
        resolved: &[Resolved],
        freshness: Freshness,
        since: Instant,
    ) -> Result<RenderedSources, SourceError> {
        let mut files = Vec::with_capacity(resolved.len());
        for source in resolved {
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
        let mut turn = None;
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
            let (output, large) = self.render(&app.id, request, freshness).await?;
            turn = turn.or(large);
            let count = if output.cached { &self.cached } else { &self.fresh };
            count.fetch_add(1, Ordering::Relaxed);
            may_vary |= output.source_type != SourceType::Directory;
            types.push(output.source_type.as_str().to_owned());
            log_passed_over(&output);
            manifests.extend(output.manifests);
        }
        let desired = complete(desired_set(manifests, context, app))?;
        Ok(RenderedSources { types, may_vary, desired, turn })
    }
}

/// What all sources of an app render to.
struct RenderedSources {
    /// `Helm`, `Kustomize` …, one per source.
    types: Vec<String>,
    /// True if rendering the same commits again may give other manifests.
    may_vary: bool,
    desired: Arc<Complete<DesiredSet>>,
    /// The turn of a large app.
    turn: Option<Turn>,
}

/// Says which files are no manifests, when they are first rendered.
fn log_passed_over(output: &Rendered) {
    for manifest in output.manifests.iter().filter(|manifest| !output.cached && manifest.is_passed_over()) {
        let file = manifest.origin.as_ref().map(|origin| origin.file.as_str()).unwrap_or_default();
        info!(file, "skipped a file that is not a manifest");
    }
}

/// The servers of the sources.
fn servers(inputs: &RenderInputs) -> BTreeSet<String> {
    inputs.sources.iter().map(|(source, _)| normalize_repo_url(&source.repo_url)).collect()
}

/// The desired state from the manifests in the request of an operation.
fn of_request(
    app: &App,
    context: &AppContext,
    operation: &Operation,
    inputs: RenderInputs,
    revisions: &[String],
) -> Result<Gathered, SourceError> {
    let mut all = operation.sources.iter().flatten().chain(&app.sources);
    let signed = all.find(|source| context.project.signatures(&source.repo_url).is_some());
    if let Some(source) = signed {
        return Err(SourceError::NotAllowed(format!(
            "cannot sync manifests of the request: the project requires signed commits of {}",
            shown_repo_url(&source.repo_url)
        )));
    }
    let texts = operation.manifests.iter().flatten();
    let rendered = texts
        .map(|text| serde_json::from_str(text).map(|value| RenderedManifest { value, origin: None }))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| {
            SourceError::Manifests(vec![format!("cannot read a manifest of the operation: {error}")])
        })?;
    let desired = complete(desired_set(rendered, context, app))?;
    Ok(Gathered::new(inputs, revisions.to_vec(), Vec::new(), false, desired))
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
    let messages = incomplete.messages();
    Err(if incomplete.lacks_only_namespaces() {
        SourceError::Spec(messages)
    } else {
        SourceError::Manifests(messages)
    })
}
