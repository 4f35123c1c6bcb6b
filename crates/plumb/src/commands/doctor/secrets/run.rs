//! The Secrets of apps, in the home cluster and in the others. Reads, and changes nothing.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use futures::stream;

use jiff::Timestamp;
use plumb_core::app::{AppId, ClusterRef};
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::secrets::{SecretsOfCluster, SecretsOfClusters};
use plumb_crd::drift_report::PlainSecretObject;
use plumb_crd::{Application, DriftReport};
use plumb_kube::{ClusterClient, Selection};

use super::super::format::DoctorFormat;
use super::gather::{AppObjects, report};
use crate::connect;
use crate::context::{Context, list_failed};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::output::Format;
use crate::secrets::clusters::{Registered, registered};
use crate::select::namespaces::list_in;

/// Clusters are read so many at a time.
const CLUSTERS_AT_A_TIME: usize = 4;

/// Which apps.
pub(in crate::commands::doctor) struct Wanted<'args> {
    pub(in crate::commands::doctor) apps: &'args [String],
    pub(in crate::commands::doctor) projects: &'args [String],
    pub(in crate::commands::doctor) namespace: Option<&'args str>,
}

pub(in crate::commands::doctor) async fn run(
    context: &Context,
    wanted: &Wanted<'_>,
    format: DoctorFormat,
    exit_code: bool,
) -> Result<ExitCode, CommandError> {
    let client = context.client_of_all_kinds().await?;
    let list = async |namespace: Option<&str>| {
        let selection = Selection { namespace: namespace.map(str::to_owned), ..Selection::default() };
        client
            .list(&kinds::application(), &selection)
            .await
            .map_err(|error| list_failed(&kinds::application(), error))
    };
    let objects = list_in(context, &client, wanted.namespace, list).await?;
    let plain = plain_secrets(context, &client, wanted.namespace).await?;
    let (here, mut others) = by_cluster(context, &client, chosen(wanted, &objects, plain)?).await;
    others.retain(|cluster| cluster.apps.iter().any(|app| app.is_wanted));
    let now = Timestamp::now();
    let report = SecretsOfClusters {
        here: report(context, &client, &here, now).await?,
        others: stream::iter(others)
            .map(|cluster| read_cluster(context, cluster, now))
            .buffered(CLUSTERS_AT_A_TIME)
            .collect()
            .await,
    };
    match format {
        DoctorFormat::Text => context.out.print(&report.text()),
        DoctorFormat::Json => context.out.object(Format::Json, &report.data())?,
        DoctorFormat::Yaml => context.out.object(Format::Yaml, &report.data())?,
        DoctorFormat::Sarif | DoctorFormat::Junit | DoctorFormat::Markdown => {
            return Err(CommandError::usage("--secrets has the formats text, json and yaml"));
        }
    }
    Ok(if exit_code && report.is_bad() { ExitCode::No } else { ExitCode::Success })
}

/// All apps, with a note which of them are wanted.
fn chosen<'objects>(
    wanted: &Wanted<'_>,
    objects: &'objects [Manifest],
    mut plain: BTreeMap<AppId, Vec<ObjectKey>>,
) -> Result<Vec<AppObjects<'objects>>, CommandError> {
    let mut apps = Vec::new();
    for object in objects {
        let Ok(application) = Application::from_json(object.value()) else { continue };
        let id = application.id();
        let named = wanted.apps.is_empty()
            || wanted.apps.iter().any(|name| *name == id.name || *name == id.to_string());
        let project = &application.spec.project;
        let is_wanted = named && (wanted.projects.is_empty() || wanted.projects.contains(project));
        let plain = plain.remove(&id).unwrap_or_default();
        apps.push(AppObjects { id, application, object, plain, is_wanted });
    }
    let wants_all = wanted.apps.is_empty() && wanted.projects.is_empty();
    if !wants_all && !apps.iter().any(|app| app.is_wanted) {
        return Err(
            CommandError::new("no app matches").hint("`plumb app list` shows the apps and their projects")
        );
    }
    Ok(apps)
}

