//! `plumb app list`

use std::collections::BTreeMap;

use futures::future;
use jiff::Timestamp;
use plumb_core::object::Manifest;
use plumb_core::project::shown_repo_url;
use plumb_crd::{Application, DriftReport};
use plumb_kube::{ClusterClient, Selection};
use serde_json::Value;

use crate::context::{Context, list_failed};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::output::Format;
use crate::select::namespaces::{further_namespaces, list_in};
use crate::view::columns::ListColumns;
use crate::view::describe;
use crate::view::watch;

/// List Applications with their status and drift.
///
/// The column DRIFT is plumb's own: how many differences count, the most urgent class, since when; since when the app is
/// not healthy; and whether it is paused (`plumb pause`).
///
/// Example: `plumb app list --project payments -o name`
#[derive(Debug, clap::Args)]
#[command(visible_alias = "ls")]
pub(crate) struct Args {
    /// Only Applications with these labels, such as `team=payments,tier!=dev`.
    #[arg(long, short = 'l')]
    selector: Option<String>,
    /// Only Applications of these projects.
    #[arg(long, short = 'p', add = crate::complete::projects())]
    project: Vec<String>,
    /// Only Applications of this repository.
    #[arg(long, short = 'r')]
    repo: Option<String>,
    /// Only Applications on this cluster, by name or URL.
    #[arg(long, short = 'c')]
    cluster: Option<String>,
    /// Only Applications with this path in their repository.
    #[arg(long, short = 'P')]
    path: Option<String>,
    /// Only Applications in this namespace [default: the control plane's, and those that its settings name].
    #[arg(long, short = 'N')]
    app_namespace: Option<String>,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
    /// Keep running and show changes.
    #[arg(long, short = 'w')]
    watch: bool,
}

const HEADER: [&str; 12] = [
    "NAME",
    "CLUSTER",
    "NAMESPACE",
    "PROJECT",
    "STATUS",
    "HEALTH",
    "SYNCPOLICY",
    "CONDITIONS",
    "REPO",
    "PATH",
    "TARGET",
    "DRIFT",
];

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.watch && args.output != Format::Wide {
        return Err(CommandError::refused_flag(
            "--watch",
            "it works only with the table; leave out --output",
        ));
    }
    let client = context.client().await?;
    if args.watch {
        return watch(context, &client, args).await;
    }
    match args.output {
        Format::Wide => context.out.table(&HEADER, &rows(context, &client, args).await?),
        Format::Name => {
            for (application, _) in applications(context, &client, args, Depth::Columns).await? {
                context.out.print(&describe::qualified(&application));
            }
        }
        Format::Json | Format::Yaml => {
            let found = applications(context, &client, args, Depth::Whole).await?;
            let all = found.iter().map(|(_, object)| describe::readable(object)).collect();
            context.out.object(args.output, &Value::Array(all))?;
        }
    }
    Ok(ExitCode::Success)
}

/// How much of an Application is read.
#[derive(Clone, Copy)]
enum Depth {
    /// The fields of the table.
    Columns,
    /// All of it.
    Whole,
}

/// The Applications that match, sorted by namespace and name.
async fn applications(
    context: &Context,
    client: &ClusterClient,
    args: &Args,
    depth: Depth,
) -> Result<Vec<(Application, Manifest)>, CommandError> {
    let list = async |namespace: Option<&str>| {
        let selection = Selection {
            namespace: namespace.map(str::to_owned),
            labels: args.selector.clone(),
            fields: None,
        };
        let sketch = ListColumns::application();
        let found = match depth {
            Depth::Columns => sketch.list(client, &selection).await,
            Depth::Whole => client.list(&kinds::application(), &selection).await,
        };
        found.map_err(|error| list_failed(&kinds::application(), error))
    };
    let found = list_in(context, client, args.app_namespace.as_deref(), list).await?;
    let mut read = Vec::with_capacity(found.len());
    for object in found {
        match Application::from_json(object.value()) {
            Ok(application) if is_wanted(&application, args) => read.push((application, object)),
            Ok(_) => {}
            Err(error) => {
                let name = object.name().unwrap_or_default();
                context.out.note(&format!("warning: cannot parse application {name}: {error}"));
            }
        }
    }
    read.sort_by_cached_key(|(application, _)| application.id());
    Ok(read)
}

