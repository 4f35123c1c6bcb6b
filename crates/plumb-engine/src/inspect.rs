//! What the loop does for all apps, done once for one app at the command line: gather, render, judge.
//!
//! It reads and asks for dry runs; it writes nothing, needs no lease and watches nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;
use plumb_core::app::{App, ClusterRef};
use plumb_core::desired::{Complete, DesiredSet};
use plumb_core::drift::{Autoscaler, LiveOwner, Verdict};
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use plumb_core::tracking::{TrackedBy, tracked_by};
use plumb_core::writes::{LastApply, LastAttempt};
use plumb_crd::application::{Operation, SyncOperation};
use plumb_crd::{Application, to_app, to_operation};
use plumb_kube::{ApiError, ClusterClient, Connection, Fence, Gate, LiveStore, Selection};
use plumb_render::{
    AppFacts, ClusterFacts, Freshness, LocalFiles, RenderRequest, Renderer, RendererConfig, Tools,
};
use serde_json::Value;

use crate::apps::context::{AppContext, CompiledRules};
use crate::cluster::destination::{Cluster, live_options};
use crate::cluster::run_slots::RunSlots;
use crate::compare::judge::{DryRunPolicy, Judge, JudgeInput};
use crate::compare::verdict_cache::VerdictCache;
use crate::config::load::{load_registry, load_settings};
use crate::config::store::ConfigStore;
use crate::metrics::counters::Metrics;
use crate::queue::RefreshDepth;
use crate::runtime::start_error::StartError;
use crate::sources::error::SourceError;
use crate::sources::gather::{FetchPolicy, Sources, overrides};
use crate::sources::gathered::Gathered;
use crate::sources::slow_servers::Patience;

/// How many objects are read at the same time.
const READS_AT_ONCE: usize = 16;

/// Why something could not be worked out.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The Application's spec, its project or its destination.
    #[error("{}", .0.join("; "))]
    Spec(Vec<String>),
    /// Git or the renderers.
    #[error("{0}")]
    Render(String),
    /// The cluster.
    #[error("read the cluster")]
    Cluster(#[from] ApiError),
}

/// What an app's objects are rendered from.
#[derive(Clone, Debug)]
pub enum RenderAt<'a> {
    /// What the app follows.
    Tracked,
    /// These revisions, one per source.
    Revisions(&'a [String]),
    /// A directory in a checkout in place of the app's one source.
    Checkout {
        /// The root of the checkout.
        root: &'a Path,
        /// The directory in it.
        path: &'a str,
    },
}

/// What an app's sources ask for.
#[derive(Debug)]
pub struct RenderedApp {
    gathered: Arc<Gathered>,
}

impl RenderedApp {
    /// Everything that is asked for.
    pub fn desired(&self) -> &DesiredSet {
        self.gathered.desired.get()
    }

    /// The resolved revisions, one per source.
    pub fn revisions(&self) -> &[String] {
        &self.gathered.revisions
    }
}

/// One object with its judgement.
#[derive(Debug)]
pub struct Judged {
    /// What is wrong with it, and why.
    pub verdict: Verdict,
    /// What is asked for.
    pub desired: Option<Manifest>,
    /// What the cluster holds.
    pub live: Option<Arc<Manifest>>,
}

/// How apps are rendered.
#[derive(Clone, Debug)]
pub struct InspectOptions {
    /// The control-plane namespace: where Applications, projects and settings are.
    pub namespace: String,
    /// Everything below it is a cache and may be deleted at any time.
    pub cache_dir: PathBuf,
    /// The programs that render.
    pub tools: Tools,
}

/// A place to look at one app from.
pub struct Inspector {
    options: InspectOptions,
    sources: Arc<Sources>,
    config: ConfigStore,
    home: Arc<Cluster>,
}

