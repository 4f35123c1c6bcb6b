//! Verdicts without an API server.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::LiveDump;
use crate::app::CompareOptions;
use crate::desired::{DesiredObject, DesiredSet, ObjectOptions};
use crate::drift::{
    Answers, Autoscaler, Claim, DryRun, Evidence, Extraneous, Facts, LiveOwner, Outcome, Question,
    SecondRender, Verdict, judge,
};
use crate::ignore::IgnoreRules;
use crate::object::{Manifest, ObjectKey};
use crate::schema::SchemaSet;
use crate::tracking::{RecordedObjects, TrackedBy, TrackingSettings, owner_of, tracked_by};

/// The judge asks each of its three questions at most once per object.
const MOST_ROUNDS: usize = 4;

/// What an app is judged with.
#[derive(Clone, Copy)]
pub struct DumpedApp<'facts> {
    /// Its name in tracking marks; `None` if no app tracks the objects, and then it is not judged who owns them.
    pub instance: Option<&'facts str>,
    /// What Git asks for.
    pub desired: &'facts DesiredSet,
    /// What other apps ask for, by their names in tracking marks.
    pub others: &'facts [(&'facts str, &'facts DesiredSet)],
    /// What further apps rendered, as far as their status tells.
    pub recorded_of_others: &'facts [(String, BTreeSet<ObjectKey>)],
    /// The objects of the cluster.
    pub live: &'facts LiveDump,
    /// The schemas of their kinds.
    pub schemas: &'facts SchemaSet,
    /// How the control plane marks objects.
    pub tracking: &'facts TrackingSettings,
    /// What the app ignores.
    pub rules: &'facts IgnoreRules,
    /// How it compares.
    pub options: CompareOptions,
    /// The objects that Git is known to have had; `None` if the dump does not have the status of the app.
    pub recorded: Option<&'facts RecordedObjects>,
    /// The same files rendered once more, if a second render can differ.
    pub second: Option<&'facts DesiredSet>,
    /// The current time.
    pub now: Timestamp,
}

/// The app whose tracking mark most of these objects have in the cluster.
pub fn tracking_app(desired: &DesiredSet, live: &LiveDump, tracking: &TrackingSettings) -> Option<String> {
    let mut marks: BTreeMap<String, usize> = BTreeMap::new();
    for object in desired.objects.keys().filter_map(|key| live.get(key)) {
        if let Some(owner) = owner_of(object, tracking).filter(|owner| owner.means(object)) {
            *marks.entry(owner.app).or_default() += 1;
        }
    }
    // Of two apps with as many objects, the first by name.
    marks.into_iter().rev().max_by_key(|(_, n_objects)| *n_objects).map(|(app, _)| app)
}

/// The namespace in which the cluster has most of the objects that name none.
pub fn likely_namespace(desired: &DesiredSet, live: &LiveDump) -> Option<String> {
    let mut namespaces: BTreeMap<&str, usize> = BTreeMap::new();
    for key in desired.objects.keys().filter(|key| key.namespace.is_none()) {
        let is_it = |other: &&ObjectKey| other.name == key.name && other.group_kind() == key.group_kind();
        for namespace in live.keys().filter(is_it).filter_map(|other| other.namespace.as_deref()) {
            *namespaces.entry(namespace).or_default() += 1;
        }
    }
    namespaces.into_iter().rev().max_by_key(|(_, n_objects)| *n_objects).map(|(name, _)| name.to_owned())
}

/// A verdict for every object that Git asks for or that the app tracks.
pub fn judge_all(app: &DumpedApp<'_>) -> BTreeMap<ObjectKey, Verdict> {
    let desired = app.desired.objects.iter();
    let mut verdicts: BTreeMap<ObjectKey, Verdict> = desired
        .filter_map(|(key, object)| Some((key.clone(), app.judge(key, Some(object), app.live.get(key))?)))
        .collect();
    let left_over = app.live.iter().filter(|(key, live)| app.is_left_over(key, live));
    let left_over =
        left_over.filter_map(|(key, live)| Some((key.clone(), app.judge(key, None, Some(live))?)));
    verdicts.extend(left_over);
    verdicts
}

