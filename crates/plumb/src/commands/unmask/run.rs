//! The command line of `plumb unmask`.

use jiff::Timestamp;
use plumb_core::doctor::{self, Filter};

use super::before::History;
use super::show::{self, Unmasked};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::facts::{JudgeArgs, known};
use crate::output::Format;
use crate::render_here::RenderArgs;

/// So many objects are shown without `--limit`.
const MOST_OBJECTS: usize = 20;

/// Show everything that has been unhealthy for too long, why, and what changed before it began.
///
/// Objects that are `Degraded`, `Missing` or `Unknown`, and those that are `Progressing` for longer than they should.
/// Crash loops come first, then the longest. For each: the chain of causes down to the container with its last log lines,
/// and the last sync or edit before it began, with the fields that it changed. It only reads.
///
/// Examples: `plumb unmask`, `plumb unmask --app rollouts`, `plumb unmask -o json`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these apps: `name`, or `namespace/name`.
    #[arg(long, value_name = "APP", add = crate::complete::apps())]
    app: Vec<String>,
    /// Only apps of these projects.
    #[arg(long, short = 'p', value_name = "PROJECT", add = crate::complete::projects())]
    project: Vec<String>,
    /// Only objects of these kinds, such as `Deployment`.
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Show at most so many objects [default: 20; with -o json or yaml all].
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Namespace of the Applications [default: the control plane's, and those that its settings name].
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// End with 1 if something is shown.
    #[arg(long)]
    exit_code: bool,
    /// Output format: wide, json or yaml.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
    #[command(flatten)]
    judge: JudgeArgs,
    #[command(flatten)]
    render: RenderArgs,
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let now = Timestamp::now();
    let filter = Filter {
        apps: args.app.clone(),
        projects: args.project.clone(),
        kinds: args.kind.clone(),
        ..Filter::default()
    };
    let how = (&args.judge, &args.render);
    let known = known(context, how, args.app_namespace.as_deref(), &filter, now).await?;
    let diagnosis = doctor::diagnose(&known.apps, &filter, now);
    if diagnosis.n_apps == 0 && !(args.app.is_empty() && args.project.is_empty()) {
        return Err(CommandError::new("no app has this name or project")
            .hint("`plumb app list` shows the apps and their projects"));
    }
    let limit = args.limit.unwrap_or(if args.output.is_data() { usize::MAX } else { MOST_OBJECTS });
    let n_more = diagnosis.ill.len().saturating_sub(limit);
    if n_more > 0 && args.output.is_data() {
        context.out.note(&format!("note: {n_more} more objects are unhealthy: a higher --limit shows them"));
    }
    let mut history = History::new(context, &args.render);
    let mut unmasked = Vec::new();
    for illness in diagnosis.ill.into_iter().take(limit) {
        let before = history.before(&illness).await?;
        unmasked.push(Unmasked { illness, before });
    }
    let is_empty = unmasked.is_empty();
    match args.output {
        Format::Json | Format::Yaml => context.out.object(args.output, &show::data(&unmasked))?,
        Format::Wide | Format::Name => context.out.print(&show::text(context, &unmasked, n_more, now)),
    }
    Ok(if args.exit_code && !is_empty { ExitCode::No } else { ExitCode::Success })
}
