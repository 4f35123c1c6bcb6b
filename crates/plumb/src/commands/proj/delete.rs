//! `plumb proj delete`

use plumb_crd::Application;
use plumb_kube::Selection;

use crate::context::{Context, delete, without_children};
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
        return Err(CommandError::new("cannot delete the project default: apps without a project use it"));
    }
    let selection = Selection { namespace: Some(context.namespace().to_owned()), ..Selection::default() };
    let apps = context.list(&client, &kinds::application(), &selection).await?;
    let using: Vec<&str> = apps
        .iter()
        .filter(|app| Application::from_json(app.value()).is_ok_and(|app| app.spec.project == name))
        .filter_map(|app| app.name())
        .collect();
    if !using.is_empty() {
        return Err(CommandError::new(format!(
            "cannot delete project {name}: it is used by {}",
            using.join(", ")
        ))
        .hint("delete the apps first, or move them to another project"));
    }
    delete(&client, &object, &without_children()).await?;
    context.out.print(&format!("project '{name}' deleted"));
    Ok(ExitCode::Success)
}
