//! One rendering: overrides, detection of the tool, the read set, then the cache or the tool.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_core::app::{DirectoryOptions, PluginOptions, Source, SourceTool};
use plumb_core::desired::RenderedManifest;
use plumb_core::source::{EntryKind, RepoPath, SourceError, follow, read_following};
use plumb_core::yaml;
use sha2::{Digest as _, Sha256};

use crate::build_env::BuildEnvironment;
use crate::cache::{Cache, FORMAT};
use crate::charts::{ChartDependency, missing_dependencies};
use crate::container_memory::container_memory;
use crate::detect;
use crate::directory::{self, DirectoryPlan};
use crate::disk_use::{DiskAccount, DiskUse};
use crate::error::RenderError;
use crate::failed_renders::FailedRenders;
use crate::hash::hex;
use crate::helm::{self, HelmPlan};
use crate::kustomize::{self, KustomizePlan};
use crate::limits::Limits;
use crate::memory_budget::{MemoryBudget, Part, Work};
use crate::plan_input::PlanInput;
use crate::plugin::{self, PluginPlan};
use crate::read_set::ReadSet;
use crate::request::RenderRequest;
use crate::run_context::RunContext;
use crate::sandbox::{Clock, IsolationLevel, Sandbox};
use crate::scratch_cleanup::ScratchRoot;
use crate::source_type::SourceType;
use crate::tools::Tools;

/// How a renderer is set up.
#[derive(Clone, Debug)]
pub struct RendererConfig {
    /// Directory for temporary files and the cache; everything in it may be deleted at any time.
    pub directory: PathBuf,
    /// The programs.
    pub tools: Tools,
    /// Limits on one rendering.
    pub limits: Limits,
    /// Most bytes of cached results.
    pub cache_bytes: u64,
    /// How the programs are isolated.
    pub sandbox: Sandbox,
    /// The memory of plumb's container, in bytes. Renderings may use half of it.
    pub memory: u64,
}

impl RendererConfig {
    /// Programs from the usual directories, default limits, 1 GiB of results, and the isolation that the system supports.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            tools: Tools::default(),
            limits: Limits::default(),
            cache_bytes: 1 << 30,
            sandbox: Sandbox::detect(),
            memory: container_memory(Path::new("/")),
        }
    }

    /// The limits on one rendering or one download in this container.
    pub fn container_limits(&self) -> Limits {
        self.limits.with_memory(MemoryBudget::of_container(self.memory).bytes(Part::Large))
    }
}

/// Renders sources. A process has one renderer. Rendering is synchronous and may take seconds.
pub struct Renderer {
    scratch: ScratchRoot,
    tools: Tools,
    limits: Limits,
    /// The limits on reading files with options, such as a kustomization.
    option_limits: Limits,
    sandbox: Sandbox,
    cache: Cache,
    memory: MemoryBudget,
    disk: DiskAccount,
    failed: FailedRenders,
}

/// Whether an earlier result may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Yes, if all inputs are the same.
    Cached,
    /// No: run the tool again and do not change the cache. Shows whether a source renders the same twice.
    Fresh,
    /// The same, with another date on the tool's clock.
    AnotherDay,
    /// No: run the tool again and replace the cached result.
    Renewed,
}

/// What a source renders to.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The documents in order. `List` kinds are not split yet.
    pub manifests: Vec<RenderedManifest>,
    /// How it was rendered.
    pub source_type: SourceType,
    /// True for an earlier result.
    pub cached: bool,
    /// How long it took.
    pub took: Duration,
}

/// A rendering that is planned and has not run.
enum Plan {
    Directory(DirectoryPlan),
    Helm(HelmPlan),
    Kustomize(KustomizePlan),
    Plugin(PluginPlan),
}

/// A rendering that has to run.
pub struct Planned {
    plan: Plan,
    set: ReadSet,
    key: String,
    path: RepoPath,
    source_type: SourceType,
    freshness: Freshness,
}

impl Planned {
    /// True if a tool runs. Plain files are only read.
    pub fn runs_tool(&self) -> bool {
        self.plan.work() == Work::Tool
    }
}

/// What is known of a rendering before it runs.
pub enum Looked {
    /// An earlier result.
    Found(Rendered),
    /// There is none that may be used.
    NotFound(Box<Planned>),
}

