//! The change that ends a difference, ready to use: a JSON patch (RFC 6902) of the document in Git, or an ignore rule for the
//! Application.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::explained::Explained;
use super::{DriftClass, Evidence};
use crate::compare::Change;
use crate::normalize::{has_mark, is_secret};
use crate::object::{FieldPath, ObjectKey, Segment};

/// Longest patch; a longer one does not help.
const MAX_PATCH: usize = 2_000;
/// Longest value in a patch.
const MAX_VALUE: usize = 300;

/// What to change in Git to end the differences of one finding. `None` if no change in Git ends them, or if it is not known
/// what the document would have to say.
pub(super) fn fix_patch(evidence: &Evidence<'_>, class: DriftClass, group: &[Explained]) -> Option<String> {
    match class {
        DriftClass::UnstableRender | DriftClass::TugOfWar => ignore_rule(evidence.key, group),
        DriftClass::PhantomDefault | DriftClass::RejectedField => {
            document_patch(evidence, without(evidence, group))
        }
        DriftClass::ControllerOwned => document_patch(evidence, of_controller(evidence, group)),
        DriftClass::EquivalentValue
        | DriftClass::LiveEdit
        | DriftClass::Unexplained
        | DriftClass::UnclaimedAddition => {
            let is_secret = evidence.live.is_some_and(is_secret);
            (!is_secret).then(|| document_patch(evidence, as_live(evidence, group)))?
        }
        // These end by a sync or by a decision between apps, or there is nothing to do.
        DriftClass::SchemaDefault
        | DriftClass::Unadopted
        | DriftClass::Orphan
        | DriftClass::SharedResource
        | DriftClass::HookResidue
        | DriftClass::AdmissionMutated
        | DriftClass::StaleOwnership
        | DriftClass::Blocked
        | DriftClass::Behind => None,
    }
}

/// `ignoreDifferences` for exactly these fields of exactly this object.
fn ignore_rule(key: &ObjectKey, group: &[Explained]) -> Option<String> {
    let pointers: BTreeSet<String> = group.iter().map(|explained| explained.field.to_string()).collect();
    if pointers.iter().any(|pointer| pointer.is_empty() || pointer == "/metadata/name") {
        return None;
    }
    let mut rule = json!({"group": key.group, "kind": key.kind, "namespace": key.namespace_or_empty(),
        "name": key.name, "jsonPointers": pointers});
    // Argo CD drops an empty group or namespace, and the Application itself would differ from Git.
    if let Some(rule) = rule.as_object_mut() {
        rule.retain(|_, value| value != "");
    }
    bounded(format!("# in the Application's spec\nignoreDifferences:\n- {rule}\n"))
}

/// Operations that leave to a controller what Git sets too. What only the controller sets has no place in Git: its position
/// in a list is one of the live object.
fn of_controller(evidence: &Evidence<'_>, group: &[Explained]) -> Option<Vec<Value>> {
    let in_git = group.iter().filter(|explained| explained.git.is_some()).cloned();
    let (taken, left): (Vec<Explained>, Vec<Explained>) = in_git.partition(|one| one.git_takes_live);
    let inside_taken = |one: &Explained| taken.iter().any(|taken| is_inside(one, taken));
    let left: Vec<Explained> = left.into_iter().filter(|one| !inside_taken(one)).collect();
    // Values first: a removal shifts the positions of the items after it.
    let mut operations = as_live(evidence, &taken)?;
    operations.extend(without(evidence, &left)?);
    Some(operations)
}

/// Is the place of one value in Git inside that of another?
fn is_inside(one: &Explained, other: &Explained) -> bool {
    match (&one.git, &other.git) {
        (Some(one), Some(other)) => one.starts_with(other),
        _ => false,
    }
}

/// Operations that remove the lines, or rename a misspelled one.
fn without(evidence: &Evidence<'_>, group: &[Explained]) -> Option<Vec<Value>> {
    let desired = evidence.desired?.manifest.value();
    let mut places: Vec<(&FieldPath, Option<&String>)> = group
        .iter()
        .map(|explained| (explained.git.as_ref().unwrap_or(&explained.field), explained.hint.as_ref()))
        .filter(|(place, _)| !place.segments().is_empty() && place.find(desired).is_some())
        .collect();
    // From the end, so that no operation shifts the positions of a later one.
    places.sort();
    places.dedup();
    places.reverse();
    let operation = |(place, name): (&FieldPath, Option<&String>)| match (name, place.parent()) {
        (Some(name), Some(parent)) if parent.field(name.as_str()).find(desired).is_none() => {
            json!({"op": "move", "from": place.to_string(), "path": parent.field(name.as_str()).to_string()})
        }
        _ => json!({"op": "remove", "path": place.to_string()}),
    };
    Some(places.into_iter().map(operation).collect())
}

