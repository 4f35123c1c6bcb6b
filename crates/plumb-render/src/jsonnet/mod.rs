//! Jsonnet. The renderer finds what a file imports; a separate process ([`jsonnet_worker`]) evaluates it.

mod imports;
mod plan;
mod protocol;
mod worker;

pub(crate) use plan::{JsonnetPlan, plan};
pub use worker::{WorkerError, jsonnet_worker};
