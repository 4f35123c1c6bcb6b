//! The command line of `plumb fix`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use plumb_core::drift::DriftClass;
use plumb_core::fix::FixGoal;

use super::application_files::ApplicationFiles;
use super::case::{Case, Unit, Wanted, proposals};
use super::keepers::Keepers;
use super::known::all_readers;
use super::plan::{Plan, Planning, plan};
use super::readers::Readers;
use super::{cluster, commits, merge_request, offline, show, write};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::local::{Checkouts, LocalRenderer, OfflineArgs, top};
use crate::prompt::{Answer, answer};
use crate::render_here::RenderArgs;
use crate::select::class::class;
use crate::select::resource_filter::ResourceFilter;

/// Change Git so that differences end: in local working copies of the repositories.
///
/// Sets defaults, removes lines without effect, adopts the spelling of the cluster, leaves fields to the controllers
/// that own them, corrects fields that the API server does not keep, deletes hooks after success, and adds the narrowest
/// ignore rule where nothing else helps. Comments, order and quotes of a file stay. Each change is proved before it is
/// written: the app is rendered again, and only the intended fields of the intended objects may differ. What cannot be
/// proved is left to you, with an instruction.
///
/// What a chart renders is changed in its values if one of them certainly is the field, else in the one line of the
/// template that says it; what an overlay renders is changed in its base if only this app uses it, else by a patch in the
/// overlay. An object that two apps render is removed from the Git of the app that does not own it, or of the one that
/// you choose.
///
/// Without --patch, --yes or --branch it asks for every change. Nothing is pushed without --push.
///
/// Examples: `plumb fix --patch`, `plumb fix --app shop --class PhantomDefault --yes`,
/// `plumb fix --class SharedResource --keep-in shop --branch one-owner`,
/// `plumb fix --repo https://git.example.com/shop.git=../shop --branch less-noise`,
/// `plumb fix --live dump.yaml --desired deploy/shop --patch`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    /// Only these apps: `name`, or `namespace/name`.
    #[arg(long, value_name = "APP", add = crate::complete::apps())]
    app: Vec<String>,
    /// Only differences of these classes, such as `PhantomDefault`.
    #[arg(long, value_name = "CLASS", value_parser = class)]
    class: Vec<DriftClass>,
    /// Only objects of these kinds, such as `Deployment`.
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Take over what was edited in the cluster, for these objects: `GROUP:KIND:[NAMESPACE/]NAME`.
    #[arg(long, value_name = "OBJECT")]
    keep_live: Vec<ResourceFilter>,
    /// For objects that several apps render: this app keeps them, and they are removed from the Git of the others
    /// [default: the app that owns the object].
    #[arg(long, value_name = "APP", add = crate::complete::apps())]
    keep_in: Vec<String>,
    /// Whose verdict shall become green [default: that of the engine that reconciles the app].
    #[arg(long = "for", value_enum, value_name = "ENGINE")]
    goal: Option<Goal>,
    /// Working copy of the Git sources: `PATH` for all, `REPO_URL=PATH` for one of several [default: the current
    /// directory].
    #[arg(long, value_name = "[REPO_URL=]PATH", conflicts_with = "live")]
    repo: Vec<String>,
    /// Print the changes as a unified diff, and write nothing.
    #[arg(long, conflicts_with_all = ["yes", "branch"])]
    patch: bool,
    /// Write all changes to the working copies, without a question.
    #[arg(long)]
    yes: bool,
    /// Make a branch with one commit per class instead of changing files. The checked-out files stay as they are.
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Push the branch to `origin`.
    #[arg(long, requires = "branch")]
    push: bool,
    /// Print title and description of a merge request, in Markdown.
    #[arg(long, requires = "branch")]
    merge_request: bool,
    /// Namespace of the Applications [default: the control plane's, and those that its settings name].
    #[arg(long, short = 'N', value_name = "NAMESPACE", conflicts_with = "live")]
    app_namespace: Option<String>,
    #[command(flatten)]
    offline: OfflineArgs,
    #[command(flatten)]
    render: RenderArgs,
}

/// Whose verdict shall become green.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Goal {
    /// Argo CD's: also where it shows differences that mean nothing.
    Argocd,
    /// plumb's: only what plumb itself asks to change.
    Plumb,
}

