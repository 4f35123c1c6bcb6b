//! `plumb render`

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_core::app::{App, Source};
use plumb_core::desired::{DesiredContext, DesiredSet, KindFilter, RenderedManifest, Scopes, build};
use plumb_core::source::SourceFiles;
use plumb_core::tracking::TrackingSettings;
use plumb_core::yaml;
use plumb_crd::{Application, source_with_overrides, to_app, written_sources};
use plumb_render::{
    AppFacts, ChartRepository, Charts, ClusterFacts, Freshness, LocalFiles, RenderRequest, RenderSettings,
    Rendered, Renderer, RendererConfig, Tools,
};
use serde_json::Value;

use crate::config;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::local::Checkouts;
use crate::output::Output;
use crate::view::problem::problem_line;

/// Render an Application from a local checkout, without a cluster.
///
/// Prints the manifests that the engine would apply, as YAML.
///
/// Examples: `plumb render app.yaml`, `plumb render app.yaml --checkout ../manifests -v`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File with the Application; `-` reads stdin.
    file: PathBuf,
    /// Name of the Application, if the file has several.
    #[arg(long)]
    app: Option<String>,
    /// Checkout of the Git sources: `PATH` for all, `REPO_URL=PATH` for one of several [default: the current
    /// directory]. Charts are fetched from their Helm repositories.
    #[arg(long, value_name = "[REPO_URL=]PATH")]
    checkout: Vec<String>,
    /// The commit in `$ARGOCD_APP_REVISION` [default: the commit of the checkout].
    #[arg(long)]
    revision: Option<String>,
    /// Kubernetes version, for charts.
    #[arg(long, default_value = "1.36.0")]
    kube_version: String,
    /// API versions of the cluster, for charts, such as `monitoring.coreos.com/v1`.
    #[arg(long, value_delimiter = ',')]
    api_versions: Vec<String>,
    /// Do not use cached results.
    #[arg(long)]
    fresh: bool,
    /// Print to stderr how long each source took, and whether the cache was used.
    #[arg(long, short)]
    verbose: bool,
    /// Directory for rendered manifests. It may be deleted at any time.
    #[arg(long, env = "PLUMB_CACHE_DIR")]
    cache_dir: Option<PathBuf>,
    /// The helm program.
    #[arg(long, env = "PLUMB_HELM", default_value = "helm")]
    helm: PathBuf,
    /// The kustomize program.
    #[arg(long, env = "PLUMB_KUSTOMIZE", default_value = "kustomize")]
    kustomize: PathBuf,
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let application = read_application(args)?;
    let app = to_app(&application).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(|problem| problem.message.clone()).collect();
        CommandError::new(format!("{}: {}", args.file.display(), problems.join("; ")))
    })?;
    let checkouts = Checkouts::parse("--checkout", &args.checkout)?;
    let tools = Tools {
        helm: config::find_program(args.helm.clone()),
        kustomize: config::find_program(args.kustomize.clone()),
        jsonnet: config::jsonnet_command(),
        launcher: config::launcher_command(),
    };
    let cache = args.cache_dir.clone().unwrap_or_else(config::default_cache_dir);
    let started = Instant::now();
    let renderer = LocalRenderer::new(&cache, tools, context, args)?;
    let manifests = renderer.render(&application, &app, &checkouts).await?;
    let desired = desired_set(&app, &renderer.instance(&app), manifests);
    print(context.out, &desired);
    if args.verbose {
        let n_objects = desired.objects.len() + desired.hooks.len();
        context.out.note(&format!("{n_objects} objects in {}", milliseconds(started.elapsed())));
    }
    Ok(print_problems(context.out, &desired))
}

