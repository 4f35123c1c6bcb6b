//! The application as plumb works with it: checked once at the edge, with lists instead of "one or many".

mod identity;
mod ignore;
mod operation;
mod pause;
mod policy;
mod source;

pub use identity::{AppId, CommitId, NotACommit};
pub use ignore::IgnoreRule;
pub use operation::{Initiator, Operation, SelectedObject, SyncStrategy};
pub use pause::Pause;
pub use policy::{Automation, Backoff, ManagedNamespace, RetryPolicy, SyncOption, SyncPolicy};
pub use source::{
    DirectoryOptions, HelmFileParameter, HelmOptions, HelmParameter, JsonnetVariable, KustomizeOptions,
    KustomizePatch, KustomizeReplica, PatchTarget, PluginOptions, PluginParameter, PluginValue, Source,
    SourceTool,
};

/// A validated Application. What could not be understood was reported when it was converted, so that the
/// rest of plumb never asks "is this set?" twice.
#[derive(Clone, Debug, PartialEq)]
pub struct App {
    /// Name and namespace of the Application object.
    pub id: AppId,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.generation`, to tell one state of the spec from another.
    pub generation: i64,
    /// The project, `default` if none is named.
    pub project: String,
    /// Where the manifests come from, never empty, in order.
    pub sources: Vec<Source>,
    /// Was it written as `spec.source` (one) or `spec.sources` (many)? Status is written back in the same shape.
    pub multi_source: bool,
    /// Where they go.
    pub destination: Destination,
    /// When and how syncs happen.
    pub sync_policy: SyncPolicy,
    /// Differences that do not count for this app.
    pub ignore_differences: Vec<IgnoreRule>,
    /// How many entries `status.history` keeps.
    pub revision_history_limit: usize,
    /// Compare options of the Application's annotation.
    pub compare_options: CompareOptions,
    /// Is reconciling switched off by annotation?
    pub skip_reconcile: bool,
    /// Held by a person, if at all.
    pub pause: Option<Pause>,
    /// `metadata.annotations`, for the features that read their own key.
    pub annotations: std::collections::BTreeMap<String, String>,
}

/// The cluster and namespace that the objects go to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    /// By address or by registered name.
    pub cluster: ClusterRef,
    /// Namespace of namespaced objects that name none.
    pub namespace: Option<String>,
}

/// How a destination names its cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClusterRef {
    /// The API server's URL, without trailing slash.
    Server(String),
    /// The name under which the cluster is registered.
    Name(String),
}

impl ClusterRef {
    /// The address that means "the cluster plumb itself works in".
    pub const IN_CLUSTER_SERVER: &'static str = "https://kubernetes.default.svc";
    /// The name that means the same.
    pub const IN_CLUSTER_NAME: &'static str = "in-cluster";

    /// Is it the cluster that plumb itself works in?
    pub fn is_in_cluster(&self) -> bool {
        match self {
            Self::Server(server) => server == Self::IN_CLUSTER_SERVER,
            Self::Name(name) => name == Self::IN_CLUSTER_NAME,
        }
    }
}

/// `argocd.argoproj.io/compare-options`, on an Application or on one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompareOptions {
    /// `Strict=true`: fields and list items that Git does not mention count as drift.
    pub strict: bool,
    /// `IgnoreExtraneous`: this object's presence without Git does not make the app `OutOfSync`.
    pub ignore_extraneous: bool,
    /// `ServerSideDiff=true` or `=false`: does every comparison ask the server? Without it, the settings say.
    pub server_side_diff: Option<bool>,
    /// `IncludeMutationWebhook=true`, beside `ServerSideDiff=true`: what admission would add counts, too.
    pub include_mutation_webhook: bool,
}

impl CompareOptions {
    /// The annotation's key.
    pub const ANNOTATION: &'static str = "argocd.argoproj.io/compare-options";

    /// Reads the annotation's comma-separated text; unknown entries are ignored, as Argo CD does.
    pub fn parse(text: &str) -> Self {
        let has = |option: &str| text.split(',').any(|entry| entry.trim() == option);
        Self {
            strict: has("Strict=true"),
            ignore_extraneous: has("IgnoreExtraneous"),
            server_side_diff: match (has("ServerSideDiff=false"), has("ServerSideDiff=true")) {
                (true, _) => Some(false),
                (false, true) => Some(true),
                (false, false) => None,
            },
            include_mutation_webhook: has("IncludeMutationWebhook=true"),
        }
    }

    /// Both sets of options together.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            strict: self.strict || other.strict,
            ignore_extraneous: self.ignore_extraneous || other.ignore_extraneous,
            server_side_diff: self.server_side_diff.or(other.server_side_diff),
            include_mutation_webhook: self.include_mutation_webhook || other.include_mutation_webhook,
        }
    }
}
