//! What an object's annotations ask of a sync, parsed once.

use serde::Serialize;

use crate::app::CompareOptions;
use crate::object::Manifest;

const HOOK: &str = "argocd.argoproj.io/hook";
const HOOK_DELETE_POLICY: &str = "argocd.argoproj.io/hook-delete-policy";
const SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";
/// What an object asks of a sync.
pub(crate) const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
const HELM_HOOK: &str = "helm.sh/hook";
const HELM_HOOK_WEIGHT: &str = "helm.sh/hook-weight";
const HELM_HOOK_DELETE_POLICY: &str = "helm.sh/hook-delete-policy";
const HELM_RESOURCE_POLICY: &str = "helm.sh/resource-policy";

/// Sync wave; lower waves go first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Wave(pub i32);

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum DeletePolicy {
    /// When the operation succeeded.
    HookSucceeded,
    /// When the operation failed.
    HookFailed,
    /// Before the next one is made.
    BeforeHookCreation,
}

/// `Prune=` and `Delete=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum PruneOption {
    /// Delete as usual.
    Allowed,
    /// Only after a user confirmed.
    Confirm,
    /// Never.
    Never,
}

/// `PrunePropagationPolicy=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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
    /// `argocd.argoproj.io/hook` (or Helm's) is set: it is a hook, whatever its phases. False for `skip`.
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

impl ObjectOptions {
    /// Reads the annotations of a live object. One that Git had as an object does not become a hook, or one to skip, by an
    /// annotation that another client adds to it.
    pub fn of_live(live: &Manifest, was_in_git: bool) -> Self {
        let options = Self::parse(live);
        Self { is_hook: options.is_hook && !was_in_git, skip: options.skip && !was_in_git, ..options }
    }

    /// Reads the annotations of a manifest, from Git or from the cluster. Nothing is refused: what cannot be
    /// understood asks for nothing, as in Argo CD.
    pub fn parse(manifest: &Manifest) -> Self {
        let hook = Hook::parse(manifest);
        let options = entries(manifest, SYNC_OPTIONS);
        let has = |option: &str| options.contains(&option);
        Self {
            wave: wave(manifest),
            delete_policies: if hook.present { delete_policies(manifest) } else { Vec::new() },
            is_hook: hook.present,
            skip: hook.skip,
            prune: deletion(&options, "Prune"),
            delete: deletion(&options, "Delete"),
            prune_last: has("PruneLast=true"),
            skip_validation: has("Validate=false"),
            skip_dry_run_on_missing: has("SkipDryRunOnMissingResource=true"),
            replace: has("Replace=true"),
            force: has("Force=true"),
            server_side_apply: match (has("ServerSideApply=false"), has("ServerSideApply=true")) {
                (true, _) => Some(false),
                (false, true) => Some(true),
                (false, false) => None,
            },
            helm_keep: entries(manifest, HELM_RESOURCE_POLICY)
                .iter()
                .any(|policy| policy.eq_ignore_ascii_case("keep")),
            compare: manifest
                .annotation(CompareOptions::ANNOTATION)
                .map(CompareOptions::parse)
                .unwrap_or_default(),
        }
    }
}

/// The entries of a comma-separated annotation, without the spaces around them, each once.
fn entries<'manifest>(manifest: &'manifest Manifest, annotation: &str) -> Vec<&'manifest str> {
    let text = manifest.annotation(annotation).unwrap_or_default();
    let mut entries = Vec::new();
    for entry in text.split(',').map(str::trim) {
        if !entry.is_empty() && !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    entries
}

/// `Prune=` or `Delete=`; of several, the most careful one.
fn deletion(options: &[&str], option: &str) -> Option<PruneOption> {
    let values: Vec<&str> =
        options.iter().filter_map(|entry| entry.strip_prefix(option)?.strip_prefix('=')).collect();
    [("false", PruneOption::Never), ("confirm", PruneOption::Confirm), ("true", PruneOption::Allowed)]
        .into_iter()
        .find_map(|(value, meaning)| values.contains(&value).then_some(meaning))
}