fn is_wanted(application: &Application, args: &Args) -> bool {
    let sources = || describe::sources(application).into_iter();
    let spec = &application.spec;
    let destination = &spec.destination;
    let same_repo = |one: &str, other: &str| {
        one.trim_end_matches(".git").eq_ignore_ascii_case(other.trim_end_matches(".git"))
    };
    (args.project.is_empty() || args.project.contains(&spec.project))
        && args.repo.as_ref().is_none_or(|repo| sources().any(|source| same_repo(&source.repo_url, repo)))
        && args.path.as_ref().is_none_or(|path| sources().any(|source| source.path == *path))
        && args
            .cluster
            .as_ref()
            .is_none_or(|cluster| destination.server == *cluster || destination.name == *cluster)
}

/// The table: Applications, each with what its report says.
async fn rows(
    context: &Context,
    client: &ClusterClient,
    args: &Args,
) -> Result<Vec<Vec<String>>, CommandError> {
    let home = args.app_namespace.as_deref().unwrap_or_else(|| context.namespace());
    let (applications, at_home) =
        future::join(applications(context, client, args, Depth::Columns), reports(client, Some(home))).await;
    let applications = applications?;
    let is_further = |(application, _): &(Application, Manifest)| application.metadata.namespace != home;
    let reports = if applications.iter().any(is_further) { reports(client, None).await } else { at_home };
    let now = Timestamp::now();
    let row = |(application, _): &(Application, Manifest)| {
        let id = (application.metadata.namespace.clone(), application.metadata.name.clone());
        row(application, reports.get(&id), now)
    };
    Ok(applications.iter().map(row).collect())
}

type Reports = BTreeMap<(String, String), DriftReport>;

/// The reports on the Applications; none in a cluster without plumb's CRDs.
async fn reports(client: &ClusterClient, namespace: Option<&str>) -> Reports {
    let selection = Selection { namespace: namespace.map(str::to_owned), ..Selection::default() };
    let found = ListColumns::drift_report().list(client, &selection).await.unwrap_or_default();
    found
        .iter()
        .filter_map(|object| DriftReport::from_json(object.value()).ok())
        .map(|report| ((report.metadata.namespace.clone(), report.metadata.name.clone()), report))
        .collect()
}

fn row(application: &Application, report: Option<&DriftReport>, now: Timestamp) -> Vec<String> {
    let spec = &application.spec;
    let status = &application.status;
    let or_unknown = |text: &str| if text.is_empty() { "Unknown".to_owned() } else { text.to_owned() };
    let sources = describe::sources(application);
    let first = sources.first();
    vec![
        describe::qualified(application),
        describe::cluster(application).to_owned(),
        spec.destination.namespace.clone(),
        if spec.project.is_empty() { "default".to_owned() } else { spec.project.clone() },
        or_unknown(&status.sync.status),
        or_unknown(&status.health.status),
        describe::policy(application).to_owned(),
        describe::conditions(application),
        first.map(|source| shown_repo_url(&source.repo_url)).unwrap_or_default(),
        first
            .map(|source| if source.chart.is_empty() { &source.path } else { &source.chart })
            .cloned()
            .unwrap_or_default(),
        first.map(|source| source.target_revision.clone()).unwrap_or_default(),
        drift(application, report, now),
    ]
}

/// Drift, since when the app is not healthy, and pauses: `1 drifted: LiveEdit, 3h; Degraded for 21d; paused until …`.
fn drift(application: &Application, report: Option<&DriftReport>, now: Timestamp) -> String {
    let found = report.map(|report| describe::drift(report, now)).filter(|text| !text.is_empty());
    let paused = describe::paused(application, report, now);
    found
        .into_iter()
        .chain(describe::unhealthy_for(application, now))
        .chain(paused)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Shows the table and its changes, until the reader closes its end.
async fn watch(context: &Context, client: &ClusterClient, args: &Args) -> Result<ExitCode, CommandError> {
    let further = match &args.app_namespace {
        Some(_) => Vec::new(),
        None => further_namespaces(context, client).await,
    };
    let home = args.app_namespace.clone().unwrap_or_else(|| context.namespace().to_owned());
    let namespace = further.is_empty().then_some(home);
    let apps = Selection { namespace: namespace.clone(), labels: args.selector.clone(), fields: None };
    let reports = Selection { namespace, ..Selection::default() };
    let watched = [(kinds::application(), apps), (kinds::drift_report(), reports)];
    watch::follow(context, client, &watched, &HEADER, async || rows(context, client, args).await).await
}
