//! Which changes to Applications are allowed.

use plumb_crd::ApplicationSet;

use super::budget::DeletionBudget;

/// `applicationsSync`, or the policy of the installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Applications are created, and then left alone.
    CreateOnly,
    /// Applications are never deleted.
    CreateUpdate,
    /// Applications are never changed.
    CreateDelete,
    /// Everything is allowed.
    Sync,
}

impl Policy {
    /// Reads a policy; `None` for any other word.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "create-only" => Some(Self::CreateOnly),
            "create-update" => Some(Self::CreateUpdate),
            "create-delete" => Some(Self::CreateDelete),
            "sync" => Some(Self::Sync),
            _ => None,
        }
    }

    pub(super) fn allows_update(self) -> bool {
        matches!(self, Self::CreateUpdate | Self::Sync)
    }

    pub(super) fn allows_delete(self) -> bool {
        matches!(self, Self::CreateDelete | Self::Sync)
    }

    /// The policy that counts for a set: that of the installation if there is one, unless sets may override it.
    pub(super) fn of(set: &ApplicationSet, rules: &Rules) -> Self {
        let own = set.spec.sync_policy.as_ref().and_then(|policy| policy.applications_sync.as_deref());
        let own = own.and_then(Self::from_name).unwrap_or(Self::Sync);
        match rules.policy {
            Some(policy) if !rules.policy_override => policy,
            _ => own,
        }
    }
}

/// Settings of the installation that decide about writes.
#[derive(Clone, Debug)]
pub struct Rules {
    /// `applicationsetcontroller.policy`.
    pub policy: Option<Policy>,
    /// `applicationsetcontroller.enable.policy.override`.
    pub policy_override: bool,
    /// `applicationsetcontroller.enable.progressive.syncs`.
    pub progressive_syncs: bool,
    /// Annotations that stay on all Applications.
    pub preserved_annotations: Vec<String>,
    /// Labels that stay on all Applications.
    pub preserved_labels: Vec<String>,
    /// Most entries of `status.resources`.
    pub max_resources: usize,
    /// How many Applications a set may delete without asking.
    pub budget: DeletionBudget,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            policy: None,
            policy_override: true,
            progressive_syncs: false,
            preserved_annotations: Vec::new(),
            preserved_labels: Vec::new(),
            max_resources: 5000,
            budget: DeletionBudget::default(),
        }
    }
}
