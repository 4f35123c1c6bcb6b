//! Many apps at once, where no engine runs: one fetch per repository, one list per kind, and nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;
use plumb_core::app::{App, AppId, ClusterRef, Pause};
use plumb_core::desired::{Complete, DesiredSet};
use plumb_core::drift::Finding;
use plumb_core::fields::object_pause;
use plumb_core::live::LiveSet;
use plumb_core::object::{GroupKind, Manifest, ObjectKey};
use plumb_core::tracking::{TrackedBy, tracked_by};
use plumb_crd::wire::whole_seconds;
use plumb_crd::{Application, DriftReport};
use plumb_kube::{Connection, LiveStore};

use super::inspector::{InspectError, InspectOptions, Inspector, Judged, RenderedApp, last_writes};
use crate::apps::shown_text::ShownText;
use crate::cluster::destination::{Cluster, live_options};
use crate::compare::inputs::is_autoscaler;
use crate::compare::judge::DryRunPolicy;
use crate::compare::run::{Compared, Comparison};
use crate::compare::state::JudgeState;
use crate::config::load::KnownProjects;
use crate::health::check::Unhealthy;
use crate::health::events_and_logs::Diagnostics;
use crate::health::history::HealthState;
use crate::queue::RefreshDepth;
use crate::runtime::start_error::StartError;
use crate::sources::gather::FetchPolicy;
use crate::sources::gathered::{Gathered, StoredGathered};
use crate::sources::parked::Parked;
use crate::sources::slow_servers::Patience;
use crate::sources::state::GitState;

/// How many apps are rendered and compared at the same time.
const APPS_AT_ONCE: usize = 4;
/// How long the lists of all kinds may take.
const LISTED_WITHIN: Duration = Duration::from_mins(2);
/// How long the logs of the unhealthy objects of an app may take.
const LOGS_WITHIN: Duration = Duration::from_secs(10);
/// A report names at most this many unhealthy objects.
const MOST_UNHEALTHY: usize = 100;

/// The kinds between an object of an operator and its pods.
const WORKLOADS: [(&str, &str); 5] = [
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("apps", "ReplicaSet"),
    ("batch", "CronJob"),
];

/// Whether the API server is asked for dry runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DryRuns {
    /// It is asked where the facts leave a doubt. Nothing changes, but the user needs the right to change objects, and
    /// admission webhooks see the requests.
    Ask,
    /// It is not asked: every request only reads.
    Never,
}

/// What to survey, and how.
#[derive(Clone, Debug)]
pub struct SurveyOptions {
    /// How apps are rendered.
    pub inspect: InspectOptions,
    /// The apps to judge. What the others rendered counts as far as their status tells.
    pub apps: BTreeSet<AppId>,
    /// Local checkouts of repositories, by their normalized URL.
    pub checkouts: BTreeMap<String, String>,
    /// Whether the API server is asked for dry runs.
    pub dry_runs: DryRuns,
    /// Keep the objects with their verdicts. They take much memory.
    pub keep_objects: bool,
}

/// How far a survey is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// So many of so many apps are rendered.
    Rendered(usize, usize),
    /// The live objects of so many kinds are being listed.
    Listing(usize),
    /// So many of so many apps are compared.
    Compared(usize, usize),
    /// The user has no right to change some objects, so the API server answered no dry run of them.
    DryRunsDenied,
    /// The user has no right to read the projects.
    ProjectsDenied,
    /// The cluster has no projects.
    ProjectsAbsent,
    /// No setting says how objects are tracked, and their marks are labels.
    TrackedByLabel,
}

/// One app that was judged.
#[derive(Debug)]
pub struct Surveyed {
    /// What a `DriftReport` would say about it.
    pub report: DriftReport,
    /// Every finding. The report leaves some out if there are many.
    pub findings: Vec<Finding>,
    /// Secrets that Git has with their values.
    pub plain_secrets: Vec<ObjectKey>,
    /// Objects that exist and could not be read, with the reason.
    pub unreadable: Vec<String>,
    /// What Git asks for; with `keep_objects`.
    pub rendered: Option<RenderedApp>,
    /// Its objects; with `keep_objects`.
    pub objects: BTreeMap<ObjectKey, Judged>,
}

