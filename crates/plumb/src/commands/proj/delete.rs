//! `plumb proj delete`

use plumb_crd::Application;
use plumb_kube::Selection;

use crate::context::{Context, at_once, delete};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::select::project::ProjectArg;

/// Delete a project that no Application uses.
///
/// Example: `plumb proj delete payments`
#[derive(Debug, clap::Args)]
#[command(visible_alias = "rm")]
pub(crate) struct Args {
    #[command(flatten)]
    project: ProjectArg,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let object = args.project.read(context, &client).await?;
    let name = object.name().unwrap_or_default();
    if name == "default" {
        return Err(CommandError::new(
            "the project default cannot be deleted: apps without a project use it",
        ));
    }
    let selection = Selection { namespace: Some(context.namespace().to_owned()), ..Selection::default() };
    let apps = context.list(&client, &kinds::application(), &selection).await?;
    let using: Vec<&str> = apps
        .iter()
        .filter(|app| Application::from_json(app.value()).is_ok_and(|app| app.spec.project == name))
        .filter_map(|app| app.name())
        .collect();
    if !using.is_empty() {
        return Err(CommandError::new(format!("project {name} is used by {}", using.join(", ")))
            .hint("delete the apps or give them another project first"));
    }
    delete(&client, &object, &at_once()).await?;
    context.out.print(&format!("project '{name}' deleted"));
    Ok(ExitCode::Success)
}
