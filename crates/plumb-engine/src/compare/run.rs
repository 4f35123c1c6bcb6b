//! One look at an app: its live objects, judged against what Git asks.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use plumb_core::app::App;
use plumb_core::desired::{Complete, DesiredSet, ObjectOptions};
use plumb_core::drift::{ApiFailure, Autoscaler, FinishedRun, HealRecord, LiveOwner, Verdict};
use plumb_core::health::{Health, HealthStatus};
use plumb_core::ignore::IgnoreRules;
use plumb_core::live::LiveSet;
use plumb_core::object::{FieldPath, Fingerprint, GroupKind, GroupVersionKind, Manifest, ObjectKey};
use plumb_core::plan::Owner;
use plumb_core::schema::SchemaSet;
use plumb_core::tracking::{TrackedBy, TrackingSettings, tracked_by};
use plumb_kube::ApiError;
use tracing::info;

use crate::apps::claims::Claims;
use crate::cluster::destination::Cluster;
use crate::cluster::mutators;
use crate::compare::judge::{Bench, Case, Doubt, PastAttempt, PreviousApply, RenderAgain, has_other_writers};
use crate::compare::verdict_cache;
use crate::config::settings::Settings;
use crate::health::check::{Checked, Checkup};
use crate::health::events_and_logs::Testimonies;
use crate::sources::gather::Gathered;
use crate::state::app_state::{AttemptResult, Memory};

/// In place of a schema's fingerprint: the server has published none for the kind.
const NO_SCHEMA: u64 = 0;

/// What a comparison works with.
pub(crate) struct Comparison<'a> {
    pub(crate) app: &'a App,
    pub(crate) instance: &'a str,
    pub(crate) cluster: &'a Cluster,
    pub(crate) claims: &'a Claims,
    pub(crate) tracking: &'a TrackingSettings,
    pub(crate) settings: &'a Settings,
    pub(crate) testimonies: &'a Testimonies,
    pub(crate) rules: &'a IgnoreRules,
    pub(crate) gathered: &'a Arc<Gathered>,
    pub(crate) doubt: Doubt,
    pub(crate) now: Timestamp,
    /// Are questions asked again whose answers are known?
    pub(crate) ask_again: bool,
    /// Renders the same commit once more.
    pub(crate) render_again: &'a RenderAgain<'a>,
}

/// What came out of it.
pub(crate) struct Compared {
    pub(crate) gathered: Arc<Gathered>,
    pub(crate) live: LiveSet,
    pub(crate) schemas: Arc<SchemaSet>,
    pub(crate) verdicts: BTreeMap<ObjectKey, Verdict>,
    pub(crate) owners: BTreeMap<ObjectKey, Owner>,
    /// How the live objects are.
    pub(crate) checked: Checked,
    /// Live hooks that carry the app's mark.
    pub(crate) hooks: BTreeSet<ObjectKey>,
    /// Other apps that render an object of this app, or own one that it renders.
    pub(crate) shared: BTreeMap<ObjectKey, BTreeSet<String>>,
    /// Objects that exist and could not be read.
    pub(crate) unreadable: Vec<(ObjectKey, ApiError)>,
    /// Kinds whose schema changed since the last look, and how many objects were judged again for it.
    pub(crate) new_schemas: Vec<(GroupVersionKind, usize)>,
}

