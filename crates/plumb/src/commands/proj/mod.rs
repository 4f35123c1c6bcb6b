//! `plumb proj`: what groups of Applications may do.

mod create;
mod delete;
mod edit;
mod get;
mod list;
mod role;
mod rules;
mod verbs;
mod windows;

pub(crate) use verbs::{Args, run};