/// The Secrets that the engine's reports name as plain.
async fn plain_secrets(
    context: &Context,
    client: &ClusterClient,
    namespace: Option<&str>,
) -> Result<BTreeMap<AppId, Vec<ObjectKey>>, CommandError> {
    let list = async |namespace: Option<&str>| {
        let selection = Selection { namespace: namespace.map(str::to_owned), ..Selection::default() };
        match client.list(&kinds::drift_report(), &selection).await {
            // Without an engine of plumb there are none; and the conditions of the apps say nearly the same.
            Err(error) if error.is_not_found() || error.is_forbidden() => Ok(Vec::new()),
            found => found.map_err(|error| list_failed(&kinds::drift_report(), error)),
        }
    };
    let reports = list_in(context, client, namespace, list).await?;
    let reports = reports.iter().filter_map(|report| DriftReport::from_json(report.value()).ok());
    let secrets = reports.map(|report| {
        let id = AppId { namespace: report.metadata.namespace, name: report.metadata.name };
        (id, report.plain_secrets.iter().map(PlainSecretObject::key).collect())
    });
    Ok(secrets.collect())
}

/// A cluster other than the home cluster, with the apps that deploy to it.
struct OtherCluster<'objects> {
    name: String,
    registered: Result<Registered, String>,
    apps: Vec<AppObjects<'objects>>,
}

/// The apps of the home cluster, and those of each other cluster.
async fn by_cluster<'objects>(
    context: &Context,
    client: &ClusterClient,
    apps: Vec<AppObjects<'objects>>,
) -> (Vec<AppObjects<'objects>>, Vec<OtherCluster<'objects>>) {
    let (mut here, mut elsewhere) = (Vec::new(), BTreeMap::<ClusterRef, Vec<AppObjects<'objects>>>::new());
    for app in apps {
        let destination = &app.application.spec.destination;
        match (destination.server.trim_end_matches('/'), destination.name.as_str()) {
            ("", "" | ClusterRef::IN_CLUSTER_NAME) | (ClusterRef::IN_CLUSTER_SERVER, _) => here.push(app),
            ("", name) => elsewhere.entry(ClusterRef::Name(name.to_owned())).or_default().push(app),
            (server, _) => elsewhere.entry(ClusterRef::Server(server.to_owned())).or_default().push(app),
        }
    }
    if elsewhere.is_empty() {
        return (here, Vec::new());
    }
    let all = registered(context, client).await.map_err(|error| one_line_of(&error));
    let mut others: BTreeMap<String, OtherCluster<'objects>> = BTreeMap::new();
    for (cluster, apps) in elsewhere {
        let (ClusterRef::Name(text) | ClusterRef::Server(text)) = &cluster;
        let found = all.as_ref().map_err(Clone::clone);
        let found = found.and_then(|all| connect::find(all, &cluster).map_err(|error| one_line_of(&error)));
        match found {
            Ok(one) if one.cluster.server == ClusterRef::IN_CLUSTER_SERVER => here.extend(apps),
            // Apps name one cluster by its name or by its address.
            Ok(one) => {
                let new = || OtherCluster {
                    name: one.cluster.name.clone(),
                    registered: Ok(Registered {
                        cluster: one.cluster.clone(),
                        secret: one.secret.clone(),
                        state: None,
                    }),
                    apps: Vec::new(),
                };
                others.entry(one.cluster.server.clone()).or_insert_with(new).apps.extend(apps);
            }
            Err(why) => {
                others.insert(text.clone(), OtherCluster { name: text.clone(), registered: Err(why), apps });
            }
        }
    }
    (here, others.into_values().collect())
}

async fn read_cluster(context: &Context, cluster: OtherCluster<'_>, now: Timestamp) -> SecretsOfCluster {
    let OtherCluster { name, registered, apps } = cluster;
    let server = registered.as_ref().ok().map(|one| one.cluster.server.clone());
    let report = async {
        let client = connect::connect(&registered?).await.map_err(|error| one_line_of(&error))?;
        report(context, &client, &apps, now).await.map_err(|error| one_line_of(&error))
    };
    SecretsOfCluster { report: report.await, name, server }
}

/// The first line of an error: its hints are about this machine.
fn one_line_of(error: &CommandError) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
