//! Rules about whole objects: one that only Git or only the cluster has, or that this app does not track.
//!
//! They decide before fields are compared, in `judge`, where the status follows from them as well. This list has their names.

use super::rule::RuleInfo;
use crate::drift::DriftClass;

pub(in crate::drift) const UNTRACKED: RuleInfo =
    RuleInfo { name: "not-tracked-by-this-app", classes: &[DriftClass::Unadopted] };
pub(in crate::drift) const TRACKED_BY_OTHER_APP: RuleInfo =
    RuleInfo { name: "tracked-by-another-app", classes: &[DriftClass::SharedResource] };
pub(in crate::drift) const FINISHED_JOB: RuleInfo =
    RuleInfo { name: "finished-job-deleted", classes: &[DriftClass::HookResidue] };
pub(in crate::drift) const FINISHED_HOOK: RuleInfo =
    RuleInfo { name: "hook-in-cluster", classes: &[DriftClass::HookResidue] };
pub(in crate::drift) const RANDOM_NAME: RuleInfo =
    RuleInfo { name: "object-name-is-random", classes: &[DriftClass::UnstableRender] };
pub(in crate::drift) const NOT_IN_CLUSTER: RuleInfo =
    RuleInfo { name: "not-in-cluster", classes: &[DriftClass::Behind] };
pub(in crate::drift) const NOT_IN_GIT: RuleInfo =
    RuleInfo { name: "not-in-git", classes: &[DriftClass::Orphan] };
/// Also the last of the rules about a refused dry-run.
pub(in crate::drift) const REFUSED: RuleInfo =
    RuleInfo { name: "refused-by-server", classes: &[DriftClass::Blocked] };

/// In the order in which they are tried.
pub(super) const WHOLE_OBJECT_RULES: &[RuleInfo] =
    &[UNTRACKED, TRACKED_BY_OTHER_APP, FINISHED_JOB, FINISHED_HOOK, RANDOM_NAME, NOT_IN_CLUSTER, NOT_IN_GIT];
