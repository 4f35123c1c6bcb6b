//! Which sets run when.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use jiff::Timestamp;
use plumb_appset::reconcile::unreadable_conditions;
use plumb_core::app::AppId;
use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_crd::ApplicationSet;
use plumb_kube::{ObjectEvent, ObjectStream, Selection};
use serde_json::Value;
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use super::decisions::Decisions;
use super::run::{Again, OthersNames, REFRESH, Ran, run_set};
use super::write::write_conditions;
use crate::engine::Engine;
use crate::set_signals::{Happened, SetFigures};

/// How many sets run at the same time.
const AT_ONCE: usize = 4;
/// The shortest time between two runs of a set: changes in between are taken together.
const SPACING: Duration = Duration::from_millis(500);
/// How long the watch may take to report what plumb itself wrote.
const SOON: Duration = Duration::from_secs(2);
/// After a request that failed, a set runs again; after each further one it waits twice as long.
const RETRY: Duration = Duration::from_secs(10);
/// The longest such wait.
const LONGEST_RETRY: Duration = Duration::from_mins(15);
/// A set that aborted a run is left alone for a while.
const AFTER_DEFECT: Duration = Duration::from_mins(3);

/// A set and when it runs.
struct Known {
    set: Arc<ApplicationSet>,
    /// What a change of counts: without the status.
    content: Value,
    due: Option<Instant>,
    /// The next run asks Git, unless that was done since.
    fetch_since: Option<Instant>,
    last_run: Option<Instant>,
    last: Ran,
    is_running: bool,
    /// How many runs failed one after the other.
    n_failed: u32,
}

impl Known {
    fn rolls_out(&self) -> bool {
        self.set.spec.strategy.as_ref().is_some_and(|strategy| strategy.strategy_type == "RollingSync")
    }

    /// How something that happened concerns the set.
    fn concern(&self, id: &AppId, happened: &Happened) -> Concern {
        // What a run asks for is known when it ends: it may have read before this happened.
        let is_unknown = self.is_running;
        let follows = &self.last.follows;
        let asks_git =
            happened.any_push || happened.pushes.iter().any(|push| is_unknown || push.concerns_set(follows));
        let runs = asks_git
            || happened.settings
            || (happened.clusters && (is_unknown || self.last.asked_clusters || self.last.failed))
            || (happened.projects && (is_unknown || self.last.failed))
            || happened.changed.contains(id)
            || (self.rolls_out() && happened.progressed.contains(id))
            || (is_unknown && !happened.decisions.is_empty())
            || !happened.decisions.is_disjoint(&self.last.decisions);
        Concern { runs, asks_git }
    }

    /// When the set runs again without an event, and whether it then looks at Git.
    fn again(&mut self, ran: &Ran) -> Option<(Duration, bool)> {
        self.n_failed = if ran.again == Again::Later { self.n_failed.saturating_add(1) } else { 0 };
        let sooner = match ran.again {
            Again::No => None,
            Again::Soon => Some(SOON),
            Again::Later => {
                let factor = 2_u32.saturating_pow(self.n_failed - 1);
                Some(RETRY.saturating_mul(factor).min(LONGEST_RETRY))
            }
        };
        let regular = ran.again_after.map(|after| (after, true));
        // Of two equal times the one that looks at Git counts.
        let both = sooner.map(|after| (after, false)).into_iter().chain(regular);
        both.min_by_key(|(after, polls)| (*after, !polls))
    }

