//! One file per command: its arguments, its help, what it does.

pub(crate) mod app;
pub(crate) mod drift;
pub(crate) mod install;
pub(crate) mod run;

use std::future::Future;

use crate::error::CommandError;

/// Runs a command that talks to a cluster.
fn block_on<T>(work: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| CommandError::because("start the runtime", error))?;
    runtime.block_on(work)
}
