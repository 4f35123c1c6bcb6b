//! Whether the history of a repository was replaced since the last sync.

use plumb_core::plan::{PruneBudget, ReplacedHistory, SourceAtSync, commit_pairs};
use plumb_crd::Application;
use plumb_crd::application::ApplicationSource;

use crate::app_run::{AppInputs, AppRun};
use crate::compare::run::Compared;
use crate::operation::active::ActiveOperation;

/// The first repository whose history has nothing in common with what was synced last. It is looked for only if an automated
/// sync would delete something. An error means that the server had to be asked and did not answer.
pub(super) async fn replaced_history(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    compared: &Compared,
    active: &ActiveOperation,
) -> Result<Option<ReplacedHistory>, String> {
    let context = inputs.context;
    let may_ask = active.is_automated()
        && active.asked.prune
        && context.settings.prune_budget != PruneBudget::Off
        && compared.verdicts.values().any(|verdict| verdict.requires_pruning);
    if !may_ask {
        return Ok(None);
    }
    let last = last_synced(inputs.application);
    for pair in commit_pairs(&last, &compared.gathered.sources_at_sync()) {
        let replaced = run.engine.sources.replaced_history(context, &pair).await;
        if let Some(replaced) = replaced.map_err(|error| error.message())? {
            return Ok(Some(replaced));
        }
    }
    Ok(None)
}

/// The sources of the last sync in the history of the app.
fn last_synced(application: &Application) -> Vec<SourceAtSync> {
    let Some(last) = application.status.history.last() else { return Vec::new() };
    let source = |source: &ApplicationSource, revision: &String| SourceAtSync {
        repo_url: source.repo_url.clone(),
        target_revision: source.target_revision.clone(),
        is_chart: !source.chart.is_empty() || source.repo_url.starts_with("oci://"),
        revision: revision.clone(),
    };
    match &last.source {
        Some(one) if last.sources.is_empty() => vec![source(one, &last.revision)],
        Some(_) | None => {
            last.sources.iter().zip(&last.revisions).map(|(one, revision)| source(one, revision)).collect()
        }
    }
}
