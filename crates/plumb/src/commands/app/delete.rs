//! `plumb app delete`

use plumb_kube::{ClusterClient, Target};
use serde_json::{Value, json};

use crate::context::{Context, delete, without_children};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::follow::state::{self, Wanted};
use crate::output::Format;
use crate::prompt;
use crate::select::app::{self, read_whole};
use crate::select::apps::AppSelection;
use plumb_core::sync::deletion::CASCADE;

/// Delete Applications and their objects.
///
/// Asks for confirmation, unless --yes is given. Exit code 1: the answer was no.
///
/// Examples: `plumb app delete web --yes`, `plumb app delete web --cascade=false` (the objects stay)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// `name`, or `namespace/name`.
    #[arg(value_name = "APP", add = crate::complete::apps())]
    apps: Vec<String>,
    /// Applications with these labels, instead of names.
    #[arg(long, short = 'l', conflicts_with = "apps")]
    selector: Option<String>,
    /// Namespace of the Applications [default: the control plane's].
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Also delete the objects.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    cascade: bool,
    /// `foreground`: owned objects are deleted first; `background`: afterwards.
    #[arg(long, short = 'p', default_value = "foreground", value_parser = ["foreground", "background"])]
    propagation_policy: String,
    /// Do not ask for confirmation.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Wait until they are gone.
    #[arg(long)]
    wait: bool,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.apps.is_empty() && args.selector.is_none() {
        return Err(CommandError::usage("no application given").hint("`plumb app delete payments`"));
    }
    let client = context.client().await?;
    let chosen = AppSelection {
        names: &args.apps,
        selector: args.selector.as_deref(),
        projects: &[],
        namespace: args.app_namespace.as_deref(),
    };
    let targets = chosen.targets(context, &client).await?;
    for target in &targets {
        read_whole(context, &client, target).await?;
    }
    let mut code = ExitCode::Success;
    for target in &targets {
        let what = if args.cascade { " and all its resources" } else { "" };
        let question = format!("Are you sure you want to delete '{}'{what}?", target.name);
        if !args.yes && !prompt::confirm(&question)? {
            context.out.note(&format!("'{}' was not deleted", target.name));
            code = ExitCode::No;
            continue;
        }
        remove(context, &client, target, args).await?;
    }
    Ok(code)
}

async fn remove(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
    args: &Args,
) -> Result<(), CommandError> {
    let application = read_whole(context, client, target).await?;
    let finalizers = wanted_finalizers(application.value(), args);
    let before = application.value().pointer("/metadata/finalizers").cloned().unwrap_or(json!([]));
    if before != finalizers {
        app::patch(client, target, json!({"metadata": {"finalizers": finalizers}})).await?;
    }
    // An Application owns no objects by reference: its finalizer decides what happens to them.
    delete(client, &application, &without_children()).await?;
    if args.wait {
        let wanted = Wanted { delete: true, ..Wanted::default() };
        return state::wait(context, client, target, &wanted, Format::Wide).await;
    }
    context.out.print(&format!("application '{}' deleted", target.name));
    Ok(())
}

/// The finalizers with the one for the objects set or removed. Others stay.
fn wanted_finalizers(application: &Value, args: &Args) -> Value {
    let present = application.pointer("/metadata/finalizers").and_then(Value::as_array);
    let mut wanted: Vec<Value> = present
        .into_iter()
        .flatten()
        .filter(|entry| !entry.as_str().is_some_and(|entry| entry.starts_with(CASCADE)))
        .cloned()
        .collect();
    if args.cascade {
        let background = args.propagation_policy == "background";
        let name = if background { format!("{CASCADE}/background") } else { CASCADE.to_owned() };
        wanted.insert(0, json!(name));
    }
    Value::Array(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finalizer_decides_what_happens_to_the_objects() {
        let args = |cascade, policy: &str| Args {
            apps: Vec::new(),
            selector: None,
            app_namespace: None,
            cascade,
            propagation_policy: policy.to_owned(),
            yes: true,
            wait: false,
        };
        let app = json!({"metadata": {"finalizers": ["other", "resources-finalizer.argocd.argoproj.io/background"]}});
        assert_eq!(wanted_finalizers(&app, &args(true, "foreground")), json!([CASCADE, "other"]));
        assert_eq!(wanted_finalizers(&app, &args(false, "foreground")), json!(["other"]));
        let background = wanted_finalizers(&json!({}), &args(true, "background"));
        assert_eq!(background, json!(["resources-finalizer.argocd.argoproj.io/background"]));
    }
}