    fn request(&mut self, at: Instant) {
        let at = self.last_run.map_or(at, |last| at.max(last + SPACING));
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

/// How something that happened concerns a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Concern {
    /// It generates again.
    runs: bool,
    /// The Git servers are asked again for it.
    asks_git: bool,
}

/// Watches the sets and runs them, forever.
pub(crate) async fn run_app_sets(engine: Arc<Engine>) {
    let mut stream = stream(&engine).await;
    let mut sets = Sets {
        engine: Arc::clone(&engine),
        known: BTreeMap::new(),
        is_listed: false,
        is_ready: false,
        notes: JoinSet::new(),
        decisions: Decisions::new(Arc::clone(&engine)),
    };
    let mut runs: JoinSet<(AppId, Option<Ran>)> = JoinSet::new();
    loop {
        sets.start_due(&mut runs);
        let next = sets.next_due(runs.len());
        let sleep = async {
            match next {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            event = stream.next() => match event {
                Some(event) => sets.note(event),
                None => stream = self::stream(&engine).await,
            },
            () = engine.set_signals.wait() => {
                if let Some(happened) = engine.set_signals.take() {
                    sets.is_ready = true;
                    sets.happened(&happened);
                }
            }
            Some(ended) = runs.join_next() => {
                if let Ok((id, ran)) = ended {
                    sets.ended(&id, ran);
                }
            }
            () = sleep => {}
        }
    }
}

/// The watch of sets. Without their kind there are none: plumb works without it.
async fn stream(engine: &Engine) -> ObjectStream {
    let gvk = GroupVersionKind::from_api_version(ApplicationSet::API_VERSION, ApplicationSet::KIND);
    let namespaces = &engine.config.settings().app_sets.namespaces;
    let namespace = namespaces.is_empty().then(|| engine.options.namespace.clone());
    let client = &engine.home.client;
    let mut changes = client.catalog_changes();
    loop {
        changes.mark_unchanged();
        let selection = Selection { namespace: namespace.clone(), ..Selection::default() };
        if let Ok(stream) = client.watch_objects(&gvk, selection) {
            return stream;
        }
        if changes.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

/// True if sets of this namespace run.
pub(crate) fn permits(engine: &Engine, namespace: &str) -> bool {
    let settings = engine.config.settings();
    namespace == engine.options.namespace
        || (settings.app_sets.namespaces.iter().any(|pattern| pattern.matches(namespace))
            && engine.app_namespaces.permit(namespace))
}

struct Sets {
    engine: Arc<Engine>,
    known: BTreeMap<AppId, Known>,
    is_listed: bool,
    /// Clusters and Applications are known.
    is_ready: bool,
    /// Writes about sets that cannot be read.
    notes: JoinSet<()>,
    decisions: Decisions,
}

impl Sets {
    fn permits(&self, namespace: &str) -> bool {
        permits(&self.engine, namespace)
    }

    fn note(&mut self, event: ObjectEvent) {
        match event {
            ObjectEvent::Seen(manifest) => self.seen(&manifest),
            ObjectEvent::Gone { key, .. } => {
                let id = AppId { namespace: key.namespace_or_empty().to_owned(), name: key.name.clone() };
                self.forget(&id);
            }
            ObjectEvent::Listed => {
                self.is_listed = true;
                info!(sets = self.known.len(), "ApplicationSets known");
            }
            ObjectEvent::Trouble(_) => {}
        }
    }

    fn seen(&mut self, manifest: &Manifest) {
        let (Some(namespace), Some(name)) = (manifest.namespace(), manifest.name()) else { return };
        if !self.permits(namespace) {
            return;
        }
        let id = AppId { namespace: namespace.to_owned(), name: name.to_owned() };
        let set = match ApplicationSet::from_json(manifest.value()) {
            Ok(set) => Arc::new(set),
            Err(error) => {
                warn!(set = %id, %error, "cannot read an ApplicationSet; its Applications stay as they are");
                self.forget(&id);
                self.note_unreadable(id, manifest.value(), &error.to_string());
                return;
            }
        };
        self.engine.set_signals.set(&id, Some(figures(&set)));
        let now = Instant::now();
        let refreshes = set.metadata.annotations.contains_key(REFRESH);
        let content = content(manifest.value());
        let Some(known) = self.known.get_mut(&id) else {
            let known = Known {
                set,
                content,
                due: Some(now),
                fetch_since: Some(now),
                last_run: None,
                last: Ran::default(),
                is_running: false,
                n_failed: 0,
            };
            self.known.insert(id, known);
            return;
        };
        let rollout_moved = known.set.status.application_status != set.status.application_status;
        let asked = |set: &ApplicationSet| set.metadata.annotations.get(REFRESH).cloned();
        let refreshes = refreshes && asked(&known.set) != asked(&set);
        known.set = set;
        if refreshes {
            known.fetch_since = Some(now);
        }
        let changed = known.content != content;
        known.content = content;
        // Only rollouts write their state, and each state may be followed by another.
        if changed || refreshes {
            known.n_failed = 0;
        }
        if changed || refreshes || rollout_moved {
            known.request(now);
        }
    }

    /// Says in the status of a set that it cannot be read.
    fn note_unreadable(&mut self, id: AppId, set: &Value, error: &str) {
        while self.notes.try_join_next().is_some() {}
        let mut message =
            format!("cannot read the ApplicationSet: {error}. Its Applications stay as they are");
        self.engine.shown_text().clean(&mut message);
        let Some(conditions) = unreadable_conditions(&set["status"], &message, Timestamp::now()) else {
            return;
        };
        let engine = Arc::clone(&self.engine);
        self.notes.spawn(async move {
            if let Err(error) = write_conditions(&engine, &id, conditions).await {
                warn!(set = %id, %error, "cannot write the status of an ApplicationSet");
            }
        });
    }

    fn forget(&mut self, id: &AppId) {
        self.known.remove(id);
        self.engine.set_signals.set(id, None);
        self.engine.metrics.forget_set(id);
    }

    /// Requests runs of the sets that something concerns.
    fn happened(&mut self, happened: &Happened) {
        let now = Instant::now();
        for (id, known) in &mut self.known {
            let concern = known.concern(id, happened);
            if concern.asks_git {
                known.fetch_since = Some(now);
            }
            if concern.runs {
                known.request(now);
            }
        }
    }

    fn next_due(&self, n_running: usize) -> Option<Instant> {
        if !self.is_listed || !self.is_ready || n_running >= AT_ONCE {
            return None;
        }
        self.known.values().filter(|known| !known.is_running).filter_map(|known| known.due).min()
    }

    fn start_due(&mut self, runs: &mut JoinSet<(AppId, Option<Ran>)>) {
        if !self.is_listed || !self.is_ready {
            return;
        }
        let now = Instant::now();
        let mut due = Vec::new();
        let mut running: BTreeMap<String, usize> = BTreeMap::new();
        for (id, known) in &self.known {
            if known.is_running {
                *running.entry(id.namespace.clone()).or_default() += 1;
            } else if let Some(at) = known.due.filter(|at| *at <= now) {
                due.push((id.clone(), at));
            }
        }
        for id in turns(due, running, AT_ONCE.saturating_sub(runs.len())) {
            let others = self.others(&id);
            let Some(known) = self.known.get_mut(&id) else { continue };
            known.is_running = true;
            known.due = None;
            known.last_run = Some(now);
            let fetch_since = known.fetch_since.take();
            let before = known.last.clone();
            let (engine, set) = (Arc::clone(&self.engine), Arc::clone(&known.set));
            runs.spawn(async move {
                let run = AssertUnwindSafe(Box::pin(run_set(&engine, set, fetch_since, &others, &before)));
                let ran = run.catch_unwind().await.ok();
                engine.metrics.set_reconciles.observe([&id.namespace, &id.name], now.elapsed());
                (id, ran)
            });
        }
    }

    /// Which other sets of the same namespace generate which names.
    fn others(&self, id: &AppId) -> OthersNames {
        let mut others = OthersNames::new();
        let same_namespace =
            self.known.iter().filter(|(other, _)| other.namespace == id.namespace && other.name != id.name);
        for (other, known) in same_namespace {
            for name in known.last.names.iter().flatten() {
                others.entry(name.clone()).or_default().insert(other.name.clone());
            }
        }
        others
    }

    fn ended(&mut self, id: &AppId, ran: Option<Ran>) {
        let now = Instant::now();
        let Some(known) = self.known.get_mut(id) else { return };
        known.is_running = false;
        let Some(ran) = ran else {
            error!(set = %id, "a defect of plumb aborted the run of an ApplicationSet; its Applications stay as they are");
            known.request(now + AFTER_DEFECT);
            return;
        };
        if let Some((after, polls)) = known.again(&ran) {
            if polls && known.fetch_since.is_none() {
                // Sets that are due at about the same time share one request.
                known.fetch_since = Some(now + after * 9 / 10);
            }
            known.request(now + after);
        }
        let names_changed = known.last.names != ran.names;
        known.last = ran;
        if names_changed {
            self.tell_others(id);
        }
        let read = self.known.values().flat_map(|known| known.last.decisions.iter().cloned());
        self.decisions.follow(&read.collect());
    }

    /// A set whose names another set generates now, too, says so.
    fn tell_others(&mut self, id: &AppId) {
        let Some(names) = self.known.get(id).and_then(|known| known.last.names.clone()) else { return };
        let now = Instant::now();
        let others = self
            .known
            .iter_mut()
            .filter(|(other, _)| other.namespace == id.namespace && other.name != id.name);
        for (_, known) in others {
            if known.last.names.as_ref().is_some_and(|theirs| !theirs.is_disjoint(&names)) {
                known.request(now);
            }
        }
    }
}

/// Which of the sets that are due run now: a namespace with fewer running sets comes first, then who waits longest. Sets
/// of one namespace that wait for slow servers do not keep all others waiting.
fn turns(mut due: Vec<(AppId, Instant)>, mut running: BTreeMap<String, usize>, n_free: usize) -> Vec<AppId> {
    let mut chosen = Vec::new();
    while chosen.len() < n_free {
        let n_running = |id: &AppId| running.get(&id.namespace).copied().unwrap_or_default();
        let next = due.iter().enumerate().min_by_key(|(_, (id, at))| (n_running(id), *at));
        let Some((index, _)) = next else { break };
        let (id, _) = due.swap_remove(index);
        *running.entry(id.namespace.clone()).or_default() += 1;
        chosen.push(id);
    }
    chosen
}

/// What metrics tell about a set.
fn figures(set: &ApplicationSet) -> SetFigures {
    let mut conditions = set.status.conditions.iter();
    let told = conditions.find(|condition| condition.condition_type == "ResourcesUpToDate");
    let update_status = told.map_or_else(|| "Unknown".to_owned(), |condition| condition.reason.clone());
    SetFigures { update_status, n_owned: set.status.resources.len() }
}

/// What a change of a set counts by: everything but its status and the request for a look at Git.
fn content(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut annotations = metadata["annotations"].clone();
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.retain(|key, _| key != REFRESH);
    }
    serde_json::json!({
        "spec": object["spec"],
        "labels": metadata["labels"],
        "finalizers": metadata["finalizers"],
        "deletionTimestamp": metadata["deletionTimestamp"],
        "annotations": annotations,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use plumb_appset::Follows;
    use serde_json::json;

    use super::*;
    use crate::pushes::push::{Push, RepositoryPush};

    fn id(name: &str) -> AppId {
        AppId { namespace: "argocd".to_owned(), name: name.to_owned() }
    }

    /// A set that ran and read this.
    fn known(strategy: &str, last: Ran) -> Known {
        let set = json!({
            "metadata": {"name": "teams", "namespace": "argocd"},
            "spec": {
                "generators": [], "strategy": {"type": strategy},
                "template": {"metadata": {"name": "x"}, "spec": {"project": "default", "destination": {}}},
            },
        });
        let set = Arc::new(ApplicationSet::from_json(&set).unwrap());
        let (due, fetch_since, last_run) = (None, None, None);
        let (is_running, n_failed) = (false, 0);
        Known { set, content: Value::Null, due, fetch_since, last_run, last, is_running, n_failed }
    }

    #[test]
    fn a_set_that_fails_waits_longer_each_time() {
        let mut set = known("", Ran::default());
        let mut after = |again: Again, regular: Option<u64>| {
            let again_after = regular.map(Duration::from_secs);
            let next = set.again(&Ran { again_after, again, ..Ran::default() });
            next.map(|(after, polls)| (after.as_secs(), polls))
        };
        let waits: Vec<_> = (0..9).map(|_| after(Again::Later, None).map(|(after, _)| after)).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 900, 900].map(Some));
        assert_eq!(after(Again::Later, Some(180)), Some((180, true)), "the regular look comes first");
        assert_eq!(after(Again::No, None), None);
        assert_eq!(after(Again::Later, Some(180)), Some((10, false)), "it succeeded in between");
        assert_eq!(after(Again::Soon, Some(180)), Some((2, false)));
        assert_eq!(after(Again::No, Some(180)), Some((180, true)));
    }

    #[test]
    fn namespaces_take_turns() {
        let now = Instant::now();
        let due = |names: &[(&str, u64)]| -> Vec<(AppId, Instant)> {
            let due = names.iter().enumerate().map(|(index, (namespace, waits))| {
                let id = AppId { namespace: (*namespace).to_owned(), name: format!("s{index}") };
                (id, now + Duration::from_secs(100 - waits))
            });
            due.collect()
        };
        let chosen = |names: &[(&str, u64)], running: &[(&str, usize)], n_free: usize| -> Vec<String> {
            let running = running.iter().map(|(namespace, n)| ((*namespace).to_owned(), *n)).collect();
            turns(due(names), running, n_free).iter().map(ToString::to_string).collect()
        };
        let names = [("a", 9), ("a", 8), ("a", 7), ("b", 1)];
        assert_eq!(chosen(&names, &[], 2), ["a/s0", "b/s3"]);
        assert_eq!(chosen(&names, &[("b", 1)], 2), ["a/s0", "a/s1"]);
        assert_eq!(chosen(&names, &[("a", 3)], 1), ["b/s3"]);
        assert_eq!(chosen(&names, &[], 9).len(), 4);
        assert_eq!(chosen(&names, &[], 0).len(), 0);
    }

    fn of_git(revision: &str) -> Ran {
        let git = BTreeSet::from([("https://git.example.com/team/repo".to_owned(), revision.to_owned())]);
        Ran { follows: Follows { git, ..Follows::default() }, ..Ran::default() }
    }

    fn push(repository: &str, branch: &str) -> RepositoryPush {
        let push = Push {
            repositories: vec![format!("https://git.example.com/team/{repository}.git")],
            revisions: vec![branch.to_owned()],
            ..Push::default()
        };
        push.by_repository(true).remove(0)
    }

    const NOT: Concern = Concern { runs: false, asks_git: false };
    const RUNS: Concern = Concern { runs: true, asks_git: false };
    const ASKS_GIT: Concern = Concern { runs: true, asks_git: true };

    #[test]
    fn a_push_concerns_the_sets_that_read_the_branch() {
        let happened = |pushes| Happened { pushes, ..Happened::default() };
        let concern = |last: Ran, push| known("", last).concern(&id("teams"), &happened(vec![push]));
        assert_eq!(concern(of_git("main"), push("repo", "main")), ASKS_GIT);
        assert_eq!(concern(of_git("main"), push("repo", "other")), NOT);
        assert_eq!(concern(of_git("main"), push("another", "main")), NOT);
        assert_eq!(concern(Ran::default(), push("repo", "main")), NOT, "a set without Git");
        let mut running = known("", Ran::default());
        running.is_running = true;
        let happened = happened(vec![push("repo", "main")]);
        assert_eq!(running.concern(&id("teams"), &happened), ASKS_GIT, "what it reads is not known yet");
        let too_many = Happened { any_push: true, ..Happened::default() };
        assert_eq!(known("", of_git("main")).concern(&id("teams"), &too_many), ASKS_GIT);
    }

    #[test]
    fn a_cluster_concerns_the_sets_that_asked_for_clusters_or_failed() {
        let happened = Happened { clusters: true, ..Happened::default() };
        let concern = |last: Ran| known("", last).concern(&id("teams"), &happened);
        assert_eq!(concern(Ran { asked_clusters: true, ..Ran::default() }), RUNS);
        assert_eq!(concern(Ran { failed: true, ..Ran::default() }), RUNS, "its destination may be there now");
        assert_eq!(concern(of_git("main")), NOT);
    }

    #[test]
    fn a_decision_concerns_the_sets_that_read_its_kind() {
        let kind = |resource: &str| ("cluster.io/v1".to_owned(), resource.to_owned());
        let happened =
            Happened { decisions: BTreeSet::from([kind("placementdecisions")]), ..Happened::default() };
        let reads = |resource: &str| Ran { decisions: BTreeSet::from([kind(resource)]), ..Ran::default() };
        let concern = |last: Ran| known("", last).concern(&id("teams"), &happened);
        assert_eq!(concern(reads("placementdecisions")), RUNS);
        assert_eq!(concern(reads("others")), NOT);
        assert_eq!(concern(Ran::default()), NOT);
        let mut running = known("", Ran::default());
        running.is_running = true;
        assert_eq!(running.concern(&id("teams"), &happened), RUNS, "what it reads is not known yet");
    }

    #[test]
    fn other_events_concern_few_sets() {
        let concern = |strategy: &str, last: Ran, happened: &Happened| {
            known(strategy, last).concern(&id("teams"), happened)
        };
        let projects = Happened { projects: true, ..Happened::default() };
        assert_eq!(concern("", Ran::default(), &projects), NOT);
        assert_eq!(concern("", Ran { failed: true, ..Ran::default() }, &projects), RUNS);
        let settings = Happened { settings: true, ..Happened::default() };
        assert_eq!(concern("", Ran::default(), &settings), RUNS);
        let changed = |name: &str| Happened { changed: BTreeSet::from([id(name)]), ..Happened::default() };
        assert_eq!(concern("", Ran::default(), &changed("teams")), RUNS, "an Application was edited");
        assert_eq!(concern("", Ran::default(), &changed("others")), NOT);
        let progressed = Happened { progressed: BTreeSet::from([id("teams")]), ..Happened::default() };
        assert_eq!(concern("", Ran::default(), &progressed), NOT, "the status of an Application changed");
        assert_eq!(concern("RollingSync", Ran::default(), &progressed), RUNS);
    }
}
