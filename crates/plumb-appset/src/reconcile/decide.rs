//! Everything that a set writes, decided at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use plumb_crd::ApplicationSet;
use plumb_crd::application_set::{ApplicationSetApplicationStatus, ApplicationSetCondition};
use serde_json::{Value as Json, json};

use super::budget::approved_at;
use super::conditions::{Failure, deletions_wait, rollout_conditions, waits_since};
use super::destinations::Destinations;
use super::ownership::is_owned_by;
use super::policy::{Policy, Rules};
use super::removal::FINALIZER;
use super::requeue::requeue_after;
use super::rollout::{self, Rollout};
use super::steps::{deletes_in_reverse, steps_of};
use super::update::Updater;
use super::validate::{self, name_of};
use crate::error::GenerationError;
use crate::generate::Generated;

/// After a failure of a generator or a template, the set is tried again.
const RETRY: Duration = Duration::from_mins(3);

/// What is known about a set.
pub struct Situation<'a> {
    /// The set.
    pub set: &'a ApplicationSet,
    /// What it generates.
    pub generated: Result<&'a Generated, &'a GenerationError>,
    /// All Applications of its namespace, whoever owns them.
    pub existing: &'a [Json],
    /// The names of Applications of the namespace that cannot be read. They are left as they are.
    pub unreadable: &'a BTreeSet<String>,
    /// The clusters that destinations may name.
    pub destinations: &'a Destinations,
    /// Does a project of this name exist?
    pub project_exists: &'a dyn Fn(&str) -> bool,
    /// Other sets of the same namespace that generate the same names: by the name of the Application.
    pub also_generated_by: &'a BTreeMap<String, BTreeSet<String>>,
    /// Settings of the installation.
    pub rules: &'a Rules,
    /// What the run before knows about deletions.
    pub before: &'a Before,
    /// How often Git is asked.
    pub git_every: Duration,
    /// The time.
    pub now: Timestamp,
}

/// What a run knows about deletions, for the next one. By default there was no run before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Did deletions wait for a user? `None` if only the status tells it. The status that is seen may be older.
    pub waits: Option<bool>,
    /// The generators that returned nothing then ([`Generated::silent`]); `None` if that is not known.
    pub silent: Option<BTreeSet<usize>>,
}

impl Before {
    /// The same for the run after this decision. `is_written` says that all its writes succeeded.
    #[must_use]
    pub fn then(&self, generated: Option<&Generated>, decision: &Decision, is_written: bool) -> Self {
        match generated {
            Some(generated) if !decision.ended_early => Self {
                waits: Some(decision.held.is_some() || (decision.approved.is_some() && !is_written)),
                silent: Some(generated.silent.clone()),
            },
            _ => self.clone(),
        }
    }

    /// Is a generator silent that was not silent before? While deletions wait, all silent ones count.
    fn falls_silent(&self, silent: &BTreeSet<usize>, waits: bool) -> bool {
        match &self.silent {
            Some(known) if !waits => !silent.is_subset(known),
            _ => !silent.is_empty(),
        }
    }
}

/// One write to an Application.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Create it.
    Create {
        /// Its name.
        name: String,
        /// The whole object.
        object: Json,
    },
    /// Change it.
    Patch {
        /// Its name.
        name: String,
        /// The merge patch.
        patch: Json,
    },
    /// Delete it.
    Delete {
        /// Its name.
        name: String,
        /// The object that was seen; another one of the same name stays.
        uid: String,
        /// The patch that comes first: an Application without a cluster could never delete its objects.
        release: Option<Json>,
    },
}

impl Write {
    /// The name of the Application.
    pub fn name(&self) -> &str {
        match self {
            Self::Create { name, .. } | Self::Patch { name, .. } | Self::Delete { name, .. } => name,
        }
    }
}

/// What a set writes.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the set, in any combination"
)]
pub struct Decision {
    /// In the order of the names; deletions come last.
    pub writes: Vec<Write>,
    /// Deletions that wait for a user, in words.
    pub held: Option<String>,
    /// Deletions that waited and that a user approved, in the same words.
    pub(super) approved: Option<String>,
    /// Names that another set generates, too, in words.
    pub shared_names: Option<String>,
    /// The generators or templates failed: nothing is written.
    pub generation_error: Option<Failure>,
    /// What else is wrong without any request.
    pub failure: Option<Failure>,
    /// True if the failure should be tried again soon.
    pub retries: bool,
    /// The state of the rollout.
    pub application_status: Vec<ApplicationSetApplicationStatus>,
    /// True if the set rolls out in steps.
    pub rolls_out: bool,
    pub(super) rollout_conditions: Vec<ApplicationSetCondition>,
    /// The run ended before it looked at Applications: the status keeps what it says about them.
    pub(super) ended_early: bool,
    /// The set needs its finalizer, because its Applications are deleted in order.
    pub adds_finalizer: bool,
    /// When to look again without an event.
    pub requeue_after: Option<Duration>,
}

