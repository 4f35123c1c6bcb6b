//! `plumb proj windows`

use jiff::Timestamp;
use plumb_core::object::Manifest;
use plumb_core::project::Project;
use plumb_crd::to_project_rules;
use plumb_kube::Selection;
use serde_json::{Value, json};

use crate::context::Context;
use crate::edit::json_path::{list, map};
use crate::edit::merge;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::select::project::{ProjectArg, parse};
use crate::view::watch;

/// List, add, change and delete the sync windows of a project.
///
/// Examples: `plumb proj windows list payments`, `plumb proj windows add payments --kind deny --schedule "0 22 * * *"
/// --duration 8h --applications "*"`
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the windows and whether they are active now: `plumb proj windows list payments`
    List(ListArgs),
    /// Add a window: `plumb proj windows add payments --kind deny --schedule "0 22 * * *" --duration 8h
    /// --applications "*"`
    Add(AddArgs),
    /// Change a window: `plumb proj windows update payments 0 --duration 4h`
    Update(UpdateArgs),
    /// Delete a window: `plumb proj windows delete payments 0`
    Delete(IdArgs),
    /// Allow manual syncs while the window forbids automated ones: `plumb proj windows enable-manual-sync payments 0`
    EnableManualSync(IdArgs),
    /// Forbid manual syncs, too, while the window forbids syncs: `plumb proj windows disable-manual-sync payments 0`
    DisableManualSync(IdArgs),
}

/// The project whose windows are listed.
#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    project: ProjectArg,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
    /// Keep running and show changes.
    #[arg(long, short = 'w')]
    watch: bool,
}

/// One window of a project.
#[derive(Debug, clap::Args)]
struct IdArgs {
    #[command(flatten)]
    project: ProjectArg,
    /// Id of the window, as `list` prints it.
    id: usize,
}

/// A new window.
#[derive(Debug, clap::Args)]
struct AddArgs {
    #[command(flatten)]
    project: ProjectArg,
    /// `allow` or `deny`.
    #[arg(long, short = 'k', value_parser = ["allow", "deny"])]
    kind: String,
    #[command(flatten)]
    window: WindowFlags,
}

/// A window that changes.
#[derive(Debug, clap::Args)]
struct UpdateArgs {
    #[command(flatten)]
    window_id: IdArgs,
    #[command(flatten)]
    window: WindowFlags,
}

/// The fields of a window.
#[derive(Debug, clap::Args)]
struct WindowFlags {
    /// When it starts, as a cron expression of five fields.
    #[arg(long, value_name = "CRON")]
    schedule: Option<String>,
    /// How long it lasts, such as `1h30m`.
    #[arg(long)]
    duration: Option<String>,
    /// Apps that it applies to, as globs.
    #[arg(long, value_delimiter = ',', value_name = "GLOB")]
    applications: Vec<String>,
    /// Destination namespaces that it applies to, as globs.
    #[arg(long, value_delimiter = ',', value_name = "GLOB")]
    namespaces: Vec<String>,
    /// Clusters that it applies to, as globs.
    #[arg(long, value_delimiter = ',', value_name = "GLOB")]
    clusters: Vec<String>,
    /// Allow manual syncs anyway.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    manual_sync: Option<bool>,
    /// Let a sync that started in time continue.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    sync_overrun: Option<bool>,
    /// Time zone of the schedule, such as Europe/Berlin.
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// Require all lists to match, not just one.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    use_and_operator: Option<bool>,
    /// Description of the window.
    #[arg(long)]
    description: Option<String>,
}

impl WindowFlags {
    fn apply(&self, window: &mut Value) {
        let window = map(window);
        let mut set = |field: &str, value: Option<Value>| {
            if let Some(value) = value {
                window.insert(field.to_owned(), value);
            }
        };
        set("schedule", self.schedule.clone().map(Value::from));
        set("duration", self.duration.clone().map(Value::from));
        for (field, texts) in [
            ("applications", &self.applications),
            ("namespaces", &self.namespaces),
            ("clusters", &self.clusters),
        ] {
            set(field, (!texts.is_empty()).then(|| json!(texts)));
        }
        set("manualSync", self.manual_sync.map(Value::from));
        set("syncOverrun", self.sync_overrun.map(Value::from));
        set("timeZone", self.time_zone.clone().map(Value::from));
        set("andOperator", self.use_and_operator.map(Value::from));
        set("description", self.description.clone().map(Value::from));
    }
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List(args) => show(context, args).await,
        Command::Add(args) => {
            if args.window.schedule.is_none() || args.window.duration.is_none() {
                return Err(CommandError::usage("--schedule and --duration are required"));
            }
            if [&args.window.applications, &args.window.namespaces, &args.window.clusters]
                .iter()
                .all(|texts| texts.is_empty())
            {
                return Err(CommandError::usage(
                    "--applications, --namespaces or --clusters is required: without them the window applies to no app",
                ));
            }
            change(context, &args.project, |windows| {
                let mut window = json!({"kind": args.kind});
                args.window.apply(&mut window);
                windows.push(window);
                Ok(())
            })
            .await
        }
        Command::Update(args) => {
            let id = args.window_id.id;
            change(context, &args.window_id.project, |windows| {
                args.window.apply(at(windows, id)?);
                Ok(())
            })
            .await
        }
        Command::Delete(args) => {
            change(context, &args.project, |windows| {
                at(windows, args.id)?;
                windows.remove(args.id);
                Ok(())
            })
            .await
        }
        Command::EnableManualSync(args) => set_manual(context, args, true).await,
        Command::DisableManualSync(args) => set_manual(context, args, false).await,
    }
}