/// The selected Application of the file.
fn read_application(args: &Args) -> Result<Application, CommandError> {
    let name = args.file.display();
    let mut text = String::new();
    if args.file == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).map(drop)
    } else {
        std::fs::read_to_string(&args.file).map(|read| text = read)
    }
    .map_err(|error| CommandError::because(format!("read {name}"), error))?;
    let documents = yaml::parse_documents(&text, &yaml::Limits::default())
        .map_err(|error| CommandError::because(format!("read {name}"), error))?;
    let is_selected = |value: &Value| {
        value["kind"] == Application::KIND
            && args.app.as_ref().is_none_or(|app| value["metadata"]["name"].as_str() == Some(app))
    };
    let mut found = documents.into_iter().map(|document| document.value).filter(is_selected);
    let what = args.app.as_ref().map_or_else(|| "Application".to_owned(), |app| format!("Application {app}"));
    match (found.next(), found.next()) {
        (None, _) => Err(CommandError::new(format!("{name} has no {what}")).exit(ExitCode::Usage)),
        (Some(_), Some(_)) => Err(CommandError::new(format!("{name} has more than one {what}"))
            .hint("--app selects one")
            .exit(ExitCode::Usage)),
        (Some(value), None) => Application::from_json(&value)
            .map_err(|error| CommandError::because(format!("parse the Application in {name}"), error)),
    }
}

/// The renderers and their options.
struct LocalRenderer<'a> {
    renderer: Renderer,
    charts: Charts,
    args: &'a Args,
    context: &'a Context,
}

impl<'a> LocalRenderer<'a> {
    fn new(cache: &Path, tools: Tools, context: &'a Context, args: &'a Args) -> Result<Self, CommandError> {
        let unusable = |error| CommandError::because(format!("use the cache {}", cache.display()), error);
        let mut config = RendererConfig::new(cache.join("render"));
        config.tools = tools;
        let limits = config.container_limits();
        Ok(Self {
            charts: Charts::new(cache.join("charts"), limits).map_err(unusable)?,
            renderer: Renderer::new(config).map_err(unusable)?,
            args,
            context,
        })
    }

    fn instance(&self, app: &App) -> String {
        // A file may leave out the namespace. Then the app is taken to be in the control-plane namespace.
        if app.id.namespace.is_empty() {
            return app.id.name.clone();
        }
        app.id.instance_name(self.context.namespace())
    }

    async fn render(
        &self,
        application: &Application,
        app: &App,
        checkouts: &Checkouts,
    ) -> Result<Vec<RenderedManifest>, CommandError> {
        let mut gathered = Vec::with_capacity(app.sources.len());
        for source in &app.sources {
            gathered.push(self.files(source, checkouts).await?);
        }
        let refs: BTreeMap<String, Arc<dyn SourceFiles>> = app
            .sources
            .iter()
            .zip(&gathered)
            .filter_map(|(source, (_, files))| Some((source.ref_name.clone()?, Arc::clone(files))))
            .collect();
        let mut manifests = Vec::new();
        let written = written_sources(&application.spec);
        for (index, (source, (revision, files))) in app.sources.iter().zip(gathered).enumerate() {
            if source.path.is_none() && source.chart.is_none() && source.ref_name.is_some() {
                continue;
            }
            let (own, multi) = (written.get(index).cloned().unwrap_or_default(), app.multi_source);
            let mut request = RenderRequest {
                source: source.clone(),
                index,
                files,
                revision,
                refs: refs.clone(),
                chart_dependencies: BTreeMap::new(),
                overrides: Some(Arc::new(move |patches| {
                    source_with_overrides(&own, patches, multi).map_err(|problems| {
                        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
                    })
                })),
                app: AppFacts {
                    name: app.id.name.clone(),
                    instance: self.instance(app),
                    project: app.project.clone(),
                    namespace: app.destination.namespace.clone().unwrap_or_default(),
                },
                cluster: ClusterFacts {
                    kube_version: Some(self.args.kube_version.clone()),
                    api_versions: self.args.api_versions.clone().into(),
                },
                settings: Arc::new(RenderSettings::default()),
            };
            self.fetch_dependencies(&mut request).await?;
            let rendered = self.render_one(&request)?;
            self.report(source, &rendered);
            manifests.extend(rendered.manifests);
        }
        Ok(manifests)
    }

