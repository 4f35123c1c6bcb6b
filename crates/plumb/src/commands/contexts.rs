//! `plumb context`

use serde_json::json;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::remote::Flags;

/// List the logins at API servers, or switch to another.
///
/// Example: `plumb context argocd.example.com`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The context to switch to.
    context: Option<String>,
    /// Output format of the list: wide, name, json or yaml.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide, conflicts_with = "context")]
    output: Format,
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
    let contexts = file.contexts();
    match args.output {
        Format::Wide => {
            let mark = |name: &str| if name == current { "*".to_owned() } else { String::new() };
            let rows: Vec<Vec<String>> =
                contexts.into_iter().map(|(name, server)| vec![mark(&name), name, server]).collect();
            context.out.table(&["CURRENT", "NAME", "SERVER"], &rows);
        }
        Format::Name => contexts.iter().for_each(|(name, _)| context.out.print(name)),
        Format::Json | Format::Yaml => {
            let data = contexts
                .iter()
                .map(|(name, server)| json!({"name": name, "server": server, "current": *name == current}));
            context.out.object(args.output, &data.collect())?;
        }
    }
    Ok(ExitCode::Success)
}
