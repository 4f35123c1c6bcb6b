//! Reports where they are up to date, a survey for the rest.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _, future, stream};
use jiff::Timestamp;
use plumb_core::app::AppId;
use plumb_core::doctor::{AppFacts, Filter, StatusOf};
use plumb_core::object::Manifest;
use plumb_crd::{Application, DriftReport};
use plumb_kube::{ClusterClient, Selection};

use super::args::JudgeArgs;
use super::engine::{Engine, engine};
use super::reports::{self, from_status, judged};
use super::survey::Survey;
use crate::context::Context;
use crate::error::CommandError;
use crate::kinds;
use crate::render_here::RenderArgs;
use crate::select::namespaces::list_in;

/// So many Applications are read one by one; of more, all are listed.
const MOST_SINGLE_READS: usize = 50;
/// So many reads at a time.
const READS_AT_ONCE: usize = 8;

/// What is known about all apps.
pub(crate) struct Known {
    /// By namespace and name.
    pub(crate) apps: Vec<AppFacts>,
    /// True if the reports of an engine were read.
    pub(crate) has_engine: bool,
}

/// Reads the reports of the engine, or judges here where there is none. Only apps that pass the filter are judged.
pub(crate) async fn known(
    context: &Context,
    (judge, render): (&JudgeArgs, &RenderArgs),
    namespace: Option<&str>,
    filter: &Filter,
    now: Timestamp,
) -> Result<Known, CommandError> {
    let client = context.client().await?;
    let (engine, reports) =
        future::join(engine(context, &client, now), reports::list(context, &client, namespace)).await;
    let reports = reports?;
    let is_up_to_date = match engine {
        Engine::Runs => true,
        Engine::Absent => false,
        // Whoever may read reports and not the lease believes the reports.
        Engine::Unknown => !reports.is_empty(),
    };
    if is_up_to_date && !judge.here {
        return by_reports(context, &client, (judge, render), namespace, &reports, filter, now).await;
    }
    let objects = whole(context, &client, namespace).await?;
    let applications = reports::read(context, &objects);
    let wanted: BTreeSet<AppId> = applications
        .iter()
        .filter(|application| filter.has_app(&from_status(application, now)))
        .map(Application::id)
        .collect();
    let survey = Survey { args: judge, render, objects: &objects, applications: &applications, wanted };
    let mut surveyed = survey.facts(context, now).await?;
    let apps = applications.into_iter().map(|application| {
        let facts = surveyed.remove(&application.id());
        facts.unwrap_or_else(|| from_status(&application, now))
    });
    Ok(Known { apps: apps.collect(), has_engine: false })
}

/// From reports. An app that another controller shows as `OutOfSync` has none, and is judged here.
async fn by_reports(
    context: &Context,
    client: &ClusterClient,
    (judge, render): (&JudgeArgs, &RenderArgs),
    namespace: Option<&str>,
    reports: &BTreeMap<AppId, DriftReport>,
    filter: &Filter,
    now: Timestamp,
) -> Result<Known, CommandError> {
    let mut applications = reports::read(context, &reports::columns(context, client, namespace).await?);
    let is_foreign = |application: &&Application| {
        application.status.sync.status == "OutOfSync"
            && !reports.contains_key(&application.id())
            && filter.has_app(&from_status(application, now))
    };
    let bare: BTreeSet<AppId> = applications
        .iter()
        .filter(|application| needs_status(application, reports))
        .map(Application::id)
        .collect();
    let mut objects = Vec::new();
    // Whoever judges here needs all of them.
    if bare.len() > MOST_SINGLE_READS || applications.iter().any(|application| is_foreign(&application)) {
        objects = whole(context, client, namespace).await?;
        applications = reports::read(context, &objects);
    } else {
        let read = reports::read(context, &singly(client, &bare).await?);
        let mut read: BTreeMap<AppId, Application> =
            read.into_iter().map(|application| (application.id(), application)).collect();
        let take = |application: Application| read.remove(&application.id()).unwrap_or(application);
        applications = applications.into_iter().map(take).collect();
    }
    for report in reports.values() {
        reports::note_omitted(context, report);
    }
    let wanted: BTreeSet<AppId> = applications.iter().filter(is_foreign).map(Application::id).collect();
    let mut surveyed = BTreeMap::new();
    if !wanted.is_empty() {
        let survey = Survey { args: judge, render, objects: &objects, applications: &applications, wanted };
        // The reports are worth showing all the same.
        match survey.facts(context, now).await {
            Ok(facts) => surveyed = facts,
            Err(error) => context.out.note(&format!("warning: {}", error.message())),
        }
    }
    let apps = applications.into_iter().map(|application| {
        let id = application.id();
        match (reports.get(&id), surveyed.remove(&id)) {
            (Some(report), _) => judged(&application, report),
            (None, Some(facts)) => facts,
            (None, None) => AppFacts { status_of: StatusOf::Plumb, ..from_status(&application, now) },
        }
    });
    Ok(Known { apps: apps.collect(), has_engine: true })
}

/// A few Applications, each by its name. One that is gone is left out.
async fn singly(client: &ClusterClient, apps: &BTreeSet<AppId>) -> Result<Vec<Manifest>, CommandError> {
    let kind = kinds::application();
    let reads = apps.iter().map(|app| client.get_at(&kind, Some(&app.namespace), &app.name));
    let read = stream::iter(reads).buffered(READS_AT_ONCE).try_collect::<Vec<_>>().await;
    let read = read.map_err(|error| CommandError::api("read Applications", error))?;
    Ok(read.into_iter().flatten().collect())
}

async fn whole(
    context: &Context,
    client: &ClusterClient,
    namespace: Option<&str>,
) -> Result<Vec<Manifest>, CommandError> {
    let list = async |namespace: Option<&str>| {
        let selection = Selection { namespace: namespace.map(str::to_owned), ..Selection::default() };
        context.list(client, &kinds::application(), &selection).await
    };
    list_in(context, client, namespace, list).await
}

/// Is something wrong with the app that no report explains?
fn needs_status(application: &Application, reports: &BTreeMap<AppId, DriftReport>) -> bool {
    let is_red = application.status.sync.status == "OutOfSync";
    match reports.get(&application.id()) {
        Some(report) => is_red && report.summary.counted == 0,
        None => is_red || reports::is_unhealthy(&application.status.health.status),
    }
}