/// Judges apps. `applications` are all Applications that the user can list.
///
/// # Errors
/// If the cluster cannot be reached. An app that cannot be judged costs the others
/// nothing.
pub async fn survey(
    connection: Connection,
    options: SurveyOptions,
    applications: &[Manifest],
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<BTreeMap<AppId, Result<Surveyed, InspectError>>, StartError> {
    let mut inspector =
        Inspector::prepare(connection, options.inspect.clone(), options.checkouts.clone()).await?;
    let parsed: Vec<Application> =
        applications.iter().filter_map(|object| Application::from_json(object.value()).ok()).collect();
    inspector.note_claims(parsed.iter().cloned());
    match inspector.projects {
        KnownProjects::All => {}
        KnownProjects::Absent => progress(Progress::ProjectsAbsent),
        KnownProjects::Denied => progress(Progress::ProjectsDenied),
    }
    let wanted: Vec<&Application> =
        parsed.iter().filter(|application| options.apps.contains(&application.id())).collect();
    if inspector.find_tracking(&wanted).await {
        progress(Progress::TrackedByLabel);
    }
    let rendered = render_all(&inspector, &wanted, progress).await;
    let home = Arc::new(inspector.home.with_store(listed(&inspector, &wanted, &rendered, progress).await));
    let surveyor = Surveyor {
        inspector: &inspector,
        options: &options,
        home,
        applications,
        diagnostics: Diagnostics::of_logs(),
        shown: ShownText::hiding(&options.inspect.cache_dir),
        denied_dry_runs: AtomicBool::new(false),
        now: Timestamp::now(),
    };
    let (n_done, n_apps) = (AtomicUsize::new(0), wanted.len());
    let surveyor = &surveyor;
    let judged = futures::stream::iter(wanted.iter().zip(rendered).map(|(application, rendered)| {
        let n_done = &n_done;
        async move {
            let outcome = match rendered {
                Ok(stored) => surveyor.judge(application, &stored).await,
                Err(error) => Err(error),
            };
            progress(Progress::Compared(n_done.fetch_add(1, Ordering::Relaxed) + 1, n_apps));
            (application.id(), outcome)
        }
    }));
    let judged = judged.buffered(APPS_AT_ONCE).collect().await;
    if surveyor.denied_dry_runs.load(Ordering::Relaxed) {
        progress(Progress::DryRunsDenied);
    }
    Ok(judged)
}

/// Renders every app, and notes what it renders. A repository is fetched once for all of them.
async fn render_all(
    inspector: &Inspector,
    wanted: &[&Application],
    progress: &(dyn Fn(Progress) + Sync),
) -> Vec<Result<Arc<StoredGathered>, InspectError>> {
    let policy =
        FetchPolicy { depth: RefreshDepth::GitNow, since: Instant::now(), patience: Patience::Endless };
    let n_done = AtomicUsize::new(0);
    let render = async |application: &Application| {
        let (app, context) = inspector.context_on(application, &inspector.home)?;
        let mut parked = Parked::default();
        let gathered = inspector.sources.gather(application, &app, &context, policy, None, &mut parked).await;
        progress(Progress::Rendered(n_done.fetch_add(1, Ordering::Relaxed) + 1, wanted.len()));
        match gathered {
            Ok(gathered) => {
                // Only the compressed set is kept until the comparison: a large app takes its turn.
                inspector.claims.set(&app.id, &inspector.home.server, &context.instance, &gathered.set);
                Ok(gathered.stored())
            }
            Err(why) => {
                inspector.claims.not_rendered(&app.id);
                Err(InspectError::Render(why.message()))
            }
        }
    };
    futures::stream::iter(wanted.iter().map(|application| render(application)))
        .buffered(APPS_AT_ONCE)
        .collect()
        .await
}

/// Lists the kinds that the apps use, each once. What cannot be listed is read object by object.
async fn listed(
    inspector: &Inspector,
    wanted: &[&Application],
    rendered: &[Result<Arc<StoredGathered>, InspectError>],
    progress: &(dyn Fn(Progress) + Sync),
) -> LiveStore {
    let in_git = rendered.iter().flatten().flat_map(|stored| stored.set.keys()).map(ObjectKey::group_kind);
    let resources = wanted.iter().flat_map(|application| &application.status.resources);
    let known = resources.map(|resource| resource.key().group_kind());
    let workloads = WORKLOADS.map(|(group, kind)| GroupKind::new(group, kind));
    let kinds: BTreeSet<GroupKind> =
        in_git.chain(known).chain(workloads).filter(|kind| !is_application(kind)).collect();
    let mut options = live_options(&inspector.config, ClusterRef::IN_CLUSTER_SERVER);
    options.skip_forbidden = true;
    let kept = options.keep_whole.clone();
    let by_settings = Arc::clone(&options.excluded);
    progress(Progress::Listing(kinds.union(&kept).count()));
    options.excluded = Arc::new(move |kind| {
        let is_used = kinds.contains(kind) || kept.contains(kind) || is_autoscaler(kind);
        !is_used || by_settings(kind)
    });
    let store = LiveStore::start(inspector.home.client.clone(), options);
    let _ = tokio::time::timeout(LISTED_WITHIN, store.wait_complete()).await;
    store
}

/// Applications were listed before: they say which apps there are.
fn is_application(kind: &GroupKind) -> bool {
    kind.group == "argoproj.io" && kind.kind == Application::KIND
}

/// What all apps share.
struct Surveyor<'run> {
    inspector: &'run Inspector,
    options: &'run SurveyOptions,
    home: Arc<Cluster>,
    applications: &'run [Manifest],
    diagnostics: Diagnostics,
    shown: ShownText,
    /// Was a dry run denied because the user has no right to change objects?
    denied_dry_runs: AtomicBool,
    now: Timestamp,
}

