//! `plumb`: the engine and its command line. A link or copy named `argocd` answers to argocd's commands.

mod cli;
mod commands;
mod config;
mod context;
mod error;
mod exit;
mod kinds;
mod output;

use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = cli::start();
    let code = match outcome {
        Ok(code) => code,
        Err(error) => {
            output::complain(&error.to_string());
            error.code()
        }
    };
    match output::finish() {
        Ok(()) => code.into(),
        Err(error) => {
            output::complain(&format!("error: write the answer to stdout: {error}"));
            exit::ExitCode::Error.into()
        }
    }
}
