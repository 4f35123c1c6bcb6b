//! An Application that is being deleted: its hooks, its objects, its finalizers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use plumb_core::app::App;
use plumb_core::desired::{DesiredHook, ObjectOptions, Propagation};
use plumb_core::drift::ApplyAdvice;
use plumb_core::object::ObjectKey;
use plumb_core::plan::{AppOptions, LiveFacts, ObjectFacts, OperationMark, Owner, StepId, SyncPhase};
use plumb_core::sync::deletion::{self, Deletion, DeletionCommand, FINALIZERS};
use plumb_core::sync::{Command, Observation, Verb};
use plumb_core::tracking::{TrackedBy, tracked_by};
use plumb_crd::Application;
use plumb_kube::LiveStore;
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::apps::context::Ground;
use crate::queue::{Look, Trigger};
use crate::reconcile::run::Run;
use crate::sources::gather::{Gathered, Glance, Kept};
use crate::sources::slow_servers::NotGathered;
use crate::state::app_state::Memory;
use crate::sync::advance::approved_at;
use crate::sync::executor::step::{Executor, Knowledge, StepError, Written};
use crate::sync::observe;

/// When a deletion that something stands in the way of is looked at again, if no event comes before.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// When a deletion that has just done something is.
const GO_ON: Duration = Duration::from_millis(50);

