//! Whether the history of a repository was replaced since the last sync.

use plumb_core::plan::{LastSync, PruneBudget, ReplacedHistory, SourceAtSync, commit_pairs};
use plumb_core::sync::OperationPhase;
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
    (active, last): (&ActiveOperation, &LastSync),
) -> Result<Option<ReplacedHistory>, String> {
    let context = inputs.context;
    let may_ask = active.is_automated()
        && active.asked.prune
        && context.settings.prune_budget != PruneBudget::Off
        && compared.verdicts.values().any(|verdict| verdict.requires_pruning);
    if !may_ask {
        return Ok(None);
    }
    for pair in commit_pairs(&last.sources, &compared.gathered.sources_at_sync()) {
        let replaced = run.engine.sources.replaced_history(context, &pair).await;
        if let Some(replaced) = replaced.map_err(|error| error.message())? {
            return Ok(Some(replaced));
        }
    }
    Ok(None)
}

/// The last full sync that succeeded: from the history of the app, or from its last operation if the app keeps no history.
pub(super) fn last_synced(application: &Application) -> LastSync {
    let status = &application.status;
    if let Some(last) = status.history.last() {
        let sources = synced(last.source.as_deref(), &last.revision, &last.sources, &last.revisions);
        return LastSync { sources, ended_at: Some(last.deployed_at) };
    }
    let last = status.operation_state.as_ref().filter(|last| {
        let asked = last.operation.sync.as_ref();
        last.phase == OperationPhase::Succeeded.to_string()
            && asked.is_some_and(|asked| asked.resources.is_empty() && !asked.dry_run)
    });
    let sources = last.and_then(|last| last.sync_result.as_ref()).map_or_else(Vec::new, |result| {
        synced(result.source.as_deref(), &result.revision, &result.sources, &result.revisions)
    });
    LastSync { sources, ended_at: last.and_then(|last| last.finished_at) }
}

fn synced(
    one: Option<&ApplicationSource>,
    revision: &str,
    sources: &[ApplicationSource],
    revisions: &[String],
) -> Vec<SourceAtSync> {
    let source = |source: &ApplicationSource, revision: &str| SourceAtSync {
        repo_url: source.repo_url.clone(),
        target_revision: source.target_revision.clone(),
        is_chart: !source.chart.is_empty() || source.repo_url.starts_with("oci://"),
        revision: revision.to_owned(),
    };
    match one {
        Some(one) if sources.is_empty() => vec![source(one, revision)],
        Some(_) | None => {
            sources.iter().zip(revisions).map(|(one, revision)| source(one, revision)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(status: &Value, expected: &[&str]) {
        let app = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "app", "namespace": "argocd"},
            "spec": {"project": "default", "destination": {}, "source": {"repoURL": "https://r/x"}},
            "status": status,
        });
        let app = Application::from_json(&app).unwrap();
        let found = last_synced(&app);
        assert_eq!(found.ended_at.is_some(), !expected.is_empty());
        let found: Vec<String> =
            found.sources.iter().map(|at| format!("{} {}", at.repo_url, at.revision)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_was_synced_last_is_known_without_a_history() {
        let operation = |phase: &str, sync: Value| {
            json!({
                "phase": phase, "operation": {"sync": sync},
                "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:09Z",
                "syncResult": {"revision": "abc", "source": {"repoURL": "https://r/x"}},
            })
        };
        let succeeded = operation("Succeeded", json!({"prune": true}));
        check(&json!({"operationState": succeeded}), &["https://r/x abc"]);
        let entry = json!({
            "id": 1, "revision": "old", "deployedAt": "2026-01-01T00:00:00Z", "source": {"repoURL": "https://r/x"},
        });
        check(&json!({"operationState": succeeded, "history": [entry]}), &["https://r/x old"]);
        for (phase, sync) in [
            ("Running", json!({})),
            ("Failed", json!({})),
            ("Succeeded", json!({"dryRun": true})),
            ("Succeeded", json!({"resources": [{"kind": "ConfigMap", "name": "a"}]})),
        ] {
            check(&json!({"operationState": operation(phase, sync)}), &[]);
        }
        let both = json!({
            "phase": "Succeeded", "operation": {"sync": {}},
            "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:09Z",
            "syncResult": {"revision": "", "revisions": ["a", "b"],
                           "sources": [{"repoURL": "https://r/x"}, {"repoURL": "https://r/y"}]},
        });
        check(&json!({"operationState": both}), &["https://r/x a", "https://r/y b"]);
        check(&json!({}), &[]);
    }
}
