//! Reads messages from stdin, and answers on stdout.

use rmcp::ServiceExt as _;
use rmcp::transport::async_rw::AsyncRwTransport;

use super::server::Server;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Serve the Model Context Protocol on stdin and stdout, so that an assistant can ask plumb.
///
/// Tools: `list_apps`, `get_app`, `drift` (with evidence, author and fix), `doctor`, `unmask`, `diff`, `plan`, `logs` and
/// `undo_list`. They only read, with your kubeconfig. `--allow-writes` adds `sync`. Values of Secrets are never shown; what
/// apps write into their logs is.
///
/// Example, in the configuration of an assistant: `plumb mcp --context production`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also offer tools that change the cluster.
    #[arg(long)]
    allow_writes: bool,
}

/// A message may not be longer.
const MOST_BYTES: usize = 1 << 20;

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let (input, output) = rmcp::transport::stdio();
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(MOST_BYTES);
    let server = Server::new(context.connection.words(), args.allow_writes);
    let running = match server.serve(transport).await {
        Ok(running) => running,
        // The client left before it said anything.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(ExitCode::Success),
        Err(error) => return Err(CommandError::because("talk to the client", error)),
    };
    running.waiting().await.map_err(|error| CommandError::because("talk to the client", error))?;
    Ok(ExitCode::Success)
}
