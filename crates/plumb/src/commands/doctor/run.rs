//! The command line of `plumb doctor`.

use jiff::Timestamp;
use plumb_core::doctor::{self, AppFacts, Filter};
use plumb_core::drift::DriftClass;

use super::format::DoctorFormat;
use super::{offline, reports, secrets};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::local::OfflineArgs;
use crate::render_here::RenderArgs;
use crate::select::class::class;

/// Show what to look at first: what has been unhealthy for too long, what is really wrong, what is red and means
/// nothing, and what to tidy up.
///
/// Reads the `DriftReports` and the Applications, changes nothing. An app that plumb does not reconcile has no report:
/// what its status shows as `OutOfSync` is listed as not judged.
///
/// With --live and --desired it needs no cluster: it renders the directories and compares them with a dump of live
/// objects. If the dump has the Applications too, it uses what they ignore, and names what they show as `OutOfSync`.
///
/// With --secrets it looks at Secrets instead: those that apps use and nothing in Git stands for, those that somebody
/// edited though a controller makes them, certificates that end, and texts that look like credentials. It shows no value.
///
/// Examples: `plumb doctor`, `plumb doctor --secrets`, `plumb doctor --project payments --exit-code`, `plumb doctor -o markdown`,
/// `plumb doctor --live dump.yaml --desired deploy/shop --schemas openapi.json`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these apps: `name`, or `namespace/name`.
    #[arg(long, value_name = "APP", add = crate::complete::apps())]
    app: Vec<String>,
    /// Only apps of these projects.
    #[arg(long, short = 'p', value_name = "PROJECT", add = crate::complete::projects())]
    project: Vec<String>,
    /// Only differences of these classes, such as `LiveEdit`.
    #[arg(long, value_name = "CLASS", value_parser = class)]
    class: Vec<DriftClass>,
    /// Only objects of these kinds, such as `Deployment`.
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Namespace of the Applications [default: the control plane's, and those that its settings name].
    #[arg(long, short = 'N', value_name = "NAMESPACE", conflicts_with = "live")]
    app_namespace: Option<String>,
    /// Look at the Secrets that the apps of this cluster use.
    #[arg(long, conflicts_with_all = ["live", "class", "kind"])]
    secrets: bool,
    /// End with 1 if something has been unhealthy for too long, a difference counts, or an app was not judged.
    #[arg(long)]
    exit_code: bool,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = DoctorFormat::Text)]
    output: DoctorFormat,
    #[command(flatten)]
    offline: OfflineArgs,
    #[command(flatten)]
    render: RenderArgs,
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.secrets {
        let namespace = args.app_namespace.as_deref();
        let wanted = secrets::Wanted { apps: &args.app, projects: &args.project, namespace };
        return secrets::run(context, &wanted, args.output, args.exit_code).await;
    }
    let now = Timestamp::now();
    let facts = if args.offline.is_given() {
        offline::facts(context, &args.offline, &args.render, now)?
    } else {
        let client = context.client().await?;
        reports::facts(context, &client, args.app_namespace.as_deref(), now).await?
    };
    let filter = Filter {
        classes: args.class.clone(),
        kinds: args.kind.clone(),
        apps: args.app.clone(),
        projects: args.project.clone(),
    };
    refuse_unknown(&filter, &facts)?;
    let diagnosis = doctor::diagnose(&facts, &filter, now);
    args.output.print(context, &diagnosis, now)?;
    Ok(if args.exit_code && diagnosis.is_bad() { ExitCode::No } else { ExitCode::Success })
}

/// A misspelled name must not look like an app without problems.
fn refuse_unknown(filter: &Filter, facts: &[AppFacts]) -> Result<(), CommandError> {
    let alone = |apps: Vec<String>, projects: Vec<String>| Filter { apps, projects, ..Filter::default() };
    let names = filter
        .apps
        .iter()
        .map(|app| (alone(vec![app.clone()], Vec::new()), format!("no app is named {app}")));
    let projects = filter
        .projects
        .iter()
        .map(|project| (alone(Vec::new(), vec![project.clone()]), format!("no app is in project {project}")));
    let unknown = names.chain(projects).find(|(filter, _)| !facts.iter().any(|facts| filter.has_app(facts)));
    match unknown {
        Some((_, message)) => {
            Err(CommandError::new(message).hint("`plumb app list` shows the apps and their projects"))
        }
        None => Ok(()),
    }
}
