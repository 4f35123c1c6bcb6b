//! Converts a requested operation to an `Operation`.

use plumb_core::app::{Initiator, Operation, SelectedObject, SyncOption, SyncStrategy};

use super::app::retry_policy;
use super::problem::SpecProblem;
use super::source::to_source;
use super::text::non_empty;
use crate::application as wire;

/// Checks an operation. Nothing is added from the spec.
pub fn to_operation(operation: &wire::Operation) -> Result<Operation, Vec<SpecProblem>> {
    let Some(sync) = &operation.sync else {
        let message = "Invalid operation request: no operation specified";
        return Err(vec![SpecProblem::new("operation", message)]);
    };
    let mut problems = Vec::new();
    let retry = retry_policy(&operation.retry, "operation.retry", &mut problems);
    let sources = sources(sync, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Operation {
        revisions: sync.all_revisions().to_vec(),
        prune: sync.prune,
        dry_run: sync.dry_run,
        strategy: strategy(sync.sync_strategy.as_ref()),
        selected: (!sync.resources.is_empty()).then(|| sync.resources.iter().map(selected).collect()),
        sources,
        manifests: (!sync.manifests.is_empty()).then(|| sync.manifests.clone()),
        options: sync.sync_options.iter().cloned().map(SyncOption).collect(),
        initiated_by: initiator(&operation.initiated_by),
        retry,
        info: operation.info.iter().map(|info| (info.name.clone(), info.value.clone())).collect(),
        self_heal_attempts: u32::try_from(sync.auto_heal_attempts_count).unwrap_or(0),
    })
}

/// The sources in the operation itself, in wire form: one for each of [`Operation::sources`].
pub fn written_operation_sources(operation: &wire::Operation) -> Option<Vec<wire::ApplicationSource>> {
    let sync = operation.sync.as_ref()?;
    if sync.sources.is_empty() {
        let source = sync.source.as_deref().filter(|source| !source.repo_url.is_empty())?;
        return Some(vec![source.clone()]);
    }
    Some(sync.sources.clone())
}

fn sources(
    sync: &wire::SyncOperation,
    problems: &mut Vec<SpecProblem>,
) -> Option<Vec<plumb_core::app::Source>> {
    if sync.sources.is_empty() {
        // Argo CD stores `source: {repoURL: ""}` where there is none.
        let source = sync.source.as_deref().filter(|source| !source.repo_url.is_empty())?;
        return Some(vec![to_source(source, "operation.sync.source", false, problems)]);
    }
    let to_indexed = |(index, source): (usize, &wire::ApplicationSource)| {
        to_source(source, &format!("operation.sync.sources[{index}]"), true, problems)
    };
    Some(sync.sources.iter().enumerate().map(to_indexed).collect())
}

fn strategy(strategy: Option<&wire::SyncStrategy>) -> SyncStrategy {
    let Some(strategy) = strategy else { return SyncStrategy::Hook { force: false } };
    match (&strategy.apply, &strategy.hook) {
        (Some(apply), _) => SyncStrategy::Apply { force: apply.force },
        (None, Some(hook)) => SyncStrategy::Hook { force: hook.force },
        (None, None) => SyncStrategy::Hook { force: false },
    }
}

fn selected(resource: &wire::SyncOperationResource) -> SelectedObject {
    SelectedObject {
        group: resource.group.clone(),
        kind: resource.kind.clone(),
        namespace: non_empty(&resource.namespace),
        name: resource.name.clone(),
    }
}

fn initiator(initiator: &wire::OperationInitiator) -> Initiator {
    if initiator.automated {
        Initiator::Automated
    } else {
        non_empty(&initiator.username).map_or(Initiator::Unnamed, Initiator::User)
    }
}
