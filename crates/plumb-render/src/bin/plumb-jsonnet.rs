//! Evaluates Jsonnet for the renderer, in a separate process. It is not for users: its argument is a file that the
//! renderer wrote.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(request) = std::env::args_os().nth(1) else { return ExitCode::from(2) };
    match plumb_render::jsonnet_worker(Path::new(&request), &mut std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If this fails, there is no other way to report the error.
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}
