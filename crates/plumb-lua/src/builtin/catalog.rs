//! Finds the built-in actions of an object.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plumb_core::object::Manifest;

use super::kind::{ActionRequest, BuiltinKind, Outcome};
use super::{argo, flux, numa, operators, workloads};
use crate::action::Action;

/// The built-in actions for an object, by name.
pub(crate) fn list(object: &Manifest) -> Vec<Action> {
    let Some(kind) = find(object) else { return Vec::new() };
    let mut actions = (kind.list)(object.value());
    actions.sort_by(|left, right| left.name.cmp(&right.name));
    actions
}

/// What a built-in action would change.
pub(crate) fn act(
    object: &Manifest,
    action: &str,
    params: &BTreeMap<String, String>,
    now: Timestamp,
) -> Option<Outcome> {
    let request = ActionRequest { object: object.value(), params, now };
    (find(object)?.act)(action, &request)
}

fn find(object: &Manifest) -> Option<BuiltinKind> {
    let (group, kind) = (object.group(), object.kind());
    [workloads::kind, argo::kind, flux::kind, operators::kind, numa::kind]
        .into_iter()
        .find_map(|find| find(group, kind))
}
