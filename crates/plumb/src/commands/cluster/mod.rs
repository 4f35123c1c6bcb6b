//! `plumb cluster`: the clusters that Applications may be deployed to.

mod add;
mod get;
mod list;
mod rm;
mod rotate_auth;
mod set;
mod verbs;

pub(crate) use verbs::{Args, run};
