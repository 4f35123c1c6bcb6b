//! The application as plumb works with it: checked once at the edge, with lists instead of "one or many".

mod application;
mod compare_options;
mod destination;
mod generate_paths;
mod identity;
mod ignore;
mod operation;
mod pause;
mod policy;
mod source;

pub use application::App;
pub use compare_options::CompareOptions;
pub use destination::{ClusterRef, Destination};
pub use generate_paths::{GENERATE_PATHS, GeneratePaths};
pub use identity::{AppId, CommitId, NotACommit};
pub use ignore::IgnoreRule;
pub use operation::{Initiator, Operation, SelectedObject, SyncStrategy};
pub use pause::{Pause, PausedObjects};
pub use policy::{Automation, Backoff, ManagedNamespace, RetryPolicy, SyncOption, SyncPolicy};
pub use source::{
    DirectoryOptions, HelmFileParameter, HelmOptions, HelmParameter, JsonnetVariable, KustomizeOptions,
    KustomizePatch, KustomizeReplica, PatchTarget, PluginOptions, PluginParameter, PluginValue, Source,
    SourceTool,
};
