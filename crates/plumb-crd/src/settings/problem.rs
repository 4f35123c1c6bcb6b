//! What is wrong with a setting.

use std::fmt;

/// An invalid value. Its default is used instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsProblem {
    /// Object and key, such as `argocd-cm resource.exclusions`.
    pub place: String,
    /// Why it is invalid.
    pub reason: String,
}

impl fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}
