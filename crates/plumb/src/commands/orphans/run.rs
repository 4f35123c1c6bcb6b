//! The command line of `plumb orphans`.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use jiff::Timestamp;
use plumb_core::object::ObjectKey;
use plumb_core::orphans::{self, Cause, Choice, Orphan, deletable, find};

use super::cluster;
use super::delete::{Ended, Plan, delete_one};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::local::settings_of;
use crate::output::Format;

/// Show objects that Git no longer has, who still uses them, and in which order they can go; delete them one at a time.
///
/// An orphan is an object that its app shows as no longer in Git, or whose app or Helm release no longer exists. All objects
/// of the cluster are read to find out who refers to it.
///
/// With --delete, those that nothing uses are deleted in the order shown. Before each one, a copy is kept in the cluster
/// (`plumb undo restore`) and in the directory of --dump (`kubectl apply -f`). After each one, the health of what referred to
/// it and of the workloads beside it is watched; if something becomes worse, the command stops and says how to undo.
///
/// Exit code 0: shown, or deleted; 1: stopped, or not everything was deleted that could be; 20: error.
///
/// Examples: `plumb orphans`, `plumb orphans payments -o json`, `plumb orphans --delete --dump ./orphans`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only orphans of these apps: `name`, or `namespace/name`; also of an app or Helm release that no longer exists.
    #[arg(value_name = "APP")]
    apps: Vec<String>,
    /// Only objects of these kinds, such as `ConfigMap`.
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Only objects of these names.
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
    /// Delete them, one at a time.
    #[arg(long)]
    delete: bool,
    /// With --delete: also those that hold data (volume claims, volumes, namespaces).
    #[arg(long, requires = "delete")]
    with_data: bool,
    /// Keep a file of each object that is deleted; `kubectl apply -f` restores it.
    #[arg(long, value_name = "DIRECTORY", requires = "delete")]
    dump: Option<PathBuf>,
    /// How long to watch after each deletion.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, requires = "delete")]
    watch_for: u64,
    /// Do not ask for confirmation.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = OrphansFormat::Text)]
    output: OrphansFormat,
}

/// The formats of `plumb orphans`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OrphansFormat {
    /// A paragraph per orphan.
    Text,
    /// JSON, with everything.
    Json,
    /// YAML, with everything.
    Yaml,
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let asks = !args.yes;
    if args.delete && asks && !std::io::stdin().is_terminal() {
        return Err(CommandError::usage("--delete asks for each object, and there is no terminal")
            .hint("--yes deletes without asking"));
    }
    let client = context.client_of_all_kinds().await?;
    let cluster = cluster::read(&client).await;
    let apps = cluster::apps(context, &cluster)?;
    for (kind, why) in &cluster.unlisted {
        context.out.note(&format!("note: cannot list {kind}, so they are not among the users: {why}"));
    }
    let settings = ObjectKey::new("", "ConfigMap", Some(context.namespace().to_owned()), "argocd-cm");
    let tracking = settings_of(cluster.objects.get(&settings)).tracking;
    let found = find(&cluster.objects, &apps, &tracking, Some(context.namespace()));
    let found: Vec<Orphan> = found.into_iter().filter(|orphan| args.wants(orphan)).collect();
    match args.output {
        OrphansFormat::Text => context.out.print(&orphans::text(&found, Timestamp::now())),
        OrphansFormat::Json => context.out.object(Format::Json, &orphans::data(&found))?,
        OrphansFormat::Yaml => context.out.object(Format::Yaml, &orphans::data(&found))?,
    }
    let choice = Choice { with_data: args.with_data, named: args.name.clone() };
    let going = deletable(&found, &choice);
    if !args.delete {
        if !going.is_empty() {
            context
                .out
                .note("hint: `plumb orphans --delete --dump DIR` deletes them in this order, one at a time");
        }
        return Ok(ExitCode::Success);
    }
    if !cluster.unlisted.is_empty() {
        return Err(CommandError::new(
            "cannot delete: not all users are known, because some kinds cannot be listed",
        )
        .hint("use an account that may list all kinds"));
    }
    let plan = Plan { dump: args.dump.as_deref(), asks, watch_seconds: args.watch_for };
    for (number, orphan) in found.iter().filter(|orphan| going.contains(&orphan.key)).enumerate() {
        let listed = cluster.objects.get(&orphan.key);
        match delete_one(context, &client, (number, orphan, listed), &plan).await? {
            Ended::Deleted => {}
            // What the user keeps may need the next ones.
            Ended::Kept => {
                context.out.note("stopped: what was kept may use the others");
                return Ok(ExitCode::No);
            }
            Ended::Stopped => return Ok(ExitCode::No),
        }
    }
    Ok(ExitCode::Success)
}

impl Args {
    fn wants(&self, orphan: &Orphan) -> bool {
        let owner = match &orphan.cause {
            Cause::RemovedFromGit { app } => (app.name.clone(), app.to_string()),
            Cause::AppGone { app } => (app.clone(), app.clone()),
            Cause::ReleaseGone { release } => {
                (release.rsplit('/').next().unwrap_or_default().to_owned(), release.clone())
            }
        };
        let is_named = |wanted: &String| *wanted == owner.0 || *wanted == owner.1;
        let is_kind = |wanted: &String| wanted.eq_ignore_ascii_case(&orphan.key.kind);
        (self.apps.is_empty() || self.apps.iter().any(is_named))
            && (self.kind.is_empty() || self.kind.iter().any(is_kind))
            && (self.name.is_empty() || self.name.contains(&orphan.key.name))
    }
}
