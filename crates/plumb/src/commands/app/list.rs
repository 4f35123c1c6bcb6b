//! `plumb app list`

use std::collections::{BTreeMap, BTreeSet};

use futures::future;
use jiff::Timestamp;
use plumb_core::glob::Glob;
use plumb_core::object::Manifest;
use plumb_crd::{Application, DriftReport};
use plumb_kube::{ClusterClient, ObjectEvent, Selection};
use serde_json::Value;

use super::describe;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::output::{Format, LiveTable};

/// List Applications, with what is wrong with each and for how long.
///
/// The last column is plumb's own: how many differences count, the class that asks for attention first, and
/// since when.
///
/// Example: `plumb app list --project payments -o name`
#[derive(Debug, clap::Args)]
#[command(visible_alias = "ls")]
pub(crate) struct Args {
    /// Only those with these labels, such as `team=payments,tier!=dev`.
    #[arg(long, short = 'l')]
    selector: Option<String>,
    /// Only those of these projects.
    #[arg(long, short = 'p', add = crate::commands::completion::projects())]
    project: Vec<String>,
    /// Only those of this repository.
    #[arg(long, short = 'r')]
    repo: Option<String>,
    /// Only those on this cluster, by name or address.
    #[arg(long, short = 'c')]
    cluster: Option<String>,
    /// Only those of this path in their repository.
    #[arg(long, short = 'P')]
    path: Option<String>,
    /// Only those in this namespace [default: the control plane's, and those that its settings name].
    #[arg(long, short = 'N')]
    app_namespace: Option<String>,
    /// How to print them.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
    /// Go on and show what changes.
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
    let client = context.client().await?;
    if args.watch {
        return watch(context, &client, args).await;
    }
    // The reports are only for the table; a cluster without plumb's kinds still has Applications.
    let reports = async {
        if args.output != Format::Wide {
            return Vec::new();
        }
        let namespace = args.app_namespace.clone().or_else(|| Some(context.namespace().to_owned()));
        let selection = Selection { namespace, ..Selection::default() };
        client.list(&kinds::drift_report(), &selection).await.unwrap_or_default()
    };
    let (applications, reports) = future::join(applications(context, &client, args), reports).await;
    let applications = applications?;
    match args.output {
        Format::Wide => {
            let reports = by_name(&reports);
            context.out.table(&HEADER, &rows(&applications, &reports));
        }
        Format::Name => {
            for (application, _) in &applications {
                context.out.say(&describe::qualified(application));
            }
        }
        Format::Json | Format::Yaml => {
            let all = applications.iter().map(|(_, object)| describe::readable(object)).collect();
            context.out.object(args.output, &Value::Array(all))?;
        }
    }
    Ok(ExitCode::Success)
}

/// The Applications that are asked for, by namespace and name.
async fn applications(
    context: &Context,
    client: &ClusterClient,
    args: &Args,
) -> Result<Vec<(Application, Manifest)>, CommandError> {
    let gvk = kinds::application();
    let within = |namespace: Option<&str>| Selection {
        namespace: namespace.map(str::to_owned),
        labels: args.selector.clone(),
        fields: None,
    };
    let found = if let Some(namespace) = &args.app_namespace {
        context.list(client, &gvk, &within(Some(namespace))).await?
    } else {
        let (home, further) = future::join(
            context.list(client, &gvk, &within(Some(context.namespace()))),
            further_namespaces(context, client),
        )
        .await;
        let mut found = home?;
        if !further.is_empty() {
            let everywhere = context.list(client, &gvk, &within(None)).await?;
            found.extend(everywhere.into_iter().filter(|app| {
                let namespace = app.namespace().unwrap_or_default();
                namespace != context.namespace() && further.iter().any(|glob| glob.matches(namespace))
            }));
        }
        found
    };
    let mut read = Vec::with_capacity(found.len());
    for object in found {
        match Application::from_json(object.value()) {
            Ok(application) if is_wanted(&application, args) => read.push((application, object)),
            Ok(_) => {}
            Err(error) => {
                let name = object.name().unwrap_or_default();
                context.out.complain(&format!("application {name} cannot be read: {error}"));
            }
        }
    }
    read.sort_by_cached_key(|(application, _)| application.id());
    Ok(read)
}

