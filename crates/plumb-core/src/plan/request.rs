//! What a sync was asked to do.

use crate::app::{Initiator, Operation, SelectedObject, SyncOption, SyncStrategy};
use crate::desired::{Propagation, PruneOption};
use crate::object::ObjectKey;

/// The part of an [`Operation`] that shapes a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncRequest {
    /// May it delete objects that were removed from Git?
    pub prune: bool,
    /// Try everything, keep nothing.
    pub dry_run: bool,
    /// With or without hooks.
    pub strategy: SyncStrategy,
    /// Only these; `None` for all.
    pub selected: Option<Vec<SelectedObject>>,
    /// `operation.sync.syncOptions`, read. Options of the spec are not added to them.
    pub options: AppOptions,
    /// Started by the automation.
    pub automated: bool,
}

impl SyncRequest {
    /// What this operation asks.
    pub fn of(operation: &Operation) -> Self {
        Self {
            prune: operation.prune,
            dry_run: operation.dry_run,
            strategy: operation.strategy,
            selected: operation.selected.clone(),
            options: AppOptions::parse(&operation.options),
            automated: operation.initiated_by == Initiator::Automated,
        }
    }

    /// Is this object meant?
    pub fn selects(&self, key: &ObjectKey) -> bool {
        self.selected.as_ref().is_none_or(|selected| selected.iter().any(|object| object.means(key)))
    }

    /// Do hooks run? A selective sync and the `apply` strategy leave them out.
    pub fn runs_hooks(&self) -> bool {
        match self.strategy {
            SyncStrategy::Hook { .. } => self.selected.is_none(),
            SyncStrategy::Apply { .. } => false,
        }
    }
}

impl Default for SyncRequest {
    fn default() -> Self {
        Self {
            prune: false,
            dry_run: false,
            strategy: SyncStrategy::Hook { force: false },
            selected: None,
            options: AppOptions::default(),
            automated: false,
        }
    }
}

/// App-level sync options, read once. Exact strings: `Prune=False` or a trailing space means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one documented, independent option")]
pub struct AppOptions {
    /// `Prune=false`, `Prune=confirm`.
    pub prune: PruneOption,
    /// `Delete=false`, `Delete=confirm`.
    pub delete: PruneOption,
    /// `PruneLast=true`.
    pub prune_last: bool,
    /// `PrunePropagationPolicy=`.
    pub propagation: Propagation,
    /// Not `Validate=false`.
    pub validate: bool,
    /// `SkipDryRunOnMissingResource=true`.
    pub skip_dry_run_on_missing: bool,
    /// `Replace=true`.
    pub replace: bool,
    /// Not `ClientSideApplyMigration=false`.
    pub migrate: bool,
    /// `ServerSideApply=true`. Every apply is server-side; with it, results say so.
    pub server_side_apply: bool,
    /// `ApplyOutOfSyncOnly=true`.
    pub out_of_sync_only: bool,
    /// `CreateNamespace=true`.
    pub create_namespace: bool,
    /// `FailOnSharedResource=true`.
    pub fail_on_shared: bool,
    /// `RespectIgnoreDifferences=true`.
    pub respect_ignore_differences: bool,
}

impl Default for AppOptions {
    fn default() -> Self {
        Self::parse(&[])
    }
}

impl AppOptions {
    /// Reads the list.
    pub fn parse(options: &[SyncOption]) -> Self {
        let has = |option: &str| options.iter().any(|set| set.0 == option);
        let deletion = |never: &str, confirm: &str| match (has(never), has(confirm)) {
            (true, _) => PruneOption::Never,
            (false, true) => PruneOption::Confirm,
            (false, false) => PruneOption::Allowed,
        };
        let propagation = if has("PrunePropagationPolicy=background") {
            Propagation::Background
        } else if has("PrunePropagationPolicy=orphan") {
            Propagation::Orphan
        } else {
            Propagation::Foreground
        };
        Self {
            prune: deletion("Prune=false", "Prune=confirm"),
            delete: deletion("Delete=false", "Delete=confirm"),
            prune_last: has("PruneLast=true"),
            propagation,
            validate: !has("Validate=false"),
            skip_dry_run_on_missing: has("SkipDryRunOnMissingResource=true"),
            replace: has("Replace=true"),
            migrate: !has("ClientSideApplyMigration=false"),
            server_side_apply: has("ServerSideApply=true"),
            out_of_sync_only: has("ApplyOutOfSyncOnly=true"),
            create_namespace: has("CreateNamespace=true"),
            fail_on_shared: has("FailOnSharedResource=true"),
            respect_ignore_differences: has("RespectIgnoreDifferences=true"),
        }
    }
}
