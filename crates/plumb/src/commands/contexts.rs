//! `plumb context`

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::remote::Flags;

/// List the logins at API servers, or switch to another.
///
/// Example: `plumb context argocd.example.com`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The context to switch to.
    context: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args, flags: &Flags) -> Result<ExitCode, CommandError> {
    let mut file = flags.file()?;
    if let Some(name) = &args.context {
        if !file.switch(name) {
            let error = CommandError::new(format!("context {name} does not exist"));
            return Err(error.hint("`plumb context` lists them; `plumb login` adds one"));
        }
        file.write()?;
        context.out.print(&format!("Switched to context '{name}'"));
        return Ok(ExitCode::Success);
    }
    let current = file.current().to_owned();
    let rows: Vec<Vec<String>> = file
        .contexts()
        .into_iter()
        .map(|(name, server)| {
            vec![if name == current { "*".to_owned() } else { String::new() }, name, server]
        })
        .collect();
    context.out.table(&["CURRENT", "NAME", "SERVER"], &rows);
    Ok(ExitCode::Success)
}