impl Comparison<'_> {
    pub(crate) async fn run(&self, memory: &mut Memory) -> Result<Compared, ApiError> {
        let desired = self.gathered.desired.get();
        let wanted: Vec<ObjectKey> = desired
            .objects
            .keys()
            .cloned()
            .chain(
                desired
                    .hooks
                    .iter()
                    .filter_map(|hook| hook.manifest.clone().with_namespace(hook.namespace.as_deref()).key()),
            )
            .collect();
        let snapshot = self.cluster.store.snapshot(self.instance, &wanted, &self.beside(&wanted)).await;
        let mut live = snapshot.live;
        let mut versions: BTreeSet<String> =
            desired.objects.values().map(|object| object.manifest.api_version().to_owned()).collect();
        // Hooks are compared with nothing, but what is sent must be known too.
        versions.extend(desired.hooks.iter().map(|hook| hook.manifest.api_version().to_owned()));
        versions.extend(live.objects.values().map(|object| object.api_version().to_owned()));
        let kinds: BTreeSet<GroupKind> =
            desired.objects.keys().chain(live.objects.keys()).map(ObjectKey::group_kind).collect();
        let schemas = self.cluster.schemas.typed(versions, kinds, self.settings).await?;
        let new_schemas = self.reread(&mut live, &schemas, memory).await;

        let mut compared = Compared {
            gathered: Arc::clone(self.gathered),
            schemas,
            verdicts: BTreeMap::new(),
            owners: BTreeMap::new(),
            checked: self.checkup().run(&live.objects, &mut memory.health).await,
            hooks: BTreeSet::new(),
            shared: BTreeMap::new(),
            unreadable: snapshot.unreadable,
            new_schemas,
            live,
        };
        let mutators = mutators::mutators(&self.cluster.store);
        let cases = self.cases(memory, &mutators, &mut compared);
        if self.ask_again {
            memory.verdicts.ask_again();
        }
        let schemas = Arc::clone(&compared.schemas);
        let bench = Bench {
            instance: self.instance,
            client: &self.cluster.client,
            schemas: &schemas,
            rules: self.rules,
            options: self.settings.compare_options(self.app),
            prune: self.app.sync_policy.automated.is_some_and(|automation| automation.prune),
            heal_limit: self.settings.heal_limit(),
            render_may_vary: self.gathered.may_vary,
            doubt: self.doubt,
            now: self.now,
            admission: verdict_cache::admission(&mutators),
            render_again: self.render_again,
        };
        compared.verdicts = bench.judge_all(&cases, &mut memory.verdicts).await;
        Ok(compared)
    }

    /// The namespace that a sync makes (`CreateNamespace=true`) is nobody's object: if it goes, the app is to hear it.
    fn beside(&self, wanted: &[ObjectKey]) -> Vec<ObjectKey> {
        let makes_it = self.app.sync_policy.has("CreateNamespace=true");
        let name = self.app.destination.namespace.as_ref().filter(|_| makes_it);
        let key = name.map(|name| ObjectKey::new("", "Namespace", None, name.clone()));
        key.into_iter().filter(|key| !wanted.contains(key)).collect()
    }

    fn checkup(&self) -> Checkup<'_> {
        Checkup {
            app: &self.app.id,
            cluster: self.cluster,
            settings: self.settings,
            testimonies: self.testimonies,
            now: self.now,
        }
    }

    /// Reads objects anew whose schema is not the one that they were last judged with.
    async fn reread(
        &self,
        live: &mut LiveSet,
        schemas: &SchemaSet,
        memory: &mut Memory,
    ) -> Vec<(GroupVersionKind, usize)> {
        let mut changed: BTreeMap<GroupVersionKind, usize> = BTreeMap::new();
        for (key, object) in &mut live.objects {
            let gvk = object.gvk();
            let fingerprint = schemas.kind(&gvk).map_or(NO_SCHEMA, |kind| kind.fingerprint);
            let known = memory.schemas.get(&gvk).copied();
            if let Some(known) = known.filter(|known| *known != fingerprint) {
                // A kind is served a moment before its schema is published: the first is no change to tell of.
                if known != NO_SCHEMA {
                    *changed.entry(gvk.clone()).or_default() += 1;
                }
                let fresh = self.cluster.client.get_at(&gvk, key.namespace.as_deref(), &key.name).await;
                if let Ok(Some(fresh)) = fresh {
                    memory.reread.insert(key.clone(), Arc::new(fresh));
                }
            }
            match memory.reread.get(key) {
                Some(fresh) if fresh.resource_version() == object.resource_version() => {
                    *object = Arc::clone(fresh);
                }
                Some(_) => {
                    memory.reread.remove(key);
                }
                None => {}
            }
        }
        for (gvk, objects) in &changed {
            info!(app = %self.app.id, kind = %gvk.kind, version = gvk.api_version(), objects, "the schema changed; its objects are judged again");
        }
        let seen = live.objects.values().map(|object| object.gvk());
        let seen: BTreeSet<GroupVersionKind> = seen.collect();
        memory.schemas = seen
            .into_iter()
            .map(|gvk| {
                let fingerprint = schemas.kind(&gvk).map_or(NO_SCHEMA, |kind| kind.fingerprint);
                (gvk, fingerprint)
            })
            .collect();
        changed.into_iter().collect()
    }

    fn cases(
        &self,
        memory: &Memory,
        mutators: &[Arc<Manifest>],
        compared: &mut Compared,
    ) -> BTreeMap<ObjectKey, Case> {
        let desired = self.gathered.desired.get();
        let unreadable: BTreeSet<&ObjectKey> = compared.unreadable.iter().map(|(key, _)| key).collect();
        let before: OnceCell<Option<Arc<Complete<DesiredSet>>>> = OnceCell::new();
        let mut cases = BTreeMap::new();
        for (key, object) in &desired.objects {
            // What could not be read is neither missing nor different.
            if unreadable.contains(key) {
                continue;
            }
            let live = compared.live.objects.get(key).cloned();
            let claims = self.claims.others(&self.app.id, &self.cluster.server, key);
            let owner = live.as_deref().map(|live| self.owner(live, &claims));
            let mut with = BTreeSet::new();
            if let Some(Owner::Other { app, .. }) = &owner {
                with.insert(app.clone());
            }
            with.extend(claims.iter().map(|other| other.instance.to_string()));
            if !with.is_empty() {
                compared.shared.insert(key.clone(), with);
            }
            let fingerprint = Fingerprint::of(&object.manifest);
            // Where a sync follows and nobody else wrote, nobody asks what was there before.
            let is_told = self.doubt == Doubt::Ask || live.as_deref().is_some_and(has_other_writers);
            let before = || {
                let set = before.get_or_init(|| memory.before.as_ref()?.kept.shelf.set()).as_ref()?;
                set.get().objects.get(key).filter(|_| is_told).map(|object| &object.manifest)
            };
            let (previous, attempt) = past(memory, key, fingerprint, self.gathered, before);
            let finished = memory.finished.get(key).map(|run| FinishedRun {
                at: run.at,
                succeeded: run.succeeded,
                same_desired: run.desired.is_none_or(|desired| desired == fingerprint),
            });
            let owner_fact = match &owner {
                None | Some(Owner::ThisApp) => LiveOwner::ThisApp,
                Some(Owner::NoApp) => LiveOwner::Nobody,
                Some(Owner::Other { app, .. }) => LiveOwner::App(app.clone()),
            };
            if let Some(owner) = owner {
                compared.owners.insert(key.clone(), owner);
            }
            cases.insert(
                key.clone(),
                Case {
                    desired: Some(object.clone()),
                    owner: owner_fact,
                    previous,
                    attempt,
                    claims,
                    autoscalers: live.as_ref().map(|_| self.autoscalers(key)).unwrap_or_default(),
                    mutators: mutators::matching(
                        mutators,
                        (&object.manifest, live.as_deref()),
                        &self.cluster.client.catalog(),
                        &self.cluster.store,
                    ),
                    users: Vec::new(),
                    heals: heals(memory, key, asked(memory, key, fingerprint, self.gathered)),
                    finished,
                    earlier: memory.findings.get(key).cloned().unwrap_or_default(),
                    live,
                },
            );
        }
        for (key, live) in compared.live.objects.clone() {
            if desired.objects.contains_key(&key)
                || tracked_by(&live, self.instance, self.tracking) != TrackedBy::Ours
            {
                continue;
            }
            compared.owners.insert(key.clone(), Owner::ThisApp);
            if ObjectOptions::parse(&live).is_hook {
                compared.hooks.insert(key.clone());
                // One that is still at work is not left over.
                if is_under_way(compared.checked.healths.get(&key)) {
                    continue;
                }
            }
            cases.insert(
                key.clone(),
                Case {
                    claims: self.claims.others(&self.app.id, &self.cluster.server, &key),
                    users: self.cluster.store.referrers(&key).into_iter().map(|node| node.key).collect(),
                    earlier: memory.findings.get(&key).cloned().unwrap_or_default(),
                    live: Some(live),
                    ..Case::default()
                },
            );
        }
        cases
    }

    /// Whose a live object is that this app wants. A mark that was copied from another object is no mark.
    fn owner(&self, live: &Manifest, claims: &[crate::apps::claims::Rendered]) -> Owner {
        match tracked_by(live, self.instance, self.tracking) {
            TrackedBy::Ours | TrackedBy::AppliedCrd => Owner::ThisApp,
            TrackedBy::Other { app } => {
                let renders = claims.iter().any(|other| *other.instance == *app);
                Owner::Other { app, renders }
            }
            TrackedBy::Copied { .. } | TrackedBy::NoApp => Owner::NoApp,
        }
    }

    fn autoscalers(&self, key: &ObjectKey) -> Vec<Autoscaler> {
        const KINDS: [&str; 3] = ["HorizontalPodAutoscaler", "VerticalPodAutoscaler", "ScaledObject"];
        self.cluster
            .store
            .referrers(key)
            .into_iter()
            .filter(|node| KINDS.contains(&node.key.kind.as_str()))
            .map(|node| Autoscaler { kind: node.key.kind.clone(), name: node.key.name.clone() })
            .collect()
    }
}

