//! The actions that Argo CD has for well-known kinds, without Lua: restart, pause, scale, suspend and so on. The names,
//! what they are shown with and what they change are Argo CD's, so that scripts and habits keep working.

mod argo;
mod edit;
mod flux;
mod numa;
mod operators;
mod workloads;

use std::collections::BTreeMap;

use jiff::Timestamp;
use plumb_core::object::Manifest;
use serde_json::Value;

use crate::action::{Action, Impact, Operation};
use crate::error::Error;

/// What an action works with.
struct Order<'o> {
    object: &'o Value,
    params: &'o BTreeMap<String, String>,
    now: Timestamp,
}

/// The built-in actions of one kind.
struct Kind {
    /// Which there are for an object as it is now.
    list: fn(&Value) -> Vec<Action>,
    /// What one of them would change; `None`: there is no such action.
    act: fn(&str, &Order<'_>) -> Option<Outcome>,
}

type Outcome = Result<Vec<Impact>, Error>;

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
    let order = Order { object: object.value(), params, now };
    (find(object)?.act)(action, &order)
}

fn find(object: &Manifest) -> Option<Kind> {
    let (group, kind) = (object.group(), object.kind());
    [workloads::kind, argo::kind, flux::kind, operators::kind, numa::kind]
        .into_iter()
        .find_map(|find| find(group, kind))
}

/// The object with a change.
#[expect(clippy::unnecessary_wraps, reason = "the last word of an action, which may also be unknown")]
fn changed(order: &Order<'_>, change: impl FnOnce(&mut Value)) -> Option<Outcome> {
    let mut object = order.object.clone();
    change(&mut object);
    Some(Ok(vec![Impact { operation: Operation::Patch, object }]))
}

/// A new object.
#[expect(clippy::unnecessary_wraps, reason = "the last word of an action, which may also be unknown")]
fn created(object: Value) -> Option<Outcome> {
    Some(Ok(vec![Impact { operation: Operation::Create, object }]))
}

#[expect(clippy::unnecessary_wraps, reason = "the last word of an action, which may also be unknown")]
fn refused(message: impl Into<String>) -> Option<Outcome> {
    Some(Err(Error::Refused { message: message.into() }))
}

/// An action with a symbol.
fn action(name: &str, icon: &str) -> Action {
    Action {
        name: name.to_owned(),
        icon_class: Some(icon.to_owned()).filter(|icon| !icon.is_empty()),
        ..Action::default()
    }
}

impl Action {
    fn called(self, display_name: &str) -> Self {
        Self { display_name: Some(display_name.to_owned()), ..self }
    }

    fn disabled_if(self, disabled: bool) -> Self {
        Self { disabled, ..self }
    }

    fn with_param(mut self, name: &str, default: Option<&str>) -> Self {
        let default = default.map(str::to_owned);
        self.params.push(crate::action::Param { name: name.to_owned(), default });
        self
    }
}

#[cfg(test)]
mod tests;
