//! One comparison of an app: its live objects, judged against what Git asks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use plumb_core::app::App;
use plumb_core::desired::DeniedObjects;
use plumb_core::drift::Verdict;
use plumb_core::fields::Exemptions;
use plumb_core::ignore::IgnoreRules;
use plumb_core::live::LiveSet;
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use plumb_core::plan::Owner;
use plumb_core::project::Project;
use plumb_core::schema::SchemaSet;
use plumb_core::tracking::{RecordedObjects, TrackingSettings};
use plumb_kube::{ApiError, ClusterClient};
use tracing::info;

use super::judge::{DryRunPolicy, Judge, RenderAgain};
use super::state::JudgeState;
use super::verdict_cache;
use crate::apps::claims::{Claims, PermitsClaim};
use crate::cluster::destination::Cluster;
use crate::cluster::mutators;
use crate::config::settings::Settings;
use crate::health::check::{HealthCheck, HealthResults};
use crate::health::events_and_logs::Diagnostics;
use crate::health::history::HealthState;
use crate::sources::gathered::Gathered;
use crate::sources::state::GitState;

/// Stands for a schema that the API server has not published.
const NO_SCHEMA: u64 = 0;

/// How often the objects are judged while ignore rules are switched off because they take too much.
const MOST_JUDGEMENTS: usize = 3;

/// What a comparison works with.
pub(crate) struct Comparison<'a> {
    pub(crate) app: &'a App,
    pub(crate) instance: &'a str,
    pub(crate) cluster: &'a Cluster,
    /// What the app's project does not permit is neither read nor judged.
    pub(crate) project: &'a Project,
    /// Asks in the name of the app: with the service account of its project, if syncs impersonate one. `None` if the
    /// project names none and has to: then nothing is asked that a sync could not ask.
    pub(crate) acting: Option<&'a ClusterClient>,
    pub(crate) claims: &'a Claims,
    pub(crate) permits_claim: &'a PermitsClaim<'a>,
    pub(crate) tracking: &'a TrackingSettings,
    pub(crate) settings: &'a Settings,
    pub(crate) diagnostics: &'a Diagnostics,
    pub(crate) rules: &'a IgnoreRules,
    pub(crate) gathered: &'a Arc<Gathered>,
    /// The objects that the app is known to have had in Git.
    pub(crate) recorded: &'a RecordedObjects,
    pub(crate) dry_runs: DryRunPolicy,
    /// Where a user judges with own rights: set if a dry run was denied for the lack of them.
    pub(crate) denied_dry_runs: Option<&'a AtomicBool>,
    pub(crate) now: Timestamp,
    /// True if questions are asked again whose answers are known.
    pub(crate) ask_again: bool,
    /// Renders the same commit once more.
    pub(crate) render_again: &'a RenderAgain<'a>,
}

/// The result of a comparison.
pub(crate) struct Compared {
    pub(crate) gathered: Arc<Gathered>,
    pub(crate) live: LiveSet,
    pub(crate) schemas: Arc<SchemaSet>,
    pub(crate) verdicts: BTreeMap<ObjectKey, Verdict>,
    pub(crate) owners: BTreeMap<ObjectKey, Owner>,
    /// The health of the live objects.
    pub(crate) health: HealthResults,
    /// The objects that the app is known to have had in Git.
    pub(crate) recorded: RecordedObjects,
    /// What Git said about the app's objects, also about those that it no longer has.
    pub(crate) exemptions: Exemptions,
    /// Live hooks that the app tracks.
    pub(crate) hooks: BTreeSet<ObjectKey>,
    /// Other apps that render an object of this app, or own one that it renders.
    pub(crate) shared: BTreeMap<ObjectKey, BTreeSet<String>>,
    /// What Git asks and the project does not permit.
    pub(crate) denied: DeniedObjects,
    /// Objects of this app that left Git and that another app claims.
    pub(crate) left_to_others: BTreeMap<ObjectKey, LeftTo>,
    /// Objects that exist and could not be read.
    pub(crate) unreadable: Vec<(ObjectKey, ApiError)>,
    /// Kinds whose schema changed since the last comparison, and how many objects were judged again for it.
    pub(crate) new_schemas: Vec<(GroupVersionKind, usize)>,
}

