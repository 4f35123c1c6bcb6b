//! `plumb app get-resource`

use plumb_core::object::Manifest;
use serde_json::{Value, json};

use crate::connect::cluster_of;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::secrets::mask::Masks;
use crate::select::app::AppArg;
use crate::select::object::ObjectChoice;
use crate::view::describe;

/// Show live objects of an Application. The values of Secrets are not shown.
///
/// Examples: `plumb app get-resource payments --kind Deployment --resource-name web`,
/// `plumb app get-resource payments --kind Service --filter-fields metadata.name,spec.ports`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
    #[command(flatten)]
    choice: ObjectChoice,
    /// Only these fields, as paths with dots.
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    filter_fields: Vec<String>,
    /// Also show the managed fields.
    #[arg(long)]
    show_managed_fields: bool,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.choice.kind.is_none() {
        return Err(CommandError::usage("--kind is required").hint("such as --kind Deployment"));
    }
    let home = context.client_of_all_kinds().await?;
    let (_, application) = args.app.read(context, &home).await?;
    let client = cluster_of(context, &home, &application).await?;
    let objects = args.choice.find(context, &client, &application).await?;
    let masks = Masks::read(context, &home).await.with_passwords(&client, objects.iter()).await?;
    for object in &objects {
        show(context, args, object, &masks)?;
    }
    Ok(ExitCode::Success)
}

fn show(context: &Context, args: &Args, object: &Manifest, masks: &Masks) -> Result<(), CommandError> {
    let whole = if args.show_managed_fields { object.value().clone() } else { describe::readable(object) };
    let whole = masks.hide(whole);
    let shown = if args.filter_fields.is_empty() { whole } else { only(&whole, &args.filter_fields) };
    match args.output {
        Format::Json => context.out.object(Format::Json, &shown),
        Format::Name => {
            context.out.print(&format!("{}/{}", object.kind(), object.name().unwrap_or_default()));
            Ok(())
        }
        Format::Yaml | Format::Wide => {
            context.out.print("---");
            context.out.object(Format::Yaml, &shown)
        }
    }
}

/// The fields of an object at these paths.
fn only(object: &Value, paths: &[String]) -> Value {
    let mut shown = json!({});
    for path in paths {
        let pointer = format!("/{}", path.replace('.', "/"));
        let Some(value) = object.pointer(&pointer) else { continue };
        let mut place = &mut shown;
        for part in path.split('.') {
            place = crate::edit::json_path::map(place).entry(part).or_insert(Value::Null);
        }
        place.clone_from(value);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_picked_by_path() {
        let object = json!({"metadata": {"name": "a", "uid": "b"}, "spec": {"x": {"y": 1}}});
        let paths = ["metadata.name", "spec.x.y", "spec.nothing"].map(str::to_owned);
        assert_eq!(only(&object, &paths), json!({"metadata": {"name": "a"}, "spec": {"x": {"y": 1}}}));
    }
}
