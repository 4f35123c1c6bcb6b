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
use plumb_crd::application::{Operation, SyncOperation};
use plumb_crd::settings::SecretData;
use plumb_crd::{AppProject, Application, to_app, to_operation};
use plumb_kube::{ApiError, ClusterClient, Connection, Fence, Gate, LiveStore, Selection};
use plumb_render::{
    AppFacts, ClusterFacts, Freshness, LocalFiles, RenderRequest, Renderer, RendererConfig, Tools,
};
use serde_json::Value;

use crate::apps::context::Ground;
use crate::cluster::destination::{Cluster, live_options};
use crate::cluster::run_slots::Seats;
use crate::compare::judge::{Bench, Case, Doubt, PastAttempt, PreviousApply};
use crate::compare::verdict_cache::Verdicts;
use crate::config::store::World;
use crate::metrics::counters::Metrics;
use crate::queue::Look;
use crate::runtime::run::{StartError, load_settings};
use crate::sources::gather::{Gathered, Glance, Sources, overrides};
use crate::sources::slow_servers::Patience;

/// How many objects are read at the same time.
const READS_AT_ONCE: usize = 16;

/// Why something could not be worked out.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
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
pub enum Wanted<'a> {
    /// What the app follows.
    Followed,
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
pub struct Sheet {
    gathered: Arc<Gathered>,
}

impl Sheet {
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
pub struct DeskOptions {
    /// The control-plane namespace: where Applications, projects and settings are.
    pub namespace: String,
    /// Everything below it is a cache and may be deleted at any time.
    pub cache_dir: PathBuf,
    /// The programs that render.
    pub tools: Tools,
}

/// A place to look at one app from.
pub struct Desk {
    options: DeskOptions,
    sources: Arc<Sources>,
    world: World,
    home: Arc<Cluster>,
}

impl Desk {
    /// Reads settings, repositories and projects.
    pub async fn open(connection: Connection, options: DeskOptions) -> Result<Self, StartError> {
        let client = connection.client()?;
        client.discover().await?;
        let world = World::default();
        load_settings(&client, &options.namespace, &world).await;
        load_registry(&client, &options.namespace, &world).await?;
        let metrics = Arc::new(Metrics::default());
        let sources =
            Sources::new(&options.cache_dir, renderer(&options), world.settings().start, &metrics).map_err(
                |source| StartError::Cache { directory: options.cache_dir.display().to_string(), source },
            )?;
        let mut live = live_options(&world, ClusterRef::IN_CLUSTER_SERVER);
        live.excluded = Arc::new(|_| true);
        let store = LiveStore::start(client.clone(), live);
        let gate = Gate::new(client.clone(), Fence::of_command(), None);
        let home = Cluster::home(client, store, gate, Seats::new(1));
        Ok(Self { options, sources: Arc::new(sources), world, home: Arc::new(home) })
    }

    /// What the app's sources ask for.
    pub async fn gather(&self, application: &Application, wanted: &Wanted<'_>) -> Result<Sheet, DeskError> {
        let (app, ground) = self.stand(application)?;
        let glance = Glance { look: Look::GitNow, since: Instant::now(), patience: Patience::Endless };
        let (manifests, revisions) = match wanted {
            Wanted::Followed => {
                let gathered = self.sources.gather(application, &app, &ground, glance, None).await;
                let gathered = gathered.map_err(|why| DeskError::Render(why.condition().1.to_owned()))?;
                return Ok(Sheet { gathered });
            }
            Wanted::Revisions(revisions) => (Vec::new(), *revisions),
            Wanted::Checkout { root, path } => {
                let rendered = self.render_checkout(application, &app, &ground, root, path).await;
                (rendered.map_err(DeskError::Render)?, &[] as &[String])
            }
        };
        let sync = SyncOperation { manifests, ..SyncOperation::default() };
        let written = Operation { sync: Some(Box::new(sync)), ..Operation::default() };
        let asked = to_operation(&written)
            .map_err(|problems| DeskError::Spec(problems.iter().map(ToString::to_string).collect()))?;
        let gathered = self
            .sources
            .gather_for_operation(application, &app, &ground, (&asked, &written), revisions)
            .await;
        Ok(Sheet { gathered: gathered.map_err(DeskError::Render)? })
    }

