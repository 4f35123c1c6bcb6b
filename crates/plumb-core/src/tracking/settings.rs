//! How objects are marked, as the settings say.

use std::{fmt, str::FromStr};

/// `application.resourceTrackingMethod`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrackingMethod {
    /// The annotation alone.
    #[default]
    Annotation,
    /// The label alone.
    Label,
    /// Both; the annotation decides, the label is for people and tools.
    AnnotationAndLabel,
}

impl TrackingMethod {
    /// The method as the setting spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Annotation => "annotation",
            Self::Label => "label",
            Self::AnnotationAndLabel => "annotation+label",
        }
    }
}

impl fmt::Display for TrackingMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The setting names no known method. Argo CD then tracks by annotation; a caller that goes on should do the
/// same, and say so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a tracking method: use `annotation`, `label` or `annotation+label`")]
pub struct UnknownMethod(String);

impl FromStr for TrackingMethod {
    type Err = UnknownMethod;

    /// The empty text is the default.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "" | "annotation" => Ok(Self::Annotation),
            "label" => Ok(Self::Label),
            "annotation+label" => Ok(Self::AnnotationAndLabel),
            _ => Err(UnknownMethod(text.to_owned())),
        }
    }
}

/// Everything that decides how marks are written and read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackingSettings {
    /// `application.resourceTrackingMethod`.
    pub method: TrackingMethod,
    /// `application.instanceLabelKey`.
    pub label_key: String,
    /// `installationID`: set where several installations work on one cluster. An object whose installation
    /// annotation differs, or is there though this is unset, has no owner here.
    pub installation_id: Option<String>,
}

impl TrackingSettings {
    /// The label key where the settings name none.
    pub const DEFAULT_LABEL_KEY: &'static str = "app.kubernetes.io/instance";
}

impl Default for TrackingSettings {
    fn default() -> Self {
        Self {
            method: TrackingMethod::default(),
            label_key: Self::DEFAULT_LABEL_KEY.to_owned(),
            installation_id: None,
        }
    }
}
