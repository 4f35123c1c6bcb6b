//! One orphan.

use super::{Cause, LastSign};
use crate::object::{FieldPath, ObjectKey};

/// An object that Git no longer has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Which one.
    pub key: ObjectKey,
    /// Whose it was.
    pub cause: Cause,
    /// Who refers to it, orphans among them.
    pub users: Vec<User>,
    /// The last sign of use that the cluster keeps.
    pub last_sign: LastSign,
    /// Why it should not be deleted without a further word.
    pub hold: Option<Hold>,
}

/// An object that refers to an orphan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Which one.
    pub key: ObjectKey,
    /// The field that does.
    pub field: FieldPath,
    /// The app that tracks it.
    pub app: Option<String>,
    /// The orphan that it is, or that it belongs to and goes with.
    pub orphan: Option<ObjectKey>,
    /// It works without.
    pub is_optional: bool,
}

/// Why an orphan is not deleted by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Objects that stay refer to it.
    Used,
    /// Data is lost with it.
    Data(&'static str),
    /// Nobody may delete it.
    Never(&'static str),
    /// Its own options keep it.
    Kept,
    /// Only a mark says whose it was, and anybody who may write the object can write the mark. The data that would be lost
    /// with it, if any.
    Unproven(Option<&'static str>),
}

impl Orphan {
    /// The users that stay when all orphans are gone.
    pub fn staying_users(&self) -> impl Iterator<Item = &User> {
        self.users.iter().filter(|user| user.orphan.is_none())
    }
}
