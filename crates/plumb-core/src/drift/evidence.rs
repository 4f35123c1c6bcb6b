//! Everything that a verdict depends on.

use jiff::Timestamp;

use super::{Answers, Facts};
use crate::app::CompareOptions;
use crate::desired::DesiredObject;
use crate::ignore::IgnoreRules;
use crate::object::{Manifest, ObjectKey};
use crate::schema::SchemaSet;

/// Everything that [`judge`](super::judge) looks at. It only borrows, so that gathering it costs nothing in the steady
/// state.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// Which object.
    pub key: &'a ObjectKey,
    /// What Git asks for; `None`: Git does not have the object.
    pub desired: Option<&'a DesiredObject>,
    /// The live object, with its `managedFields`; `None`: the cluster does not have the object.
    pub live: Option<&'a Manifest>,
    /// The schemas of the cluster.
    pub schemas: &'a SchemaSet,
    /// The ignore rules of the app and of the settings, compiled once.
    pub rules: &'a IgnoreRules,
    /// Compare options of the Application; those of the object are added by the judge.
    pub options: CompareOptions,
    /// What the engine knows without asking.
    pub facts: Facts<'a>,
    /// The answers to earlier questions.
    pub answers: Answers<'a>,
    /// The time of the judgement.
    pub now: Timestamp,
}
