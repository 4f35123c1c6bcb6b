//! The types of an Application's conditions.

use std::fmt;

use super::status::Condition;

/// The types of conditions that plumb writes. The names are Argo CD's, except
/// [`ConditionType::StuckWarning`], [`ConditionType::PlainSecretWarning`] and [`ConditionType::DerivedSecretWarning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// The deletion of the app cannot continue.
    DeletionError,
    /// The spec is invalid, or the project does not permit it.
    InvalidSpecError,
    /// Rendering, reading the cluster or comparing failed.
    ComparisonError,
    /// An automated sync failed or was not started.
    SyncError,
    /// Another error of the controller, such as a status that is too large.
    UnknownError,
    /// Another app tracks the same object.
    SharedResourceWarning,
    /// The sources render the same object more than once.
    RepeatedResourceWarning,
    /// A rendered object is excluded by the settings.
    ExcludedResourceWarning,
    /// The destination contains objects that no app tracks.
    OrphanedResourceWarning,
    /// An object has been progressing for longer than is normal.
    StuckWarning,
    /// The sources have a Secret in plain text.
    PlainSecretWarning,
    /// A Secret that a controller makes from an object of the app was edited by hand.
    DerivedSecretWarning,
}

impl ConditionType {
    /// All types.
    pub const ALL: [Self; 12] = [
        Self::DeletionError,
        Self::InvalidSpecError,
        Self::ComparisonError,
        Self::SyncError,
        Self::UnknownError,
        Self::SharedResourceWarning,
        Self::RepeatedResourceWarning,
        Self::ExcludedResourceWarning,
        Self::OrphanedResourceWarning,
        Self::StuckWarning,
        Self::PlainSecretWarning,
        Self::DerivedSecretWarning,
    ];

    /// The name in the wire format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DeletionError => "DeletionError",
            Self::InvalidSpecError => "InvalidSpecError",
            Self::ComparisonError => "ComparisonError",
            Self::SyncError => "SyncError",
            Self::UnknownError => "UnknownError",
            Self::SharedResourceWarning => "SharedResourceWarning",
            Self::RepeatedResourceWarning => "RepeatedResourceWarning",
            Self::ExcludedResourceWarning => "ExcludedResourceWarning",
            Self::OrphanedResourceWarning => "OrphanedResourceWarning",
            Self::StuckWarning => "StuckWarning",
            Self::PlainSecretWarning => "PlainSecretWarning",
            Self::DerivedSecretWarning => "DerivedSecretWarning",
        }
    }

    /// The type with this name; `None` for one that plumb does not write.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|condition| condition.as_str() == name)
    }

    /// True for an error, false for a warning.
    pub fn is_error(self) -> bool {
        match self {
            Self::DeletionError
            | Self::InvalidSpecError
            | Self::ComparisonError
            | Self::SyncError
            | Self::UnknownError => true,
            Self::SharedResourceWarning
            | Self::RepeatedResourceWarning
            | Self::ExcludedResourceWarning
            | Self::OrphanedResourceWarning
            | Self::StuckWarning
            | Self::PlainSecretWarning
            | Self::DerivedSecretWarning => false,
        }
    }
}

impl fmt::Display for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Condition {
    /// The type; `None` for one that plumb does not write.
    pub fn kind(&self) -> Option<ConditionType> {
        ConditionType::from_name(&self.condition_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Argo CD decides by the suffix of the name.
    #[test]
    fn names_end_in_error_or_warning() {
        for condition in ConditionType::ALL {
            let suffix = if condition.is_error() { "Error" } else { "Warning" };
            assert!(condition.to_string().ends_with(suffix), "{condition}");
            assert_eq!(ConditionType::from_name(condition.as_str()), Some(condition));
        }
        let foreign = Condition { condition_type: "Happy".to_owned(), ..Condition::default() };
        assert_eq!(foreign.kind(), None);
    }
}
