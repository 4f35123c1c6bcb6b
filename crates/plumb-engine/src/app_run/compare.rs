//! Compares an app within a run, with what an earlier process knew.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use plumb_core::desired::{Complete, DesiredSet};
use plumb_kube::ApiError;

use super::restore;
use super::{AppInputs, AppRun};
use crate::apps::previous_report::PreviousReport;
use crate::compare::judge::DryRunPolicy;
use crate::compare::run::{Compared, Comparison};
use crate::events::event::AppEvent;
use crate::queue::{RefreshDepth, Trigger, TriggerReason};
use crate::sources::gathered::Gathered;
use crate::state::app_state::AppState;

/// Compares what was gathered with the cluster.
pub(crate) async fn compare(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    gathered: &Arc<Gathered>,
    dry_runs: DryRunPolicy,
    state: &mut AppState,
) -> Result<Compared, ApiError> {
    let AppInputs { app, context, .. } = inputs;
    let engine = run.engine;
    // pure: what the last process knew, each once after a start
    restore::last_operation(run, gathered, &mut state.judge);
    restore::findings(run, &mut state.judge);
    let found = || engine.records.report(run.id(), PreviousReport::found);
    state.health.restore(|| found().map(|found| found.unhealthy()).unwrap_or_default());
    let render_again = || -> BoxFuture<'_, Option<Arc<Complete<DesiredSet>>>> {
        async move { engine.sources.render_again(app, context, gathered).await }.boxed()
    };
    let permits_claim = engine.permits_claim(&context.cluster);
    let acting = context.acting_client();
    // client: live objects, and answers of the API server where the judge asks
    let compared = Comparison {
        app,
        instance: &context.instance,
        cluster: &context.cluster,
        project: &context.project,
        acting: acting.as_ref(),
        claims: &engine.claims,
        permits_claim: &permits_claim,
        tracking: &context.settings.tracking,
        settings: &context.settings,
        diagnostics: &engine.diagnostics,
        rules: &context.rules.rules,
        gathered,
        recorded: &inputs.recorded(),
        dry_runs,
        denied_dry_runs: None,
        now: run.now,
        ask_again: run.trigger.depth == RefreshDepth::Hard,
        render_again: &render_again,
    }
    .run(&state.git, &mut state.judge, &mut state.health)
    .await?;
    if let Ok(application) = &run.snapshot.wire {
        for (gvk, objects) in &compared.new_schemas {
            engine.record_event(&run.snapshot, application, AppEvent::schema_changed(gvk, *objects));
        }
    }
    match compared.health.look_again {
        Some(at) if state.health.must_ask(at, run.now) => {
            run.run_at(Trigger::due(TriggerReason::Health), at);
        }
        Some(_) => {}
        None => state.health.look_again = None,
    }
    Ok(compared)
}
