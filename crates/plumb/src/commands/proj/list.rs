//! `plumb proj list`

use plumb_crd::AppProject;
use plumb_crd::project::{AppProjectSpec, OrphanedResources};
use plumb_kube::{ObjectEvent, Selection};
use serde_json::Value;
use std::collections::BTreeMap;

use crate::commands::app::describe;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::output::{Format, LiveTable};

/// List projects, with what each allows.
///
/// Example: `plumb proj list -o name`
#[derive(Debug, clap::Args)]
#[command(visible_alias = "ls")]
pub(crate) struct Args {
    /// How to print them.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
    /// Go on and show what changes.
    #[arg(long, short = 'w')]
    watch: bool,
}

const HEADER: [&str; 9] = [
    "NAME",
    "DESCRIPTION",
    "DESTINATIONS",
    "SOURCES",
    "CLUSTER-RESOURCE-WHITELIST",
    "NAMESPACE-RESOURCE-BLACKLIST",
    "SIGNATURE-KEYS",
    "ORPHANED-RESOURCES",
    "DESTINATION-SERVICE-ACCOUNTS",
];

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let selection = Selection { namespace: Some(context.namespace().to_owned()), ..Selection::default() };
    if args.watch {
        let mut events = client
            .watch_objects(&kinds::project(), selection)
            .map_err(|error| CommandError::api("watch projects", error))?;
        let mut known: BTreeMap<String, AppProject> = BTreeMap::new();
        let mut listed = false;
        let mut table = LiveTable::new(context.out);
        while let Some(event) = events.next().await {
            match event {
                ObjectEvent::Seen(object) => {
                    known.extend(
                        AppProject::from_json(object.value()).map(|one| (one.metadata.name.clone(), one)),
                    );
                }
                ObjectEvent::Gone { key, .. } => drop(known.remove(&key.name)),
                ObjectEvent::Listed => listed = true,
                ObjectEvent::Trouble(trouble) => context.out.complain(&trouble),
            }
            if listed {
                table.show(&HEADER, &known.values().map(row).collect::<Vec<_>>());
            }
            if context.out.is_reader_gone() {
                break;
            }
        }
        return Ok(ExitCode::Success);
    }
    let mut found = context.list(&client, &kinds::project(), &selection).await?;
    found.sort_by_key(|object| object.name().map(str::to_owned));
    match args.output {
        Format::Wide => {
            let rows: Vec<Vec<String>> = found
                .iter()
                .map(|object| super::parse(object).map(|one| row(&one)))
                .collect::<Result<_, _>>()?;
            context.out.table(&HEADER, &rows);
        }
        Format::Name => {
            for object in &found {
                context.out.say(object.name().unwrap_or_default());
            }
        }
        Format::Json | Format::Yaml => {
            let all = found.iter().map(describe::readable).collect();
            context.out.object(args.output, &Value::Array(all))?;
        }
    }
    Ok(ExitCode::Success)
}

fn row(project: &AppProject) -> Vec<String> {
    let spec = &project.spec;
    vec![
        project.metadata.name.clone(),
        spec.description.clone(),
        summary(&destinations(spec), "destinations"),
        summary(&spec.source_repos, "repos"),
        summary(&allowed_cluster_kinds(spec), "resources"),
        match spec.namespace_resource_blacklist.len() {
            0 => "<none>".to_owned(),
            n => format!("{n} resources"),
        },
        match spec.signature_keys.len() {
            0 => "<none>".to_owned(),
            n => format!("{n} key(s)"),
        },
        orphans(spec.orphaned_resources.as_ref()),
        summary(&service_accounts(spec), "destinationServiceAccounts"),
    ]
}

/// `<none>`, the only one, or how many.
fn summary(texts: &[String], word: &str) -> String {
    match texts {
        [] => "<none>".to_owned(),
        [one] => one.clone(),
        several => format!("{} {word}", several.len()),
    }
}

pub(super) fn destinations(spec: &AppProjectSpec) -> Vec<String> {
    let place = |cluster: &str, namespace: &str| format!("{cluster},{namespace}");
    spec.destinations
        .iter()
        .map(|one| place(if one.server.is_empty() { &one.name } else { &one.server }, &one.namespace))
        .collect()
}

pub(super) fn allowed_cluster_kinds(spec: &AppProjectSpec) -> Vec<String> {
    spec.cluster_resource_whitelist.iter().map(|one| format!("{}/{}", one.group, one.kind)).collect()
}

pub(super) fn service_accounts(spec: &AppProjectSpec) -> Vec<String> {
    let place = |one: &plumb_crd::project::DestinationServiceAccount| {
        format!("{},{},{}", one.server, one.namespace, one.default_service_account)
    };
    spec.destination_service_accounts.iter().map(place).collect()
}

pub(super) fn orphans(rules: Option<&OrphanedResources>) -> String {
    match rules {
        None => "disabled".to_owned(),
        Some(rules) => {
            let warn = rules.warn.unwrap_or(true);
            let ignored = match rules.ignore.len() {
                0 => String::new(),
                n => format!(", ignored {n}"),
            };
            format!("enabled (warn={warn}{ignored})")
        }
    }
}
