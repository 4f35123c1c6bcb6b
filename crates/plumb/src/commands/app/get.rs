//! `plumb app get`

use jiff::Timestamp;
use plumb_core::app::Pause;
use plumb_core::project::{Project, SyncTrigger, WindowDecision, WindowSubject, shown_repo_url};
use plumb_crd::application::ApplicationSource;
use plumb_crd::{AppProject, Application, DriftReport, to_project_rules};
use plumb_kube::{ClusterClient, Target};

use crate::connect::cluster_of;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::follow::refresh::{Refresh, refresh};
use crate::kinds;
use crate::output::{Format, Output};
use crate::select::app::{AppArg, parse, read_whole};
use crate::view::rows::{ObjectRow, object_rows};
use crate::view::{describe, rows, tree, unhealthy};

/// Show one Application: its sources, its status, and its objects.
///
/// Examples: `plumb app get payments`, `plumb app get payments --refresh -o json`,
/// `plumb app get payments -o tree=detailed`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
    /// Output format: wide, json, yaml, tree, or tree=detailed.
    #[arg(long, short = 'o', default_value = "wide", value_parser = ["wide", "json", "yaml", "tree", "tree=detailed"])]
    output: String,
    /// Refresh the app first.
    #[arg(long)]
    refresh: bool,
    /// Refresh the app first, and render without the cache.
    #[arg(long)]
    hard_refresh: bool,
    /// Also show the last operation.
    #[arg(long)]
    show_operation: bool,
    /// Also show the Helm parameters.
    #[arg(long)]
    show_params: bool,
    /// Only this source, counted from 1.
    #[arg(long, value_name = "N")]
    source_position: Option<usize>,
    /// Only the source with this name.
    #[arg(long, value_name = "NAME", conflicts_with = "source_position")]
    source_name: Option<String>,
    /// Timeout for the refresh, in seconds; 0 is none.
    #[arg(long, default_value_t = 0)]
    timeout: u64,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let target = args.app.target(context);
    if let Some(how) = Refresh::wanted(args.refresh, args.hard_refresh) {
        read_whole(context, &client, &target).await?;
        let refreshed = refresh(context, &client, &target, how);
        tokio::time::timeout(crate::context::limit(args.timeout), refreshed).await.map_err(|_| {
            CommandError::new(format!(
                "timed out: {} was not reconciled within {} s",
                target.name, args.timeout
            ))
            .hint("is `plumb run` running for this namespace?")
        })??;
    }
    let object = read_whole(context, &client, &target).await?;
    match args.output.as_str() {
        "json" => context.out.object(Format::Json, &describe::readable(&object))?,
        "yaml" => context.out.object(Format::Yaml, &describe::readable(&object))?,
        shape => {
            let application = parse(&object)?;
            show(context, &client, &target, &application, args).await?;
            if shape == "wide" {
                table(context, &client, &application).await;
            } else {
                let home = context.client_of_all_kinds().await?;
                let client = cluster_of(context, &home, &application).await?;
                context.out.print("");
                tree::show(context, &client, &application, shape == "tree=detailed").await?;
            }
        }
    }
    Ok(ExitCode::Success)
}

async fn show(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
    application: &Application,
    args: &Args,
) -> Result<(), CommandError> {
    let out = context.out;
    let (window, report) = futures::future::join(
        window(context, client, application),
        client.get_at(&kinds::drift_report(), target.namespace.as_deref(), &target.name),
    )
    .await;
    let report = report.ok().flatten().and_then(|report| DriftReport::from_json(report.value()).ok());
    let sources = chosen(application, args)?;
    let now = Timestamp::now();
    let mut lines = spec_lines(application, &sources);
    lines.extend(window.map(|window| describe::line("SyncWindow", &window)));
    lines.extend(status_lines(application, report.as_ref(), now));
    out.print(&lines.join("\n"));
    if args.show_operation
        && let Some(state) = &application.status.operation_state
    {
        out.print("");
        for (label, text) in describe::operation(state) {
            out.print(&describe::line(label, &text));
        }
    }
    if args.show_params {
        show_parameters(context, &sources);
    }
    show_conditions(out, application);
    let unhealthy = report.map(|report| unhealthy::lines(&report, now)).unwrap_or_default();
    if !unhealthy.is_empty() {
        out.print(&format!("\nUnhealthy:\n{}", unhealthy.join("\n")));
    }
    Ok(())
}

