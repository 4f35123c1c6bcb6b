//! `plumb app set`

use serde_json::{Value, json};

use super::{patch, read, target};
use crate::commands::block_on;
use crate::config::ConnectionArgs;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::complain;

/// Change how an Application is synced: `plumb app set payments --sync-policy none`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// `name`, or `namespace/name`.
    app: String,
    /// `none`: a person starts every sync; `automated`: plumb does.
    #[arg(long, value_parser = ["none", "manual", "automated", "auto", "automatic"])]
    sync_policy: Option<String>,
    /// May an automated sync delete what left Git?
    #[arg(long)]
    auto_prune: Option<bool>,
    /// Is live drift put back?
    #[arg(long)]
    self_heal: Option<bool>,
    /// Branch, tag, hash or constraint to follow.
    #[arg(long)]
    revision: Option<String>,
}

pub(super) fn run(connection: &ConnectionArgs, args: &Args) -> Result<ExitCode, CommandError> {
    let target = target(connection, &args.app);
    let change = change(args);
    if change == json!({}) {
        return Err(CommandError::new("nothing to change: no option is given")
            .hint("--sync-policy, --auto-prune, --self-heal and --revision are the options")
            .exit(ExitCode::Usage));
    }
    block_on(async {
        let client = connection.client().await?;
        read(&client, &target).await?;
        patch(&client, &target, json!({"spec": change})).await
    })?;
    complain(&format!("application {} changed", target.name));
    Ok(ExitCode::Success)
}

/// The change as a merge patch of the spec.
fn change(args: &Args) -> Value {
    let mut spec = json!({});
    match args.sync_policy.as_deref() {
        Some("none" | "manual") => spec["syncPolicy"] = json!({"automated": null}),
        Some(_) => spec["syncPolicy"] = json!({"automated": {"enabled": null}}),
        None => {}
    }
    if let Some(prune) = args.auto_prune {
        spec["syncPolicy"]["automated"]["prune"] = json!(prune);
    }
    if let Some(self_heal) = args.self_heal {
        spec["syncPolicy"]["automated"]["selfHeal"] = json!(self_heal);
    }
    if let Some(revision) = &args.revision {
        spec["source"] = json!({"targetRevision": revision});
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(policy: Option<&str>, prune: Option<bool>) -> Args {
        Args {
            app: "a".into(),
            sync_policy: policy.map(str::to_owned),
            auto_prune: prune,
            self_heal: None,
            revision: None,
        }
    }

    #[test]
    fn the_policy_is_switched_off_and_on() {
        assert_eq!(change(&args(Some("none"), None)), json!({"syncPolicy": {"automated": null}}));
        let on = json!({"syncPolicy": {"automated": {"enabled": null, "prune": true}}});
        assert_eq!(change(&args(Some("automated"), Some(true))), on);
        assert_eq!(change(&args(None, None)), json!({}));
    }
}
