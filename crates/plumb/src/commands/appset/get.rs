//! `plumb appset get`

use serde_json::json;

use super::set::{parse, read, target};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::view::describe;

/// Show one `ApplicationSet`: its conditions and its Applications.
///
/// Example: `plumb appset get teams`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// `name`, or `namespace/name`.
    #[arg(value_name = "APPSETNAME")]
    name: String,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
    /// Namespace of the set [default: the control plane's].
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    appset_namespace: Option<String>,
    /// Also show the generators and the parameters that they start from.
    #[arg(long)]
    show_params: bool,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let target = target(context, &args.name, args.appset_namespace.as_deref());
    let object = read(&client, &target).await?;
    if matches!(args.output, Format::Json | Format::Yaml) {
        context.out.object(args.output, &describe::readable(&object))?;
        return Ok(ExitCode::Success);
    }
    let set = parse(&object)?;
    if args.output == Format::Name {
        context.out.print(&format!("{}/{}", set.metadata.namespace, set.metadata.name));
        return Ok(ExitCode::Success);
    }
    let status = &set.status;
    let health = &status.health;
    context.out.print(&format!("Name:          {}/{}", set.metadata.namespace, set.metadata.name));
    context.out.print(&format!("Project:       {}", set.spec.template.spec.project));
    context.out.print(&format!("Health:        {} {}", health.status, health.message));
    context.out.print(&format!("Applications:  {}", status.resources_count));
    let conditions: Vec<Vec<String>> = status
        .conditions
        .iter()
        .map(|condition| {
            vec![condition.condition_type.clone(), condition.status.clone(), condition.message.clone()]
        })
        .collect();
    context.out.print("");
    context.out.table(&["CONDITION", "STATUS", "MESSAGE"], &conditions);
    let step_of = |name: &str| {
        let found = status.application_status.iter().find(|status| status.application == name);
        found.map(|status| format!("{} (step {})", status.status, status.step)).unwrap_or_default()
    };
    let rows: Vec<Vec<String>> = status
        .resources
        .iter()
        .map(|app| {
            let health = app.health.as_ref().map(|health| health.status.clone()).unwrap_or_default();
            vec![app.name.clone(), app.status.clone(), health, step_of(&app.name)]
        })
        .collect();
    context.out.print("");
    context.out.table(&["APPLICATION", "STATUS", "HEALTH", "ROLLOUT"], &rows);
    if args.show_params {
        context.out.print("");
        context.out.object(Format::Yaml, &json!({"generators": object.value()["spec"]["generators"]}))?;
    }
    Ok(ExitCode::Success)
}