/// The app that claims an object which left Git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeftTo {
    pub(crate) app: String,
    /// True if the object is not pruned. Otherwise a user has to confirm that: only the status of the app lists the object,
    /// and the app cannot be rendered.
    pub(crate) is_kept: bool,
}

impl Compared {
    /// A comparison before any object was judged.
    pub(crate) fn new(gathered: &Arc<Gathered>, live: LiveSet, schemas: Arc<SchemaSet>) -> Self {
        Self {
            gathered: Arc::clone(gathered),
            live,
            schemas,
            verdicts: BTreeMap::new(),
            owners: BTreeMap::new(),
            health: HealthResults::default(),
            recorded: RecordedObjects::default(),
            exemptions: Exemptions::default(),
            hooks: BTreeSet::new(),
            shared: BTreeMap::new(),
            denied: DeniedObjects::default(),
            left_to_others: BTreeMap::new(),
            unreadable: Vec::new(),
            new_schemas: Vec::new(),
        }
    }
}

impl Comparison<'_> {
    /// Compares and judges every object of the app.
    pub(crate) async fn run(
        &self,
        git: &GitState,
        judge: &mut JudgeState,
        health: &mut HealthState,
    ) -> Result<Compared, ApiError> {
        let wanted = self.wanted();
        let snapshot = self.cluster.store.snapshot(self.instance, &wanted, &self.beside(&wanted)).await;
        let (mut live, mut unreadable) = (snapshot.live, snapshot.unreadable);
        // The app may track objects from before a change of its project.
        live.objects.retain(|key, _| self.permits(key));
        unreadable.retain(|(key, _)| self.permits(key));
        let schemas = self.schemas(&live).await?;
        let new_schemas = self.reread(&mut live, &schemas, judge).await;
        let health = self.check_health(&live, health).await;
        let compared = Compared {
            health,
            recorded: self.recorded.clone(),
            unreadable,
            new_schemas,
            ..Compared::new(self.gathered, live, schemas)
        };
        Ok(self.judge(compared, git, judge).await)
    }

    /// True if the app's project permits this object.
    pub(crate) fn permits(&self, key: &ObjectKey) -> bool {
        self.project.permits_object(key, &self.cluster.target()).is_ok()
    }

    /// Judges every object that Git asks for or that the app tracks, if the project permits it.
    pub(crate) async fn judge(
        &self,
        mut compared: Compared,
        git: &GitState,
        state: &mut JudgeState,
    ) -> Compared {
        compared.denied =
            DeniedObjects::of(self.gathered.desired.get(), self.project, &self.cluster.target());
        let (live, is_complete) = (&compared.live.objects, compared.live.complete);
        state.exemptions = state.exemptions.next(self.gathered.desired.get(), live, is_complete);
        compared.exemptions = state.exemptions.clone();
        let mutators = mutators::mutators(&self.cluster.store);
        let inputs = self.inputs(git, state, &mutators, &mut compared);
        self.rules.start_run();
        if self.ask_again {
            state.verdicts.clear();
            state.reread.clear();
            self.rules.try_again();
        }
        let schemas = Arc::clone(&compared.schemas);
        let judge = Judge {
            instance: self.instance,
            client: &self.cluster.client,
            acting: self.acting,
            schemas: &schemas,
            rules: self.rules,
            options: self.settings.compare_options(self.app),
            prune: self.app.sync_policy.automated.is_some_and(|automation| automation.prune),
            heal_limit: self.settings.heal_limit(),
            render_may_vary: self.gathered.may_vary,
            dry_runs: self.dry_runs,
            denied_dry_runs: self.denied_dry_runs,
            now: self.now,
            admission: verdict_cache::admission(&mutators),
            render_again: self.render_again,
        };
        for _ in 0..MOST_JUDGEMENTS {
            let fingerprint = self.rules.fingerprint();
            compared.verdicts = judge.judge_all(&inputs, &mut state.verdicts).await;
            // A rule that took too much ignores nothing, and so it has to be for all objects.
            if self.rules.fingerprint() == fingerprint {
                break;
            }
        }
        compared
    }

    /// The objects and hooks that Git asks for and the project permits.
    pub(crate) fn wanted(&self) -> Vec<ObjectKey> {
        let desired = self.gathered.desired.get();
        let hooks = desired
            .hooks
            .iter()
            .filter_map(|hook| hook.manifest.clone().with_namespace(hook.namespace.as_deref()).key());
        // An owner reference that another client added takes an object out of the app's tree. One that Git had is read all
        // the same.
        let is_hidden = |key: &&ObjectKey| {
            !desired.objects.contains_key(*key)
                && self.cluster.store.node(key).is_some_and(|node| !node.parents.is_empty())
        };
        let hidden = self.recorded.keys().filter(is_hidden).cloned();
        let wanted = desired.objects.keys().cloned().chain(hooks).chain(hidden);
        wanted.filter(|key| self.permits(key)).collect()
    }

    /// The schemas of everything that Git asks for and of everything live. Hooks are not compared, but are sent.
    pub(crate) async fn schemas(&self, live: &LiveSet) -> Result<Arc<SchemaSet>, ApiError> {
        let desired = self.gathered.desired.get();
        let objects = desired.objects.values().map(|object| &object.manifest);
        let hooks = desired.hooks.iter().map(|hook| &hook.manifest);
        let manifests = objects.chain(hooks).chain(live.objects.values().map(AsRef::as_ref));
        let kinds: BTreeSet<GroupVersionKind> = manifests.map(Manifest::gvk).collect();
        self.cluster.schemas.typed(kinds, self.settings).await
    }

    /// The namespace that a sync creates (`CreateNamespace=true`) belongs to no app. It is observed so that the app runs when
    /// it is deleted.
    fn beside(&self, wanted: &[ObjectKey]) -> Vec<ObjectKey> {
        self.app.asked_namespace().into_iter().filter(|key| !wanted.contains(key)).collect()
    }

    /// Checks the health of the live objects.
    pub(crate) async fn check_health(&self, live: &LiveSet, state: &mut HealthState) -> HealthResults {
        let permits_namespace =
            |namespace: &str| self.project.permits_destination(&self.cluster.target(), namespace);
        let check = HealthCheck {
            app: &self.app.id,
            cluster: self.cluster,
            acting: self.acting,
            settings: self.settings,
            diagnostics: self.diagnostics,
            permits_namespace: &permits_namespace,
            now: self.now,
        };
        check.run(&live.objects, state).await
    }

    /// Reads objects again whose schema is not the one that they were last judged with.
    async fn reread(
        &self,
        live: &mut LiveSet,
        schemas: &SchemaSet,
        judge: &mut JudgeState,
    ) -> Vec<(GroupVersionKind, usize)> {
        let mut changed: BTreeMap<GroupVersionKind, usize> = BTreeMap::new();
        for (key, object) in &mut live.objects {
            let gvk = object.gvk();
            let fingerprint = schemas.kind(&gvk).map_or(NO_SCHEMA, |kind| kind.fingerprint);
            let known = judge.schemas.get(&gvk).copied();
            if let Some(known) = known.filter(|known| *known != fingerprint) {
                // A kind is served a moment before its schema is published: the first schema is not a change.
                if known != NO_SCHEMA {
                    *changed.entry(gvk.clone()).or_default() += 1;
                }
                let fresh = self.cluster.client.get_at(&gvk, key.namespace.as_deref(), &key.name).await;
                if let Ok(Some(fresh)) = fresh {
                    judge.reread.insert(key.clone(), Arc::new(fresh));
                }
            }
            match judge.reread.get(key) {
                Some(fresh) if fresh.resource_version() == object.resource_version() => {
                    *object = Arc::clone(fresh);
                }
                Some(_) => {
                    judge.reread.remove(key);
                }
                None => {}
            }
        }
        for (gvk, objects) in &changed {
            let version = gvk.api_version();
            info!(kind = %gvk.kind, version, objects, "schema changed; judging its objects again");
        }
        let seen = live.objects.values().map(|object| object.gvk());
        let seen: BTreeSet<GroupVersionKind> = seen.collect();
        judge.schemas = seen
            .into_iter()
            .map(|gvk| {
                let fingerprint = schemas.kind(&gvk).map_or(NO_SCHEMA, |kind| kind.fingerprint);
                (gvk, fingerprint)
            })
            .collect();
        changed.into_iter().collect()
    }
}