/// Who wants to know how far a rendering is.
pub trait RenderObserver {
    /// The rendering is not in the cache, has the memory that it needs, and begins. Called again if it needs more.
    fn begins(&self) {}

    /// Called with the length of the rendered text before the text is read: manifests take many times the memory of
    /// their text. It may block, and returns `false` if the caller accounts for the memory; then other renderings need
    /// not wait for this one. For a directory it is called again as the text grows.
    fn before_reading(&self, n_bytes: usize) -> bool;
}

struct Unobserved;

impl RenderObserver for Unobserved {
    fn before_reading(&self, _: usize) -> bool {
        true
    }
}

impl Renderer {
    /// Creates the directories.
    pub fn new(config: RendererConfig) -> std::io::Result<Self> {
        Ok(Self {
            scratch: ScratchRoot::new(&config.directory.join("scratch"))?,
            cache: Cache::new(config.directory.join("results"), config.cache_bytes)?,
            sandbox: config.sandbox.with_launcher(&config.tools.launcher),
            tools: config.tools.located(),
            option_limits: config.limits.for_options(),
            limits: config.limits,
            memory: MemoryBudget::of_container(config.memory),
            disk: DiskAccount::default(),
            failed: FailedRenders::default(),
        })
    }

    /// What tools are kept away from on this system.
    pub fn isolation_level(&self) -> IsolationLevel {
        self.sandbox.level()
    }

    /// Renders one source of an app.
    pub fn render(&self, request: &RenderRequest, freshness: Freshness) -> Result<Rendered, RenderError> {
        self.render_with(request, freshness, &Unobserved)
    }

    /// The same, and tells the observer how far it is.
    pub fn render_with(
        &self,
        request: &RenderRequest,
        freshness: Freshness,
        observer: &dyn RenderObserver,
    ) -> Result<Rendered, RenderError> {
        match self.look(request, freshness, observer)? {
            Looked::Found(rendered) => Ok(rendered),
            Looked::NotFound(planned) => self.run_planned(planned, request, observer),
        }
    }

    /// Looks for an earlier result. If there is none, returns what has to be done: reading plain files takes a moment, a
    /// tool may take long.
    pub fn look(
        &self,
        request: &RenderRequest,
        freshness: Freshness,
        observer: &dyn RenderObserver,
    ) -> Result<Looked, RenderError> {
        let started = Instant::now();
        let path = app_path(request)?;
        let source = effective_source(request, &path, &self.option_limits)?;
        let source_type =
            detect::detect(source.tool.as_ref(), request.files.as_ref(), &path, &request.settings)?;
        let mut set = ReadSet::new(Arc::clone(&request.files), self.limits.export_files);
        let plan = self.plan(request, &path, source.tool, source_type, &mut set)?;
        let key = plan.key(&set, &self.tools);
        if freshness == Freshness::Cached
            && let Some((source_type, manifests)) =
                self.cache.read(&key, request.index, &|n_bytes| observer.before_reading(n_bytes))
        {
            let took = started.elapsed();
            return Ok(Looked::Found(Rendered { manifests, source_type, cached: true, took }));
        }
        if freshness == Freshness::Cached
            && let Some(error) = self.failed.recent(&key, started)
        {
            return Err(error);
        }
        let planned = Planned { plan, set, key, path, source_type, freshness };
        Ok(Looked::NotFound(Box::new(planned)))
    }

    /// Renders what is not in the cache.
    pub fn run_planned(
        &self,
        planned: Box<Planned>,
        request: &RenderRequest,
        observer: &dyn RenderObserver,
    ) -> Result<Rendered, RenderError> {
        let started = Instant::now();
        let Planned { plan, set, key, path, source_type, freshness } = *planned;
        let clock = match freshness {
            Freshness::Cached | Freshness::Fresh | Freshness::Renewed => Clock::Real,
            Freshness::AnotherDay => Clock::Moved,
        };
        let manifests = self.run(&plan, request, &set, clock, observer);
        if clock == Clock::Real {
            self.failed.note(&key, manifests.as_ref().err(), started, Instant::now());
        }
        let manifests = manifests?;
        if manifests.len() > self.limits.objects {
            let limit = self.limits.objects as u64;
            return Err(RenderError::Limit { what: format!("number of objects in `{path}`"), limit });
        }
        match freshness {
            Freshness::Cached | Freshness::Renewed => self.cache.write(&key, source_type, &manifests),
            Freshness::Fresh | Freshness::AnotherDay => {}
        }
        Ok(Rendered { manifests, source_type, cached: false, took: started.elapsed() })
    }

