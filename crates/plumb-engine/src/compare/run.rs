//! One comparison of an app: its live objects, judged against what Git asks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use plumb_core::app::App;
use plumb_core::drift::Verdict;
use plumb_core::ignore::IgnoreRules;
use plumb_core::live::LiveSet;
use plumb_core::object::{GroupKind, GroupVersionKind, ObjectKey};
use plumb_core::plan::Owner;
use plumb_core::schema::SchemaSet;
use plumb_core::tracking::TrackingSettings;
use plumb_kube::{ApiError, ClusterClient};
use tracing::info;

use super::judge::{DryRunPolicy, Judge, RenderAgain};
use super::state::JudgeState;
use super::verdict_cache;
use crate::apps::claims::Claims;
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

/// What a comparison works with.
pub(crate) struct Comparison<'a> {
    pub(crate) app: &'a App,
    pub(crate) instance: &'a str,
    pub(crate) cluster: &'a Cluster,
    /// Asks in the name of the app: with the service account of its project, if syncs impersonate one. `None` if the
    /// project names none and has to: then nothing is asked that a sync could not ask.
    pub(crate) acting: Option<&'a ClusterClient>,
    pub(crate) claims: &'a Claims,
    pub(crate) tracking: &'a TrackingSettings,
    pub(crate) settings: &'a Settings,
    pub(crate) diagnostics: &'a Diagnostics,
    pub(crate) rules: &'a IgnoreRules,
    pub(crate) gathered: &'a Arc<Gathered>,
    pub(crate) dry_runs: DryRunPolicy,
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
    /// Live hooks that the app tracks.
    pub(crate) hooks: BTreeSet<ObjectKey>,
    /// Other apps that render an object of this app, or own one that it renders.
    pub(crate) shared: BTreeMap<ObjectKey, BTreeSet<String>>,
    /// Objects that exist and could not be read.
    pub(crate) unreadable: Vec<(ObjectKey, ApiError)>,
    /// Kinds whose schema changed since the last comparison, and how many objects were judged again for it.
    pub(crate) new_schemas: Vec<(GroupVersionKind, usize)>,
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
            hooks: BTreeSet::new(),
            shared: BTreeMap::new(),
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
        let mut live = snapshot.live;
        let schemas = self.schemas(&live).await?;
        let new_schemas = self.reread(&mut live, &schemas, judge).await;
        let health = self.health_check().run(&live.objects, health).await;
        let compared = Compared {
            health,
            unreadable: snapshot.unreadable,
            new_schemas,
            ..Compared::new(self.gathered, live, schemas)
        };
        Ok(self.judge(compared, git, judge).await)
    }

    /// Judges every object that Git asks for or that the app tracks.
    pub(crate) async fn judge(
        &self,
        mut compared: Compared,
        git: &GitState,
        state: &mut JudgeState,
    ) -> Compared {
        let mutators = mutators::mutators(&self.cluster.store);
        let inputs = self.inputs(git, state, &mutators, &mut compared);
        if self.ask_again {
            state.verdicts.ask_again();
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
            now: self.now,
            admission: verdict_cache::admission(&mutators),
            render_again: self.render_again,
        };
        compared.verdicts = judge.judge_all(&inputs, &mut state.verdicts).await;
        compared
    }

    /// The objects and hooks that Git asks for.
    fn wanted(&self) -> Vec<ObjectKey> {
        let desired = self.gathered.desired.get();
        let hooks = desired
            .hooks
            .iter()
            .filter_map(|hook| hook.manifest.clone().with_namespace(hook.namespace.as_deref()).key());
        desired.objects.keys().cloned().chain(hooks).collect()
    }

    /// The schemas of everything that Git asks for and of everything live. Hooks are not compared, but are sent.
    pub(crate) async fn schemas(&self, live: &LiveSet) -> Result<Arc<SchemaSet>, ApiError> {
        let desired = self.gathered.desired.get();
        let objects = desired.objects.values().map(|object| &object.manifest);
        let hooks = desired.hooks.iter().map(|hook| &hook.manifest);
        let manifests = objects.chain(hooks).chain(live.objects.values().map(AsRef::as_ref));
        let versions: BTreeSet<String> =
            manifests.map(|manifest| manifest.api_version().to_owned()).collect();
        let kinds: BTreeSet<GroupKind> =
            desired.objects.keys().chain(live.objects.keys()).map(ObjectKey::group_kind).collect();
        self.cluster.schemas.typed(versions, kinds, self.settings).await
    }

    /// The namespace that a sync creates (`CreateNamespace=true`) belongs to no app. It is observed so that the app runs when
    /// it is deleted.
    fn beside(&self, wanted: &[ObjectKey]) -> Vec<ObjectKey> {
        let makes_it = self.app.sync_policy.has("CreateNamespace=true");
        let name = self.app.destination.namespace.as_ref().filter(|_| makes_it);
        let key = name.map(|name| ObjectKey::new("", "Namespace", None, name.clone()));
        key.into_iter().filter(|key| !wanted.contains(key)).collect()
    }

    fn health_check(&self) -> HealthCheck<'_> {
        HealthCheck {
            app: &self.app.id,
            cluster: self.cluster,
            acting: self.acting,
            settings: self.settings,
            diagnostics: self.diagnostics,
            now: self.now,
        }
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
