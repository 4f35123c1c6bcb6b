//! What the built-in actions of all kinds share.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::action::{Action, Impact, Operation, Param};
use crate::error::Error;

/// What an action is given.
pub(super) struct ActionRequest<'o> {
    pub(super) object: &'o Value,
    pub(super) params: &'o BTreeMap<String, String>,
    pub(super) now: Timestamp,
}

/// The built-in actions of one kind.
pub(super) struct BuiltinKind {
    /// The actions that the object in its current state has.
    pub(super) list: fn(&Value) -> Vec<Action>,
    /// What an action changes; `None` if there is no such action.
    pub(super) act: fn(&str, &ActionRequest<'_>) -> Option<Outcome>,
}

pub(super) type Outcome = Result<Vec<Impact>, Error>;

/// Patches the object.
#[expect(clippy::unnecessary_wraps, reason = "the result of an action, which may also be unknown")]
pub(super) fn changed(request: &ActionRequest<'_>, change: impl FnOnce(&mut Value)) -> Option<Outcome> {
    let mut object = request.object.clone();
    change(&mut object);
    Some(Ok(vec![Impact { operation: Operation::Patch, object }]))
}

/// Creates an object.
#[expect(clippy::unnecessary_wraps, reason = "the result of an action, which may also be unknown")]
pub(super) fn created(object: Value) -> Option<Outcome> {
    Some(Ok(vec![Impact { operation: Operation::Create, object }]))
}

#[expect(clippy::unnecessary_wraps, reason = "the result of an action, which may also be unknown")]
pub(super) fn refused(message: impl Into<String>) -> Option<Outcome> {
    Some(Err(Error::Refused { message: message.into() }))
}

/// An action with an icon.
pub(super) fn action(name: &str, icon: &str) -> Action {
    Action {
        name: name.to_owned(),
        icon_class: Some(icon.to_owned()).filter(|icon| !icon.is_empty()),
        ..Action::default()
    }
}

impl Action {
    pub(super) fn called(self, display_name: &str) -> Self {
        Self { display_name: Some(display_name.to_owned()), ..self }
    }

    pub(super) fn disabled_if(self, disabled: bool) -> Self {
        Self { disabled, ..self }
    }

    pub(super) fn with_param(mut self, name: &str, default: Option<&str>) -> Self {
        let default = default.map(str::to_owned);
        self.params.push(Param { name: name.to_owned(), default });
        self
    }
}
