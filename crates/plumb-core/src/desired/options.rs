//! What an object's annotations ask of a sync, parsed once.

use crate::app::CompareOptions;

/// Sync wave; lower waves go first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wave(pub i32);

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookPhase {
    /// Before anything else.
    PreSync,
    /// With the objects.
    Sync,
    /// When all objects are healthy.
    PostSync,
    /// When the sync failed.
    SyncFail,
    /// Before the app's objects are deleted with it.
    PreDelete,
    /// After the app's objects were deleted with it.
    PostDelete,
}

/// When a hook's object is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeletePolicy {
    /// When the operation succeeded.
    HookSucceeded,
    /// When the operation failed.
    HookFailed,
    /// Before the next one is made.
    BeforeHookCreation,
}

/// `Prune=` and `Delete=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PruneOption {
    /// Delete as usual.
    Allowed,
    /// Only after a person confirmed.
    Confirm,
    /// Never.
    Never,
}

/// `PrunePropagationPolicy=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Propagation {
    /// Children first.
    #[default]
    Foreground,
    /// Children later.
    Background,
    /// Children stay.
    Orphan,
}

/// What one object's annotations ask of a sync. `None` leaves the decision to the app's own options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one documented, independent option of the annotation"
)]
pub struct ObjectOptions {
    /// Sync wave.
    pub wave: Wave,
    /// `argocd.argoproj.io/hook` (or Helm's) is set: it is a hook, whatever its phases.
    pub is_hook: bool,
    /// A lone `Skip`: never applied, not compared.
    pub skip: bool,
    /// When a hook's object is removed; never empty for hooks.
    pub delete_policies: Vec<DeletePolicy>,
    /// `Prune=`.
    pub prune: Option<PruneOption>,
    /// `Delete=`.
    pub delete: Option<PruneOption>,
    /// `PruneLast=true`.
    pub prune_last: bool,
    /// `Validate=false`.
    pub skip_validation: bool,
    /// `SkipDryRunOnMissingResource=true`.
    pub skip_dry_run_on_missing: bool,
    /// `Replace=true`.
    pub replace: bool,
    /// `Force=true`.
    pub force: bool,
    /// `ServerSideApply=true` or `=false`.
    pub server_side_apply: Option<bool>,
    /// `helm.sh/resource-policy: keep`.
    pub helm_keep: bool,
    /// Compare options on the object.
    pub compare: CompareOptions,
}
