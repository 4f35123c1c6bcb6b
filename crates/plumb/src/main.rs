//! `plumb`: the engine and its command line. A link or copy named `argocd` takes argocd's commands.
//!
//! A module uses only modules that are listed above it.

mod exit;
mod error;
mod config;
mod kinds;
mod remote;
mod output;
mod crash;
mod log_writer;
mod context;
mod prompt;
mod complete;
mod view;
mod edit;
mod secrets;
mod connect;
mod select;
mod follow;
mod render_here;
mod local;
mod facts;
mod repository;
mod bootstrap;
mod listen;
mod unsupported;
mod commands;
mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == config::TOOL_LAUNCHER) {
        return ExitCode::from(plumb_render::tool_launcher(words));
    }
    crash::install();
    plumb_engine::limit_arenas();
    let outcome = cli::start();
    let code = match outcome {
        Ok(code) => code,
        Err(error) => {
            output::note(&error.to_string());
            error.code()
        }
    };
    match output::finish() {
        Ok(()) => code.into(),
        Err(error) => {
            output::note(&format!("error: cannot write to stdout: {error}"));
            exit::ExitCode::Error.into()
        }
    }
}
