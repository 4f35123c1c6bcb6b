//! What the API server would make of an apply: the answer to the dry-run, and what `managedFields` prove without one.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Case;
use super::field_paths::{last_field, without_positions};
use crate::compare::{Addition, Change, Comparison, Difference, Fill, compare, is_zero, twin};
use crate::drift::{DryRun, Previous, Question};
use crate::fields::Entry;
use crate::object::FieldPath;
use crate::schema::{Schema, ServerFill};

/// What an apply would do to a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::drift) enum Prediction {
    /// The difference would remain.
    Unchanged,
    /// The difference would go.
    Changed,
    /// The API server refuses the object.
    Refused,
    /// The API server did not answer.
    Unavailable,
    /// There is no answer yet; the question is noted.
    Asked,
}

/// The comparison of Git with the answer to the dry-run, by place: each difference and each addition asks for its own.
pub(super) struct Predicted<'a> {
    differences: HashMap<FieldPath, Vec<(Change, Option<&'a Value>)>>,
    /// By their paths without positions: an apply may shift them.
    additions: HashMap<FieldPath, AddedValues<'a>>,
}

/// What an apply would add at one place.
struct AddedValues<'a> {
    values: HashSet<&'a Value>,
    /// Does the API server fill in the same value on each write?
    are_defaults: bool,
}

impl<'a> Predicted<'a> {
    fn of(comparison: &Comparison<'a>) -> Self {
        let mut differences: HashMap<FieldPath, Vec<(Change, Option<&'a Value>)>> = HashMap::new();
        for difference in &comparison.differences {
            let same = differences.entry(difference.desired_path.clone()).or_default();
            same.push((difference.change, difference.live));
        }
        let mut additions: HashMap<FieldPath, AddedValues<'a>> = HashMap::new();
        for addition in &comparison.additions {
            let is_default = matches!(addition.fill, Fill::Schema | Fill::BuiltIn)
                || is_zero(addition.live)
                || addition.live == "0";
            let none = || AddedValues { values: HashSet::new(), are_defaults: true };
            let same = additions.entry(without_positions(&addition.path)).or_insert_with(none);
            same.values.insert(addition.live);
            same.are_defaults &= is_default;
        }
        Self { differences, additions }
    }
}

impl Case<'_> {
    /// Would an apply leave this difference as it is?
    pub(in crate::drift) fn predict(&self, difference: &Difference<'_>) -> Prediction {
        self.prediction(|predicted| {
            let same = predicted.differences.get(&difference.desired_path);
            same.is_some_and(|same| same.contains(&(difference.change, difference.live)))
        })
    }

    /// Would an apply leave this addition as it is?
    pub(in crate::drift) fn predict_addition(&self, addition: &Addition<'_>) -> Prediction {
        self.prediction(|predicted| {
            let same = predicted.additions.get(&without_positions(&addition.path));
            same.is_some_and(|same| same.values.contains(addition.live))
        })
    }

    /// Would the same value be there after an apply, whether it was kept or filled in again?
    pub(in crate::drift) fn predict_value(&self, addition: &Addition<'_>) -> Prediction {
        match self.evidence.answers.dry_run {
            Some(DryRun::Object(object)) => {
                let schema = self.kind.map(|kind| kind.root);
                let place = twin(&addition.path, self.live.value(), object.value(), schema);
                match place.and_then(|place| place.find(object.value())) {
                    Some(value) if value == addition.live => Prediction::Unchanged,
                    Some(_) | None => Prediction::Changed,
                }
            }
            None | Some(DryRun::Refused(_) | DryRun::Unavailable) => self.predict_addition(addition),
        }
    }

    /// Does the API server fill this in with another value on each write (the time of a taint)? A default is the same on
    /// each write: if it differs from the live value, then Git asked for that value before.
    pub(in crate::drift) fn is_generated_on_each_write(&self, addition: &Addition<'_>) -> bool {
        self.prediction(|predicted| {
            let same = predicted.additions.get(&without_positions(&addition.path));
            same.is_some_and(|same| !same.are_defaults)
        }) == Prediction::Unchanged
    }

    /// Would an apply replace Git's value by the default of the API server? Then Git's value reads as no value at all.
    pub(in crate::drift) fn becomes_default(&self, difference: &Difference<'_>) -> bool {
        let Some(DryRun::Object(object)) = self.evidence.answers.dry_run else { return false };
        let find = || {
            let root = self.kind.map(|kind| kind.root);
            let place = twin(&difference.desired_path, self.desired.value(), object.value(), root)?;
            let (map, name) = (place.parent()?, last_field(&place)?);
            let fields = map.find(object.value())?.as_object()?;
            let value = fields.get(name)?;
            let schema = self.schema_of(&map)?;
            let is_default = schema.known(name).and_then(Schema::default) == Some(value)
                || schema.server_fill(name, value, fields) == Some(ServerFill::Default);
            Some(is_default && Some(value) != difference.desired)
        };
        find().unwrap_or_default()
    }

    fn prediction(&self, stays: impl FnOnce(&Predicted<'_>) -> bool) -> Prediction {
        match self.evidence.answers.dry_run {
            None => {
                self.ask(Question::DryRun);
                Prediction::Asked
            }
            Some(DryRun::Refused(failure)) if failure.is_final() => Prediction::Refused,
            Some(DryRun::Refused(_) | DryRun::Unavailable) => Prediction::Unavailable,
            Some(DryRun::Object(object)) => {
                let predicted = self.predicted.get_or_init(|| {
                    Predicted::of(&compare(self.desired, object, self.kind, Self::aside(self.kind)))
                });
                if stays(predicted) { Prediction::Unchanged } else { Prediction::Changed }
            }
        }
    }

    /// Do the `managedFields` suggest that the API server dropped this field when it was written? A client that removes a
    /// field removes it from every entry, and a client that changes a list that is replaced as a whole becomes its owner.
    /// So a field that has an entry but is not in the object was dropped on write, unless a client wrote the entries
    /// themselves. Fields that are always in the object are another exception: a client that removes one writes null, and
    /// its entry names the field.
    pub(in crate::drift) fn may_be_dropped_by_server(&self, difference: &Difference<'_>) -> bool {
        if difference.change != Change::Missing {
            return false;
        }
        let Some(ours) = self.owners.ours() else { return false };
        let is_of_version = |entry: &Entry<'_>| entry.api_version == ours.api_version;
        match &difference.whole {
            None => {
                let live = self.live.value();
                let is_null = difference.path.find(live).is_some();
                self.owners.entries().iter().any(|entry| {
                    (entry.is_ours() || !is_null)
                        && is_of_version(entry)
                        && entry.names(&difference.path, live)
                })
            }
            Some(whole) => {
                matches!(self.facts().previous, Previous::Same)
                    && ours.owns(whole, self.live.value())
                    && self.owners.of_place(whole).all(Entry::is_ours)
            }
        }
    }
}
