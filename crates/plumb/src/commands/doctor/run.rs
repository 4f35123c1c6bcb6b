//! The command line of `plumb doctor`.

use std::time::Duration;

use jiff::Timestamp;
use plumb_core::doctor::{self, AppFacts, Diagnosis, Filter};
use plumb_core::drift::DriftClass;
use plumb_kube::Selection;

use super::format::DoctorFormat;
use super::{offline, secrets};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::facts::{JudgeArgs, known};
use crate::kinds;
use crate::local::OfflineArgs;
use crate::output::LiveScreen;
use crate::render_here::RenderArgs;
use crate::select::class::class;
use crate::view::watch::Changes;

/// `--watch` shows the screen again after this time, without a change: the lengths of illnesses grow.
const AGAIN_WITH_REPORTS: Duration = Duration::from_mins(1);
/// The same where each look is a survey.
const AGAIN_WITH_SURVEY: Duration = Duration::from_mins(2);

/// Show what to look at first: what has been unhealthy for too long, what is really wrong, what is red and means
/// nothing, and what to tidy up.
///
/// Where an engine of plumb runs, this reads its `DriftReports`. Where none runs (Argo CD, or only Applications), it
/// judges the apps on this machine: it fetches their repositories, lists the live objects of each kind once, and shows
/// what Argo CD says beside plumb's verdict. It only reads, with your kubeconfig; repositories are fetched with the
/// Secrets of the cluster that you may read, or read from local clones.
///
/// With --live and --desired it needs no cluster: it renders the directories and compares them with a dump of live
/// objects. If the dump has the Applications too, it uses what they ignore, and names what they show as `OutOfSync`.
///
/// With --secrets it looks at Secrets instead, in all clusters that apps deploy to: those that apps use and that Git does
/// not declare in any form, those that were edited though a controller makes them, those that cannot be made,
/// certificates that end, and texts that look like credentials. It shows no value.
///
/// Examples: `plumb doctor`, `plumb doctor --secrets`, `plumb doctor --project payments --exit-code`, `plumb doctor -o markdown`,
/// `plumb doctor --watch`, `plumb doctor --repo https://git.example.com/shop.git=../shop`,
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
    /// Look at the Secrets that the apps use.
    #[arg(long, conflicts_with_all = ["live", "class", "kind"])]
    secrets: bool,
    /// End with 1 if something has been unhealthy for too long, a difference counts, or an app was not judged.
    #[arg(long)]
    exit_code: bool,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = DoctorFormat::Text)]
    output: DoctorFormat,
    /// Keep running and show the screen again when something changes.
    #[arg(long, short = 'w', conflicts_with_all = ["live", "exit_code"])]
    watch: bool,
    #[command(flatten)]
    judge: JudgeArgs,
    #[command(flatten)]
    offline: OfflineArgs,
    #[command(flatten)]
    render: RenderArgs,
}

impl Args {
    fn filter(&self) -> Filter {
        Filter {
            classes: self.class.clone(),
            kinds: self.kind.clone(),
            apps: self.app.clone(),
            projects: self.project.clone(),
        }
    }
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.secrets {
        let namespace = args.app_namespace.as_deref();
        let wanted = secrets::Wanted { apps: &args.app, projects: &args.project, namespace };
        return secrets::run(context, &wanted, args.output, args.exit_code).await;
    }
    if args.watch && args.output != DoctorFormat::Text {
        return Err(CommandError::refused_flag(
            "--watch",
            "it works only with the screen; leave out --output",
        ));
    }
    if args.offline.is_given() && args.judge.is_given() {
        let message = "--live works without a cluster: --repo, --here and --dry-runs have no meaning with it";
        return Err(CommandError::usage(message));
    }
    if args.watch {
        return watch(context, args).await;
    }
    let now = Timestamp::now();
    let (diagnosis, _) = diagnosis(context, args, now).await?;
    args.output.print(context, &diagnosis, now)?;
    if args.output == DoctorFormat::Text && !args.offline.is_given() {
        context.out.note(
            "note: Secrets that controllers make and the ends of certificates are not looked at; `plumb doctor --secrets` \
             does",
        );
    }
    Ok(if args.exit_code && diagnosis.is_bad() { ExitCode::No } else { ExitCode::Success })
}

/// The diagnosis, and whether an engine of plumb runs.
async fn diagnosis(
    context: &Context,
    args: &Args,
    now: Timestamp,
) -> Result<(Diagnosis, bool), CommandError> {
    let filter = args.filter();
    let (facts, has_engine) = if args.offline.is_given() {
        (offline::facts(context, &args.offline, &args.render, now)?, false)
    } else {
        let how = (&args.judge, &args.render);
        let known = known(context, how, args.app_namespace.as_deref(), &filter, now).await?;
        (known.apps, known.has_engine)
    };
    refuse_unknown(&filter, &facts)?;
    Ok((doctor::diagnose(&facts, &filter, now), has_engine))
}

/// Shows the screen now and after each change, until the reader closes its end.
async fn watch(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let everywhere = || Selection { namespace: args.app_namespace.clone(), ..Selection::default() };
    let kinds = [(kinds::application(), everywhere()), (kinds::drift_report(), everywhere())];
    let mut screen = LiveScreen::new(context.out);
    let mut changes = None;
    while !context.out.is_reader_gone() {
        let now = Timestamp::now();
        let has_engine = match diagnosis(context, args, now).await {
            Ok((diagnosis, has_engine)) => {
                screen.show(&doctor::text(&diagnosis, context.namespace(), now));
                has_engine
            }
            // An error of the first look ends the command. Later ones are printed.
            Err(error) if changes.is_none() => return Err(error),
            Err(error) => {
                context.out.note(&error.to_string());
                true
            }
        };
        if changes.is_none() {
            changes = Some(Changes::of(&client, &kinds[..if has_engine { 2 } else { 1 }])?);
        }
        let Some(changes) = &mut changes else { continue };
        let longest = if has_engine { AGAIN_WITH_REPORTS } else { AGAIN_WITH_SURVEY };
        // Without reports nobody says when a live object changes, and a survey costs a list per kind.
        if has_engine {
            let _ = tokio::time::timeout(longest, changes.next(context)).await;
        } else {
            tokio::time::sleep(longest).await;
        }
    }
    Ok(ExitCode::Success)
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