impl DumpedApp<'_> {
    /// Does the app track an object that Git does not have?
    fn is_left_over(&self, key: &ObjectKey, live: &Manifest) -> bool {
        let Some(instance) = self.instance else { return false };
        !self.desired.objects.contains_key(key)
            && tracked_by(live, instance, self.tracking) == TrackedBy::Ours
    }

    /// `None` if the judge does not come to an end.
    fn judge(
        &self,
        key: &ObjectKey,
        desired: Option<&DesiredObject>,
        live: Option<&Manifest>,
    ) -> Option<Verdict> {
        let autoscalers = autoscalers(self.live, key);
        let claims = self.claims(key);
        // Without a status the tracking mark is believed. No deletion follows from it.
        let was_in_git = match self.recorded {
            Some(recorded) => recorded.may_contain(key),
            None => live.is_none_or(|live| !ObjectOptions::parse(live).is_hook),
        };
        let mut evidence = Evidence {
            key,
            desired,
            live,
            schemas: self.schemas,
            rules: self.rules,
            options: self.options,
            facts: Facts {
                app: self.instance.unwrap_or_default(),
                owner: live.map_or(LiveOwner::ThisApp, |live| self.owner(live)),
                extraneous: Extraneous {
                    was_in_git: was_in_git || desired.is_some(),
                    ..Extraneous::default()
                },
                autoscalers: &autoscalers,
                claims: &claims,
                render_may_vary: self.second.is_some(),
                ..Facts::default()
            },
            answers: Answers::default(),
            now: self.now,
        };
        for _ in 0..MOST_ROUNDS {
            let questions = match judge(&evidence) {
                Outcome::Settled(verdict) => return Some(*verdict),
                Outcome::Ask(questions) => questions,
            };
            for question in questions {
                match question {
                    Question::DryRun => evidence.answers.dry_run = Some(DryRun::Unavailable),
                    Question::SecondRender => {
                        let second = self.second.map_or(SecondRender::Unavailable, |second| {
                            SecondRender::Object(second.objects.get(key).map(|object| &object.manifest))
                        });
                        evidence.answers.second_render = Some(second);
                    }
                    Question::LiveAt { .. } => evidence.answers.live_at = Some(None),
                }
            }
        }
        None
    }

    /// The other apps that ask for an object.
    fn claims(&self, key: &ObjectKey) -> Vec<Claim<'_>> {
        let is_other = |app: &str| self.instance.is_some_and(|own| own != app);
        let others = self.others.iter().filter(|(app, _)| is_other(app));
        let rendered = others.filter_map(|(app, desired)| {
            let manifest = &desired.objects.get(key)?.manifest;
            Some(Claim { app, manifest: Some(manifest) })
        });
        let recorded =
            self.recorded_of_others.iter().filter(|(app, keys)| is_other(app) && keys.contains(key));
        rendered.chain(recorded.map(|(app, _)| Claim { app, manifest: None })).collect()
    }

    fn owner(&self, live: &Manifest) -> LiveOwner {
        let Some(instance) = self.instance else { return LiveOwner::ThisApp };
        match tracked_by(live, instance, self.tracking) {
            TrackedBy::Ours | TrackedBy::AppliedCrd => LiveOwner::ThisApp,
            TrackedBy::Other { app } => LiveOwner::App(app),
            TrackedBy::Copied { .. } | TrackedBy::NoApp => LiveOwner::Nobody,
        }
    }
}

/// The autoscalers of the dump whose target is this object.
fn autoscalers(live: &LiveDump, key: &ObjectKey) -> Vec<Autoscaler> {
    let reference = |kind: &str| match kind {
        "HorizontalPodAutoscaler" | "ScaledObject" => "/spec/scaleTargetRef",
        _ => "/spec/targetRef",
    };
    let is_autoscaler = |other: &ObjectKey| {
        matches!(
            (other.group.as_str(), other.kind.as_str()),
            ("autoscaling", "HorizontalPodAutoscaler")
                | ("autoscaling.k8s.io", "VerticalPodAutoscaler")
                | ("keda.sh", "ScaledObject")
        ) && other.namespace == key.namespace
    };
    let targets = |object: &Manifest| {
        let target = object.value().pointer(reference(object.kind()));
        let text = |field: &str| target.and_then(|target| target.get(field)).and_then(Value::as_str);
        // KEDA's default target is a Deployment.
        text("name") == Some(key.name.as_str()) && text("kind").unwrap_or("Deployment") == key.kind
    };
    let found = live.iter().filter(|(other, object)| is_autoscaler(other) && targets(object));
    found
        .map(|(other, object)| Autoscaler {
            kind: other.kind.clone(),
            name: other.name.clone(),
            scales_to_zero: other.kind == "ScaledObject"
                || object.value().pointer("/spec/minReplicas").and_then(Value::as_i64) == Some(0),
        })
        .collect()
}
