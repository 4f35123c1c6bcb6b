//! One look at the health of all objects of an app.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use plumb_core::app::AppId;
use plumb_core::health::{
    self, Cause, Custom, Health, HealthHistory, HealthRecord, HealthStatus, KnownFrom, Since, Stuck,
    assess_with, chain, essence, explained, is_bad_wait, looping_since,
};
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::secrets::EditedSecret;
use plumb_crd::UnhealthyObject;
use plumb_crd::wire::whole_seconds;
use plumb_kube::ClusterClient;

use super::children::Family;
use super::dependencies::{Dependencies, PermitsNamespace};
use super::derived::edited;
use super::events_and_logs::{Diagnostics, Readers};
use super::history::{HealthState, Told};
use super::lua::ask;
use crate::cluster::destination::Cluster;
use crate::config::settings::Settings;

/// An object that is on its way for less than this is not written into the report: most are there in a moment, and
/// after a restart their conditions tell since when.
const WORTH_A_NOTE: SignedDuration = SignedDuration::from_mins(1);
/// So many steps of the way down are kept.
const MOST_CAUSES: usize = 6;

/// What a checkup works with.
pub(crate) struct HealthCheck<'a> {
    pub(crate) app: &'a AppId,
    pub(crate) cluster: &'a Cluster,
    /// Reads logs; `None` if they are not read.
    pub(crate) acting: Option<&'a ClusterClient>,
    pub(crate) settings: &'a Settings,
    pub(crate) diagnostics: &'a Diagnostics,
    pub(crate) permits_namespace: &'a PermitsNamespace<'a>,
    pub(crate) now: Timestamp,
}

/// What came out of it.
#[derive(Debug, Default)]
pub(crate) struct HealthResults {
    pub(crate) healths: BTreeMap<ObjectKey, Health>,
    /// Those that are not well, and worth a line in the report.
    pub(crate) unhealthy: Vec<Unhealthy>,
    /// Secrets that controllers make from the objects, and that another writer edited.
    pub(crate) edited: Vec<EditedSecret>,
    /// When time alone may change something.
    pub(crate) look_again: Option<Timestamp>,
}

/// An object that is not well.
#[derive(Debug)]
pub(crate) struct Unhealthy {
    pub(crate) key: ObjectKey,
    /// `None`: the object has no health of its own, but a child of it is unhealthy.
    pub(crate) status: Option<HealthStatus>,
    pub(crate) since: Timestamp,
    pub(crate) is_stuck: bool,
    pub(crate) message: String,
    pub(crate) causes: Vec<String>,
}

impl Unhealthy {
    /// As a report tells it.
    pub(crate) fn to_wire(&self) -> UnhealthyObject {
        UnhealthyObject {
            group: self.key.group.clone(),
            kind: self.key.kind.clone(),
            namespace: self.key.namespace_or_empty().to_owned(),
            name: self.key.name.clone(),
            status: self.status.map(|status| status.as_str().to_owned()).unwrap_or_default(),
            since: Some(whole_seconds(self.since)),
            stuck: self.is_stuck,
            message: self.message.clone(),
            causes: self.causes.clone(),
        }
    }
}

/// What was found out about an unhealthy object.
#[derive(Clone, Copy)]
struct Diagnosis<'d> {
    family: &'d Family,
    causes: &'d [Cause],
    stuck: Option<&'d Stuck>,
    since: Since,
    is_in_trouble: bool,
}