fn is_under_way(health: Option<&Health>) -> bool {
    health.is_some_and(|health| {
        matches!(health.status, HealthStatus::Progressing | HealthStatus::Suspended | HealthStatus::Unknown)
    })
}

/// What is known of earlier writes: what was applied last, and how the last try to apply what Git asks now ended.
fn past<'s>(
    memory: &Memory,
    key: &ObjectKey,
    desired: Fingerprint,
    gathered: &Gathered,
    before: impl FnOnce() -> Option<&'s Manifest>,
) -> (PreviousApply, PastAttempt) {
    let was_in_sync =
        memory.before.as_ref().is_some_and(|before| before.was_in_sync && !before.overwritten.contains(key));
    match memory.attempts.get(key) {
        None => {
            let before = if was_in_sync { before() } else { None };
            let before = before.filter(|before| Fingerprint::of(before) != desired).cloned().map(Box::new);
            let previous = before.map(|before| PreviousApply::Changed(Some(before)));
            (previous.unwrap_or_default(), PastAttempt::None)
        }
        Some(record)
            if record.desired != desired
                && matches!(record.result, AttemptResult::Applied)
                && record.origin.is_some_and(|origin| origin == gathered.origin()) =>
        {
            (PreviousApply::Rerendered, PastAttempt::None)
        }
        Some(record) if record.desired != desired => {
            let is_applied = matches!(record.result, AttemptResult::Applied);
            let before = if is_applied || was_in_sync { before() } else { None };
            let before = before.filter(|before| was_in_sync || Fingerprint::of(before) == record.desired);
            (PreviousApply::Changed(before.cloned().map(Box::new)), PastAttempt::None)
        }
        Some(record) => match &record.result {
            AttemptResult::Applied => (PreviousApply::Same, PastAttempt::Applied),
            AttemptResult::Refused(failure) => {
                (PreviousApply::Unknown, PastAttempt::Refused(ApiFailure::clone(failure)))
            }
            AttemptResult::Failed => (PreviousApply::Unknown, PastAttempt::Failed),
        },
    }
}

/// What Git asks for, as a fight over it is remembered: another rendering of the same commit asks for nothing else, by
/// whatever tools and for whatever kinds the cluster serves by then.
pub(crate) fn asked(
    memory: &Memory,
    key: &ObjectKey,
    desired: Fingerprint,
    gathered: &Gathered,
) -> Fingerprint {
    let record = memory.attempts.get(key).filter(|record| {
        record.desired == desired || record.commit.is_some_and(|commit| commit == gathered.commit())
    });
    record.map_or(desired, |record| record.asked)
}

/// What self-heal did to this object, as the judge wants it: per field.
fn heals(memory: &Memory, key: &ObjectKey, desired: Fingerprint) -> Vec<HealRecord> {
    let Some((context, healed_at)) = memory.ledger.heals(key) else { return Vec::new() };
    // Git changed since: the count begins anew.
    if context.desired != desired.to_string() {
        return Vec::new();
    }
    let healed_at: Vec<Timestamp> = healed_at.collect();
    let stopped = memory.ledger.is_stopped(key);
    context
        .fields
        .iter()
        .map(|field| HealRecord {
            field: FieldPath::from_pointer(field),
            healed_at: healed_at.clone(),
            stopped,
        })
        .collect()
}
