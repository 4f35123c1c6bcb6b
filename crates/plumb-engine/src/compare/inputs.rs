//! The facts about each object that the judge decides by.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plumb_core::desired::{Complete, DesiredObject, DesiredSet, ObjectOptions};
use plumb_core::drift::{Autoscaler, Extraneous, LiveOwner};
use plumb_core::fields::has_other_writers;
use plumb_core::health::{Health, HealthStatus};
use plumb_core::object::{Fingerprint, GroupKind, Manifest, ObjectKey};
use plumb_core::plan::Owner;
use plumb_core::tracking::{TrackedBy, tracked_by};

use super::judge::{DryRunPolicy, JudgeInput};
use super::run::{Compared, Comparison, LeftTo};
use super::state::JudgeState;
use crate::apps::claims::Claimant;
use crate::cluster::mutators;
use crate::sources::state::GitState;

/// Is this a kind that scales workloads? The group counts: any other group may have a kind of that name.
pub(crate) fn is_autoscaler(kind: &GroupKind) -> bool {
    matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        ("autoscaling", "HorizontalPodAutoscaler")
            | ("autoscaling.k8s.io", "VerticalPodAutoscaler")
            | ("keda.sh", "ScaledObject")
    )
}

/// The previous desired set, decompressed when it is first asked for.
type PreviousSet = OnceCell<Option<Arc<Complete<DesiredSet>>>>;

impl Comparison<'_> {
    /// One input per object. Owners, hooks and shared objects are noted in `compared`.
    pub(super) fn inputs(
        &self,
        git: &GitState,
        judge: &JudgeState,
        mutators: &[Arc<Manifest>],
        compared: &mut Compared,
    ) -> BTreeMap<ObjectKey, JudgeInput> {
        let unreadable: BTreeSet<ObjectKey> =
            compared.unreadable.iter().map(|(key, _)| key.clone()).collect();
        let previous = PreviousSet::new();
        let mut inputs = BTreeMap::new();
        for (key, object) in &self.gathered.desired.get().objects {
            let Some(fingerprint) = self.gathered.set.fingerprint(key) else { continue };
            // An object that could not be read is neither missing nor different. One that the project does not permit is not
            // compared at all: not even that it is equal may be told.
            if !unreadable.contains(key) && !compared.denied.contains(key) {
                let history = History { git, judge, previous: &previous, fingerprint };
                inputs.insert(key.clone(), self.desired_input(object, &history, mutators, compared));
            }
        }
        self.add_undesired(judge, compared, &mut inputs);
        inputs
    }

    /// An object that Git asks for.
    fn desired_input(
        &self,
        object: &DesiredObject,
        history: &History<'_>,
        mutators: &[Arc<Manifest>],
        compared: &mut Compared,
    ) -> JudgeInput {
        let key = &object.key;
        let (judge, fingerprint) = (history.judge, history.fingerprint);
        let live = compared.live.objects.get(key).cloned();
        let tracked = live.as_deref().map(|live| tracked_by(live, self.instance, self.tracking));
        let claims = self.claims_on(key, tracked.as_ref());
        let owner = tracked.map(|tracked| owner(tracked, &claims));
        note_shared(compared, key, owner.as_ref(), &claims);
        let live_owner = match &owner {
            None | Some(Owner::ThisApp) => LiveOwner::ThisApp,
            Some(Owner::NoApp) => LiveOwner::Nobody,
            Some(Owner::Other { app, .. }) => LiveOwner::App(app.clone()),
        };
        if let Some(owner) = owner {
            compared.owners.insert(key.clone(), owner);
        }
        // If a sync follows and plumb is the only writer, the previous manifest makes no difference.
        let needs_previous =
            self.dry_runs != DryRunPolicy::SyncFollows || live.as_deref().is_some_and(has_other_writers);
        let previous = || history.previous_manifest(key).filter(|_| needs_previous);
        let was_in_sync = history.git.was_in_sync_before(key);
        let rendering = self.gathered.rendering;
        let (last_apply, last_attempt) =
            judge.writes.last(key, fingerprint, rendering, was_in_sync, previous);
        JudgeInput {
            desired: Some(object.clone()),
            owner: live_owner,
            last_apply,
            last_attempt,
            claims,
            autoscalers: live.as_ref().map(|_| self.autoscalers(key)).unwrap_or_default(),
            mutators: mutators::matching(
                mutators,
                (&object.manifest, live.as_deref()),
                &self.cluster.client.catalog(),
                &self.cluster.store,
            ),
            users: Vec::new(),
            extraneous: Extraneous { was_in_git: true, ..Extraneous::default() },
            heals: judge.heals(key, judge.writes.asked(key, fingerprint, rendering)),
            finished: judge.writes.finished_run(key, fingerprint),
            earlier: judge.findings_of(key),
            live,
        }
    }

    /// Live objects of the app that Git does not ask for.
    fn add_undesired(
        &self,
        judge: &JudgeState,
        compared: &mut Compared,
        inputs: &mut BTreeMap<ObjectKey, JudgeInput>,
    ) {
        let desired = &self.gathered.desired.get().objects;
        let asked_namespace = self.app.asked_namespace();
        let Compared { live, owners, hooks, health, left_to_others, exemptions, .. } = compared;
        for (key, live) in live.objects.iter().filter(|(key, _)| self.permits(key)) {
            let is_ours = || tracked_by(live, self.instance, self.tracking) == TrackedBy::Ours;
            if desired.contains_key(key) || !is_ours() {
                continue;
            }
            owners.insert(key.clone(), Owner::ThisApp);
            let was_in_git = self.recorded.may_contain(key);
            if ObjectOptions::of_live(live, was_in_git).is_hook {
                hooks.insert(key.clone());
                // A hook that still runs is not left over.
                if is_under_way(health.healths.get(key)) {
                    continue;
                }
            }
            let (claims, doubtful): (Vec<Claimant>, Vec<Claimant>) =
                self.others(key).into_iter().partition(|other| other.counts(Some(self.instance)));
            if let Some(other) = claims.first().or(doubtful.first()) {
                let left_to = LeftTo { app: other.instance.to_string(), is_kept: !claims.is_empty() };
                left_to_others.insert(key.clone(), left_to);
                self.claims.wait(&self.app.id, &self.cluster.server, key);
            }
            let referrers = self.cluster.store.referrers(key).into_iter().map(|node| node.key);
            let input = JudgeInput {
                claims,
                users: referrers.filter(|user| self.permits(user)).collect(),
                earlier: judge.findings_of(key),
                live: Some(Arc::clone(live)),
                extraneous: Extraneous {
                    was_in_git,
                    is_asked_for: asked_namespace.as_ref() == Some(key),
                    is_ignored: exemptions.of(key).ignore_extraneous,
                },
                ..JudgeInput::default()
            };
            inputs.insert(key.clone(), input);
        }
    }

    /// The other apps that render this object and whose project permits it.
    fn others(&self, key: &ObjectKey) -> Vec<Claimant> {
        self.claims.others(&self.app.id, &self.cluster.server, key, self.permits_claim)
    }

    /// The claims of others that decide about an object which this app wants.
    fn claims_on(&self, key: &ObjectKey, tracked: Option<&TrackedBy>) -> Vec<Claimant> {
        let tracked_by = match tracked {
            Some(TrackedBy::Other { app }) => Some(app.as_str()),
            Some(_) | None => None,
        };
        self.others(key).into_iter().filter(|other| other.counts(tracked_by)).collect()
    }

    /// The autoscalers that target the object. They scale in their own namespace only.
    fn autoscalers(&self, key: &ObjectKey) -> Vec<Autoscaler> {
        let referrers = self.cluster.store.referrers(key).into_iter();
        referrers
            .filter(|node| is_autoscaler(&node.key.group_kind()) && node.key.namespace == key.namespace)
            .map(|node| self.autoscaler(&node.key))
            .collect()
    }

    /// A `HorizontalPodAutoscaler` scales to zero only if its own minimum says so; where plumb does not keep the object,
    /// it is taken for one that does not.
    fn autoscaler(&self, key: &ObjectKey) -> Autoscaler {
        let minimum = || {
            let whole = self.cluster.store.get_kept(key)?;
            whole.value().pointer("/spec/minReplicas").and_then(serde_json::Value::as_i64)
        };
        let scales_to_zero = key.kind == "ScaledObject" || minimum() == Some(0);
        Autoscaler { kind: key.kind.clone(), name: key.name.clone(), scales_to_zero }
    }
}