    /// The revision and the files of one source.
    async fn files(
        &self,
        source: &Source,
        checkouts: &Checkouts,
    ) -> Result<(String, Arc<dyn SourceFiles>), CommandError> {
        let Some(chart) = source.chart.as_ref().filter(|chart| !chart.is_empty()) else {
            let checkout = checkouts.of(source)?;
            let revision = self.args.revision.clone().or_else(|| plumb_git::checked_out(checkout));
            return Ok((revision.unwrap_or_default(), Arc::new(LocalFiles::new(checkout))));
        };
        let version = source.target_revision.as_deref().unwrap_or("*");
        let fetched = self
            .charts
            .fetch(&repository(&source.repo_url), chart, version, Instant::now())
            .await
            .map_err(|error| CommandError::because(format!("fetch chart {chart} {version}"), error))?;
        Ok((fetched.version, fetched.files))
    }

    async fn fetch_dependencies(&self, request: &mut RenderRequest) -> Result<(), CommandError> {
        let missing = self.renderer.missing_dependencies(request);
        let missing = missing.map_err(|error| CommandError::new(error.full_message()))?;
        for dependency in missing.into_iter().filter(|dependency| !dependency.is_local()) {
            let chart = self
                .charts
                .fetch(
                    &repository(&dependency.repository),
                    &dependency.name,
                    &dependency.version,
                    Instant::now(),
                )
                .await
                .map_err(|error| {
                    CommandError::because(format!("fetch chart dependency {}", dependency.name), error)
                        .hint("`helm dependency build` in the chart downloads it to charts/")
                })?;
            request.chart_dependencies.insert(dependency, chart.files);
        }
        Ok(())
    }

    fn render_one(&self, request: &RenderRequest) -> Result<Rendered, CommandError> {
        let freshness = if self.args.fresh { Freshness::Fresh } else { Freshness::Cached };
        self.renderer.render(request, freshness).map_err(|error| CommandError::new(error.full_message()))
    }

    fn report(&self, source: &Source, rendered: &Rendered) {
        if !self.args.verbose {
            return;
        }
        let place = source.path.as_deref().or(source.chart.as_deref()).unwrap_or_default();
        let cache = if rendered.cached { "cache hit" } else { "cache miss" };
        self.context.out.note(&format!(
            "{} {place}: {} documents in {}, {cache}",
            rendered.source_type.as_str(),
            rendered.manifests.iter().filter(|manifest| !manifest.is_passed_over()).count(),
            milliseconds(rendered.took)
        ));
    }
}

/// A repository without credentials.
fn repository(url: &str) -> ChartRepository {
    ChartRepository { url: url.to_owned(), ..ChartRepository::default() }
}

/// As the engine builds it, for a cluster with only the built-in kinds.
fn desired_set(app: &App, instance: &str, manifests: Vec<RenderedManifest>) -> DesiredSet {
    build(
        manifests,
        &DesiredContext {
            app: instance,
            destination_namespace: app.destination.namespace.as_deref(),
            destination_server: "",
            scopes: &Scopes::built_in(),
            tracking: &TrackingSettings::default(),
            filter: &KindFilter::default(),
        },
    )
}

fn print(out: Output, desired: &DesiredSet) {
    let hooks = desired.hooks.iter().map(|hook| hook.manifest.value());
    let objects = desired.objects.values().map(|object| object.manifest.value());
    for value in objects.chain(hooks) {
        out.print_data(&format!("---\n{}\n", plumb_crd::yaml::to_yaml(value).trim_end()));
    }
}

/// Prints the problems of the set to stderr. Problems that lose an object are errors.
fn print_problems(out: Output, desired: &DesiredSet) -> ExitCode {
    for problem in &desired.problems {
        out.note(&problem_line(problem));
    }
    if desired.is_whole() { ExitCode::Success } else { ExitCode::Error }
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}