/// Operations that copy the live values to Git.
fn as_live(evidence: &Evidence<'_>, group: &[Explained]) -> Option<Vec<Value>> {
    let (desired, live) = (evidence.desired?.manifest.value(), evidence.live?.value());
    // Git's document after the operations so far; needed if one adds something.
    let mut next: Option<Value> = None;
    let (mut changed, mut removed, mut added) = (Vec::new(), BTreeSet::new(), Vec::new());
    for explained in group {
        match (explained.change, &explained.git) {
            (Some(Change::Missing | Change::ItemMissing), Some(place)) => {
                place.find(desired)?;
                removed.insert(place);
            }
            (Some(Change::Value | Change::Order), Some(place)) => {
                place.find(desired)?;
                let value = short(explained.field.find(live)?)?;
                changed.push(json!({"op": "replace", "path": place.to_string(), "value": value}));
            }
            // Git does not have it: a field, or one more item of a list.
            _ => {
                let next = next.get_or_insert_with(|| desired.clone());
                added.push(addition(next, live, &explained.field)?);
            }
        }
    }
    // From the end, so that no operation shifts the positions of a later one.
    let removed = removed.into_iter().rev().map(|place| json!({"op": "remove", "path": place.to_string()}));
    Some(changed.into_iter().chain(removed).chain(added).collect())
}

/// One operation that adds a live value to Git's document, with the maps around it that Git lacks.
fn addition(next: &mut Value, live: &Value, field: &FieldPath) -> Option<Value> {
    let segments = field.segments();
    let known = (0..segments.len())
        .take_while(|length| is_same_way(next, live, segments.get(..*length).unwrap_or_default()))
        .last()?;
    let (way, rest) = segments.split_at(known);
    let (first, inner) = rest.split_first()?;
    let mut value = short(field.find(live)?)?.clone();
    for segment in inner.iter().rev() {
        value = match segment {
            Segment::Field(name) => json!({name.as_str(): value}),
            Segment::Index(_) => json!([value]),
        };
    }
    let parent = FieldPath::from(way.to_vec());
    let place = find_mut(next, way)?;
    let path = match (first, place) {
        (Segment::Field(name), Value::Object(map)) => {
            map.insert(name.to_string(), value.clone());
            parent.field(name.as_str()).to_string()
        }
        (Segment::Index(_), Value::Array(items)) => {
            items.push(value.clone());
            format!("{parent}/-")
        }
        _ => return None,
    };
    Some(json!({"op": "add", "path": path, "value": value}))
}

/// Does this path lead to the same field on both sides? List items are identified by their names.
fn is_same_way(desired: &Value, live: &Value, way: &[Segment]) -> bool {
    let mut sides = (desired, live);
    for segment in way {
        let next = |value: &'_ Value| match segment {
            Segment::Field(name) => value.get(name.as_str()).is_some(),
            Segment::Index(index) => value.get(*index).is_some_and(|item| item.get("name").is_some()),
        };
        if !next(sides.0) || !next(sides.1) {
            return false;
        }
        sides = match segment {
            Segment::Field(name) => (&sides.0[name.as_str()], &sides.1[name.as_str()]),
            Segment::Index(index) => (&sides.0[*index], &sides.1[*index]),
        };
        if matches!(segment, Segment::Index(_)) && sides.0["name"] != sides.1["name"] {
            return false;
        }
    }
    true
}

fn find_mut<'value>(value: &'value mut Value, way: &[Segment]) -> Option<&'value mut Value> {
    way.iter().try_fold(value, |value, segment| match segment {
        Segment::Field(name) => value.get_mut(name.as_str()),
        Segment::Index(index) => value.get_mut(*index),
    })
}

/// The value as a patch can have it: not too long, and not the mark of a redacted value.
fn short(value: &Value) -> Option<&Value> {
    (value.to_string().len() <= MAX_VALUE && !has_mark(value)).then_some(value)
}

fn document_patch(evidence: &Evidence<'_>, operations: Option<Vec<Value>>) -> Option<String> {
    let operations = operations.filter(|operations| !operations.is_empty())?;
    let desired = evidence.desired?;
    let place = match &desired.origin {
        Some(origin) if origin.verbatim => {
            format!("the document at line {} of {}", origin.line, origin.file)
        }
        made_from => {
            let place = made_from.as_ref().map(|origin| match origin.line {
                1 => format!(", rendered from {}", origin.file),
                line => format!(", rendered from line {line} of {}", origin.file),
            });
            let place = place.unwrap_or_default();
            format!("the rendered {} {}{place}", desired.manifest.kind(), evidence.key.name)
        }
    };
    let lines: Vec<String> = operations.iter().map(|operation| format!("- {operation}\n")).collect();
    bounded(format!("# JSON patch of {place}\n{}", lines.concat()))
}

fn bounded(patch: String) -> Option<String> {
    (patch.len() <= MAX_PATCH).then_some(patch)
}
