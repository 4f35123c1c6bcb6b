//! What the last process synced, where it matters and only rendering or the cluster's events tell.

use jiff::Timestamp;
use plumb_core::drift::VerdictStatus;
use plumb_core::health::HealthStatus;
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use plumb_core::status::SyncCode;
use plumb_core::writes::{
    AttemptRecord, AttemptResult, FinishedJob, LastSeenJob, has_finished_unseen, is_job,
};
use plumb_crd::Application;
use plumb_crd::application as wire;
use plumb_kube::{ClusterClient, Selection};
use tracing::debug;

use super::app::RunEnd;
use crate::app_run::compare::compare;
use crate::app_run::{AppInputs, AppRun, reported_jobs};
use crate::compare::judge::DryRunPolicy;
use crate::compare::run::Compared;
use crate::compare::state::JudgeState;
use crate::sources::slow_servers::{Answered, NotGathered};
use crate::state::app_state::AppState;

/// Restores what the last process synced, and compares again if that told anything. Tried once after a start.
pub(super) async fn after_restart(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    compared: Compared,
    dry_runs: DryRunPolicy,
    state: &mut AppState,
) -> Result<Compared, RunEnd> {
    let has_synced = match restore_last_sync(run, inputs, &compared, state).await {
        Ok(has_synced) => has_synced,
        Err(answered) => {
            run.engine.run_when_answered(answered, run.id(), run.trigger);
            return Err(RunEnd::WaitingForSources);
        }
    };
    let has_finished = restore_unseen_jobs(run, inputs, &compared, &mut state.judge).await;
    if !has_synced && !has_finished {
        return Ok(compared);
    }
    let gathered = compared.gathered.clone();
    Ok(compare(run, inputs, &gathered, dry_runs, state).await.unwrap_or(compared))
}

/// Restores what the last successful full sync applied, if an object differs, or a Job that ran is gone, and it is not known
/// what was applied. Returns whether anything was restored. The error is a request to a server that takes long: what was
/// applied decides what a sync does, so nothing may be synced before it is known.
async fn restore_last_sync(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    compared: &Compared,
    state: &mut AppState,
) -> Result<bool, Answered> {
    let AppInputs { application, app, context } = inputs;
    let matters = compared.verdicts.values().any(|verdict| {
        let key = &verdict.key;
        verdict.status == VerdictStatus::OutOfSync
            && state.judge.writes.attempt(key).is_none()
            && (compared.live.objects.contains_key(key) || is_job(key))
    });
    if state.judge.restored.last_sync || !matters {
        return Ok(false);
    }
    state.judge.restored.last_sync = true;
    let Some(last) = application.status.history.last() else { return Ok(false) };
    if !has_same_sources(last, &application.spec) {
        return Ok(false);
    }
    let (sources, revisions) = (&run.engine.sources, last.all_revisions());
    let then = sources.gather_at(application, app, context, revisions, &mut state.git.restoring).await;
    let then = match then {
        Ok(then) => then,
        Err(NotGathered::Waiting(answered)) => {
            state.judge.restored.last_sync = false;
            return Err(answered);
        }
        Err(NotGathered::Failed(error)) => {
            debug!(error = error.message(), "cannot render the last synced commit again");
            return Ok(false);
        }
    };
    state.git.restore_previous(&then);
    let mut has_restored = false;
    for (key, desired) in then.set.fingerprints() {
        let record = || AttemptRecord::restored(desired, then.rendering);
        has_restored |= state.judge.writes.restore(key, record);
    }
    reported_jobs(&mut state.judge);
    Ok(has_restored)
}