impl Inspector {
    /// Reads settings, repositories and projects.
    pub async fn open(connection: Connection, options: InspectOptions) -> Result<Self, StartError> {
        let client = connection.client()?;
        client.discover().await?;
        let config = ConfigStore::default();
        load_settings(&client, &options.namespace, &config).await;
        load_registry(&client, &options.namespace, &config).await?;
        let metrics = Arc::new(Metrics::default());
        let sources =
            Sources::new(&options.cache_dir, renderer(&options), config.settings().start, &metrics).map_err(
                |source| StartError::Cache { directory: options.cache_dir.display().to_string(), source },
            )?;
        let mut live = live_options(&config, ClusterRef::IN_CLUSTER_SERVER);
        live.excluded = Arc::new(|_| true);
        let store = LiveStore::start(client.clone(), live);
        let gate = Gate::new(client.clone(), Fence::of_command(), None);
        let home = Cluster::home(client, store, gate, RunSlots::new(1));
        Ok(Self { options, sources: Arc::new(sources), config, home: Arc::new(home) })
    }

    /// What the app's sources ask for.
    pub async fn gather(
        &self,
        application: &Application,
        wanted: &RenderAt<'_>,
    ) -> Result<RenderedApp, InspectError> {
        let (app, context) = self.context_of(application)?;
        let policy =
            FetchPolicy { depth: RefreshDepth::GitNow, since: Instant::now(), patience: Patience::Endless };
        let (manifests, revisions) = match wanted {
            RenderAt::Tracked => {
                let gathered = self.sources.gather(application, &app, &context, policy, None).await;
                let gathered = gathered.map_err(|why| InspectError::Render(why.condition().1))?;
                return Ok(RenderedApp { gathered });
            }
            RenderAt::Revisions(revisions) => (Vec::new(), *revisions),
            RenderAt::Checkout { root, path } => {
                let rendered = self.render_checkout(application, &app, &context, root, path).await;
                (rendered.map_err(|error| InspectError::Render(error.message()))?, &[] as &[String])
            }
        };
        let sync = SyncOperation { manifests, ..SyncOperation::default() };
        let written = Operation { sync: Some(Box::new(sync)), ..Operation::default() };
        let asked = to_operation(&written)
            .map_err(|problems| InspectError::Spec(problems.iter().map(ToString::to_string).collect()))?;
        let gathered = self
            .sources
            .gather_for_operation(application, &app, &context, (&asked, &written), revisions)
            .await;
        Ok(RenderedApp { gathered: gathered.map_err(|error| InspectError::Render(error.message()))? })
    }

