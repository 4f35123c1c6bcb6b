//! What a sync was asked to do.

use crate::app::SyncOption;
use crate::desired::{Propagation, PruneOption};
use crate::object::ObjectKey;

/// The part of `operation.sync` that shapes a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncRequest {
    /// May it delete what left Git?
    pub prune: bool,
    /// Try everything, keep nothing.
    pub dry_run: bool,
    /// With or without hooks.
    pub strategy: Strategy,
    /// Only these; empty for all.
    pub resources: Vec<ResourceSelector>,
    /// `operation.sync.syncOptions`, read. They stand alone: options of the spec are not added.
    pub options: AppOptions,
    /// Started by the automation (`initiatedBy.automated`).
    pub automated: bool,
}

impl SyncRequest {
    /// Is this object meant?
    pub fn selects(&self, key: &ObjectKey) -> bool {
        self.resources.is_empty() || self.resources.iter().any(|selector| selector.matches(key))
    }

    /// Do hooks run? A selective sync and the `apply` strategy leave them out.
    pub fn runs_hooks(&self) -> bool {
        match self.strategy {
            Strategy::Hook { .. } => self.resources.is_empty(),
            Strategy::Apply { .. } => false,
        }
    }

    /// Is every object deleted and created anew where the server refuses a change?
    pub fn force(&self) -> bool {
        match self.strategy {
            Strategy::Hook { force } | Strategy::Apply { force } => force,
        }
    }
}

/// `syncStrategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Hooks run.
    Hook {
        /// Delete and create where the server refuses.
        force: bool,
    },
    /// Hooks are left out.
    Apply {
        /// Delete and create where the server refuses.
        force: bool,
    },
}

impl Default for Strategy {
    fn default() -> Self {
        Self::Hook { force: false }
    }
}

/// One entry of `operation.sync.resources`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceSelector {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace; `None` matches any.
    pub namespace: Option<String>,
}

impl ResourceSelector {
    /// Exactly this object.
    pub fn of(key: &ObjectKey) -> Self {
        Self {
            group: key.group.clone(),
            kind: key.kind.clone(),
            name: key.name.clone(),
            namespace: key.namespace.clone(),
        }
    }

    /// Is this object meant? No wildcards: the CLI expands those.
    pub fn matches(&self, key: &ObjectKey) -> bool {
        self.group == key.group
            && self.kind == key.kind
            && self.name == key.name
            && self.namespace.as_ref().is_none_or(|namespace| key.namespace.as_ref() == Some(namespace))
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
            out_of_sync_only: has("ApplyOutOfSyncOnly=true"),
            create_namespace: has("CreateNamespace=true"),
            fail_on_shared: has("FailOnSharedResource=true"),
            respect_ignore_differences: has("RespectIgnoreDifferences=true"),
        }
    }
}