impl Decision {
    /// Drops all writes, for `applicationsetcontroller.dryrun`. The set says how many they were.
    #[must_use]
    pub fn into_dry_run(mut self) -> Self {
        let n = self.writes.len();
        self.writes.clear();
        self.adds_finalizer = false;
        if n > 0 && self.failure.is_none() {
            let message = format!(
                "cannot write {n} Applications: applicationsetcontroller.dryrun is true in argocd-cmd-params-cm"
            );
            self.failure = Some(Failure { reason: "UpdateApplicationError", message });
        }
        self
    }
}

impl Decision {
    /// Deletions wait, and the status does not say so yet. This must be written before anything is created: from then on
    /// there are more Applications, of which the deletions are a smaller share.
    pub fn must_say_first(&self, set: &ApplicationSet) -> bool {
        self.held.is_some() && !deletions_wait(set)
    }
}

/// Decides what a set writes. A set that is being deleted is a matter of [`super::remove`].
pub fn decide(situation: &Situation<'_>) -> Decision {
    let Situation { set, rules, .. } = situation;
    let steps = steps_of(set).filter(|_| rules.progressive_syncs);
    let has_finalizer = set.metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER);
    let mut decision = Decision {
        rolls_out: steps.is_some(),
        adds_finalizer: rules.progressive_syncs && deletes_in_reverse(set) && !has_finalizer,
        requeue_after: requeue_after(set, situation.git_every),
        ..Decision::default()
    };
    let fail = |reason: &'static str, message: String| Some(Failure { reason, message });
    let generated = match situation.generated {
        Ok(generated) => generated,
        Err(error) => {
            decision.generation_error = fail(error.reason.name(), error.message.clone());
            decision.ended_early = true;
            decision.application_status.clone_from(&set.status.application_status);
            decision.requeue_after = Some(RETRY);
            return decision;
        }
    };
    if steps.is_some_and(<[_]>::is_empty) {
        decision.failure = fail("ApplicationSetRolloutError", "No steps defined for rollout".to_owned());
        decision.ended_early = true;
        decision.application_status.clone_from(&set.status.application_status);
        decision.requeue_after = Some(RETRY);
        return decision;
    }
    let applications = generated.applications.as_slice();
    let wrong = validate::check(set, applications, situation.destinations, situation.project_exists);
    let updater = Updater::new(set, rules);
    let owned: Vec<&Json> = situation.existing.iter().filter(|live| is_owned_by(live, set)).collect();
    let mut wanted = applications.to_vec();
    if let Some(steps) = steps {
        let (manual, pruning) = rollout::without_automation(applications);
        wanted = manual;
        let rollout = rollout::advance(set, steps, &wanted, &owned, &updater, situation.now);
        add_operations(&mut wanted, &rollout, &pruning);
        let existing = rollout.statuses.iter().map(|status| status.application.as_str());
        let issue = rollout.assignment.issue(steps, existing);
        let progressing = rollout.progressing_step(steps.len());
        decision.rollout_conditions = rollout_conditions(issue.as_deref(), progressing);
        decision.application_status = rollout.statuses;
    }
    wanted.retain(|application| !wrong.contains_key(name_of(application)));
    wanted.sort_by(|a, b| name_of(a).cmp(name_of(b)));
    leave_unreadable(situation, &mut wanted, &mut decision);
    write_wanted(situation, &updater, &owned, &wanted, &mut decision);
    delete_unwanted(situation, &owned, generated, &mut decision);
    decision.shared_names = shared_names(situation, applications);
    if decision.failure.is_none()
        && let Some(message) = validate::summary(&wrong)
    {
        decision.failure = fail("ApplicationValidationError", message);
        decision.requeue_after = decision.requeue_after.or(Some(RETRY));
    }
    decision
}

/// An Application that cannot be read looks as if it did not exist: creating it would fail again and again.
fn leave_unreadable(situation: &Situation<'_>, wanted: &mut Vec<Json>, decision: &mut Decision) {
    let is_unreadable = |name: &str| situation.unreadable.contains(name);
    if let Some(name) = wanted.iter().map(name_of).find(|name| is_unreadable(name)) {
        let why = "it has a field of the wrong type; correct it, or delete the Application";
        let message =
            format!("cannot write Application {name}: plumb cannot read the one that exists: {why}");
        decision.failure = Some(Failure { reason: "UpdateApplicationError", message });
        decision.retries = true;
    }
    wanted.retain(|application| !is_unreadable(name_of(application)));
}