/// Project, destination and sources.
fn spec_lines(application: &Application, sources: &[&ApplicationSource]) -> Vec<String> {
    let spec = &application.spec;
    let mut lines = vec![
        describe::line("Name", &describe::qualified(application)),
        describe::line("Project", if spec.project.is_empty() { "default" } else { &spec.project }),
        describe::line("Server", describe::cluster(application)),
        describe::line("Namespace", &spec.destination.namespace),
        if spec.sources.is_empty() { "Source:" } else { "Sources:" }.to_owned(),
    ];
    lines.extend(sources.iter().flat_map(|source| source_lines(source)));
    lines
}

/// Policy, pauses, sync, health and drift.
fn status_lines(application: &Application, report: Option<&DriftReport>, now: Timestamp) -> Vec<String> {
    let mut lines = vec![describe::line("Sync Policy", &policy(application))];
    for (what, until) in pauses(application, report, now) {
        lines.push(describe::line("Paused", &format!("{what}{until}")));
    }
    lines.push(describe::line("Sync Status", &sync_status(application)));
    let health = &application.status.health;
    let health = match (health.status.as_str(), health.message.as_str()) {
        ("", _) => "Unknown".to_owned(),
        (status, "") => status.to_owned(),
        (status, message) => format!("{status} ({message})"),
    };
    lines.push(describe::line("Health Status", &health));
    let drift = report.map(|report| describe::drift(report, now));
    if let Some(drift) = drift.filter(|drift| !drift.is_empty()) {
        let name = &application.metadata.name;
        lines.push(describe::line("Drift", &format!("{drift} (`plumb app diff {name}`)")));
    }
    lines
}

fn show_conditions(out: Output, application: &Application) {
    let rows: Vec<Vec<String>> = application
        .status
        .conditions
        .iter()
        .map(|condition| {
            let since = condition.last_transition_time.map(|time| time.to_string()).unwrap_or_default();
            vec![condition.condition_type.clone(), condition.message.clone(), since]
        })
        .collect();
    if !rows.is_empty() {
        out.print("");
        out.table(&["CONDITION", "MESSAGE", "LAST TRANSITION"], &rows);
    }
}

async fn table(context: &Context, client: &ClusterClient, application: &Application) {
    let mut states = object_rows(application);
    if states.is_empty() {
        return;
    }
    rows::read_health(client, &mut states).await;
    context.out.print("");
    let rows: Vec<Vec<String>> = states.iter().map(ObjectRow::row).collect();
    context.out.table(&rows::COLUMNS, &rows);
}

/// The sources to show.
fn chosen<'a>(application: &'a Application, args: &Args) -> Result<Vec<&'a ApplicationSource>, CommandError> {
    let all = describe::sources(application);
    match (args.source_position, &args.source_name) {
        (None, None) => Ok(all),
        (Some(position), _) => {
            let source = position.checked_sub(1).and_then(|index| all.get(index).copied());
            let n = all.len();
            let missing = || CommandError::usage(format!("source {position} not found: the app has {n}"));
            Ok(vec![source.ok_or_else(missing)?])
        }
        (None, Some(name)) => {
            let source = all.iter().find(|source| source.name == *name).copied();
            let missing = || CommandError::usage(format!("source {name} not found"));
            Ok(vec![source.ok_or_else(missing)?])
        }
    }
}

