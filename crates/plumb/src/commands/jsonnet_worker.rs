//! `plumb jsonnet-worker`: internal. A Jsonnet program may run forever or use all memory, so the renderer runs it in
//! a sandboxed process of this binary.

use std::path::PathBuf;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Evaluates Jsonnet for the renderer.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File with the request of the renderer.
    request: PathBuf,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let mut answer = Vec::new();
    plumb_render::jsonnet_worker(&args.request, &mut answer)
        .map_err(|error| CommandError::new(error.to_string()))?;
    context.out.print_raw(&String::from_utf8_lossy(&answer));
    Ok(ExitCode::Success)
}