/// Restores the Jobs that finished and were deleted by their TTL while plumb was down. The cluster's events tell; where they
/// have expired too, the last status does. Returns whether there are any.
async fn restore_unseen_jobs(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    compared: &Compared,
    judge: &mut JudgeState,
) -> bool {
    if std::mem::replace(&mut judge.restored.unseen_jobs, true) {
        return false;
    }
    let Some(last) = inputs.application.status.history.last() else { return false };
    let since = last.deploy_started_at.unwrap_or(last.deployed_at);
    let down_for = run.engine.down_since.map(|since| run.now.duration_since(since));
    let mut has_restored = false;
    for verdict in compared.verdicts.values().filter(|verdict| verdict.status == VerdictStatus::OutOfSync) {
        let key = &verdict.key;
        let Some(desired) = expired_job(compared, judge, key) else { continue };
        let seen = completion(&inputs.context.cluster.client, key).await.filter(|at| *at >= since);
        if seen.is_some() || has_finished_unseen(last_seen(inputs.application, key), desired, down_for) {
            let job =
                FinishedJob { at: seen, succeeded: true, desired: compared.gathered.set.fingerprint(key) };
            judge.writes.record_finished(key.clone(), job);
            has_restored = true;
        }
    }
    has_restored
}

/// What Git asks of a Job that is gone, was applied as Git asks now, and asks to be deleted after its end.
fn expired_job<'c>(compared: &'c Compared, judge: &JudgeState, key: &ObjectKey) -> Option<&'c Manifest> {
    let desired = &compared.gathered.desired.get().objects.get(key)?.manifest;
    let fingerprint = compared.gathered.set.fingerprint(key)?;
    let attempt = judge.writes.attempt(key)?;
    let was_applied = matches!(attempt.result, AttemptResult::Applied) && attempt.desired == fingerprint;
    let is_gone = is_job(key) && !compared.live.objects.contains_key(key);
    let has_ttl = desired.value().pointer("/spec/ttlSecondsAfterFinished").is_some();
    let is_known = judge.writes.finished(key).is_some();
    (is_gone && has_ttl && was_applied && !is_known).then_some(desired)
}

/// What the Application's status says about a Job.
fn last_seen(application: &Application, key: &ObjectKey) -> Option<LastSeenJob> {
    let entry = application.status.resources.iter().find(|entry| entry.key() == *key)?;
    // A health that plumb does not know is not taken for a good one.
    let health = entry.health.as_ref();
    let health =
        health.map(|health| HealthStatus::from_word(&health.status).unwrap_or(HealthStatus::Unknown));
    Some(LastSeenJob { sync: SyncCode::from_name(&entry.status)?, health })
}

/// When a Job of this name last completed, as far as events tell.
async fn completion(client: &ClusterClient, key: &ObjectKey) -> Option<Timestamp> {
    let selection = Selection {
        namespace: key.namespace.clone(),
        labels: None,
        fields: Some(format!("involvedObject.kind=Job,involvedObject.name={},reason=Completed", key.name)),
    };
    let events = match client.list(&GroupVersionKind::from_api_version("v1", "Event"), &selection).await {
        Ok(events) => events,
        Err(error) => {
            debug!(object = %key, %error, "cannot read events");
            return None;
        }
    };
    let time = |event: &Manifest| {
        let field = |name: &str| event.value().get(name)?.as_str()?.parse::<Timestamp>().ok();
        field("lastTimestamp").or_else(|| field("eventTime"))
    };
    events.iter().filter_map(time).max()
}

/// True if that sync rendered the sources that the spec names now, whichever the commit.
fn has_same_sources(last: &wire::RevisionHistory, spec: &wire::ApplicationSpec) -> bool {
    let of = |many: &[wire::ApplicationSource], one: Option<&wire::ApplicationSource>| {
        let sources: Vec<wire::ApplicationSource> =
            if many.is_empty() { one.into_iter().cloned().collect() } else { many.to_vec() };
        sources
            .into_iter()
            .map(|source| wire::ApplicationSource { target_revision: String::new(), ..source }.normalized())
            .collect::<Vec<_>>()
    };
    let now = wire::ComparedTo::of(spec);
    of(&last.sources, last.source.as_deref()) == of(&now.sources, now.source.as_deref())
}
