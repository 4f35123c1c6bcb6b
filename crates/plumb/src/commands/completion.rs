//! `plumb completion`

use crate::complete::VARIABLE;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Print a shell script that completes commands, flags and the names of apps and projects.
///
/// For bash, in ~/.bashrc: `source <(plumb completion bash)`; for fish, in ~/.config/fish/config.fish:
/// `plumb completion fish | source`; for zsh, in ~/.zshrc: `source <(plumb completion zsh)`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the shell.
    #[arg(value_parser = ["bash", "zsh", "fish", "elvish", "powershell"])]
    shell: String,
}

pub(crate) fn run(context: &Context, args: &Args, program: &str) -> Result<ExitCode, CommandError> {
    let shells = clap_complete::env::Shells::builtins();
    let shell = shells
        .completer(&args.shell)
        .ok_or_else(|| CommandError::usage(format!("completion for {} is not supported", args.shell)))?;
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, program, program, program, &mut script)
        .map_err(|error| CommandError::because("write the completion script", error))?;
    context.out.print_raw(&String::from_utf8_lossy(&script));
    Ok(ExitCode::Success)
}
