//! `plumb appset list`

use plumb_core::object::Manifest;
use plumb_kube::Selection;
use serde_json::Value;

use super::set::{gvk, parse};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::select::namespaces::list_in;
use crate::view::describe;

/// List `ApplicationSets`, their conditions, and how many Applications they have.
///
/// Example: `plumb appset list -o name`
#[derive(Debug, clap::Args)]
#[command(visible_alias = "ls")]
pub(crate) struct Args {
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
    /// Only sets whose Applications belong to one of these projects.
    #[arg(long, short = 'p')]
    project: Vec<String>,
    /// Only sets with these labels.
    #[arg(long, short = 'l')]
    selector: Option<String>,
    /// Namespace of the sets [default: the control plane's, and those that its settings name].
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    appset_namespace: Option<String>,
}

const HEADER: [&str; 6] = ["NAME", "PROJECT", "SYNCPOLICY", "APPLICATIONS", "HEALTH", "CONDITIONS"];

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let list = async |namespace: Option<&str>| {
        let (namespace, labels) = (namespace.map(str::to_owned), args.selector.clone());
        context.list(&client, &gvk(), &Selection { namespace, labels, fields: None }).await
    };
    let mut found = list_in(context, &client, args.appset_namespace.as_deref(), list).await?;
    let place = |object: &Manifest| (object.namespace().map(str::to_owned), object.name().map(str::to_owned));
    found.sort_by_key(place);
    let project = |object: &Manifest| {
        let project = &object.value()["spec"]["template"]["spec"]["project"];
        project.as_str().unwrap_or_default().to_owned()
    };
    found.retain(|object| args.project.is_empty() || args.project.contains(&project(object)));
    match args.output {
        Format::Wide => {
            let rows: Vec<Vec<String>> = found.iter().map(|object| shown(context, object)).collect();
            context.out.table(&HEADER, &rows);
        }
        Format::Name => {
            for object in &found {
                let namespace = object.namespace().unwrap_or_default();
                context.out.print(&format!("{namespace}/{}", object.name().unwrap_or_default()));
            }
        }
        Format::Json | Format::Yaml => {
            let all = found.iter().map(describe::readable).collect();
            context.out.object(args.output, &Value::Array(all))?;
        }
    }
    Ok(ExitCode::Success)
}

/// The row of a set; one that cannot be read says so and does not hide the others.
fn shown(context: &Context, object: &Manifest) -> Vec<String> {
    row(object).unwrap_or_else(|error| {
        context.out.note(&error.to_string());
        let place =
            format!("{}/{}", object.namespace().unwrap_or_default(), object.name().unwrap_or_default());
        let unknown = || "<unknown>".to_owned();
        vec![place, unknown(), unknown(), unknown(), "Unknown".to_owned(), "Unreadable".to_owned()]
    })
}

fn row(object: &Manifest) -> Result<Vec<String>, CommandError> {
    let set = parse(object)?;
    let policy = set.spec.sync_policy.as_ref().and_then(|policy| policy.applications_sync.clone());
    let shown = |kind: &str| matches!(kind, "ErrorOccurred" | "DeletionsWaiting" | "NamesGeneratedTwice");
    let conditions: Vec<&str> = set
        .status
        .conditions
        .iter()
        .filter(|condition| condition.status == "True" && shown(&condition.condition_type))
        .map(|condition| condition.condition_type.as_str())
        .collect();
    Ok(vec![
        format!("{}/{}", set.metadata.namespace, set.metadata.name),
        set.spec.template.spec.project.clone(),
        policy.unwrap_or_else(|| "sync".to_owned()),
        set.status.resources_count.to_string(),
        set.status.health.status.clone(),
        if conditions.is_empty() { "<none>".to_owned() } else { conditions.join(",") },
    ])
}