fn source_lines(source: &ApplicationSource) -> Vec<String> {
    let mut lines = vec![
        describe::line("- Repo", &shown_repo_url(&source.repo_url)),
        describe::line("  Target", &source.target_revision),
    ];
    let mut add = |label: &str, text: &str| {
        if !text.is_empty() {
            lines.push(describe::line(label, text));
        }
    };
    add("  Name", &source.name);
    add("  Chart", &source.chart);
    add("  Path", &source.path);
    add("  Ref", &source.ref_name);
    if let Some(helm) = &source.helm {
        add("  Helm Values", &helm.value_files.join(","));
    }
    if let Some(kustomize) = &source.kustomize {
        add("  Name Prefix", &kustomize.name_prefix);
    }
    lines
}

/// The active pauses of the app and of its objects.
fn pauses(application: &Application, report: Option<&DriftReport>, now: Timestamp) -> Vec<(String, String)> {
    let whole =
        describe::app_pause(application, now).map(|pause| (String::new(), describe::paused_until(&pause)));
    let single = describe::object_pauses(report, now).map(|paused| {
        let pause = Pause {
            until: paused.until,
            reason: paused.reason.clone(),
            by: Some(paused.by.clone()).filter(|by| !by.is_empty()),
        };
        (format!("{}/{} ", paused.kind, paused.name), describe::paused_until(&pause))
    });
    whole.into_iter().chain(single).collect()
}

fn policy(application: &Application) -> String {
    let automated = application.spec.sync_policy.as_ref().and_then(|policy| policy.automated.as_ref());
    match automated.filter(|automated| automated.enabled != Some(false)) {
        None => "Manual".to_owned(),
        Some(automated) if automated.prune == Some(true) => "Automated (Prune)".to_owned(),
        Some(_) => "Automated".to_owned(),
    }
}

fn sync_status(application: &Application) -> String {
    let sync = &application.status.sync;
    let sources = describe::sources(application);
    let wanted = match sources.as_slice() {
        [one] if one.target_revision.is_empty() => "HEAD",
        [one] => &one.target_revision,
        _ => "",
    };
    let revision = describe::short(&sync.revision);
    let at = match (wanted, revision) {
        ("", "") => String::new(),
        (wanted, "") => wanted.to_owned(),
        (wanted, revision) if describe::short(wanted) == revision => revision.to_owned(),
        (wanted, revision) => format!("{wanted} ({revision})"),
    };
    match (sync.status.as_str(), at.as_str()) {
        ("", _) => "Unknown".to_owned(),
        (status, "") => status.to_owned(),
        ("Synced", at) => format!("Synced to {at}"),
        ("OutOfSync", at) => format!("OutOfSync from {at}"),
        (status, _) => status.to_owned(),
    }
}

/// Whether the sync windows of the project allow a sync now; `None` if the project cannot be read.
async fn window(context: &Context, client: &ClusterClient, application: &Application) -> Option<String> {
    let spec = &application.spec;
    let name = if spec.project.is_empty() { "default" } else { &spec.project };
    let project = client.get_at(&kinds::project(), Some(context.namespace()), name).await.ok()??;
    let (rules, _) = to_project_rules(&AppProject::from_json(project.value()).ok()?);
    let (project, _) = Project::compile(&rules);
    let subject = WindowSubject {
        app: &application.metadata.name,
        namespace: &spec.destination.namespace,
        server: &spec.destination.server,
        cluster: &spec.destination.name,
    };
    let now = Timestamp::now();
    let is_allowed = |trigger| project.permits_sync(&subject, trigger, None, now) == WindowDecision::Allowed;
    let text = match (is_allowed(SyncTrigger::Automated), is_allowed(SyncTrigger::Manual)) {
        (true, _) => "Sync Allowed",
        (false, true) => "Manual Allowed",
        (false, false) => "Sync Denied",
    };
    Some(text.to_owned())
}

fn show_parameters(context: &Context, sources: &[&ApplicationSource]) {
    let rows: Vec<Vec<String>> = sources
        .iter()
        .filter_map(|source| source.helm.as_deref())
        .flat_map(|helm| &helm.parameters)
        .map(|parameter| vec![parameter.name.clone(), parameter.value.clone()])
        .collect();
    context.out.print("");
    context.out.table(&["NAME", "VALUE"], &rows);
}
