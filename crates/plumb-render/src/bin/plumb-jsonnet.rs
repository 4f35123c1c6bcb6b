//! Evaluates Jsonnet for the renderer, in a process of its own. Not for people: the one argument is a file that
//! the renderer wrote.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(request) = std::env::args_os().nth(1) else { return ExitCode::from(2) };
    match plumb_render::jsonnet_worker(Path::new(&request), &mut std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell if this fails.
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}