impl HealthCheck<'_> {
    /// Events belong to the object, which plumb reads anyway. Logs are read as the app, and only if the settings permit it.
    fn readers(&self) -> Readers<'_> {
        let logs = self.acting.filter(|_| self.settings.quote_logs);
        Readers { events: Some(&self.cluster.client), logs }
    }

    pub(crate) async fn run(
        &self,
        live: &BTreeMap<ObjectKey, Arc<Manifest>>,
        state: &mut HealthState,
    ) -> HealthResults {
        // client: Lua, beside the threads that others wait for
        let custom = ask(&self.settings.scripts, self.settings.generation, live, &state.answers).await;
        if self.cluster.store.is_complete() {
            state.keep_only(|key| live.contains_key(key));
        }
        let mut checked = HealthResults::default();
        for (key, object) in live {
            let health = assess_with(object, |_| match custom.get(key) {
                Some(answer) => Custom::Judged(answer.clone()),
                None => Custom::Absent,
            });
            let around = Dependencies {
                store: &self.cluster.store,
                permits_namespace: self.permits_namespace,
                patience: &self.settings.patience,
                now: self.now,
            };
            let (health, until) = around.judge(state, key, object, health);
            checked.again_at(until);
            self.examine(key, object, health, state, &mut checked);
        }
        // client: who wrote Secrets that may be edited
        checked.edited = edited(self.cluster, self.permits_namespace, live, &mut state.derived).await;
        state.last_look = self.cluster.store.is_complete().then_some(self.now);
        checked
    }

    fn examine(
        &self,
        key: &ObjectKey,
        object: &Arc<Manifest>,
        health: Option<Health>,
        state: &mut HealthState,
        checked: &mut HealthResults,
    ) {
        let is_well =
            |health: &Health| matches!(health.status, HealthStatus::Healthy | HealthStatus::Suspended);
        if health.as_ref().is_none_or(is_well) && !may_hide(key) {
            if let Some(health) = health {
                self.note(key, object, &health, None, state);
                checked.healths.insert(key.clone(), health);
            }
            return;
        }
        let mut family = Family::of(&self.cluster.store, object, health.clone(), self.permits_namespace);
        let mut causes = chain(&family.node());
        let Some(health) = health else {
            self.note_hidden(key, &family, &causes, state, checked);
            return;
        };
        let mut since = self.note(key, object, &health, family_since(&family, &causes, self.now), state);
        let is_stuck = |family: &Family, since| {
            health::stuck(&family.node(), &health, since, &self.settings.patience, self.now)
        };
        let mut stuck = is_stuck(&family, since);
        if health.status == HealthStatus::Progressing && stuck.is_none() {
            // A deadline may be so far away that no calendar has it.
            checked.again_at(since.at.checked_add(self.settings.patience.with(object)).ok());
            checked.again_at(since.at.checked_add(WORTH_A_NOTE).ok().filter(|at| *at > self.now));
        }
        let is_in_trouble = is_trouble(&health, &causes, stuck.as_ref());
        if is_in_trouble
            && let Some(last) = family.last_of(&causes)
            && let Some(uid) = last.object.uid().map(str::to_owned)
            && let Some(words) =
                self.diagnostics.about(self.readers(), self.app, &last.object, &essence(&causes))
        {
            family.hear(&uid, &words);
            causes = chain(&family.node());
            since = since.with_events(&words.events);
            if let Some(record) = state.records.get_mut(key).filter(|record| record.is_of(&health)) {
                (record.since, record.known_from) = (since.at, since.known_from);
            }
            stuck = is_stuck(&family, since);
        }
        let diagnosis =
            Diagnosis { family: &family, causes: &causes, stuck: stuck.as_ref(), since, is_in_trouble };
        self.report(key, &health, &diagnosis, state, checked);
    }

    /// Adds the health of one object, and an entry for the report if it is worth one.
    fn report(
        &self,
        key: &ObjectKey,
        health: &Health,
        diagnosis: &Diagnosis<'_>,
        state: &mut HealthState,
        checked: &mut HealthResults,
    ) {
        let Diagnosis { family, causes, stuck, since, is_in_trouble } = *diagnosis;
        let told = explained(health.clone(), &family.node(), causes, stuck.is_some());
        let message = match stuck {
            Some(stuck) if told.message.is_empty() => stuck.since_when(),
            Some(stuck) => format!("{}: {}", stuck.since_when(), told.message),
            None => told.message,
        };
        let story = Story { key, status: Some(health.status), message, causes, stuck: stuck.is_some() };
        let (message, causes) = story.tell(state, self.now);
        let is_worth_a_note = match health.status {
            HealthStatus::Progressing => is_in_trouble || self.now.duration_since(since.at) >= WORTH_A_NOTE,
            HealthStatus::Healthy | HealthStatus::Suspended => message != health.message,
            HealthStatus::Missing | HealthStatus::Degraded | HealthStatus::Unknown => true,
        };
        if is_worth_a_note {
            checked.unhealthy.push(Unhealthy {
                key: key.clone(),
                status: Some(health.status),
                since: since.at,
                is_stuck: stuck.is_some(),
                message: message.clone(),
                causes,
            });
        }
        checked.healths.insert(key.clone(), Health { status: health.status, message });
    }

    /// Works out since when the object is as it is, and remembers it.
    fn note(
        &self,
        key: &ObjectKey,
        object: &Manifest,
        health: &Health,
        looping: Option<Timestamp>,
        state: &mut HealthState,
    ) -> Since {
        let before = state.records.get(key).copied();
        let past = HealthHistory { record: before.as_ref(), last_look: state.last_look };
        let mut since = health::since(object, health, past, self.now);
        if let Some(at) = looping.filter(|at| *at < since.at) {
            since = Since { at, known_from: KnownFrom::Pod };
        }
        match HealthRecord::next(before.as_ref(), object, health, &since, self.now) {
            Some(record) => {
                state.records.insert(key.clone(), record);
            }
            None => {
                state.records.remove(key);
            }
        }
        since
    }

    /// An object on whose health nobody has an opinion, with an ill one below it.
    fn note_hidden(
        &self,
        key: &ObjectKey,
        family: &Family,
        causes: &[Cause],
        state: &mut HealthState,
        checked: &mut HealthResults,
    ) {
        let Some(last) = family.last_of(causes) else { return };
        let is_ill = last.health.as_ref().is_some_and(|health| health.status == HealthStatus::Degraded);
        if !is_ill {
            return;
        }
        let health = Health::new(HealthStatus::Degraded, "");
        let since = self.note(key, &last.object, &health, looping_since(&last.object, self.now), state);
        let message = causes.last().map(ToString::to_string).unwrap_or_default();
        let story = Story { key, status: None, message, causes, stuck: false };
        let (message, causes) = story.tell(state, self.now);
        checked.unhealthy.push(Unhealthy {
            key: key.clone(),
            status: None,
            since: since.at,
            is_stuck: false,
            message,
            causes,
        });
    }
}

