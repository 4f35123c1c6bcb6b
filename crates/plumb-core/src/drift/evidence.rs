//! Everything that a verdict depends on.

use jiff::Timestamp;

use super::{Answers, Facts};
use crate::app::CompareOptions;
use crate::desired::DesiredObject;
use crate::ignore::IgnoreRules;
use crate::object::{Manifest, ObjectKey};
use crate::schema::SchemaSet;

/// Everything that [`judge`](super::judge) looks at. It borrows: gathering it costs nothing in the steady
/// state.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// Which object.
    pub key: &'a ObjectKey,
    /// What Git asks; `None`: nothing (any more).
    pub desired: Option<&'a DesiredObject>,
    /// What the cluster holds, with its `managedFields`; `None`: nothing.
    pub live: Option<&'a Manifest>,
    /// The cluster's own schemas.
    pub schemas: &'a SchemaSet,
    /// The rules of the app and of the settings, compiled once.
    pub rules: &'a IgnoreRules,
    /// Compare options of the Application; those of the object are added by the judge.
    pub options: CompareOptions,
    /// What the engine knows without asking anybody.
    pub facts: Facts<'a>,
    /// What it asked for.
    pub answers: Answers<'a>,
    /// The time of the judgement.
    pub now: Timestamp,
}
