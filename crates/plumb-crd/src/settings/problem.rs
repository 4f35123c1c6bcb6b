//! What is wrong with a setting.

use std::fmt;

/// A value that could not be understood; its default is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsProblem {
    /// Object and key, such as `argocd-cm resource.exclusions`.
    pub place: String,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}