async fn set_manual(context: &Context, args: &IdArgs, manual: bool) -> Result<ExitCode, CommandError> {
    change(context, &args.project, |windows| {
        map(at(windows, args.id)?).insert("manualSync".to_owned(), json!(manual));
        Ok(())
    })
    .await
}

fn at(windows: &mut [Value], id: usize) -> Result<&mut Value, CommandError> {
    let n = windows.len();
    windows.get_mut(id).ok_or_else(|| {
        CommandError::usage(format!("window {id} not found: the project has {n}, counted from 0"))
    })
}

async fn change(
    context: &Context,
    project: &ProjectArg,
    edit: impl Fn(&mut Vec<Value>) -> Result<(), CommandError>,
) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    project.read(context, &client).await?;
    let target = project.target(context);
    let changed = merge::edit_spec(&client, &target, |spec| {
        let windows = list(map(spec).entry("syncWindows").or_insert(Value::Null));
        edit(windows)?;
        check(windows)?;
        if windows.is_empty() {
            map(spec).remove("syncWindows");
        }
        Ok(())
    })
    .await?;
    let result = if changed { "updated" } else { "unchanged" };
    context.out.print(&format!("project '{}' {result}", target.name));
    Ok(ExitCode::Success)
}

/// Rejects invalid windows: they would forbid every sync.
fn check(windows: &[Value]) -> Result<(), CommandError> {
    let object = json!({"metadata": {"name": "x"}, "spec": {"syncWindows": windows}});
    let project = plumb_crd::AppProject::from_json(&object)
        .map_err(|error| CommandError::because("read the windows", error).exit(ExitCode::Usage))?;
    let (rules, mut problems) = to_project_rules(&project);
    problems.extend(Project::compile(&rules).1);
    match problems.first() {
        None => Ok(()),
        Some(problem) => Err(CommandError::usage(format!("{}: {}", problem.field, problem.reason))),
    }
}

async fn show(context: &Context, args: &ListArgs) -> Result<ExitCode, CommandError> {
    if args.watch && args.output != Format::Wide {
        return Err(CommandError::refused_flag(
            "--watch",
            "it works only with the table; leave out --output",
        ));
    }
    let client = context.client().await?;
    let object = args.project.read(context, &client).await?;
    if args.watch {
        let target = args.project.target(context);
        let name = Some(format!("metadata.name={}", target.name));
        let selection = Selection { namespace: target.namespace, labels: None, fields: name };
        let watched = [(target.gvk, selection)];
        let rows = async || rows(&args.project.read(context, &client).await?);
        return watch::follow(context, &client, &watched, &HEADER, rows).await;
    }
    if args.output == Format::Wide {
        context.out.table(&HEADER, &rows(&object)?);
    } else {
        let windows = object.value().pointer("/spec/syncWindows").cloned().unwrap_or(json!([]));
        context.out.object(args.output, &windows)?;
    }
    Ok(ExitCode::Success)
}

const HEADER: [&str; 12] = [
    "ID",
    "STATUS",
    "KIND",
    "SCHEDULE",
    "DURATION",
    "APPLICATIONS",
    "NAMESPACES",
    "CLUSTERS",
    "MANUALSYNC",
    "SYNCOVERRUN",
    "TIMEZONE",
    "USEANDOPERATOR",
];

fn rows(object: &Manifest) -> Result<Vec<Vec<String>>, CommandError> {
    let project = parse(object)?;
    let (rules, _) = to_project_rules(&project);
    let (compiled, _) = Project::compile(&rules);
    let now = Timestamp::now();
    let or_dash = |texts: &[String]| if texts.is_empty() { "-".to_owned() } else { texts.join(",") };
    let on = |on: bool| if on { "Enabled" } else { "Disabled" }.to_owned();
    let rows = project
        .spec
        .sync_windows
        .iter()
        .enumerate()
        .map(|(id, window)| {
            let state = match compiled.windows().get(id).map(|window| window.is_open(now)) {
                Some(Ok(true)) => "Active".to_owned(),
                Some(Ok(false)) => "Inactive".to_owned(),
                Some(Err(why)) => format!("Invalid: {why}"),
                None => String::new(),
            };
            vec![
                id.to_string(),
                state,
                window.kind.clone(),
                window.schedule.clone(),
                window.duration.clone(),
                or_dash(&window.applications),
                or_dash(&window.namespaces),
                or_dash(&window.clusters),
                on(window.manual_sync),
                on(window.sync_overrun),
                if window.time_zone.is_empty() { "UTC".to_owned() } else { window.time_zone.clone() },
                on(window.and_operator),
            ]
        })
        .collect();
    Ok(rows)
}
