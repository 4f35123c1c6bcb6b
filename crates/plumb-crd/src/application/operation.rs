//! Requested operations of an Application.

use super::{ApplicationSource, Info};
use crate::wire::wire;

wire! {
    /// `operation`, and `status.operationState.operation`.
    pub struct Operation {
        /// The requested sync.
        "sync" sync: Option<Box<SyncOperation>>,
        /// Who requested it.
        "initiatedBy" initiated_by: OperationInitiator,
        /// For display only.
        "info" info: Vec<Info>,
        /// What happens after a failure.
        "retry" retry: RetryStrategy,
    }

    /// `operation.sync`.
    pub struct SyncOperation {
        /// Revision to sync to; empty: the spec's.
        "revision" revision: String,
        /// Revisions to sync to, one per source.
        "revisions" revisions: Vec<String>,
        /// Delete objects that are no longer in Git.
        "prune" prune: bool,
        /// Only report what would be done.
        "dryRun" dry_run: bool,
        /// How objects are applied, and whether hooks run.
        "syncStrategy" sync_strategy: Option<SyncStrategy>,
        /// Only these objects; empty: all.
        "resources" resources: Vec<SyncOperationResource>,
        /// Sync from here instead of the spec's source; used by rollbacks.
        "source" source: Option<Box<ApplicationSource>>,
        /// Sync from here instead of the spec's sources; used by rollbacks.
        "sources" sources: Vec<ApplicationSource>,
        /// Objects given with the request, as JSON texts, instead of those in Git.
        "manifests" manifests: Vec<String>,
        /// The options of this sync; the spec's are not added.
        "syncOptions" sync_options: Vec<String>,
        /// How often self-heal has tried at this revision.
        "autoHealAttemptsCount" auto_heal_attempts_count: i64,
    }

    /// `operation.sync.syncStrategy`: at most one is set.
    pub struct SyncStrategy {
        /// Apply without running hooks.
        "apply" apply: Option<SyncStrategyKind>,
        /// Apply and run hooks; the default.
        "hook" hook: Option<SyncStrategyKind>,
    }

    /// Options of a strategy.
    pub struct SyncStrategyKind {
        /// Delete and recreate objects that cannot be changed.
        "force" force: bool,
    }

    /// One object of a selective sync.
    pub struct SyncOperationResource {
        /// API group.
        "group" group: String,
        /// Kind.
        "kind" kind: String = required,
        /// Name.
        "name" name: String = required,
        /// Namespace; empty matches any.
        "namespace" namespace: String,
    }

    /// Who requested an operation.
    pub struct OperationInitiator {
        /// The user, if a user requested it.
        "username" username: String,
        /// True if the controller started it.
        "automated" automated: bool,
    }

    /// `retry`, of a policy or an operation.
    pub struct RetryStrategy {
        /// Most retries; a negative number means no limit.
        "limit" limit: i64,
        /// Delays between retries.
        "backoff" backoff: Option<RetryBackoff>,
        /// Resolve the revision again for each retry.
        "refresh" refresh: bool,
    }

    /// Exponential backoff.
    pub struct RetryBackoff {
        /// The first delay: a number of seconds, or `1m30s`.
        "duration" duration: String,
        /// Factor of each next delay.
        "factor" factor: Option<i64>,
        /// Longest delay.
        "maxDuration" max_duration: String,
    }
}
