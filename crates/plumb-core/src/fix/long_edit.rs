//! The change of a finding whose patch is too long to be shown: a text is bounded, a file is not.

use super::Subject;
use super::git_path::git_path;
use crate::drift::DriftClass;
use crate::normalize::is_secret;
use crate::object::{FieldPath, Manifest, Segment};
use crate::references::is_built_in_group;
use crate::yaml::Operation;

/// The operations for all fields of a finding without a patch; `None` if one of them is not certain.
pub(super) fn long_edit(subject: &Subject<'_>) -> Option<Vec<Operation>> {
    let finding = subject.finding;
    let (desired, live) = subject.desired.zip(subject.live)?;
    if finding.fix.patch.is_some() || is_secret(live) {
        return None;
    }
    match finding.class {
        DriftClass::PhantomDefault => removals(&finding.fields, desired),
        // Git has the same value already.
        DriftClass::EquivalentValue => copies(&finding.fields, desired, live),
        // Which fields of a custom resource are secret, its schema says, which is not known here.
        DriftClass::LiveEdit | DriftClass::Unexplained
            if subject.keeps_live && is_built_in_group(&finding.key.group) =>
        {
            copies(&finding.fields, desired, live)
        }
        _ => None,
    }
}

/// Lines of Git's document, from the end: no operation shifts the position of a later one.
fn removals(fields: &[FieldPath], desired: &Manifest) -> Option<Vec<Operation>> {
    let is_line = |field: &&FieldPath| !field.segments().is_empty() && field.find(desired.value()).is_some();
    let mut places: Vec<&FieldPath> = fields.iter().filter(is_line).collect();
    places.sort();
    places.dedup();
    let removals = places.into_iter().rev().map(|path| Operation::Remove { path: path.clone() });
    Some(removals.collect()).filter(|operations: &Vec<Operation>| !operations.is_empty())
}

/// Live values of fields that both sides have. An item of a list may be another one on each side.
fn copies(fields: &[FieldPath], desired: &Manifest, live: &Manifest) -> Option<Vec<Operation>> {
    let copy = |field: &FieldPath| {
        let path = git_path(desired.value(), live.value(), field)?;
        if matches!(path.segments().last(), None | Some(Segment::Index(_))) {
            return None;
        }
        path.find(desired.value())?;
        Some(Operation::Set { path, value: field.find(live.value())?.clone() })
    };
    let operations: Option<Vec<Operation>> = fields.iter().map(copy).collect();
    operations.filter(|operations| !operations.is_empty())
}