    /// Judges what the sheet asks for against what the cluster holds, as the loop would, except that nothing is
    /// remembered of earlier looks.
    pub async fn judge(
        &self,
        application: &Application,
        sheet: &Sheet,
    ) -> Result<BTreeMap<ObjectKey, Judged>, DeskError> {
        let (app, ground) = self.stand(application)?;
        let cases = self.cases(application, &ground, sheet).await?;
        let versions: BTreeSet<String> = cases
            .values()
            .flat_map(|case| {
                let desired = case.desired.as_ref().map(|desired| desired.manifest.api_version().to_owned());
                desired.into_iter().chain(case.live.as_ref().map(|live| live.api_version().to_owned()))
            })
            .collect();
        let kinds = cases.keys().map(ObjectKey::group_kind).collect();
        let schemas = ground.cluster.schemas.typed(versions, kinds, &ground.settings).await?;
        let gathered = &sheet.gathered;
        let render_again = || -> BoxFuture<'_, Option<Arc<Complete<DesiredSet>>>> {
            async { self.sources.render_again(&app, &ground, gathered).await }.boxed()
        };
        let bench = Bench {
            instance: &ground.instance,
            client: &ground.cluster.client,
            schemas: &schemas,
            rules: &ground.rules,
            options: ground.settings.compare_options(&app),
            prune: app.sync_policy.automated.is_some_and(|automation| automation.prune),
            heal_limit: ground.settings.heal_limit(),
            render_may_vary: gathered.may_vary,
            doubt: Doubt::Ask,
            now: Timestamp::now(),
            admission: 0,
            render_again: &render_again,
        };
        // What is only asked about is judged anew, and kept by nobody.
        let mut verdicts = bench.judge_all(&cases, &mut Verdicts::default()).await;
        let judged = |(key, case): (ObjectKey, Case)| {
            let verdict = verdicts.remove(&key)?;
            let desired = case.desired.map(|desired| desired.manifest);
            Some((key, Judged { verdict, desired, live: case.live }))
        };
        Ok(cases.into_iter().filter_map(judged).collect())
    }

    fn stand(&self, application: &Application) -> Result<(App, Ground), DeskError> {
        let app = to_app(application)
            .map_err(|problems| DeskError::Spec(problems.iter().map(ToString::to_string).collect()))?;
        if !app.destination.cluster.is_in_cluster() {
            let why = "its destination is another cluster than the one that plumb works in".to_owned();
            return Err(DeskError::Spec(vec![why]));
        }
        let ground = Ground::of(&app, &self.world, &self.options.namespace, Arc::clone(&self.home))
            .map_err(DeskError::Spec)?;
        Ok((app, ground))
    }

    async fn cases(
        &self,
        application: &Application,
        ground: &Ground,
        sheet: &Sheet,
    ) -> Result<BTreeMap<ObjectKey, Case>, DeskError> {
        let desired = &sheet.desired().objects;
        let known = application
            .status
            .resources
            .iter()
            .filter(|resource| !resource.hook)
            .map(|resource| (resource.key(), resource.gvk()));
        let asked = desired.iter().map(|(key, object)| (key.clone(), object.manifest.gvk()));
        // What Git asks for counts with its own version.
        let wanted: BTreeMap<ObjectKey, GroupVersionKind> = known.chain(asked).collect();
        let client = &ground.cluster.client;
        let reads = futures::stream::iter(wanted.into_iter().map(|(key, gvk)| async move {
            let live = match client.get_at(&gvk, key.namespace.as_deref(), &key.name).await {
                Err(ApiError::UnknownKind { .. }) => Ok(None),
                live => live,
            };
            (key, live)
        }));
        let found: Vec<_> = reads.buffered(READS_AT_ONCE).collect().await;
        let previous = previous(application, sheet.revisions());
        let autoscalers = autoscalers(client, &found).await;
        let mut cases = BTreeMap::new();
        for (key, live) in found {
            let live = live?.map(Arc::new);
            let mark =
                live.as_deref().map(|live| tracked_by(live, &ground.instance, &ground.settings.tracking));
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
            let case = Case {
                desired: wanted,
                live,
                owner,
                previous: previous.clone(),
                attempt: if previous == PreviousApply::Same {
                    PastAttempt::Applied
                } else {
                    PastAttempt::None
                },
                autoscalers: autoscalers.get(&place).cloned().unwrap_or_default(),
                ..Case::default()
            };
            cases.insert(key, case);
        }
        Ok(cases)
    }

