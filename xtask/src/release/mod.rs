//! `cargo xtask release`: every file of a release, in one folder.

mod notes;
mod lacks;
mod archive;
mod build;
mod packages;
mod task;

pub(crate) use task::{Args, check, run};
