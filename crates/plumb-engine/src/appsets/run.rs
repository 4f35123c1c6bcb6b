//! One run of one set.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use plumb_appset::Follows;
use plumb_appset::reconcile::{
    Before, Decision, DeletionBudget, Destinations, RemovalStep, Rules, Situation, conclude, decide,
    is_owned_by, remove,
};
use plumb_core::app::AppId;
use plumb_crd::ApplicationSet;
use plumb_crd::application_set::ApplicationSetStatus;
use serde_json::{Value, json};
use tracing::{info, warn};

use super::gather::generate_set;
use super::write::{carry_out, delete, patch_application, patch_set, write_status};
use crate::engine::Engine;
use crate::set_signals::DecisionKind;

/// Asks for a look at Git, also between two polls.
pub(super) const REFRESH: &str = "argocd.argoproj.io/application-set-refresh";
/// How often Git is asked for a set if no setting says otherwise.
const GIT_EVERY: Duration = Duration::from_mins(3);

/// Whether a set runs again before its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Again {
    /// It does not.
    #[default]
    No,
    /// The watch has not yet reported what plumb or another client wrote.
    Soon,
    /// A request failed: the time doubles with each run that fails.
    Later,
}

/// What a run found out.
#[derive(Clone, Debug, Default)]
pub(super) struct Ran {
    /// What it follows outside of the cluster.
    pub(super) follows: Follows,
    pub(super) asked_clusters: bool,
    /// The kinds of objects that it read.
    pub(super) decisions: BTreeSet<DecisionKind>,
    /// Something is wrong that a cluster or project could cure.
    pub(super) failed: bool,
    /// The names that the set generates; `None` if that is not known.
    pub(super) names: Option<BTreeSet<String>>,
    /// When it runs without an event, to look at Git and other servers.
    pub(super) again_after: Option<Duration>,
    pub(super) again: Again,
    /// Applications that could not be written because plumb did not know that they exist, or are gone.
    pub(super) late: BTreeSet<String>,
    /// What it knows about deletions.
    pub(super) deletions: Before,
}

/// What other sets of the namespace generate: by the name of the Application.
pub(super) type OthersNames = BTreeMap<String, BTreeSet<String>>;

fn rules(engine: &Engine) -> Rules {
    let settings = engine.config.settings();
    Rules::of(&settings.app_sets, DeletionBudget(settings.set_budget))
}

/// The Applications of a namespace as they were last seen, and the names of those that cannot be read.
fn existing(engine: &Engine, namespace: &str) -> (BTreeMap<String, Value>, BTreeSet<String>) {
    let (mut readable, mut unreadable) = (BTreeMap::new(), BTreeSet::new());
    for known in engine.registry.all().into_iter().filter(|known| known.id.namespace == namespace) {
        let name = known.id.name.clone();
        match &known.head {
            Ok(head) => drop(readable.insert(name, head.to_json())),
            Err(_) => drop(unreadable.insert(name)),
        }
    }
    (readable, unreadable)
}

/// Runs a set: generates, decides, writes. `before` is what the run before found out.
///
/// Long because it is the list of these steps.
pub(super) async fn run_set(
    engine: &Arc<Engine>,
    set: Arc<ApplicationSet>,
    fetch_since: Option<Instant>,
    others: &OthersNames,
    before: &Ran,
) -> Ran {
    let id = AppId { namespace: set.metadata.namespace.clone(), name: set.metadata.name.clone() };
    let rules = rules(engine);
    if set.metadata.deletion_timestamp.is_some() {
        return remove_set(engine, &set, &id, &rules).await;
    }
    let settings = engine.config.settings();
    let mut asked = generate_set(engine, &set, fetch_since).await;
    // Cleaned before they are compared with the status: a condition that did not change keeps its time.
    let shown = engine.shown_text();
    if let Err(error) = &mut asked.generated {
        shown.clean(&mut error.message);
    }
    let (mut existing, unreadable) = existing(engine, &id.namespace);
    let applications: Vec<Value> = existing.values().cloned().collect();
    let destinations = Destinations::new(&engine.set_signals.clusters(), settings.in_cluster_enabled);
    let projects = engine.config.project_names();
    let mut decision = decide(&Situation {
        set: &set,
        generated: asked.generated.as_ref(),
        existing: &applications,
        unreadable: &unreadable,
        destinations: &destinations,
        project_exists: &|name| projects.contains(name),
        also_generated_by: others,
        rules: &rules,
        before: &before.deletions,
        git_every: settings.app_sets.requeue_after.unwrap_or(GIT_EVERY),
        now: Timestamp::now(),
    });
    if settings.app_sets.dry_run {
        decision = decision.into_dry_run();
    }
    if let Some(failure) = &mut decision.failure {
        shown.clean(&mut failure.message);
    }
    if decision.adds_finalizer {
        add_finalizer(engine, &set, &id).await;
    }
    let Some(set) = say_first(engine, set, &id, &decision, &existing, rules.max_resources).await else {
        return Ran { again: Again::Later, ..before.clone() };
    };
    let mut written = carry_out(engine, &set, &decision.writes, &before.late, &mut existing).await;
    if let Some(failure) = &mut written.failure {
        shown.clean(&mut failure.message);
    }
    if written.n_done > 0 {
        info!(set = %id, writes = written.n_done, "Applications of the set written");
    }
    let owned: Vec<&Value> = existing.values().filter(|live| is_owned_by(live, &set)).collect();
    let failure = written.failure.as_ref();
    let status = conclude(&set, &decision, failure, &owned, rules.max_resources, Timestamp::now());
    let is_told = tell(engine, &set, &id, &status).await;
    let again = if !is_told || written.failure.is_some() || decision.retries {
        Again::Later
    } else if written.late.is_empty() {
        Again::No
    } else {
        Again::Soon
    };
    let deletions = before.deletions.then(asked.generated.as_ref().ok(), &decision, failure.is_none());
    let name_of = |application: &Value| application["metadata"]["name"].as_str().map(str::to_owned);
    Ran {
        follows: asked.follows,
        asked_clusters: asked.clusters,
        decisions: asked.decisions,
        failed: asked.generated.is_err() || decision.failure.is_some(),
        names: asked.generated.ok().map(|found| found.applications.iter().filter_map(name_of).collect()),
        again_after: decision.requeue_after,
        again,
        late: written.late,
        deletions,
    }
}

