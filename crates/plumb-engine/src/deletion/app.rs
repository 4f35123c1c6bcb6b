//! An Application that is being deleted: its hooks, its objects, its finalizers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use plumb_core::app::App;
use plumb_core::desired::{DesiredHook, ObjectOptions, Propagation, PruneOption};
use plumb_core::drift::ApplyAdvice;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::plan::{
    AppOptions, HowToApply, LiveFacts, ObjectFacts, OperationMark, Owner, StepId, SyncPhase,
};
use plumb_core::schema::SchemaSet;
use plumb_core::sync::deletion::{self, Deletion, DeletionCommand, DeletionStep, FINALIZERS};
use plumb_core::sync::{Command, Verb};
use plumb_core::tracking::{Provenance, TrackedBy, tracked_by};
use plumb_crd::Application;
use plumb_crd::application::{ConditionType, ResourceResult};
use plumb_kube::{ApiError, LiveStore};
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::app_run::gather::gather;
use crate::app_run::{AppInputs, AppRun};
use crate::events::event::AppEvent;
use crate::operation::state::WrittenVersions;
use crate::queue::{RefreshDepth, Trigger, TriggerReason};
use crate::sources::gather::FetchPolicy;
use crate::sources::gathered::Gathered;
use crate::sources::slow_servers::NotGathered;
use crate::sources::state::GitState;
use crate::state::app_state::{AppState, DeletionState};
use crate::state::retries::Subject;
use crate::status::write::write_deletion;
use crate::sync::advance::approved_at;
use crate::sync::executor::step::{Executor, StepContext, StepError, WritesUnderWay};
use crate::sync::namespace_contents::{of_others, why_never};
use crate::sync::observe::observations;
use crate::sync::sibling_apps::claimed_by;

/// When a deletion that is blocked is tried again, if no event comes before.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// When it is asked again whether other apps still need a namespace.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// When a deletion that has just done something goes on.
const GO_ON: Duration = Duration::from_millis(50);

/// One step of an app's deletion.
pub(crate) async fn delete(run: &mut AppRun<'_>, inputs: AppInputs<'_>, state: &mut AppState) {
    let AppInputs { application, app, context } = inputs;
    let finalizers = &application.metadata.finalizers;
    if !finalizers.iter().any(|finalizer| FINALIZERS.contains(&finalizer.as_str())) {
        return;
    }
    // client: Git, where a hook failed
    let gathered = gather_hooks(run, inputs, &mut state.git, &state.deletion).await;
    let why_not = gathered.as_ref().err().map(NotGathered::message).unwrap_or_default();
    let hooks: Result<&[DesiredHook], &str> = match &gathered {
        Ok(gathered) => Ok(&gathered.desired.get().hooks),
        Err(_) => Err(&why_not),
    };
    let revision = gathered.as_ref().ok().and_then(|gathered| gathered.revisions.first().cloned());
    let started_at = application.metadata.deletion_timestamp.unwrap_or(run.now);
    let (app_uid, revision) = (app.uid.clone(), revision.unwrap_or_default());
    let mark = OperationMark { app_uid, started_at, retry: 0, revision };
    // client: the objects of the app and of its hooks
    let snapshot = context.cluster.store.snapshot(&context.instance, &[], &[]).await;
    let hook_keys = deletion::hook_keys(hooks.unwrap_or_default(), &mark);
    let objects = owned(run, inputs, &snapshot.live.objects, &hook_keys);
    let observations = observations(inputs, &state.health, &state.judge.writes, hook_keys.iter()).await;
    let asked_namespace = asked_namespace(app, gathered.as_ref().ok());
    // pure: the next step
    let step = deletion::next(&Deletion {
        finalizers,
        mark: &mark,
        hooks,
        objects: &objects,
        live_complete: snapshot.live.complete,
        observations: &observations,
        failed_before: &state.deletion.failed_hooks,
        options: &AppOptions::parse(&app.sync_policy.options),
        itself: &Application::key(&app.id),
        asked_namespace: asked_namespace.as_ref(),
        approved_at: approved_at(application, run.now),
        is_destination_known: true,
    });
    log_step(&step);
    state.deletion.failed_hooks.extend(step.failed_hooks.iter().cloned());
    // client: the step
    let error =
        carry_out(run, inputs, &objects, &step.commands, &state.git).await.err().or(step.error.clone());
    add_conditions(run, inputs, &step, error.as_deref());
    if error.is_none() && !step.drop_finalizers.is_empty() {
        drop_finalizers(run, application, &step.drop_finalizers).await;
    }
    let mut next_run = next_run(&step, error.is_some());
    if !snapshot.live.complete {
        run.engine.run_when_listed(run.id(), &context.cluster);
        // What keeps a kind from being listed may show a moment later.
        next_run = next_run.or(Some(TRY_AGAIN));
        if let Some(why) = unlisted(&context.cluster.store) {
            run.conditions.add(ConditionType::DeletionError, why);
        }
    }
    request_next(run, &mut state.deletion, next_run);
    write_deletion(run, application).await;
}

