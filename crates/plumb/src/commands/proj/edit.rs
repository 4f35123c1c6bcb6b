//! `plumb proj edit`

use crate::context::Context;
use crate::edit::{editor, merge};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::select::project::ProjectArg;

/// Edit a project's spec in your editor.
///
/// Example: `plumb proj edit payments`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    project: ProjectArg,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let before = args.project.read(context, &client).await?;
    let target = args.project.target(context);
    let spec = before.value().get("spec").cloned().unwrap_or_default();
    let Some(edited) = editor::edit(&target.name, &spec)? else {
        context.out.print(&format!("project '{}' unchanged", target.name));
        return Ok(ExitCode::Success);
    };
    merge::edit_spec(&client, &target, |now| {
        if *now != spec {
            return Err(CommandError::new(format!(
                "project {} was changed by another writer in the meantime",
                target.name
            ))
            .hint("nothing was changed; edit it again"));
        }
        now.clone_from(&edited);
        Ok(())
    })
    .await?;
    context.out.print(&format!("project '{}' updated", target.name));
    Ok(ExitCode::Success)
}