/// `application.namespaces` of the settings: where else Applications may be. Whoever may not read the settings
/// sees those of the control plane.
async fn further_namespaces(context: &Context, client: &ClusterClient) -> Vec<Glob> {
    let settings =
        client.get_at(&kinds::config_map(), Some(context.namespace()), "argocd-cmd-params-cm").await;
    let settings = settings.ok().flatten();
    let text = settings
        .as_ref()
        .and_then(|settings| settings.value().pointer("/data/application.namespaces")?.as_str())
        .unwrap_or_default();
    text.split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .filter_map(|word| Glob::regex_or_plain(word).ok())
        .collect()
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

type Reports = BTreeMap<(String, String), DriftReport>;

fn by_name(reports: &[Manifest]) -> Reports {
    reports
        .iter()
        .filter_map(|object| DriftReport::from_json(object.value()).ok())
        .map(|report| ((report.metadata.namespace.clone(), report.metadata.name.clone()), report))
        .collect()
}

fn rows(applications: &[(Application, Manifest)], reports: &Reports) -> Vec<Vec<String>> {
    let now = Timestamp::now();
    let row = |(application, _): &(Application, Manifest)| {
        let id = (application.metadata.namespace.clone(), application.metadata.name.clone());
        row(application, reports.get(&id), now)
    };
    applications.iter().map(row).collect()
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
        first.map(|source| source.repo_url.clone()).unwrap_or_default(),
        first
            .map(|source| if source.chart.is_empty() { &source.path } else { &source.chart })
            .cloned()
            .unwrap_or_default(),
        first.map(|source| source.target_revision.clone()).unwrap_or_default(),
        report.map(|report| describe::drift(report, now)).unwrap_or_default(),
    ]
}

/// Shows the table and goes on with what changes, until the reader goes away.
async fn watch(context: &Context, client: &ClusterClient, args: &Args) -> Result<ExitCode, CommandError> {
    if args.output != Format::Wide {
        return Err(CommandError::refused_flag("--watch", "it shows the table; leave out --output"));
    }
    let namespace = args.app_namespace.clone().or_else(|| Some(context.namespace().to_owned()));
    let apps = Selection { namespace: namespace.clone(), labels: args.selector.clone(), fields: None };
    let reports = Selection { namespace, ..Selection::default() };
    let follow = |gvk, selection| {
        client.watch_objects(&gvk, selection).map_err(|error| CommandError::api("watch applications", error))
    };
    let mut apps = follow(kinds::application(), apps)?;
    let mut reports = follow(kinds::drift_report(), reports)?;
    let mut known: BTreeMap<(String, String), (Application, Manifest)> = BTreeMap::new();
    let mut drifts = Reports::new();
    let mut missing: BTreeSet<&str> = BTreeSet::from(["applications", "reports"]);
    let mut table = LiveTable::new(context.out);
    while !context.out.is_reader_gone() {
        let (of_apps, event) = tokio::select! {
            Some(event) = apps.next() => (true, event),
            Some(event) = reports.next() => (false, event),
            else => break,
        };
        match event {
            ObjectEvent::Seen(object) if of_apps => {
                if let Ok(application) = Application::from_json(object.value())
                    && is_wanted(&application, args)
                {
                    let id = (application.metadata.namespace.clone(), application.metadata.name.clone());
                    known.insert(id, (application, object));
                }
            }
            ObjectEvent::Seen(object) => drifts.extend(by_name(&[object])),
            ObjectEvent::Gone { key, .. } => {
                let id = (key.namespace.unwrap_or_default(), key.name);
                if of_apps {
                    known.remove(&id);
                } else {
                    drifts.remove(&id);
                }
            }
            ObjectEvent::Listed => {
                missing.remove(if of_apps { "applications" } else { "reports" });
            }
            ObjectEvent::Trouble(trouble) => {
                context.out.complain(&trouble);
                // A cluster without reports still has Applications.
                missing.remove(if of_apps { "" } else { "reports" });
            }
        }
        if missing.is_empty() {
            let applications: Vec<_> = known.values().cloned().collect();
            table.show(&HEADER, &rows(&applications, &drifts));
        }
    }
    Ok(ExitCode::Success)
}