/// The destination namespace that the app's options ask for. Git may have it as a manifest: then it goes with the app's
/// other objects.
fn asked_namespace(app: &App, gathered: Option<&Arc<Gathered>>) -> Option<ObjectKey> {
    let is_in_git =
        |key: &ObjectKey| gathered.is_some_and(|gathered| gathered.desired.get().objects.contains_key(key));
    app.asked_namespace().filter(|key| !is_in_git(key))
}

/// When the deletion goes on, if no event comes before.
fn next_run(step: &DeletionStep, has_failed: bool) -> Option<Duration> {
    match (has_failed, step.commands.is_empty()) {
        (true, _) => Some(TRY_AGAIN),
        (false, false) => Some(GO_ON),
        // What other apps have in a namespace may be gone later, and no event says so.
        (false, true) => step.unconfirmed.as_ref().and_then(|(_, why)| why.as_ref().map(|_| ASK_AGAIN)),
    }
}

/// Requests the next run for the deletion. Events request runs as well, and must not each begin a series of their own.
fn request_next(run: &AppRun<'_>, state: &mut DeletionState, after: Option<Duration>) {
    let now = Instant::now();
    let is_due = |after: &Duration| state.next_run.is_none_or(|at| at <= now || at > now + *after);
    if let Some(after) = after.filter(is_due) {
        state.next_run = Some(now + after);
        run.engine.queue.push_after(run.id().clone(), Trigger::live(TriggerReason::Deletion), after);
    }
}

/// Says what the deletion waits for, or why it fails.
fn add_conditions(run: &mut AppRun<'_>, inputs: AppInputs<'_>, step: &DeletionStep, error: Option<&str>) {
    let application = inputs.application;
    if let Some(error) = error {
        let mut error = error.to_owned();
        run.engine.shown_text().clean(&mut error);
        let is_new = !application.status.conditions.iter().any(|known| known.message == error);
        if is_new {
            run.engine.record_event(&run.snapshot, application, AppEvent::deletion_failed(&error));
        }
        run.conditions.add(ConditionType::DeletionError, error);
    } else if let Some(earlier) = &step.earlier_error {
        run.conditions.add(ConditionType::DeletionError, earlier.clone());
    }
    if let Some((key, why)) = &step.unconfirmed {
        let name = &inputs.app.id.name;
        let why = why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let message = format!(
            "waiting for confirmation that {key} may be deleted{why}: `plumb app confirm-deletion {name}`"
        );
        run.conditions.add(ConditionType::DeletionError, message);
    }
}

/// The hooks come from Git as it was when the deletion began: a hook that has run is not run again because Git moved. Only
/// where one failed is Git asked again, because it may have been fixed there. A Git server that is down blocks nothing.
async fn gather_hooks(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    git: &mut GitState,
    deletion: &DeletionState,
) -> Result<Arc<Gathered>, NotGathered> {
    if run.policy.depth > RefreshDepth::Live && !deletion.failed_hooks.is_empty() {
        match gather(run, inputs, git).await {
            Ok(fixed) => return Ok(fixed),
            Err(NotGathered::Waiting(answered)) => {
                run.engine.run_when_answered(answered, run.id(), run.trigger);
            }
            Err(NotGathered::Failed(_)) => {}
        }
    }
    let AppInputs { application, app, context } = inputs;
    let policy = FetchPolicy { depth: RefreshDepth::Live, ..run.policy };
    let known = git.load();
    let gathered =
        run.engine.sources.gather(application, app, context, policy, known.as_ref(), &mut git.parked).await;
    if let Err(NotGathered::Waiting(answered)) = &gathered {
        run.engine.run_when_answered(answered.clone(), run.id(), run.trigger);
    }
    gathered
}

