//! What would end a difference.

use super::{DryRunComparison, IgnoreEntry};
use crate::desired::Origin;
use crate::drift::DriftClass;
use crate::object::ObjectKey;
use crate::yaml::Operation;

/// What would end one finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The object of the finding.
    pub key: ObjectKey,
    /// Its class.
    pub class: DriftClass,
    /// What to do.
    pub action: Action,
}

/// What to do about a finding.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Change the document of the object.
    Edit(ObjectChange),
    /// Change what a tool renders the object from: values, a template, an overlay. Where that cannot be proved, the other
    /// action.
    Through(ObjectChange, Box<Action>),
    /// Add a rule to the Application.
    Ignore(IgnoreEntry),
    /// Add an annotation to the Application.
    Compare(DryRunComparison),
    /// Remove the document of the object: another app keeps it.
    Drop(ObjectChange),
    /// A person has to act; this says how.
    Instruct(String),
    /// Nothing has to change; this says why.
    Nothing(&'static str),
}

/// Changes of one object's document.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectChange {
    /// The object.
    pub key: ObjectKey,
    /// Where its document is.
    pub origin: Origin,
    /// What changes, in this order.
    pub operations: Vec<Operation>,
    /// Why, in a sentence, for the commit.
    pub why: String,
}

impl ObjectChange {
    /// The change as an instruction, for a person to carry out where plumb could not.
    pub fn instruction(&self) -> String {
        let operations: Vec<String> = self.operations.iter().map(ToString::to_string).collect();
        let Origin { file, line, .. } = &self.origin;
        format!("in the document of {} at line {line} of {file}: {}", self.key, operations.join("; "))
    }
}
