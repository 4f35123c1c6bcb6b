//! Before a sync prunes, the other apps of the same revision are gathered: one of them may ask for the object now.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use plumb_core::app::AppId;
use plumb_core::object::ObjectKey;
use plumb_core::sync::{PruneDecision, SiblingEnd, SiblingFacts, may_prune};
use tracing::{info, warn};

use crate::app_run::{AppInputs, AppRun};
use crate::apps::followed_commits::follows;
use crate::compare::run::Compared;
use crate::operation::active::{ActiveOperation, SiblingWait};
use crate::queue::{RefreshDepth, Trigger, TriggerReason};

/// How often an app that fails is gathered again while a prune waits for it.
const ASK_AGAIN: Duration = Duration::from_secs(15);

/// True if a sync that prunes must wait for other apps to be gathered. Requests their runs. Each of them requests another run
/// of this app when it has looked at Git.
pub(super) fn waits_for_siblings(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    compared: &Compared,
    active: &mut ActiveOperation,
) -> bool {
    let is_planned = active.state.is_some();
    let leaving = compared.verdicts.values().filter(|verdict| verdict.requires_pruning);
    let leaving: Vec<&ObjectKey> = leaving.map(|verdict| &verdict.key).collect();
    if !active.asked.prune || is_planned || leaving.is_empty() {
        return false;
    }
    let engine = run.engine;
    let now = Instant::now();
    let is_first = active.sibling_wait.is_none();
    let wait = active.sibling_wait.get_or_insert(SiblingWait { since: now, asked_at: now });
    let siblings = siblings(run, inputs, &leaving, wait.since);
    match may_prune(&siblings, wait.since.elapsed()) {
        PruneDecision::Go { without } => {
            for sibling in &without {
                warn!(%sibling, "pruning goes on without an app of the same revision, which cannot be gathered");
            }
            engine.records.give_up(&without);
            is_claimed_meanwhile(run, inputs, &leaving, active)
        }
        PruneDecision::Wait { message, at_most } => {
            let asks_again = now.duration_since(wait.asked_at) >= ASK_AGAIN;
            let asked: BTreeSet<AppId> = siblings
                .iter()
                .filter(|(_, facts)| is_asked(facts, is_first, asks_again))
                .map(|(id, _)| id.clone())
                .collect();
            if is_first || asks_again {
                wait.asked_at = now;
                info!(siblings = asked.len(), message, "pruning waits");
                engine.request_runs(asked, Trigger::new(RefreshDepth::GitNow, TriggerReason::Move));
            }
            active.record.message = message;
            let next = at_most.map_or(ASK_AGAIN, |at_most| at_most.min(ASK_AGAIN));
            engine.queue.push_within(run.id().clone(), Trigger::live(TriggerReason::Move), next);
            true
        }
    }
}

/// True if a sibling is asked to look at Git: each at first, later those that failed.
fn is_asked(facts: &SiblingFacts, is_first: bool, asks_again: bool) -> bool {
    let has_failed = matches!(facts.last, Some(SiblingEnd::Failing(_)));
    !facts.is_at_same_commits && (is_first || (asks_again && has_failed))
}

/// The apps that follow the same revision and could claim one of the objects that leave this one. An app that its project
/// refuses, or whose project does not permit any of the objects, cannot.
fn siblings(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    leaving: &[&ObjectKey],
    since: Instant,
) -> Vec<(AppId, SiblingFacts)> {
    let (engine, app) = (run.engine, run.id());
    let summaries = engine.registry.all();
    let others = summaries.iter().filter(|other| other.id != *app).filter_map(|other| {
        Some((other.id.clone(), follows(other, |cluster| engine.clusters.address(cluster))?))
    });
    let mut siblings = engine.records.siblings(app, others, since);
    let permits = engine.permits_claim(&inputs.context.cluster);
    siblings
        .retain(|(other, facts)| facts.is_at_same_commits || leaving.iter().any(|key| permits(other, key)));
    siblings
}

/// True if another app asks by now for an object that left this one. The comparison is older than that: it is made again.
fn is_claimed_meanwhile(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    leaving: &[&ObjectKey],
    active: &mut ActiveOperation,
) -> bool {
    let claimed = leaving.iter().find_map(|key| claimed_by(run, inputs, key));
    let Some(claimant) = claimed else { return false };
    active.record.message =
        format!("the app {claimant} asks for an object that left this app; comparing again");
    run.engine.queue.push(run.id().clone(), Trigger::live(TriggerReason::Move));
    true
}

/// The other app that asks for an object of this app, if its claim counts. Unlike a comparison, this is up to date.
pub(crate) fn claimed_by(run: &AppRun<'_>, inputs: AppInputs<'_>, key: &ObjectKey) -> Option<String> {
    let (engine, context) = (run.engine, inputs.context);
    let permits = engine.permits_claim(&context.cluster);
    let others = engine.claims.others(run.id(), &context.cluster.server, key, &permits);
    let other = others.iter().find(|other| other.counts(Some(&context.instance)))?;
    Some(other.instance.to_string())
}
