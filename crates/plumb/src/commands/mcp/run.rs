//! Reads messages from stdin, and answers on stdout.

use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;

use super::protocol::{self, Step};
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
const MOST_BYTES: u64 = 1 << 20;
/// An answer may not be longer: an assistant cannot read more.
const MOST_ANSWER: usize = 4 << 20;

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let mut input = BufReader::new(tokio::io::stdin());
    loop {
        let mut line = Vec::new();
        let n_read = (&mut input)
            .take(MOST_BYTES)
            .read_until(b'\n', &mut line)
            .await
            .map_err(|error| CommandError::because("read stdin", error))?;
        if n_read == 0 || context.out.is_reader_gone() {
            return Ok(ExitCode::Success);
        }
        let line = String::from_utf8_lossy(&line);
        if line.trim().is_empty() {
            continue;
        }
        let answer = match protocol::step(&line, args.allow_writes) {
            Step::Nothing => continue,
            Step::Answer(answer) => answer,
            Step::Run { id, words } => call(context, &id, &words).await,
        };
        context.out.print_raw(&format!("{answer}\n"));
        // The client waits for it.
        crate::output::finish().map_err(|error| CommandError::because("write to stdout", error))?;
    }
}

/// Runs this program with these words: an assistant sees what a user sees.
async fn call(context: &Context, id: &Value, words: &[String]) -> Value {
    let outcome = async {
        let program = std::env::current_exe()?;
        let mut command = Command::new(program);
        command.args(words).args(context.connection.words());
        command.stdin(Stdio::null()).kill_on_drop(true).output().await
    };
    match outcome.await {
        Ok(output) => {
            let text =
                |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_ANSWER)]).into_owned();
            let code = output.status.code().unwrap_or(20);
            protocol::result(id, code, &text(&output.stdout), &text(&output.stderr))
        }
        Err(error) => protocol::result(id, 20, "", &format!("error: cannot run plumb: {error}")),
    }
}
