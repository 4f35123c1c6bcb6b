//! `cargo xtask release`: every file of a release, in one folder.

mod notes;
mod packages;
mod archive;
mod task;

pub(crate) use task::{Args, check, run};