    /// How many tools have memory at the same time.
    pub fn n_tools(&self) -> usize {
        self.memory.n_places(Part::Place(Work::Tool))
    }

    /// The charts that the caller has to fetch for [`RenderRequest::chart_dependencies`]: the dependencies that the
    /// source's chart does not contain. Empty if the source is not a chart.
    pub fn missing_dependencies(&self, request: &RenderRequest) -> Result<Vec<ChartDependency>, RenderError> {
        let path = app_path(request)?;
        let source = effective_source(request, &path, &self.option_limits)?;
        let files = request.files.as_ref();
        match detect::detect(source.tool.as_ref(), files, &path, &request.settings)? {
            SourceType::Helm => missing_dependencies(files, &path, &self.option_limits),
            SourceType::Directory | SourceType::Kustomize | SourceType::Plugin => Ok(Vec::new()),
        }
    }

    fn plan(
        &self,
        request: &RenderRequest,
        path: &RepoPath,
        tool: Option<SourceTool>,
        source_type: SourceType,
        set: &mut ReadSet,
    ) -> Result<Plan, RenderError> {
        let input = PlanInput {
            request,
            path,
            environment: &BuildEnvironment::of(request),
            tools: &self.tools,
            limits: &self.option_limits,
        };
        // The options of a disabled tool are ignored.
        match (source_type, tool) {
            (SourceType::Directory, tool) => {
                let options = match tool {
                    Some(SourceTool::Directory(options)) => options,
                    _ => DirectoryOptions::default(),
                };
                directory::plan(&input, &options, set).map(Plan::Directory)
            }
            (SourceType::Helm, tool) => {
                let options = match tool {
                    Some(SourceTool::Helm(options)) => options,
                    _ => Box::default(),
                };
                helm::plan(&input, &options, set).map(Plan::Helm)
            }
            (SourceType::Kustomize, tool) => {
                let options = match tool {
                    Some(SourceTool::Kustomize(options)) => options,
                    _ => Box::default(),
                };
                kustomize::plan(&input, &options, set).map(Plan::Kustomize)
            }
            (SourceType::Plugin, tool) => {
                let options = match tool {
                    Some(SourceTool::Plugin(options)) => options,
                    _ => PluginOptions::default(),
                };
                let plan = plugin::plan(&input, &options, set)?;
                plan.check_confinement(self.sandbox.level(), &request.settings)?;
                Ok(Plan::Plugin(plan))
            }
        }
    }

    /// Runs in one of the places for such work. If that is not enough, runs once more with the memory of
    /// the one large rendering.
    fn run(
        &self,
        plan: &Plan,
        request: &RenderRequest,
        set: &ReadSet,
        clock: Clock,
        observer: &dyn RenderObserver,
    ) -> Result<Vec<RenderedManifest>, RenderError> {
        let run = |part: Part| self.run_in(part, plan, request, set, clock, observer);
        match run(Part::Place(plan.work())) {
            Err(error) if error.is_memory_limit() => run(Part::Large),
            result => result,
        }
    }

    fn run_in(
        &self,
        part: Part,
        plan: &Plan,
        request: &RenderRequest,
        set: &ReadSet,
        clock: Clock,
        observer: &dyn RenderObserver,
    ) -> Result<Vec<RenderedManifest>, RenderError> {
        let tenant = request.tenant();
        let reserved = Cell::new(Some(self.memory.reserve(&tenant, part)));
        observer.begins();
        let has_run = |n_bytes: usize| {
            // The memory of a tool that has ended is free.
            if !observer.before_reading(n_bytes) && part == Part::Place(Work::Tool) {
                drop(reserved.take());
            }
        };
        let limits = self.limits.with_memory(self.memory.bytes(part));
        let context = RunContext {
            sandbox: &self.sandbox,
            tools: &self.tools,
            limits: &limits,
            disk: &DiskUse::new(&self.disk, &limits),
            root: &self.scratch,
            clock,
            before_reading: &has_run,
        };
        match plan {
            Plan::Directory(plan) => plan.render(request, set, &context),
            Plan::Helm(plan) => plan.render(request, set, &context),
            Plan::Kustomize(plan) => plan.render(request, set, &context),
            Plan::Plugin(plan) => plan.render(set, &context),
        }
    }
}