/// Every object that the app tracks and the project permits.
fn owned(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    live: &BTreeMap<ObjectKey, Arc<Manifest>>,
    hook_keys: &[ObjectKey],
) -> BTreeMap<ObjectKey, ObjectFacts> {
    let context = inputs.context;
    let permits_claim = run.engine.permits_claim(&context.cluster);
    // An object that another app may need stays, even if that app cannot be rendered for now.
    let claimed_by = |key: &ObjectKey| {
        let others = run.engine.claims.others(run.id(), &context.cluster.server, key, &permits_claim);
        others.first().map(|other| other.instance.to_string())
    };
    let recorded = inputs.recorded();
    // A hook is in no status as an object from Git: Git, or the result of an operation, must know it as one. Where an option
    // asks for a confirmation, the status does not tell the record of an object, and a user is asked in any case.
    let mut hooks = known_hooks(run, inputs);
    hooks.extend(hook_keys.iter().cloned());
    let app_confirms = inputs.app.sync_policy.has("Delete=confirm");
    let provenance = |key: &ObjectKey, live: &Manifest| {
        let options = ObjectOptions::parse(live);
        let asks = app_confirms || options.delete == Some(PruneOption::Confirm);
        let is_recorded = if asks { recorded.may_contain(key) } else { recorded.contains(key) };
        Provenance::of(live, is_recorded || (options.is_hook && hooks.contains(key)))
    };
    let is_owned = |key: &ObjectKey, live: &Manifest| {
        tracked_by(live, &context.instance, &context.settings.tracking) == TrackedBy::Ours
            && context.denies(key).is_none()
    };
    let facts = |key: &ObjectKey, live: &Arc<Manifest>| ObjectFacts {
        live: Some(LiveFacts {
            manifest: Arc::clone(live),
            options: ObjectOptions::of_live(live, recorded.may_contain(key)),
            owner: Owner::ThisApp,
            provenance: provenance(key, live),
            holds_data: None,
            of_others: of_others(run, inputs, key),
            never_deleted: why_never(run, inputs, key),
        }),
        in_sync: false,
        paused: inputs.pause_of(key, live, run.now).map(|pause| pause.reason),
        also_rendered_by: claimed_by(key),
        listed_by: None,
    };
    let owned = live.iter().filter(|(key, live)| is_owned(key, live));
    owned.map(|(key, live)| (key.clone(), facts(key, live))).collect()
}

/// Logs the step, and with the last one what stays in the cluster.
fn log_step(step: &DeletionStep) {
    info!(commands = step.commands.len(), message = %step.message, "deleting");
    for (key, why) in step.kept.iter().filter(|_| !step.drop_finalizers.is_empty()) {
        info!(object = %key, why, "the object stays");
    }
}

/// The objects that are known as hooks: those that Git names, and those of the last operation.
fn known_hooks(run: &AppRun<'_>, inputs: AppInputs<'_>) -> BTreeSet<ObjectKey> {
    let gathered = run.gathered.iter().flat_map(|gathered| gathered.desired.get().hooks.iter());
    let named = gathered.filter_map(DesiredHook::key);
    let state = inputs.application.status.operation_state.as_ref();
    let result = state.and_then(|state| state.sync_result.as_ref());
    let run_before = result.into_iter().flat_map(|result| &result.resources);
    let run_before = run_before.filter(|object| !object.hook_type.is_empty()).map(ResourceResult::key);
    named.chain(run_before).collect()
}

