//! `cargo xtask scale`: many apps and objects, and what plumb costs while idle and after a restart.

mod audit;
mod measure;
mod process;
mod task;
mod workload;

pub(crate) use process::Usage;
pub(crate) use task::{Args, run};
