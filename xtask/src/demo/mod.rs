//! `cargo xtask demo`: plumb on a real cluster, with a repository that has many planted faults.

mod planted;
mod repository;
mod stage;
mod task;
mod walk;

pub(crate) use task::{Args, run};
