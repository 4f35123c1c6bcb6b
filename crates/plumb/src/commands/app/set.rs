//! `plumb app set`

use serde_json::Value;

use crate::context::Context;
use crate::edit::spec::{PolicyFlags, SourceChoice, SourceFlags};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::select::app::{AppArg, edit_spec, read_whole};

/// Change the source, the destination and the sync policy of an Application.
///
/// Examples: `plumb app set payments --sync-policy none`, `plumb app set payments --revision v1.2 -p replicas=3`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
    #[command(flatten)]
    choice: SourceChoice,
    #[command(flatten)]
    policy: PolicyFlags,
    #[command(flatten)]
    source: SourceFlags,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    args.source.refuse()?;
    if args.policy.is_empty() && args.source.is_empty() {
        return Err(CommandError::usage("nothing to change: no flag given")
            .hint("for example --sync-policy, --auto-prune, --self-heal or --revision; see --help"));
    }
    let client = context.client().await?;
    let target = args.app.target(context);
    let lost = if matches!(args.policy.sync_policy.as_deref(), Some("none" | "manual")) {
        lost_with_automation(read_whole(context, &client, &target).await?.value())
    } else {
        None
    };
    let changed = edit_spec(context, &client, &target, |spec| {
        args.policy.apply(spec)?;
        if !args.source.is_empty() {
            args.source.apply(args.choice.find(spec)?)?;
        }
        Ok(())
    })
    .await?;
    let result = if changed { "updated" } else { "unchanged" };
    context.out.print(&format!("application '{}' {result}", target.name));
    if let Some(lost) = lost {
        context.out.note(&lost);
    }
    Ok(ExitCode::Success)
}

/// A note on the options that are removed with automated sync, with the flags that restore them.
fn lost_with_automation(application: &Value) -> Option<String> {
    let automated = application.pointer("/spec/syncPolicy/automated")?;
    let options = [
        ("prune", "prune", "--auto-prune"),
        ("selfHeal", "self-heal", "--self-heal"),
        ("allowEmpty", "allow-empty", "--allow-empty"),
    ];
    let is_lost = |(field, ..): &&(&str, &str, &str)| automated.get(field) == Some(&Value::Bool(true));
    let (names, flags): (Vec<&str>, Vec<&str>) =
        options.iter().filter(is_lost).map(|(_, name, flag)| (*name, *flag)).unzip();
    (!names.is_empty()).then(|| {
        let them = if names.len() == 1 { "it" } else { "them" };
        let (names, flags) = (names.join(" and "), flags.join(" "));
        format!("this also removed {names}; to restore {them}: --sync-policy automated {flags}")
    })
}