/// What is to be said about an object.
struct Story<'s> {
    key: &'s ObjectKey,
    status: Option<HealthStatus>,
    message: String,
    causes: &'s [Cause],
    stuck: bool,
}

impl Story<'_> {
    /// Says it, or what was said a moment ago, if only numbers changed.
    fn tell(self, state: &mut HealthState, now: Timestamp) -> (String, Vec<String>) {
        if self.status == Some(HealthStatus::Healthy) && self.causes.is_empty() && !self.stuck {
            // All is well, and what was said before does not matter any more.
            state.told.remove(self.key);
            return (self.message, Vec::new());
        }
        let below = essence(self.causes);
        // Without anything to be seen below, the message is the object's own, and new words are news.
        let own = if self.causes.len() > 1 { "" } else { &self.message };
        let essence = format!("{:?} {} {own}\n{below}", self.status, self.stuck);
        if let Some(told) = state.told.get(self.key).filter(|told| told.still_does(&essence, now)) {
            return (told.message.clone(), told.causes.clone());
        }
        let causes: Vec<String> = self.causes.iter().take(MOST_CAUSES).map(ToString::to_string).collect();
        let told = Told { essence, message: self.message.clone(), causes: causes.clone(), at: now };
        state.told.insert(self.key.clone(), told);
        (self.message, causes)
    }
}

impl HealthResults {
    fn again_at(&mut self, at: Option<Timestamp>) {
        self.look_again = match (self.look_again, at) {
            (Some(known), Some(at)) => Some(known.min(at)),
            (known, at) => known.or(at),
        };
    }
}

/// May an object that says that it is well have ill ones below it? Kubernetes' own workloads tell; a `CronJob`
/// and what operators make may not.
fn may_hide(key: &ObjectKey) -> bool {
    match key.group.as_str() {
        "" | "apps" | "autoscaling" | "policy" | "extensions" => false,
        "batch" => key.kind == "CronJob",
        "argoproj.io" => key.kind != "Application",
        group => !group.ends_with(".k8s.io") && group.contains('.'),
    }
}

/// Are events and logs worth a request?
fn is_trouble(health: &Health, causes: &[Cause], stuck: Option<&Stuck>) -> bool {
    use health::Symptom;
    let is_hard = |symptom: &Symptom| match symptom {
        Symptom::CrashLoop { .. } | Symptom::Unschedulable { .. } | Symptom::Ended { .. } => true,
        Symptom::Waiting { reason, .. } => is_bad_wait(reason),
        _ => false,
    };
    let is_pending_deletion = health.message == "Pending deletion";
    stuck.is_some()
        || health.status == HealthStatus::Degraded
        || (!is_pending_deletion && causes.last().is_some_and(|cause| cause.symptoms.iter().any(is_hard)))
}

fn family_since(family: &Family, causes: &[Cause], now: Timestamp) -> Option<Timestamp> {
    looping_since(&family.last_of(causes)?.object, now)
}
