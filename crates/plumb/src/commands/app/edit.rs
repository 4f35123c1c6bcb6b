//! `plumb app edit`

use crate::context::Context;
use crate::edit::editor;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::select::app::{AppArg, edit_spec, read_whole};

/// Edit an Application's spec in your editor.
///
/// The editor is `$KUBE_EDITOR`, `$EDITOR`, `$VISUAL` or vi.
///
/// Example: `plumb app edit payments`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let target = args.app.target(context);
    let before = read_whole(context, &client, &target).await?;
    let spec = before.value().get("spec").cloned().unwrap_or_default();
    let Some(edited) = editor::edit(&target.name, &spec)? else {
        context.out.print(&format!("application '{}' unchanged", target.name));
        return Ok(ExitCode::Success);
    };
    edit_spec(context, &client, &target, |now| {
        if *now != spec {
            return Err(CommandError::new(format!(
                "application {} was changed by another writer in the meantime",
                target.name
            ))
            .hint("nothing was changed; edit it again"));
        }
        now.clone_from(&edited);
        Ok(())
    })
    .await?;
    context.out.print(&format!("application '{}' updated", target.name));
    Ok(ExitCode::Success)
}