/// The wave: Argo CD's annotation, else Helm's weight, else 0.
fn wave(manifest: &Manifest) -> Wave {
    let number = |annotation: &str| manifest.annotation(annotation)?.parse::<i64>().ok();
    let wave = number(SYNC_WAVE).or_else(|| number(HELM_HOOK_WEIGHT)).unwrap_or_default();
    Wave(i32::try_from(wave).unwrap_or(if wave < 0 { i32::MIN } else { i32::MAX }))
}

struct Hook {
    present: bool,
    skip: bool,
    phases: Vec<HookPhase>,
}

impl Hook {
    /// Argo CD's annotation goes before Helm's as soon as it has one valid entry; `Skip` beside other entries
    /// means nothing.
    fn parse(manifest: &Manifest) -> Self {
        let types = entries(manifest, HOOK);
        let phases: Vec<HookPhase> = types.iter().filter_map(|name| HookPhase::from_argo(name)).collect();
        if !phases.is_empty() {
            return Self { present: true, skip: false, phases };
        }
        if types.contains(&"Skip") {
            return Self { present: false, skip: true, phases };
        }
        let helm = manifest.annotation(HELM_HOOK).filter(|types| *types != "crd-install");
        let mut phases = Vec::new();
        for phase in entries(manifest, HELM_HOOK).into_iter().filter_map(HookPhase::from_helm) {
            if !phases.contains(&phase) {
                phases.push(phase);
            }
        }
        Self { present: helm.is_some() || manifest.annotation(HOOK).is_some(), skip: false, phases }
    }
}

impl HookPhase {
    /// When a hook runs, in the order of its annotation; empty for an object that is not a hook, and for a hook of
    /// unsupported types, which never runs.
    pub fn of(manifest: &Manifest) -> Vec<Self> {
        Hook::parse(manifest).phases
    }

    fn from_argo(name: &str) -> Option<Self> {
        match name {
            "PreSync" => Some(Self::PreSync),
            "Sync" => Some(Self::Sync),
            "PostSync" => Some(Self::PostSync),
            "SyncFail" => Some(Self::SyncFail),
            "PreDelete" => Some(Self::PreDelete),
            "PostDelete" => Some(Self::PostDelete),
            _ => None,
        }
    }

    /// Helm's tests and rollback hooks have no counterpart.
    fn from_helm(name: &str) -> Option<Self> {
        match name {
            "pre-install" | "pre-upgrade" => Some(Self::PreSync),
            "post-install" | "post-upgrade" => Some(Self::PostSync),
            "pre-delete" => Some(Self::PreDelete),
            "post-delete" => Some(Self::PostDelete),
            _ => None,
        }
    }
}

/// Helm's policies are added to Argo CD's; without any the old object goes before the new one comes.
fn delete_policies(manifest: &Manifest) -> Vec<DeletePolicy> {
    let argo = entries(manifest, HOOK_DELETE_POLICY).into_iter().filter_map(|name| match name {
        "HookSucceeded" => Some(DeletePolicy::HookSucceeded),
        "HookFailed" => Some(DeletePolicy::HookFailed),
        "BeforeHookCreation" => Some(DeletePolicy::BeforeHookCreation),
        _ => None,
    });
    let helm = entries(manifest, HELM_HOOK_DELETE_POLICY).into_iter().filter_map(|name| match name {
        "hook-succeeded" => Some(DeletePolicy::HookSucceeded),
        "hook-failed" => Some(DeletePolicy::HookFailed),
        "before-hook-creation" => Some(DeletePolicy::BeforeHookCreation),
        _ => None,
    });
    let mut policies = Vec::new();
    for policy in argo.chain(helm) {
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    }
    if policies.is_empty() {
        policies.push(DeletePolicy::BeforeHookCreation);
    }
    policies
}
