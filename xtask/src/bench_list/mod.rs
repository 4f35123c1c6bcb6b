//! `cargo xtask bench-list`: how long `plumb app list` and `plumb doctor` take, compared with kubectl.

mod objects;
mod task;

pub(crate) use objects::application;
pub(crate) use task::{Args, run};