fn add_operations(wanted: &mut [Json], rollout: &Rollout, pruning: &[String]) {
    for application in wanted {
        let name = name_of(application).to_owned();
        if rollout.to_sync.contains(&name) {
            application["operation"] = rollout::operation(application, pruning.contains(&name));
        }
    }
}

fn write_wanted(
    situation: &Situation<'_>,
    updater: &Updater<'_>,
    owned: &[&Json],
    wanted: &[Json],
    decision: &mut Decision,
) {
    let existing: BTreeMap<&str, &Json> =
        situation.existing.iter().map(|live| (name_of(live), live)).collect();
    let ours: BTreeSet<&str> = owned.iter().map(|live| name_of(live)).collect();
    let may_update = Policy::of(situation.set, situation.rules).allows_update();
    for application in wanted {
        let name = name_of(application);
        if !may_update && ours.contains(name) {
            continue;
        }
        let live = existing.get(name);
        let write = match live {
            None => {
                let object = updater.create(application);
                object.map(|object| Some(Write::Create { name: name.to_owned(), object }))
            }
            Some(live) => {
                let patch = updater.patch(application, live);
                patch.map(|patch| patch.map(|patch| Write::Patch { name: name.to_owned(), patch }))
            }
        };
        match write {
            Ok(write) => decision.writes.extend(write),
            Err(message) if decision.failure.is_none() => {
                let reason = if may_update { "UpdateApplicationError" } else { "CreateApplicationError" };
                decision.failure = Some(Failure { reason, message });
                decision.retries = true;
            }
            Err(_) => {}
        }
    }
}

fn delete_unwanted(
    situation: &Situation<'_>,
    owned: &[&Json],
    generated: &Generated,
    decision: &mut Decision,
) {
    let Situation { set, rules, before, .. } = situation;
    if !Policy::of(set, rules).allows_delete() {
        return;
    }
    let names: BTreeSet<&str> = generated.applications.iter().map(name_of).collect();
    let is_alive = |live: &&&Json| live["metadata"].get("deletionTimestamp").is_none_or(Json::is_null);
    let alive: Vec<&Json> = owned.iter().filter(is_alive).copied().collect();
    let mut doomed: Vec<&Json> =
        alive.iter().filter(|live| !names.contains(name_of(live))).copied().collect();
    doomed.sort_by(|a, b| name_of(a).cmp(name_of(b)));
    let doomed_names: Vec<&str> = doomed.iter().map(|live| name_of(live)).collect();
    let waits = before.waits.unwrap_or_else(|| deletions_wait(set));
    // While deletions wait, the set has created Applications under the new names: they are no reason to delete the old ones.
    let n_before = if waits { doomed.len() } else { alive.len() };
    let is_silent = before.falls_silent(&generated.silent, waits);
    let objection = rules.budget.of(set).objection(set, &doomed_names, n_before, is_silent);
    if let Some(objection) = objection {
        let since = waits_since(set, &objection);
        // An approval in the future would count for whatever comes.
        let approved = approved_at(set).filter(|approved| *approved <= situation.now);
        let is_approved = since.zip(approved).is_some_and(|(since, approved)| approved >= since);
        if !is_approved || decision.failure.is_some() {
            decision.held = Some(objection);
            return;
        }
        decision.approved = Some(objection);
    }
    // As in Argo CD: after a failed update nothing is deleted.
    if decision.failure.is_some() {
        return;
    }
    for live in doomed {
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let release = release(live, situation.destinations);
        let (name, uid) = (name_of(live).to_owned(), text(&live["metadata"]["uid"]));
        decision.writes.push(Write::Delete { name, uid, release });
    }
}

/// The patch that removes the finalizer of an Application whose cluster is not known: no controller could fulfil it.
fn release(live: &Json, destinations: &Destinations) -> Option<Json> {
    destinations.objection(&live["spec"]["destination"])?;
    let finalizers = live["metadata"]["finalizers"].as_array()?;
    let kept: Vec<&Json> = finalizers.iter().filter(|finalizer| **finalizer != FINALIZER).collect();
    if kept.len() == finalizers.len() {
        return None;
    }
    let kept = if kept.is_empty() { Json::Null } else { json!(kept) };
    Some(json!({"metadata": {"finalizers": kept}}))
}

fn shared_names(situation: &Situation<'_>, generated: &[Json]) -> Option<String> {
    let names: BTreeSet<&str> = generated.iter().map(name_of).collect();
    let mut shared = names.iter().filter_map(|name| Some((*name, situation.also_generated_by.get(*name)?)));
    let (name, sets) = shared.next()?;
    let sets = sets.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let others = match shared.count() {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    Some(format!(
        "Application {name} is also generated by ApplicationSet {sets}{others}: only the set that owns it changes it; \
         give each set names of its own"
    ))
}
