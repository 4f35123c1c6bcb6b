//! `plumb app set`

use serde_json::Value;

use crate::context::Context;
use crate::edit::spec::{PolicyFlags, SourceChoice, SourceFlags};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::select::app::{AppArg, edit_spec, read_whole};

/// Change where an Application comes from, where it goes, and how it is synced.
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
        return Err(CommandError::usage("nothing to change: no option is given")
            .hint("--sync-policy, --auto-prune, --self-heal and --revision are among them; see --help"));
    }
    let client = context.client().await?;
    let target = args.app.target(context);
    if matches!(args.policy.sync_policy.as_deref(), Some("none" | "manual")) {
        let before = read_whole(context, &client, &target).await?;
        if let Some(lost) = lost_with_automation(before.value()) {
            context.out.note(&lost);
        }
    }
    let changed = edit_spec(context, &client, &target, |spec| {
        args.policy.apply(spec)?;
        if !args.source.is_empty() {
            args.source.apply(args.choice.find(spec)?)?;
        }
        Ok(())
    })
    .await?;
    let word = if changed { "updated" } else { "unchanged" };
    context.out.print(&format!("application '{}' {word}", target.name));
    Ok(ExitCode::Success)
}

/// What goes with the automation, in the flags that bring it back.
fn lost_with_automation(application: &Value) -> Option<String> {
    let automated = application.pointer("/spec/syncPolicy/automated")?;
    let flags = [("prune", "--auto-prune"), ("selfHeal", "--self-heal"), ("allowEmpty", "--allow-empty")];
    let lost: Vec<&str> = flags
        .iter()
        .filter(|(field, _)| automated.get(field) == Some(&Value::Bool(true)))
        .map(|(_, flag)| *flag)
        .collect();
    let again = lost.join(" ");
    (!lost.is_empty()).then(|| {
        format!(
            "the automation takes its options along; to have all of it again: --sync-policy automated {again}"
        )
    })
}
