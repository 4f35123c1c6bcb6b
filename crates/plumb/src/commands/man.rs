//! `plumb man`

use std::path::PathBuf;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Print the manual page, or write the pages of all commands into a directory.
///
/// Examples: `plumb man | man -l -`, `plumb man --dir /usr/local/share/man/man1`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write one page per command into this directory.
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, args: &Args, command: clap::Command) -> Result<ExitCode, CommandError> {
    let Some(directory) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut page)
            .map_err(|error| CommandError::because("write the manual page", error))?;
        context.out.print_raw(&String::from_utf8_lossy(&page));
        return Ok(ExitCode::Success);
    };
    let failed =
        |error: std::io::Error| CommandError::because(format!("write to {}", directory.display()), error);
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(command, directory).map_err(failed)?;
    Ok(ExitCode::Success)
}