/// Says in the status that deletions wait, if it does not say so yet, and returns the set with that status. A process that
/// is killed while it creates Applications thereby leaves behind that the old ones wait. `None` if it cannot be written.
async fn say_first(
    engine: &Engine,
    set: Arc<ApplicationSet>,
    id: &AppId,
    decision: &Decision,
    existing: &BTreeMap<String, Value>,
    most: usize,
) -> Option<Arc<ApplicationSet>> {
    if !decision.must_say_first(&set) {
        return Some(set);
    }
    let owned: Vec<&Value> = existing.values().filter(|live| is_owned_by(live, &set)).collect();
    let status = conclude(&set, decision, None, &owned, most, Timestamp::now());
    if let Err(error) = write_status(engine, &set, &status).await {
        warn!(set = %id, %error, "cannot write the status of an ApplicationSet");
        return None;
    }
    Some(Arc::new(ApplicationSet { status, ..ApplicationSet::clone(&set) }))
}

/// Writes the status, and that the request for a look at Git is fulfilled. False if the status cannot be written.
async fn tell(engine: &Engine, set: &ApplicationSet, id: &AppId, status: &ApplicationSetStatus) -> bool {
    let result = write_status(engine, set, status).await;
    if let Err(error) = &result {
        warn!(set = %id, %error, "cannot write the status of an ApplicationSet");
    }
    if set.metadata.annotations.contains_key(REFRESH) {
        let done = json!({"metadata": {"annotations": {REFRESH: null}}});
        if let Err(error) = patch_set(engine, id, done).await {
            warn!(set = %id, %error, "cannot remove the request for a look at Git");
        }
    }
    result.is_ok()
}

async fn add_finalizer(engine: &Engine, set: &ApplicationSet, id: &AppId) {
    let mut finalizers = set.metadata.finalizers.clone();
    finalizers.push("resources-finalizer.argocd.argoproj.io".to_owned());
    if let Err(error) = patch_set(engine, id, json!({"metadata": {"finalizers": finalizers}})).await {
        warn!(set = %id, %error, "cannot add the finalizer of an ApplicationSet");
    }
}

async fn remove_set(engine: &Engine, set: &ApplicationSet, id: &AppId, rules: &Rules) -> Ran {
    if engine.config.settings().app_sets.dry_run {
        warn!(set = %id, "a deleted ApplicationSet waits: applicationsetcontroller.dryrun is true");
        return Ran::default();
    }
    let applications: Vec<Value> = existing(engine, &id.namespace).0.into_values().collect();
    let removal = remove(set, &applications, rules, Timestamp::now());
    let mut again = if removal.waits { Again::Soon } else { Again::No };
    if let Some(name) = &removal.stuck {
        warn!(set = %id, application = name, "an Application of a deleted ApplicationSet does not go");
        again = Again::Later;
    }
    for step in removal.steps {
        let of = |name: String| AppId { namespace: id.namespace.clone(), name };
        let done = match step {
            RemovalStep::Release { name, patch } => {
                patch_application(engine, &of(name), patch).await.map(|_| ())
            }
            RemovalStep::Delete { name, uid } => delete(engine, &of(name), &uid).await,
            RemovalStep::RemoveFinalizer { finalizers } => {
                patch_set(engine, id, json!({"metadata": {"finalizers": finalizers}})).await
            }
        };
        match done {
            Err(error) if !error.api().is_some_and(plumb_kube::ApiError::is_not_found) => {
                warn!(set = %id, %error, "cannot go on with the deletion of an ApplicationSet");
                again = Again::Later;
                break;
            }
            _ => {}
        }
    }
    Ran { again, ..Ran::default() }
}
