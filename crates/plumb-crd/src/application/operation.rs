//! What somebody asked to be done with an Application.

use super::{ApplicationSource, Info};
use crate::wire::wire;

wire! {
    /// `operation`, and `status.operationState.operation`.
    pub struct Operation {
        /// The sync that is asked for.
        "sync" sync: Option<Box<SyncOperation>>,
        /// Who asked.
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
        /// Delete what is no longer in Git.
        "prune" prune: bool,
        /// Only say what would be done.
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
        /// Delete and create anew where an object cannot be changed.
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

    /// Who asked for an operation.
    pub struct OperationInitiator {
        /// The user, if it was one.
        "username" username: String,
        /// Was it the engine itself?
        "automated" automated: bool,
    }

    /// `retry`, of a policy or an operation.
    pub struct RetryStrategy {
        /// How often; negative is without end.
        "limit" limit: i64,
        /// How long to wait between tries.
        "backoff" backoff: Option<RetryBackoff>,
        /// Resolve the revision anew on each try.
        "refresh" refresh: bool,
    }

    /// Exponential waiting.
    pub struct RetryBackoff {
        /// The first wait: seconds as a bare number, or `1m30s`.
        "duration" duration: String,
        /// What each next wait is multiplied with.
        "factor" factor: Option<i64>,
        /// The longest wait.
        "maxDuration" max_duration: String,
    }
}
