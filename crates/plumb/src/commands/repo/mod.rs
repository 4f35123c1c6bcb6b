//! `plumb repo`: the repositories that Applications come from, and how to reach them.

mod add;
mod get;
mod list;
mod rm;
mod verbs;

pub(crate) use verbs::{Args, run};
