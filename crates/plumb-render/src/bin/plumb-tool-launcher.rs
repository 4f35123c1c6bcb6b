//! Starts and watches tools for the renderer. It is not for users: plumb's own binary has the same command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(plumb_render::tool_launcher(std::env::args_os().skip(1)))
}
