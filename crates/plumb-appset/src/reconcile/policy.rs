//! Which changes to Applications are allowed.

use plumb_crd::ApplicationSet;
use plumb_crd::settings::AppSetSettings;

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

    /// The policy that counts for a set: its own if it has one and may have one, else that of the installation. A word
    /// that plumb does not know allows the least.
    pub(super) fn of(set: &ApplicationSet, rules: &Rules) -> Self {
        let own = set.spec.sync_policy.as_ref().and_then(|policy| policy.applications_sync.as_deref());
        match own {
            Some(own) if rules.policy_override || rules.policy.is_none() => {
                Self::from_name(own).unwrap_or(Self::CreateOnly)
            }
            _ => rules.policy.unwrap_or(Self::Sync),
        }
    }
}

/// Most entries of `status.resources` if no setting says otherwise.
const MOST_RESOURCES: usize = 5000;

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

impl Rules {
    /// The rules that the settings of an installation give. The budget is a setting of another object.
    pub fn of(settings: &AppSetSettings, budget: DeletionBudget) -> Self {
        Self {
            policy: Policy::from_name(&settings.policy),
            policy_override: settings.policy_override,
            progressive_syncs: settings.progressive_syncs,
            preserved_annotations: settings.preserved_annotations.clone(),
            preserved_labels: settings.preserved_labels.clone(),
            max_resources: settings
                .max_resources
                .and_then(|most| usize::try_from(most).ok())
                .unwrap_or(MOST_RESOURCES),
            budget,
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            policy: None,
            policy_override: true,
            progressive_syncs: false,
            preserved_annotations: Vec::new(),
            preserved_labels: Vec::new(),
            max_resources: MOST_RESOURCES,
            budget: DeletionBudget::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_policy_of_the_installation_counts_where_a_set_has_none() {
        let check = |installation: &str, policy_override: bool, own: Option<&str>, expected: Policy| {
            let mut spec = json!({"generators": [], "template": {"metadata": {}, "spec": {}}});
            if let Some(own) = own {
                spec["syncPolicy"] = json!({"applicationsSync": own});
            }
            let set = ApplicationSet::from_json(&json!({"metadata": {"name": "s"}, "spec": spec})).unwrap();
            let rules =
                Rules { policy: Policy::from_name(installation), policy_override, ..Rules::default() };
            assert_eq!(Policy::of(&set, &rules), expected, "{installation} {policy_override} {own:?}");
        };
        check("", true, None, Policy::Sync);
        check("", true, Some("create-only"), Policy::CreateOnly);
        check("", false, Some("create-update"), Policy::CreateUpdate);
        check("create-only", true, None, Policy::CreateOnly);
        check("create-only", true, Some("sync"), Policy::Sync);
        check("create-only", false, Some("sync"), Policy::CreateOnly);
        check("sync", false, Some("create-only"), Policy::Sync);
        check("", true, Some("create_only"), Policy::CreateOnly);
    }
}