/// What is known of earlier states of one object.
struct History<'h> {
    git: &'h GitState,
    judge: &'h JudgeState,
    previous: &'h PreviousSet,
    /// Of what Git asks now.
    fingerprint: Fingerprint,
}

impl History<'_> {
    fn previous_manifest(&self, key: &ObjectKey) -> Option<&Manifest> {
        let set = self.previous.get_or_init(|| self.git.previous()).as_ref()?;
        set.get().objects.get(key).map(|object| &object.manifest)
    }
}

/// Whose a live object is that this app wants. A tracking mark that was copied from another object does not count.
fn owner(tracked: TrackedBy, claims: &[Claimant]) -> Owner {
    match tracked {
        TrackedBy::Ours | TrackedBy::AppliedCrd => Owner::ThisApp,
        TrackedBy::Other { app } => {
            let renders = claims.iter().any(|other| *other.instance == *app);
            Owner::Other { app, renders }
        }
        TrackedBy::Copied { .. } | TrackedBy::NoApp => Owner::NoApp,
    }
}

/// Notes the other apps that render this object or own it.
fn note_shared(compared: &mut Compared, key: &ObjectKey, owner: Option<&Owner>, claims: &[Claimant]) {
    let mut others: BTreeSet<String> = claims.iter().map(|other| other.instance.to_string()).collect();
    if let Some(Owner::Other { app, .. }) = owner {
        others.insert(app.clone());
    }
    if !others.is_empty() {
        compared.shared.insert(key.clone(), others);
    }
}

fn is_under_way(health: Option<&Health>) -> bool {
    health.is_some_and(|health| {
        matches!(health.status, HealthStatus::Progressing | HealthStatus::Suspended | HealthStatus::Unknown)
    })
}
