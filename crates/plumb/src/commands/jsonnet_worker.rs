//! `plumb jsonnet-worker`: not for people. A program in Jsonnet may never end, or take all memory, so the renderer
//! starts this binary anew for it, in the sandbox.

use std::path::PathBuf;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Evaluates Jsonnet for the renderer.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to evaluate, as the renderer wrote it.
    request: PathBuf,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let mut answer = Vec::new();
    plumb_render::jsonnet_worker(&args.request, &mut answer)
        .map_err(|error| CommandError::new(error.to_string()))?;
    context.out.print_raw(&String::from_utf8_lossy(&answer));
    Ok(ExitCode::Success)
}