/// Carries out the commands of one step.
async fn carry_out(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    objects: &BTreeMap<ObjectKey, ObjectFacts>,
    commands: &[DeletionCommand],
    git: &GitState,
) -> Result<(), String> {
    let AppInputs { app, context, .. } = inputs;
    let store = &context.cluster.store;
    let step_context = |key: &ObjectKey| {
        let known = objects.get(key).and_then(|facts| facts.live.as_ref());
        StepContext {
            live: known.map(|live| Arc::clone(&live.manifest)).or_else(|| store.get_kept(key).map(Arc::new)),
            owner: Owner::ThisApp,
            advice: ApplyAdvice::default(),
            denied: run.engine.denies_now(app, context, key),
            claimed_by: claimed_by(run, inputs, key),
            paused: None,
            held: None,
        }
    };
    let gathered = git.load();
    let executor = Executor {
        app: &app.id,
        project: context.project.name(),
        tombstones: (&run.engine.tombstones, context.settings.tombstone_limits),
        control_plane_namespace: &run.engine.options.namespace,
        home: &run.engine.home,
        cluster: &context.cluster,
        desired: gathered.as_ref().map(|gathered| &*gathered.desired),
        schemas: &SchemaSet::default(),
        rules: &context.rules.rules,
        respect_ignore: false,
        asks_server_side: false,
        allow_empty: true,
        revision: None,
        impersonation: context.impersonation.clone()?,
        step_context: &step_context,
        written: &WrittenVersions::default(),
        under_way: &WritesUnderWay::default(),
    };
    let results = join_all(commands.iter().map(|command| carry_out_one(&executor, command))).await;
    let failed: Vec<String> =
        results.into_iter().filter_map(|result| result.err().map(|error| error.to_string())).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

async fn carry_out_one(executor: &Executor<'_>, command: &DeletionCommand) -> Result<(), StepError> {
    let (key, verb) = match command {
        DeletionCommand::CreateHook { key, manifest } => {
            let manifest = manifest.clone();
            (
                key,
                Verb::ApplyManifest { manifest, how: HowToApply::ServerSide, strict: false, dry_run: false },
            )
        }
        DeletionCommand::DeleteHook { key, uid } => {
            (key, Verb::DeleteHook { uid: uid.clone(), propagation: Propagation::Background })
        }
        DeletionCommand::DeleteObject { key, uid, propagation } => {
            return executor
                .delete_with_app(key, uid.as_deref(), *propagation)
                .await
                .map_err(StepError::from);
        }
    };
    let command = Command { id: StepId { phase: SyncPhase::Sync, key: key.clone() }, verb };
    executor.carry_out(&[command]).await.pop().transpose().map(drop)
}

/// Removes these finalizers from the Application.
pub(crate) async fn drop_finalizers(run: &mut AppRun<'_>, application: &Application, dropped: &[&str]) {
    let finalizers = application.metadata.finalizers.iter();
    let kept: Vec<Value> = finalizers
        .filter(|finalizer| !dropped.contains(&finalizer.as_str()))
        .map(|finalizer| json!(finalizer))
        .collect();
    let patch = json!({"metadata": {"finalizers": kept, "resourceVersion": run.snapshot.resource_version}});
    match run.engine.patch_application(run.id(), patch).await {
        Ok(seen) => {
            if let Some((snapshot, _)) = run.engine.registry.note(&seen) {
                run.snapshot = snapshot;
            }
            run.engine.queue.push(run.id().clone(), Trigger::live(TriggerReason::Deletion));
        }
        Err(error) if error.api().is_some_and(ApiError::is_not_found) => {}
        Err(error) => {
            if let Some(times) = run.engine.retry_later(run.id(), Subject::Finalizers) {
                warn!(%error, times, "cannot remove the finalizers of the Application; trying again");
            }
        }
    }
}

/// The kinds that cannot be listed, if the reason is more than time.
fn unlisted(store: &LiveStore) -> Option<String> {
    let failed = store.unlisted().into_iter().filter_map(|(kind, trouble)| Some((kind, trouble?)));
    let failed: Vec<String> = failed.map(|(kind, trouble)| format!("{kind} ({trouble})")).collect();
    (!failed.is_empty()).then(|| {
        format!(
            "cannot finish the deletion: these kinds cannot be listed, so objects may remain: {}",
            failed.join(", ")
        )
    })
}