impl Args {
    fn goal(&self) -> Option<FixGoal> {
        self.goal.map(|goal| match goal {
            Goal::Argocd => FixGoal::ArgoCd,
            Goal::Plumb => FixGoal::Plumb,
        })
    }
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let renderer = LocalRenderer::new(&args.render)?;
    let checkouts = Checkouts::parse("--repo", &args.repo)?;
    refuse_missing(&checkouts)?;
    let given = given(args, &checkouts);
    let files = ApplicationFiles::search(&given);
    let cluster::Found { cases, readers, applications } =
        cases(context, args, &renderer, (&checkouts, &files)).await?;
    let mut keepers = Keepers::given(&cases, &args.keep_in)?;
    let asks = !args.patch && !args.yes && args.branch.is_none();
    if asks && (args.class.is_empty() || args.class.contains(&DriftClass::SharedResource)) {
        keepers.ask(context, &cases)?;
    } else {
        keepers.note_order(context, &cases);
    }
    let wanted =
        Wanted { classes: &args.class, kinds: &args.kind, keep_live: &args.keep_live, keepers: &keepers };
    let proposed = proposals(&cases, &wanted);
    let sources = cases.iter().flat_map(|case| case.sources.values()).map(|source| source.root.clone());
    let roots: BTreeSet<PathBuf> = given.iter().cloned().chain(sources).collect();
    let files = if roots == given { files } else { ApplicationFiles::search(&roots) };
    let readers = Readers::search(
        &roots,
        all_readers(readers, &cases, applications.iter().chain(files.all()), context.namespace()),
    );
    let planning = Planning {
        cases: &cases,
        proposed: &proposed.units,
        renderer: &renderer,
        applications: &files,
        readers: &readers,
    };
    let plan_for = |units: &[Unit]| plan(&planning, units);
    let mut planned = plan_for(&proposed.units);
    if !args.patch {
        // Before any question: what could not be written is not worth one.
        commits::ready(&planned, args.branch.as_deref())?;
    }
    if asks {
        let chosen = choose(context, &planned, &cases, &plan_for)?;
        let refused = std::mem::take(&mut planned.refused);
        planned = plan_for(&chosen);
        planned.refused = refused;
    }
    let advice: Vec<_> = proposed.advice.iter().chain(&planned.refused).cloned().collect();
    if planned.steps.is_empty() {
        context.out.note("no file changes");
    } else {
        carry_out(context, args, &planned, &cases)?;
    }
    show::note_advice(context, &advice);
    match proposed.n_nothing {
        0 => {}
        1 => context.out.note("1 difference needs no change"),
        n_nothing => context.out.note(&format!("{n_nothing} differences need no change")),
    }
    Ok(ExitCode::Success)
}

/// The named working copies. The Applications may be in another repository than their sources.
fn given(args: &Args, checkouts: &Checkouts) -> BTreeSet<PathBuf> {
    let all = checkouts.all().filter(|_| !args.offline.is_given());
    all.filter_map(|path| top(path).canonicalize().ok()).collect()
}

/// A directory that is misspelled must not look like one without changes.
fn refuse_missing(checkouts: &Checkouts) -> Result<(), CommandError> {
    match checkouts.all().find(|path| !path.is_dir()) {
        Some(path) => Err(CommandError::usage(format!("--repo: {} is not a directory", path.display()))),
        None => Ok(()),
    }
}

/// The apps, and what else is rendered from the working copies.
async fn cases(
    context: &Context,
    args: &Args,
    renderer: &LocalRenderer,
    (checkouts, files): (&Checkouts, &ApplicationFiles),
) -> Result<cluster::Found, CommandError> {
    if args.offline.is_given() {
        let (mut cases, applications) = offline::cases(context, &args.offline, renderer, args.goal())?;
        let is_it = |case: &Case, name: &String| *name == case.id.name || *name == case.id.to_string();
        if let Some(name) = args.app.iter().find(|name| !cases.iter().any(|case| is_it(case, name))) {
            let names: Vec<String> = cases.iter().map(|case| case.id.to_string()).collect();
            return Err(CommandError::usage(format!("no directory is the app {name}"))
                .hint(format!("the directories are {}", names.join(", "))));
        }
        cases.retain(|case| args.app.is_empty() || args.app.iter().any(|name| is_it(case, name)));
        return Ok(cluster::Found { cases, readers: Vec::new(), applications });
    }
    let wanted = cluster::Wanted {
        apps: &args.app,
        namespace: args.app_namespace.as_deref(),
        checkouts,
        goal: args.goal(),
        files,
    };
    cluster::cases(context, &args.render, &wanted).await
}

/// Asks for each change, with its own diff.
fn choose(
    context: &Context,
    planned: &Plan,
    cases: &[Case],
    plan_for: &dyn Fn(&[Unit]) -> Plan,
) -> Result<Vec<Unit>, CommandError> {
    let mut chosen = Vec::new();
    let mut takes_all = false;
    for unit in planned.steps.iter().flat_map(|step| &step.units) {
        if takes_all {
            chosen.push(unit.clone());
            continue;
        }
        let alone = plan_for(std::slice::from_ref(unit));
        show::print_diff(context, &show::diff(&alone.before, &alone.after()));
        match answer(&show::question(unit, cases))? {
            Answer::Yes => chosen.push(unit.clone()),
            Answer::No => {}
            Answer::All => {
                takes_all = true;
                chosen.push(unit.clone());
            }
            Answer::Quit => break,
        }
    }
    Ok(chosen)
}

fn carry_out(context: &Context, args: &Args, planned: &Plan, cases: &[Case]) -> Result<(), CommandError> {
    let after = planned.after();
    if args.patch {
        context.out.print_data(&show::diff(&planned.before, &after));
        return Ok(());
    }
    // Again: time has passed since the first check if there were questions.
    let copies = commits::ready(planned, args.branch.as_deref())?;
    show::print_steps(context, planned);
    if let Some(branch) = &args.branch {
        for (root, n_commits) in commits::commit(planned, cases, &copies, branch)? {
            let commits = if n_commits == 1 { "1 commit".to_owned() } else { format!("{n_commits} commits") };
            let next = if args.push {
                String::new()
            } else {
                format!("; `git push --set-upstream origin {branch}` publishes it")
            };
            context.out.print(&format!("branch {branch} in {root}: {commits}{next}"));
        }
        if args.push {
            commits::push(context, &copies, branch)?;
        }
        if args.merge_request {
            context.out.print(&merge_request::text(planned, cases));
        }
        return Ok(());
    }
    write::write(&planned.before, &after)?;
    let files = if after.len() == 1 { "1 file".to_owned() } else { format!("{} files", after.len()) };
    context.out.print(&format!("changed {files}; `git diff` shows the changes"));
    Ok(())
}
