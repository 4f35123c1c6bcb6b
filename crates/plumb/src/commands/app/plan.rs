//! `plumb app plan`

use jiff::Timestamp;
use plumb_crd::DriftReport;
use plumb_page::{PlanRequest, PlanSources, Verb};
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::facts::said_by_engine;
use crate::kinds;
use crate::output::Format;
use crate::select::app::AppArg;

/// Show what a sync of an Application would do, from its last comparison. Writes nothing.
///
/// It is the plan that the page shows before a sync. `plumb app sync --dry-run` asks the engine and the API server for
/// more: hooks, refusals, and what each step waits for. For that it writes an operation into the Application.
///
/// Examples: `plumb app plan payments`, `plumb app plan payments --prune -o json`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
    /// Delete objects that are no longer in Git.
    #[arg(long)]
    prune: bool,
    /// Output format: wide, json or yaml.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let (target, application) = args.app.read(context, &client).await?;
    if application.status.reconciled_at.is_none() {
        return Err(CommandError::new(format!("{} has not been reconciled yet", target.name))
            .hint("is `plumb run` running for this namespace?"));
    }
    let report = client.get_at(&kinds::drift_report(), target.namespace.as_deref(), &target.name).await;
    let report = report
        .map_err(|error| CommandError::api(format!("read the drift report of {}", target.name), error))?;
    let report = report.and_then(|report| DriftReport::from_json(report.value()).ok());
    said_by_engine(context, &client, &application, report.as_ref()).await?;
    let request = PlanRequest { prune: args.prune, ..PlanRequest::default() };
    // No repository is read: the steps are those of the last comparison.
    let (sources, now) = (PlanSources::default(), Timestamp::now());
    let plan = plumb_page::plan(Verb::Sync, &application, report.as_ref(), &sources, &request, now);
    if matches!(args.output, Format::Json | Format::Yaml) {
        context.out.object(args.output, &data(&plan.shown))?;
        return Ok(ExitCode::Success);
    }
    let steps = list(&plan.shown, "steps");
    if steps.is_empty() {
        context.out.print("nothing to do");
    } else {
        context.out.table(&["WAVE", "ACTION", "OBJECT", "WHY"], &steps.iter().map(row).collect::<Vec<_>>());
    }
    for note in list(&plan.shown, "notes").iter().filter_map(Value::as_str) {
        context.out.note(note);
    }
    if let Some(hurdle) = plan.shown["hurdle"].as_str() {
        context.out.note(&format!("not possible now: {hurdle}"));
    }
    Ok(ExitCode::Success)
}

/// What is meant for programs: without the texts of the page's buttons.
fn data(shown: &Value) -> Value {
    json!({
        "application": {"namespace": shown["app"][0], "name": shown["app"][1]},
        "steps": shown["steps"],
        "notes": shown["notes"],
        "hurdle": shown["hurdle"],
        "commands": shown["commands"],
    })
}

fn list(shown: &Value, name: &str) -> Vec<Value> {
    shown[name].as_array().cloned().unwrap_or_default()
}

fn row(step: &Value) -> Vec<String> {
    let text = |name: &str| step[name].as_str().unwrap_or_default().to_owned();
    let part = |name: &str| {
        let text = text(name);
        if text.is_empty() { text } else { format!("{text}/") }
    };
    let object = format!("{}{} {}{}", part("group"), text("kind"), part("namespace"), text("name"));
    vec![step["wave"].to_string(), text("what"), object, text("why")]
}
