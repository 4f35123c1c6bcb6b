//! `argoproj.io/v1alpha1` `Application`.

mod condition;
mod object;
mod operation;
mod read;
mod source;
mod spec;
mod status;
#[cfg(test)]
pub(crate) mod tests;

pub use condition::ConditionType;
pub use object::Application;
pub use operation::{
    Operation, OperationInitiator, RetryBackoff, RetryStrategy, SyncOperation, SyncOperationResource,
    SyncStrategy, SyncStrategyKind,
};
pub use source::{
    ApplicationSource, DirectorySource, DrySource, EnvEntry, HelmFileParameter, HelmParameter, HelmSource,
    HydrateTo, Jsonnet, JsonnetVariable, KustomizePatch, KustomizeReplica, KustomizeSource, KustomizeTarget,
    PluginParameter, PluginSource, SourceHydrator, SyncSource,
};
pub use spec::{
    ApplicationDestination, ApplicationSpec, Info, ManagedNamespaceMetadata, ResourceIgnoreDifferences,
    SyncPolicy, SyncPolicyAutomated,
};
pub use status::{
    ApplicationStatus, ApplicationSummary, ComparedTo, Condition, HealthStatus, HydrateOperation,
    OperationState, ResourceResult, ResourceStatus, RevisionHistory, SourceHydratorStatus,
    SuccessfulHydrateOperation, SyncOperationResult, SyncStatus,
};