impl Surveyor<'_> {
    async fn judge(
        &self,
        application: &Application,
        stored: &Arc<StoredGathered>,
    ) -> Result<Surveyed, InspectError> {
        let (app, context) = self.inspector.context_on(application, &self.home)?;
        let unreadable = || InspectError::Render("the rendered manifests cannot be read back".to_owned());
        let gathered = stored.load().ok_or_else(unreadable)?;
        let permits_claim = |other: &AppId, key: &ObjectKey| self.inspector.permits_claim(other, key);
        let render_again = || -> BoxFuture<'_, Option<Arc<Complete<DesiredSet>>>> {
            async { self.inspector.sources.render_again(&app, &context, &gathered).await }.boxed()
        };
        let comparison = Comparison {
            app: &app,
            instance: &context.instance,
            cluster: &context.cluster,
            project: &context.project,
            // The user's own rights decide.
            acting: Some(&context.cluster.client),
            claims: &self.inspector.claims,
            permits_claim: &permits_claim,
            tracking: &context.settings.tracking,
            settings: &context.settings,
            diagnostics: &self.diagnostics,
            rules: &context.rules.rules,
            gathered: &gathered,
            recorded: &application.recorded_objects(),
            dry_runs: match self.options.dry_runs {
                DryRuns::Ask => DryRunPolicy::Ask,
                DryRuns::Never => DryRunPolicy::Never,
            },
            denied_dry_runs: Some(&self.denied_dry_runs),
            now: self.now,
            ask_again: false,
            render_again: &render_again,
        };
        let mut compared = self.compare(&comparison, application).await?;
        self.quote_logs(&comparison, &mut compared).await;
        let mut surveyed = self.surveyed(&app, &gathered, compared);
        surveyed.rendered =
            self.options.keep_objects.then(|| RenderedApp::new(Arc::clone(&gathered), &context));
        Ok(surveyed)
    }

    async fn compare(
        &self,
        comparison: &Comparison<'_>,
        application: &Application,
    ) -> Result<Compared, InspectError> {
        let wanted = comparison.wanted();
        let (applications, wanted): (Vec<ObjectKey>, Vec<ObjectKey>) =
            wanted.into_iter().partition(|key| is_application(&key.group_kind()));
        let snapshot = self.home.store.snapshot(comparison.instance, &wanted, &[]).await;
        let (mut live, mut unreadable) = (snapshot.live, snapshot.unreadable);
        self.add_applications(comparison, &applications, &mut live);
        live.objects.retain(|key, _| comparison.permits(key));
        unreadable.retain(|(key, _)| comparison.permits(key));
        let schemas = comparison.schemas(&live).await?;
        let health = comparison.check_health(&live, &mut HealthState::default()).await;
        let recorded = comparison.recorded.clone();
        let compared =
            Compared { health, recorded, unreadable, ..Compared::new(comparison.gathered, live, schemas) };
        let mut state = JudgeState::default();
        state.writes = last_writes(application, comparison.gathered);
        Ok(comparison.judge(compared, &GitState::default(), &mut state).await)
    }

    /// The Applications that this one asks for or tracks, as they were listed before.
    fn add_applications(&self, comparison: &Comparison<'_>, wanted: &[ObjectKey], live: &mut LiveSet) {
        for object in self.applications {
            let Some(key) = object.key() else { continue };
            let is_tracked =
                || tracked_by(object, comparison.instance, comparison.tracking) == TrackedBy::Ours;
            if wanted.contains(&key) || is_tracked() {
                live.objects.insert(key, Arc::new(object.clone()));
            }
        }
    }

    /// The first look at unhealthy objects asks for their logs; the second one quotes them.
    async fn quote_logs(&self, comparison: &Comparison<'_>, compared: &mut Compared) {
        if !compared.health.unhealthy.is_empty() {
            self.diagnostics.settled_within(LOGS_WITHIN).await;
            compared.health = comparison.check_health(&compared.live, &mut HealthState::default()).await;
        }
    }

    fn surveyed(&self, app: &App, gathered: &Arc<Gathered>, compared: Compared) -> Surveyed {
        let findings: Vec<Finding> =
            compared.verdicts.values().flat_map(|verdict| verdict.findings.iter().cloned()).collect();
        let revision = gathered.revisions.first().cloned().unwrap_or_default();
        let unhealthy = compared.health.unhealthy.iter().take(MOST_UNHEALTHY);
        let mut report = DriftReport::of(&app.id, &revision, whole_seconds(self.now), &findings)
            .with_health(unhealthy.map(Unhealthy::to_wire).collect())
            .with_pauses(self.pauses(app, &compared))
            .with_exemptions(&compared.exemptions);
        report.texts().for_each(|text| self.shown.clean(text));
        let unreadable = compared.unreadable.iter().map(|(key, error)| format!("{key}: {error}"));
        let mut surveyed = Surveyed {
            report,
            findings,
            plain_secrets: plumb_core::secrets::plain_secrets(gathered.desired.get(), |origin| {
                !gathered.is_from_plugin(origin)
            }),
            unreadable: unreadable.collect(),
            rendered: None,
            objects: BTreeMap::new(),
        };
        if self.options.keep_objects {
            let desired = &gathered.desired.get().objects;
            let objects = compared.verdicts.into_iter().map(|(key, verdict)| {
                let desired = desired.get(&key).map(|object| object.manifest.clone());
                let live = compared.live.objects.get(&key).cloned();
                (key, Judged { verdict, desired, live })
            });
            surveyed.objects = objects.collect();
        }
        surveyed
    }

    fn pauses(&self, app: &App, compared: &Compared) -> Vec<(ObjectKey, Pause)> {
        let of_app = app.pause.clone().filter(|pause| pause.holds_at(self.now));
        let objects = compared.live.objects.iter();
        let of_app = of_app.into_iter().map(|pause| (Application::key(&app.id), pause));
        of_app
            .chain(
                objects
                    .filter_map(|(key, live)| Some((key.clone(), object_pause(app, key, live, self.now)?))),
            )
            .collect()
    }
}