impl Run<'_> {
    /// One step of an app's deletion.
    pub(crate) async fn delete(
        &mut self,
        application: &Application,
        app: &App,
        ground: &Ground,
        memory: &mut Memory,
    ) {
        let finalizers = &application.metadata.finalizers;
        if !finalizers.iter().any(|finalizer| FINALIZERS.contains(&finalizer.as_str())) {
            return;
        }
        let gathered = self.gather_to_leave(application, app, ground, memory).await;
        let hooks: Result<&[DesiredHook], &str> = match &gathered {
            Ok(gathered) => Ok(&gathered.desired.get().hooks),
            Err(why) => Err(why.condition().1),
        };
        let mark = OperationMark {
            started_at: application.metadata.deletion_timestamp.unwrap_or(self.now),
            retry: 0,
            revision: gathered
                .as_ref()
                .ok()
                .and_then(|gathered| gathered.revisions.first().cloned())
                .unwrap_or_default(),
        };
        let store = &ground.cluster.store;
        let snapshot = store.snapshot(&ground.instance, &[], &[]).await;
        let objects = self.owned(app, ground, &snapshot.live.objects);
        let sights = hook_sights(ground, memory, hooks.unwrap_or_default(), &mark).await;
        let itself = ObjectKey::new(
            "argoproj.io",
            Application::KIND,
            Some(app.id.namespace.clone()),
            app.id.name.clone(),
        );
        // pure
        let step = deletion::next(&Deletion {
            finalizers,
            mark: &mark,
            hooks,
            objects: &objects,
            live_complete: snapshot.live.complete,
            observations: &sights,
            failed_before: &memory.failed_hooks,
            options: &AppOptions::parse(&app.sync_policy.options),
            itself: &itself,
            approved_at: approved_at(application),
            is_destination_known: true,
        });
        info!(app = %app.id, commands = step.commands.len(), message = %step.message, "deleting");
        memory.failed_hooks.extend(step.failed_hooks.iter().cloned());
        let mut error = step.error.clone();
        if let Err(failed) = self.carry_out_deletion(app, ground, &objects, &step.commands, memory).await {
            error = Some(failed);
        }
        if let Some(error) = &error {
            let is_new = !application.status.conditions.iter().any(|known| known.message == *error);
            if is_new {
                let happening = crate::events::event::Happening::deletion_failed(error);
                self.engine.tell(&self.known, application, happening);
            }
            self.conditions.add("DeletionError", error.clone());
        } else if let Some(earlier) = &step.earlier_error {
            self.conditions.add("DeletionError", earlier.clone());
        }
        if let Some(key) = &step.unconfirmed {
            let name = &app.id.name;
            self.conditions.add(
                "DeletionError",
                format!(
                    "waiting for confirmation that {key} may be deleted: `plumb app confirm-deletion {name}`"
                ),
            );
        }
        if error.is_none() && !step.drop_finalizers.is_empty() {
            self.drop_finalizers(application, &step.drop_finalizers).await;
        }
        let mut again = match (&error, step.commands.is_empty()) {
            (Some(_), _) => Some(LOOK_AGAIN),
            (None, false) => Some(GO_ON),
            (None, true) => None,
        };
        if !snapshot.live.complete {
            self.engine.wake_when_listed(&app.id, &ground.cluster);
            // What is in the way of a list may show a moment later.
            again = again.or(Some(LOOK_AGAIN));
            if let Some(why) = unlisted(store) {
                self.conditions.add("DeletionError", why);
            }
        }
        // Events ask for runs as well, and not each of them may begin a row of looks of its own.
        let now = Instant::now();
        let is_due = |after: &Duration| memory.deletion_look.is_none_or(|at| at <= now || at > now + *after);
        if let Some(after) = again.filter(is_due) {
            memory.deletion_look = Some(now + after);
            self.engine.queue.push_after(app.id.clone(), Trigger::new(Look::Live, "deletion"), after);
        }
        self.write_deletion(application).await;
    }

    /// The hooks come from Git, as it was when the deletion began: one that has run is not run again because Git moved. Only
    /// where one failed is Git looked at anew, for it may have been mended there; a Git that is away holds nothing up.
    async fn gather_to_leave(
        &self,
        application: &Application,
        app: &App,
        ground: &Ground,
        memory: &mut Memory,
    ) -> Result<Arc<Gathered>, NotGathered> {
        if self.glance.look > Look::Live && !memory.failed_hooks.is_empty() {
            let mended = self.gather(application, app, ground, memory).await;
            if mended.is_ok() {
                return mended;
            }
        }
        let glance = Glance { look: Look::Live, ..self.glance };
        let known = memory.gathered.as_ref().and_then(Kept::wake);
        self.engine.sources.gather(application, app, ground, glance, known.as_ref()).await
    }

    /// Every object that carries the app's mark and that the project permits.
    fn owned(
        &self,
        app: &App,
        ground: &Ground,
        live: &BTreeMap<ObjectKey, Arc<plumb_core::object::Manifest>>,
    ) -> BTreeMap<ObjectKey, ObjectFacts> {
        live.iter()
            .filter(|(key, live)| {
                tracked_by(live, &ground.instance, &ground.settings.tracking) == TrackedBy::Ours
                    && ground.denies(key).is_none()
            })
            .map(|(key, live)| {
                let facts = ObjectFacts {
                    live: Some(LiveFacts {
                        manifest: Arc::clone(live),
                        options: ObjectOptions::parse(live),
                        owner: Owner::ThisApp,
                        holds_data: None,
                    }),
                    in_sync: false,
                    paused: self.paused(live),
                    also_rendered_by: self
                        .engine
                        .claims
                        .others(&app.id, &ground.cluster.server, key)
                        .first()
                        .map(|other| other.instance.to_string()),
                };
                (key.clone(), facts)
            })
            .collect()
    }

    async fn carry_out_deletion(
        &self,
        app: &App,
        ground: &Ground,
        objects: &BTreeMap<ObjectKey, ObjectFacts>,
        commands: &[DeletionCommand],
        memory: &Memory,
    ) -> Result<(), String> {
        let store = &ground.cluster.store;
        let knowledge = |key: &ObjectKey| Knowledge {
            live: objects
                .get(key)
                .and_then(|facts| facts.live.as_ref())
                .map(|live| Arc::clone(&live.manifest))
                .or_else(|| store.get_kept(key).map(Arc::new)),
            owner: Owner::ThisApp,
            advice: ApplyAdvice::default(),
            denied: ground.denies(key),
            paused: None,
            held: None,
        };
        let desired = memory.gathered.as_ref().and_then(|kept| kept.shelf.set()).unwrap_or_else(|| {
            Arc::new(plumb_core::desired::Complete::rendered_without_error(
                plumb_core::desired::DesiredSet::default(),
            ))
        });
        let schemas = plumb_core::schema::SchemaSet::default();
        let written = Written::default();
        let executor = Executor {
            app: &app.id,
            control_plane_namespace: &self.engine.options.namespace,
            home: &self.engine.home,
            cluster: &ground.cluster,
            desired: &desired,
            schemas: &schemas,
            rules: &ground.rules,
            respect_ignore: false,
            allow_empty: true,
            revision: None,
            impersonation: ground.impersonation.clone()?,
            knowledge: &knowledge,
            written: &written,
        };
        let results = join_all(commands.iter().map(|command| async {
            match command {
                DeletionCommand::CreateHook { key, manifest } => {
                    let verb = Verb::ApplyManifest {
                        manifest: manifest.clone(),
                        how: plumb_core::plan::HowToApply::ServerSide,
                        strict: false,
                        dry_run: false,
                    };
                    let command = Command { id: StepId { phase: SyncPhase::Sync, key: key.clone() }, verb };
                    executor.carry_out(&[command]).await.pop().transpose().map(drop)
                }
                DeletionCommand::DeleteHook { key, uid } => {
                    let verb = Verb::DeleteHook { uid: uid.clone(), propagation: Propagation::Background };
                    let command = Command { id: StepId { phase: SyncPhase::Sync, key: key.clone() }, verb };
                    executor.carry_out(&[command]).await.pop().transpose().map(drop)
                }
                DeletionCommand::DeleteObject { key, uid, propagation } => {
                    executor.delete_with_app(key, uid.as_deref(), *propagation).await.map_err(StepError::from)
                }
            }
        }))
        .await;
        let failed: Vec<String> =
            results.into_iter().filter_map(|result| result.err().map(|error| error.to_string())).collect();
        if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
    }

    pub(crate) async fn drop_finalizers(&mut self, application: &Application, dropped: &[&str]) {
        let kept: Vec<Value> = application
            .metadata
            .finalizers
            .iter()
            .filter(|finalizer| !dropped.contains(&finalizer.as_str()))
            .map(|finalizer| json!(finalizer))
            .collect();
        let patch = json!({"metadata": {"finalizers": kept, "resourceVersion": self.known.resource_version}});
        match self.engine.patch_application(&self.known.id, patch).await {
            Ok(seen) => {
                if let Some((known, _)) = self.engine.registry.note(&seen) {
                    self.known = known;
                }
                self.engine.queue.push(self.known.id.clone(), Trigger::new(Look::Live, "deletion"));
            }
            Err(error) if error.api().is_some_and(plumb_kube::ApiError::is_not_found) => {}
            Err(error) => {
                warn!(app = %self.known.id, %error, "finalizers not removed");
                self.engine.retry_later(&self.known.id);
            }
        }
    }
}

/// What keeps kinds from being listed, if it is more than time.
fn unlisted(store: &LiveStore) -> Option<String> {
    let troubled = store.unlisted().into_iter().filter_map(|(kind, trouble)| Some((kind, trouble?)));
    let troubled: Vec<String> = troubled.map(|(kind, trouble)| format!("{kind} ({trouble})")).collect();
    (!troubled.is_empty()).then(|| {
        format!(
            "objects may be left that cannot be seen: these kinds cannot be listed: {}",
            troubled.join(", ")
        )
    })
}

/// The hooks' objects as the store has them, under the names that they run with.
async fn hook_sights(
    ground: &Ground,
    memory: &Memory,
    hooks: &[DesiredHook],
    mark: &OperationMark,
) -> BTreeMap<ObjectKey, Observation> {
    let keys = deletion::hook_keys(hooks, mark);
    observe::sights(ground, memory, keys.iter()).await
}
