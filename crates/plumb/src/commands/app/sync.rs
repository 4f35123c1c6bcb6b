//! `plumb app sync`

use std::time::Duration;

use jiff::Timestamp;
use plumb_crd::application::OperationState;
use plumb_crd::{Application, Wire};
use plumb_kube::{ClusterClient, ObjectEvent, Selection, Target};
use serde_json::{Value, json};

use super::{parse, patch, read, target};
use crate::commands::block_on;
use crate::config::{self, ConnectionArgs};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::{complain, say, table};

/// Make the cluster equal to Git, and wait until it is: `plumb app sync payments --prune`
///
/// Exit code 0: it succeeded; 1: it did not.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// `name`, or `namespace/name`.
    app: String,
    /// Delete what left Git.
    #[arg(long)]
    prune: bool,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
    /// Sync to this revision instead of the app's.
    #[arg(long)]
    revision: Option<String>,
    /// Do not wait.
    #[arg(long = "async")]
    no_wait: bool,
    /// Give up waiting after this many seconds; 0 never.
    #[arg(long, default_value_t = 0)]
    timeout: u64,
}

pub(super) fn run(connection: &ConnectionArgs, args: &Args) -> Result<ExitCode, CommandError> {
    let target = target(connection, &args.app);
    block_on(async {
        let client = connection.client().await?;
        let application = read(&client, &target).await?;
        if application.operation.is_some() {
            return Err(CommandError::new(format!(
                "another operation is already in progress on {}",
                target.name
            ))
            .hint("wait for it, or remove it with `kubectl patch` of `operation`"));
        }
        let before = application.status.operation_state.as_ref().map(|state| state.started_at);
        let request = operation(&application, args);
        patch(&client, &target, json!({"operation": request, "status": {"operationState": null}})).await?;
        if args.no_wait {
            complain(&format!("sync of {} asked for", target.name));
            return Ok(ExitCode::Success);
        }
        let limit = if args.timeout == 0 { Duration::MAX } else { Duration::from_secs(args.timeout) };
        let ended = tokio::time::timeout(limit, wait(&client, &target, before)).await;
        let state = ended.map_err(|_| {
            CommandError::new(format!("{} has not been synced after {} s", target.name, args.timeout))
        })??;
        show(&state);
        Ok(if state.phase == "Succeeded" { ExitCode::Success } else { ExitCode::No })
    })
}

/// The operation as a person's: with the options and retries of the spec, as argocd does it.
fn operation(application: &Application, args: &Args) -> Value {
    let policy = application.spec.sync_policy.as_ref();
    let mut sync = json!({"prune": args.prune, "dryRun": args.dry_run});
    if let Some(revision) = &args.revision {
        sync["revision"] = json!(revision);
    }
    if let Some(options) = policy.map(|policy| &policy.sync_options).filter(|options| !options.is_empty()) {
        sync["syncOptions"] = json!(options);
    }
    let mut operation = json!({"sync": sync, "initiatedBy": {"username": config::user()}});
    if let Some(retry) = policy.and_then(|policy| policy.retry.as_ref()) {
        operation["retry"] = retry.write();
    }
    operation
}

/// Follows the operation until it has ended, and says how it goes on.
async fn wait(
    client: &ClusterClient,
    target: &Target,
    before: Option<Timestamp>,
) -> Result<OperationState, CommandError> {
    let selection = Selection {
        namespace: target.namespace.clone(),
        labels: None,
        fields: Some(format!("metadata.name={}", target.name)),
    };
    let mut stream = client
        .watch_objects(&target.gvk, selection)
        .map_err(|error| CommandError::because(format!("watch application {}", target.name), error))?;
    let mut said = String::new();
    while let Some(event) = stream.next().await {
        match event {
            ObjectEvent::Seen(manifest) => {
                let application = parse(&manifest)?;
                let Some(state) = application.status.operation_state else { continue };
                if !state.message.is_empty() && state.message != said {
                    complain(&format!("{}: {}", state.phase, state.message));
                    said.clone_from(&state.message);
                }
                let is_new = Some(state.started_at) != before || application.operation.is_some();
                let has_ended = matches!(state.phase.as_str(), "Succeeded" | "Failed" | "Error");
                if has_ended && application.operation.is_none() && is_new {
                    return Ok(*state);
                }
            }
            ObjectEvent::Gone { .. } => {
                return Err(CommandError::new(format!("application {} was deleted", target.name)));
            }
            ObjectEvent::Trouble(trouble) => complain(&trouble),
            ObjectEvent::Listed => {}
        }
    }
    Err(CommandError::new(format!("the watch of application {} ended", target.name)))
}

fn show(state: &OperationState) {
    let results = state.sync_result.as_ref().map(|result| result.resources.as_slice()).unwrap_or_default();
    let rows: Vec<Vec<String>> = results
        .iter()
        .map(|result| {
            vec![
                result.group.clone(),
                result.kind.clone(),
                result.namespace.clone(),
                result.name.clone(),
                result.status.clone(),
                result.hook_type.clone(),
                result.message.clone(),
            ]
        })
        .collect();
    say(&table(&["GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HOOK", "MESSAGE"], &rows));
    say(&format!("\nPhase:    {}\nMessage:  {}", state.phase, state.message));
}
