//! The change of one object.

use serde_json::Value;

use crate::desired::Origin;
use crate::object::{FieldPath, ObjectKey};

/// One object that comes, goes or changes.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectChange {
    /// Its app: the new one, if it has one.
    pub app: String,
    /// Which object.
    pub key: ObjectKey,
    /// What happens to it.
    pub outcome: Outcome,
    /// Where Git has it, or had it.
    pub origin: Option<Origin>,
}

/// What happens to an object at the next sync.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is created.
    Added,
    /// The app deletes it. `data` says what is lost with it.
    Deleted {
        /// What is lost with it, if it holds data.
        data: Option<&'static str>,
    },
    /// Git no longer has it, and it stays in the cluster; the reason says why.
    Left {
        /// Why it is not deleted.
        why: &'static str,
    },
    /// Another app has it now.
    Moved {
        /// The app that had it.
        from: String,
        /// What changes besides.
        fields: Vec<FieldChange>,
    },
    /// Some fields change.
    Changed {
        /// Which ones.
        fields: Vec<FieldChange>,
        /// Its pods are replaced.
        restarts: bool,
        /// Fields that the API server does not change.
        refused: Vec<FieldPath>,
        /// An option deletes and creates it where the API server refuses.
        is_recreated: bool,
    },
}

/// One field that changes.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    /// Where: in the new object, or in the old one if the new one lacks it.
    pub path: FieldPath,
    /// The old value. Never a value of a Secret.
    pub from: Option<Value>,
    /// The new value. Never a value of a Secret.
    pub to: Option<Value>,
}