    /// Judges what the rendered asks for against what the cluster holds, as the loop would, except that nothing is
    /// remembered of earlier looks.
    pub async fn judge(
        &self,
        application: &Application,
        rendered: &RenderedApp,
    ) -> Result<BTreeMap<ObjectKey, Judged>, InspectError> {
        let (app, context) = self.context_of(application)?;
        let inputs = self.inputs(application, &context, rendered).await?;
        let versions: BTreeSet<String> = inputs
            .values()
            .flat_map(|input| {
                let desired = input.desired.as_ref().map(|desired| desired.manifest.api_version().to_owned());
                desired.into_iter().chain(input.live.as_ref().map(|live| live.api_version().to_owned()))
            })
            .collect();
        let kinds = inputs.keys().map(ObjectKey::group_kind).collect();
        let schemas = context.cluster.schemas.typed(versions, kinds, &context.settings).await?;
        let gathered = &rendered.gathered;
        let render_again = || -> BoxFuture<'_, Option<Arc<Complete<DesiredSet>>>> {
            async { self.sources.render_again(&app, &context, gathered).await }.boxed()
        };
        let judge = Judge {
            instance: &context.instance,
            client: &context.cluster.client,
            schemas: &schemas,
            rules: &context.rules.rules,
            options: context.settings.compare_options(&app),
            prune: app.sync_policy.automated.is_some_and(|automation| automation.prune),
            heal_limit: context.settings.heal_limit(),
            render_may_vary: gathered.may_vary,
            dry_runs: DryRunPolicy::Ask,
            now: Timestamp::now(),
            admission: 0,
            render_again: &render_again,
        };
        // What is only asked about is judged anew, and kept by nobody.
        let mut verdicts = judge.judge_all(&inputs, &mut VerdictCache::default()).await;
        let judged = |(key, input): (ObjectKey, JudgeInput)| {
            let verdict = verdicts.remove(&key)?;
            let desired = input.desired.map(|desired| desired.manifest);
            Some((key, Judged { verdict, desired, live: input.live }))
        };
        Ok(inputs.into_iter().filter_map(judged).collect())
    }

    fn context_of(&self, application: &Application) -> Result<(App, AppContext), InspectError> {
        let app = to_app(application)
            .map_err(|problems| InspectError::Spec(problems.iter().map(ToString::to_string).collect()))?;
        if !app.destination.cluster.is_in_cluster() {
            let why = "its destination is another cluster than the one that plumb works in".to_owned();
            return Err(InspectError::Spec(vec![why]));
        }
        let context =
            AppContext::of(&app, &self.config, &self.options.namespace, Arc::clone(&self.home), |settings| {
                Arc::new(CompiledRules::compile(&app, settings))
            })
            .map_err(InspectError::Spec)?;
        Ok((app, context))
    }

    async fn inputs(
        &self,
        application: &Application,
        context: &AppContext,
        rendered: &RenderedApp,
    ) -> Result<BTreeMap<ObjectKey, JudgeInput>, InspectError> {
        let desired = &rendered.desired().objects;
        let known = application
            .status
            .resources
            .iter()
            .filter(|resource| !resource.hook)
            .map(|resource| (resource.key(), resource.gvk()));
        let asked = desired.iter().map(|(key, object)| (key.clone(), object.manifest.gvk()));
        // What Git asks for counts with its own version.
        let wanted: BTreeMap<ObjectKey, GroupVersionKind> = known.chain(asked).collect();
        let client = &context.cluster.client;
        let reads = futures::stream::iter(wanted.into_iter().map(|(key, gvk)| async move {
            let live = match client.get_at(&gvk, key.namespace.as_deref(), &key.name).await {
                Err(ApiError::UnknownKind { .. }) => Ok(None),
                live => live,
            };
            (key, live)
        }));
        let found: Vec<_> = reads.buffered(READS_AT_ONCE).collect().await;
        let last_apply = last_apply(application, rendered.revisions());
        let autoscalers = autoscalers(client, &found).await;
        let mut inputs = BTreeMap::new();
        for (key, live) in found {
            let live = live?.map(Arc::new);
            let mark =
                live.as_deref().map(|live| tracked_by(live, &context.instance, &context.settings.tracking));
            let wanted = desired.get(&key).cloned();
            if wanted.is_none() && mark != Some(TrackedBy::Ours) {
                continue;
            }
            let owner = match mark {
                None | Some(TrackedBy::Ours | TrackedBy::AppliedCrd) => LiveOwner::ThisApp,
                Some(TrackedBy::Other { app }) => LiveOwner::App(app),
                Some(TrackedBy::Copied { .. } | TrackedBy::NoApp) => LiveOwner::Nobody,
            };
            let place = (key.namespace.clone(), key.kind.clone(), key.name.clone());
            let input = JudgeInput {
                desired: wanted,
                live,
                owner,
                last_attempt: if last_apply == LastApply::Same {
                    LastAttempt::Applied
                } else {
                    LastAttempt::None
                },
                last_apply: last_apply.clone(),
                autoscalers: autoscalers.get(&place).cloned().unwrap_or_default(),
                ..JudgeInput::default()
            };
            inputs.insert(key, input);
        }
        Ok(inputs)
    }

    /// The objects that a directory of a checkout renders to, as JSON texts.
    async fn render_checkout(
        &self,
        application: &Application,
        app: &App,
        context: &AppContext,
        root: &Path,
        path: &str,
    ) -> Result<Vec<String>, SourceError> {
        let [source] = app.sources.as_slice() else {
            let message = "a checkout can replace the source of an app with one source only".to_owned();
            return Err(SourceError::References(message));
        };
        let renderer = Renderer::new(renderer(&self.options))?;
        let mut written = application.spec.source.as_deref().cloned().unwrap_or_default();
        path.clone_into(&mut written.path);
        let mut source = source.clone();
        source.path = Some(path.to_owned());
        let catalog = context.cluster.client.catalog();
        let mut request = RenderRequest {
            source,
            index: 0,
            files: Arc::new(LocalFiles::new(PathBuf::from(root))),
            revision: String::new(),
            refs: BTreeMap::new(),
            chart_dependencies: BTreeMap::new(),
            overrides: Some(overrides(&written, false)),
            app: AppFacts {
                name: app.id.name.clone(),
                instance: context.instance.clone(),
                project: app.project.clone(),
                namespace: app.destination.namespace.clone().unwrap_or_default(),
            },
            cluster: ClusterFacts {
                kube_version: Some(catalog.kube_version()),
                api_versions: context.cluster.api_versions(),
            },
            settings: Arc::clone(&context.settings.render),
        };
        request.chart_dependencies =
            self.sources.dependencies(context, &request, Freshness::Cached, Instant::now()).await?;
        let output = tokio::task::spawn_blocking(move || renderer.render(&request, Freshness::Cached))
            .await
            .map_err(|source| SourceError::Aborted { what: "rendering", source })??;
        Ok(output.manifests.into_iter().map(|manifest| manifest.value.to_string()).collect())
    }
}

