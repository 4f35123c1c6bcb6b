//! `plumb appset`: one file per verb.

mod set;
mod confirm_deletion;
mod create;
mod delete;
mod generate;
mod get;
mod list;
mod verbs;

pub(crate) use verbs::{Args, run};