    /// The objects that a directory of a checkout renders to, as JSON texts.
    async fn render_checkout(
        &self,
        application: &Application,
        app: &App,
        ground: &Ground,
        root: &Path,
        path: &str,
    ) -> Result<Vec<String>, String> {
        let [source] = app.sources.as_slice() else {
            return Err("a checkout can stand for the source of an app that has one".to_owned());
        };
        let renderer = Renderer::new(renderer(&self.options)).map_err(|error| error.to_string())?;
        let mut written = application.spec.source.as_deref().cloned().unwrap_or_default();
        path.clone_into(&mut written.path);
        let mut source = source.clone();
        source.path = Some(path.to_owned());
        let catalog = ground.cluster.client.catalog();
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
                instance: ground.instance.clone(),
                project: app.project.clone(),
                namespace: app.destination.namespace.clone().unwrap_or_default(),
            },
            cluster: ClusterFacts {
                kube_version: Some(catalog.kube_version()),
                api_versions: ground.cluster.api_versions(),
            },
            settings: Arc::clone(&ground.settings.render),
        };
        request.chart_dependencies =
            self.sources.dependencies(ground, &request, Freshness::Cached, Instant::now()).await?;
        let output = tokio::task::spawn_blocking(move || renderer.render(&request, Freshness::Cached))
            .await
            .map_err(|error| format!("rendering was cut off: {error}"))?
            .map_err(|error| error.full_message())?;
        Ok(output.manifests.into_iter().map(|manifest| manifest.value.to_string()).collect())
    }
}

fn renderer(options: &DeskOptions) -> RendererConfig {
    let mut config = RendererConfig::new(options.cache_dir.join("render"));
    config.tools = options.tools.clone();
    config
}

/// Was what is asked for now applied by the last sync?
fn previous(application: &Application, revisions: &[String]) -> PreviousApply {
    let state = application.status.operation_state.as_ref().filter(|state| state.phase == "Succeeded");
    let Some(result) = state.and_then(|state| state.sync_result.as_deref()) else {
        return PreviousApply::Unknown;
    };
    match (revisions, result.all_revisions()) {
        ([], _) => PreviousApply::Unknown,
        (asked, applied) if asked == applied => PreviousApply::Same,
        _ => PreviousApply::Changed(None),
    }
}

/// Repositories with their credentials, and projects.
async fn load_registry(client: &ClusterClient, namespace: &str, world: &World) -> Result<(), ApiError> {
    let labelled = Selection {
        namespace: Some(namespace.to_owned()),
        labels: Some("argocd.argoproj.io/secret-type".to_owned()),
        fields: None,
    };
    let gvk = GroupVersionKind::from_api_version("v1", "Secret");
    // Whoever may not read Secrets can still look at public repositories.
    for secret in client.list(&gvk, &labelled).await.unwrap_or_default() {
        let data = SecretData::read(secret.value()).ok().map(|(data, _)| data);
        let of_cluster = data.as_ref().and_then(SecretData::secret_type) == Some("cluster");
        world.note_secret(secret.name().unwrap_or_default(), data.filter(|_| !of_cluster));
    }
    let gvk = GroupVersionKind::from_api_version(AppProject::API_VERSION, AppProject::KIND);
    let all = Selection { namespace: Some(namespace.to_owned()), ..Selection::default() };
    for project in client.list(&gvk, &all).await? {
        world.note_project(&project);
    }
    Ok(())
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
