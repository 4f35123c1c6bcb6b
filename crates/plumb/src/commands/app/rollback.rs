//! `plumb app rollback`

use plumb_core::status::rollback_target;
use plumb_crd::application::RevisionHistory;
use plumb_crd::{Application, Wire};
use serde_json::{Value, json};

use crate::config;
use crate::context::{Context, limit};
use crate::edit::operation::set_options;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::follow::operation::follow_operation;
use crate::output::Format;
use crate::select::app::{AppArg, patch};
use crate::view::describe::print_summary;

/// Roll back to an earlier sync.
///
/// Syncs the sources and revisions of a history entry, without hooks. Refused while automated sync is on, because it
/// would undo the rollback. Exit code 0: it succeeded; 1: it failed.
///
/// Examples: `plumb app rollback payments` (the sync before the last), `plumb app rollback payments 7`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
    /// Id of the history entry, see `plumb app history` [default: the one before the last].
    id: Option<i64>,
    /// Delete objects that the revision does not have.
    #[arg(long)]
    prune: bool,
    /// Timeout in seconds; 0 is none.
    #[arg(long, default_value_t = 0)]
    timeout: u64,
    /// Output format of the result: wide, json or yaml. JSON and YAML have the Application.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let (target, application) = args.app.read(context, &client).await?;
    if application.operation.is_some() {
        return Err(CommandError::new(format!(
            "another operation is already in progress on {}",
            target.name
        ))
        .hint(format!("`plumb app terminate-op {}` stops it", target.name)));
    }
    let entry = entry(&application, args.id)?;
    let request = operation(&application, entry, args.prune);
    patch(&client, &target, json!({"operation": request, "status": {"operationState": null}})).await?;
    let ended = tokio::time::timeout(
        limit(args.timeout),
        follow_operation(context, &client, &target, &application, args.output),
    )
    .await;
    let (application, state) = ended.map_err(|_| {
        CommandError::new(format!(
            "timed out after {} s: {} is not rolled back yet",
            args.timeout, target.name
        ))
        .hint(format!("the rollback continues; `plumb app wait {} --operation` waits again", target.name))
    })??;
    if args.output.is_data() {
        context.out.object(args.output, &application.to_json())?;
    } else {
        print_summary(context.out, &application);
    }
    Ok(if state.phase == "Succeeded" { ExitCode::Success } else { ExitCode::No })
}

/// The entry to roll back to.
fn entry(application: &Application, asked: Option<i64>) -> Result<&RevisionHistory, CommandError> {
    let history = &application.status.history;
    let ids: Vec<i64> = history.iter().map(|entry| entry.id).collect();
    let policy = application.spec.sync_policy.as_ref().and_then(|policy| policy.automated.as_ref());
    let is_automated = policy.is_some_and(|automated| automated.enabled != Some(false));
    let name = &application.metadata.name;
    let position = rollback_target(&ids, asked, is_automated).map_err(|refused| {
        CommandError::because(format!("roll back {name}"), refused)
            .hint_if(is_automated, &format!("`plumb app set {name} --sync-policy none` first"))
            .hint_if(!is_automated, &format!("`plumb app history {name}` lists the past syncs"))
    })?;
    history
        .get(position)
        .ok_or_else(|| CommandError::new(format!("cannot roll back {name}: its history changed")))
}

/// The operation, with the options of the spec, as argocd writes it.
fn operation(application: &Application, entry: &RevisionHistory, prune: bool) -> Value {
    let mut sync = json!({"prune": prune, "syncStrategy": {"apply": {}}});
    set_options(&mut sync, application, &[]);
    if entry.sources.is_empty() {
        sync["revision"] = json!(entry.revision);
        if let Some(source) = &entry.source {
            sync["source"] = source.write();
        }
    } else {
        sync["revisions"] = json!(entry.revisions);
        sync["sources"] = Value::Array(entry.sources.iter().map(Wire::write).collect());
    }
    json!({"sync": sync, "initiatedBy": {"username": config::user()}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(policy: &Value, wanted: &Value) {
        let application = Application::from_json(&json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": "argocd"},
            "spec": {"project": "default", "source": {"repoURL": "r"}, "destination": {}, "syncPolicy": policy},
            "status": {"history": [{
                "id": 1, "revision": "3f2c", "deployedAt": "2026-11-15T19:00:00Z",
                "source": {"repoURL": "r", "path": "p"},
            }]},
        }))
        .unwrap();
        let asked = operation(&application, &application.status.history[0], true);
        assert_eq!(asked["sync"], *wanted);
    }

    #[test]
    fn a_rollback_has_the_options_of_the_spec() {
        let plain = json!({
            "prune": true, "syncStrategy": {"apply": {}}, "revision": "3f2c",
            "source": {"repoURL": "r", "path": "p"},
        });
        check(&json!({"retry": {"limit": 2}}), &plain);
        let mut careful = plain;
        careful["syncOptions"] = json!(["Prune=false", "ServerSideApply=true"]);
        check(&json!({"syncOptions": ["Prune=false", "ServerSideApply=true"]}), &careful);
    }
}