impl Plan {
    fn work(&self) -> Work {
        match self {
            Self::Directory(plan) if !plan.runs_jsonnet() => Work::Read,
            Self::Directory(_) | Self::Helm(_) | Self::Kustomize(_) | Self::Plugin(_) => Work::Tool,
        }
    }

    /// A hash of everything that the result depends on.
    fn key(&self, set: &ReadSet, tools: &Tools) -> String {
        let mut hasher = Sha256::new();
        hasher.update(FORMAT);
        set.hash_into(&mut hasher);
        let (parameters, tool) = match self {
            Self::Directory(plan) => (plan.parameters(), String::new()),
            Self::Plugin(plan) => {
                let programs: Vec<String> = plan.programs().iter().map(|path| identity(path)).collect();
                (plan.parameters(), programs.join(" "))
            }
            Self::Helm(plan) => (plan.parameters(), identity(&tools.helm)),
            Self::Kustomize(plan) => {
                (plan.parameters(), format!("{} {}", identity(plan.program()), identity(&tools.helm)))
            }
        };
        hasher.update(parameters);
        hasher.update([0]);
        hasher.update(tool);
        hex(&hasher.finalize())
    }
}

/// Identifies a build of a program without running it.
fn identity(program: &Path) -> String {
    match std::fs::metadata(program) {
        Ok(metadata) => format!("{} {} {:?}", program.display(), metadata.len(), metadata.modified().ok()),
        Err(_) => program.display().to_string(),
    }
}

/// The app's directory. For a chart from a repository it is the root.
fn app_path(request: &RenderRequest) -> Result<RepoPath, RenderError> {
    let written = match (&request.source.path, &request.source.chart) {
        (_, Some(_)) => ".",
        (Some(path), None) if !path.is_empty() => path.as_str(),
        (Some(_) | None, None) => return Err(RenderError::PathMissing),
    };
    let failed = |source: Option<SourceError>| RenderError::AppPath {
        path: written.to_owned(),
        revision: request.revision.clone(),
        source,
    };
    let path = RepoPath::parse(written).map_err(|error| failed(Some(error.into())))?;
    match follow(request.files.as_ref(), &path) {
        Ok((real, EntryKind::Directory)) => Ok(real),
        Ok(_) => Err(failed(None)),
        Err(error) => Err(failed(Some(error))),
    }
}

/// The source with the `.argocd-source.yaml` files merged over it.
fn effective_source(
    request: &RenderRequest,
    path: &RepoPath,
    limits: &Limits,
) -> Result<Source, RenderError> {
    let Some(merge) = &request.overrides else { return Ok(request.source.clone()) };
    let mut patches = Vec::new();
    for name in [".argocd-source.yaml".to_owned(), format!(".argocd-source-{}.yaml", request.app.instance)] {
        let file = path.child(&name);
        let text = match read_following(request.files.as_ref(), &file) {
            Ok(text) => text,
            Err(SourceError::NotFound { .. }) => continue,
            Err(source) => return Err(RenderError::Read { what: format!("`{file}`"), source }),
        };
        let documents = yaml::parse_documents_bytes(&text, &limits.yaml)
            .map_err(|source| RenderError::Yaml { file: file.to_string(), source })?;
        patches.extend(
            documents.into_iter().next().map(|document| document.value).filter(|value| !value.is_null()),
        );
    }
    if patches.is_empty() {
        return Ok(request.source.clone());
    }
    let merged = merge(&patches)
        .map_err(|reason| RenderError::Refused { file: path.child(".argocd-source.yaml"), reason })?;
    // The files of a source must not change where the source comes from.
    Ok(Source {
        repo_url: request.source.repo_url.clone(),
        path: request.source.path.clone(),
        target_revision: request.source.target_revision.clone(),
        chart: request.source.chart.clone(),
        ..merged
    })
}
