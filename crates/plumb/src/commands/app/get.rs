//! `plumb app get`

use plumb_crd::Application;

use super::{read, target};
use crate::commands::block_on;
use crate::config::ConnectionArgs;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::{say, table};

/// Show one Application and its objects: `plumb app get payments`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// `name`, or `namespace/name`.
    app: String,
}

pub(super) fn run(connection: &ConnectionArgs, args: &Args) -> Result<ExitCode, CommandError> {
    let target = target(connection, &args.app);
    let application = block_on(async {
        let client = connection.client().await?;
        read(&client, &target).await
    })?;
    for (label, text) in header(&application) {
        say(&format!("{:<20}{text}", format!("{label}:")));
    }
    let status = &application.status;
    if !status.conditions.is_empty() {
        let rows: Vec<Vec<String>> = status
            .conditions
            .iter()
            .map(|condition| {
                let since = condition.last_transition_time.map(|time| time.to_string()).unwrap_or_default();
                vec![condition.condition_type.clone(), condition.message.clone(), since]
            })
            .collect();
        say(&format!("\n{}", table(&["CONDITION", "MESSAGE", "LAST TRANSITION"], &rows)));
    }
    let rows: Vec<Vec<String>> = status
        .resources
        .iter()
        .map(|resource| {
            let hook = if resource.hook { "Hook".to_owned() } else { String::new() };
            let message = if resource.requires_pruning && !resource.hook { "requires pruning" } else { "" };
            vec![
                resource.group.clone(),
                resource.kind.clone(),
                resource.namespace.clone(),
                resource.name.clone(),
                resource.status.clone(),
                hook,
                message.to_owned(),
            ]
        })
        .collect();
    say(&format!("\n{}", table(&["GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HOOK", "MESSAGE"], &rows)));
    Ok(ExitCode::Success)
}

fn header(application: &Application) -> Vec<(&'static str, String)> {
    let spec = &application.spec;
    let status = &application.status;
    let cluster =
        if spec.destination.name.is_empty() { &spec.destination.server } else { &spec.destination.name };
    let mut lines = vec![
        ("Name", format!("{}/{}", application.metadata.namespace, application.metadata.name)),
        ("Project", spec.project.clone()),
        ("Server", cluster.clone()),
        ("Namespace", spec.destination.namespace.clone()),
    ];
    for source in spec.source.iter().map(AsRef::as_ref).chain(&spec.sources) {
        lines.push(("Source", format!("{} {} {}", source.repo_url, source.path, source.target_revision)));
    }
    let automated = spec.sync_policy.as_ref().and_then(|policy| policy.automated.as_ref());
    let policy = match automated {
        Some(automated) if automated.enabled != Some(false) && automated.prune == Some(true) => {
            "Automated (Prune)"
        }
        Some(automated) if automated.enabled != Some(false) => "Automated",
        _ => "Manual",
    };
    lines.push(("Sync Policy", policy.to_owned()));
    let short: String = status.sync.revision.chars().take(7).collect();
    let word = if status.sync.status == "Synced" { "to" } else { "from" };
    lines.push(("Sync Status", format!("{} {word} {short}", status.sync.status)));
    let health = &status.health;
    let health = if health.message.is_empty() {
        health.status.clone()
    } else {
        format!("{}: {}", health.status, health.message)
    };
    lines.push(("Health Status", health));
    if let Some(operation) = &status.operation_state {
        lines.push(("Operation", format!("{}: {}", operation.phase, operation.message)));
    }
    lines
}