fn renderer(options: &InspectOptions) -> RendererConfig {
    let mut config = RendererConfig::new(options.cache_dir.join("render"));
    config.tools = options.tools.clone();
    config
}

/// Was what is asked for now applied by the last sync?
fn last_apply(application: &Application, revisions: &[String]) -> LastApply {
    let state = application.status.operation_state.as_ref().filter(|state| state.phase == "Succeeded");
    let Some(result) = state.and_then(|state| state.sync_result.as_deref()) else {
        return LastApply::Unknown;
    };
    match (revisions, result.all_revisions()) {
        ([], _) => LastApply::Unknown,
        (asked, applied) if asked == applied => LastApply::Same,
        _ => LastApply::Changed(None),
    }
}

type Place = (Option<String>, String, String);

/// The autoscalers of the namespaces that these objects are in, by what they scale.
async fn autoscalers(
    client: &ClusterClient,
    found: &[(ObjectKey, Result<Option<Manifest>, ApiError>)],
) -> BTreeMap<Place, Vec<Autoscaler>> {
    let namespaces: BTreeSet<&String> = found
        .iter()
        .filter(|(key, _)| matches!(key.group.as_str(), "apps" | "argoproj.io"))
        .filter_map(|(key, _)| key.namespace.as_ref())
        .collect();
    let gvk = GroupVersionKind::from_api_version("autoscaling/v2", "HorizontalPodAutoscaler");
    let mut scaled: BTreeMap<Place, Vec<Autoscaler>> = BTreeMap::new();
    for namespace in namespaces {
        let selection = Selection { namespace: Some(namespace.clone()), ..Selection::default() };
        for autoscaler in client.list(&gvk, &selection).await.unwrap_or_default() {
            let of = |field: &str| {
                let text = autoscaler.value().pointer(&format!("/spec/scaleTargetRef/{field}"));
                text.and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let name = autoscaler.name().unwrap_or_default().to_owned();
            scaled
                .entry((Some(namespace.clone()), of("kind"), of("name")))
                .or_default()
                .push(Autoscaler { kind: "HorizontalPodAutoscaler".to_owned(), name });
        }
    }
    scaled
}
