//! Cases from a cluster: apps are rendered and judged here, as the engine does it, whichever engine runs there.

use std::collections::{BTreeMap, BTreeSet};

use plumb_core::app::{App, Source};
use plumb_core::desired::{Scope, Scopes};
use plumb_core::fix::FixGoal;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_crd::application::ResourceStatus;
use plumb_crd::{Application, to_app};
use plumb_engine::{Inspector, RenderedApp};
use plumb_kube::{ClusterClient, Selection};
use plumb_render::AppFacts;

use super::case::{Case, CaseObject};
use crate::context::Context;
use crate::error::CommandError;
use crate::kinds;
use crate::local::{Checkouts, LocalSource, overrides};
use crate::render_here::{self, RenderArgs, RevisionOverride};
use crate::select::app;
use crate::select::namespaces::list_in;

/// Which apps, and where their working copies are.
pub(super) struct Wanted<'args> {
    pub(super) apps: &'args [String],
    pub(super) namespace: Option<&'args str>,
    pub(super) checkouts: &'args Checkouts,
    pub(super) goal: Option<FixGoal>,
}

/// One case per app with a source that has a working copy. An app that cannot be rendered is named, and costs the others
/// nothing.
pub(super) async fn cases(
    context: &Context,
    render: &RenderArgs,
    wanted: &Wanted<'_>,
) -> Result<Vec<Case>, CommandError> {
    let client = context.client_of_all_kinds().await?;
    let applications = applications(context, &client, wanted).await?;
    let inspector = render.open(context).await?;
    let mut cases = Vec::new();
    for application in &applications {
        let id = application.id();
        let judging = Judging { context, client: &client, inspector: &inspector, wanted };
        match judging.case(application).await {
            Ok(Some(case)) => cases.push(case),
            Ok(None) => {}
            // The user asked for these apps, and gets no answer for one of them.
            Err(error) if !wanted.apps.is_empty() => return Err(error),
            Err(error) => context.out.note(&format!("warning: {id}: {}", error.message())),
        }
    }
    Ok(cases)
}

async fn applications(
    context: &Context,
    client: &ClusterClient,
    wanted: &Wanted<'_>,
) -> Result<Vec<Application>, CommandError> {
    if !wanted.apps.is_empty() {
        let mut named = Vec::with_capacity(wanted.apps.len());
        for name in wanted.apps {
            let target = app::target(context, name, wanted.namespace);
            named.push(app::read(context, client, &target).await?);
        }
        return Ok(named);
    }
    let list = async |namespace: Option<&str>| {
        let selection = Selection { namespace: namespace.map(str::to_owned), ..Selection::default() };
        context.list(client, &kinds::application(), &selection).await
    };
    let found = list_in(context, client, wanted.namespace, list).await?;
    let read = |object: &Manifest| Application::from_json(object.value()).ok();
    let mut applications: Vec<Application> = found.iter().filter_map(read).collect();
    applications.sort_by_cached_key(Application::id);
    Ok(applications)
}

struct Judging<'run> {
    context: &'run Context,
    client: &'run ClusterClient,
    inspector: &'run Inspector,
    wanted: &'run Wanted<'run>,
}

impl Judging<'_> {
    /// The case of an app; `None` if none of its sources has a working copy.
    async fn case(&self, application: &Application) -> Result<Option<Case>, CommandError> {
        let id = application.id();
        let app = to_app(application).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            CommandError::new(format!("cannot read the Application {id}: {}", problems.join("; ")))
        })?;
        let sources = self.sources(application, &app)?;
        if sources.is_empty() {
            return Ok(None);
        }
        let rendered = render_here::gather(self.inspector, application, &RevisionOverride::default()).await?;
        let judged = self.inspector.judge(application, &rendered).await;
        let judged = judged.map_err(|error| CommandError::because(format!("compare {id}"), error))?;
        let has_report = self.has_report(application).await?;
        let red: BTreeSet<ObjectKey> = application
            .status
            .resources
            .iter()
            .filter(|resource| resource.status == "OutOfSync")
            .map(ResourceStatus::key)
            .collect();
        let objects = judged.into_iter().map(|(key, object)| CaseObject {
            findings: object.verdict.findings.to_vec(),
            desired: CaseObject::in_git(rendered.desired(), &key),
            live: object.live.as_deref().cloned(),
            // Where plumb's engine runs, the status is plumb's verdict. What Argo CD would say is not known.
            is_red: (!has_report).then(|| red.contains(&key)),
        });
        let by_engine = if has_report { FixGoal::Plumb } else { FixGoal::ArgoCd };
        Ok(Some(Case {
            objects: objects.collect(),
            instance: id.instance_name(self.context.namespace()),
            namespace: app.destination.namespace.clone(),
            scopes: scopes(&rendered),
            sources,
            goal: self.wanted.goal.unwrap_or(by_engine),
            id,
        }))
    }

    /// The sources that have a working copy.
    fn sources(
        &self,
        application: &Application,
        app: &App,
    ) -> Result<BTreeMap<usize, LocalSource>, CommandError> {
        let is_git = |source: &Source| source.path.is_some() && source.chart.is_none();
        let mut sources = BTreeMap::new();
        for (index, source) in app.sources.iter().enumerate().filter(|(_, source)| is_git(source)) {
            // A repository without a working copy is not an error: its changes become instructions.
            let Ok(root) = self.wanted.checkouts.of(source) else { continue };
            let root = root
                .canonicalize()
                .map_err(|error| CommandError::because(format!("open {}", root.display()), error))?;
            let path = source.path.as_deref().unwrap_or(".");
            if !root.join(path).is_dir() {
                continue;
            }
            sources.insert(
                index,
                LocalSource {
                    root,
                    source: source.clone(),
                    index,
                    overrides: Some(overrides(application, app, index)),
                    app: AppFacts {
                        name: app.id.name.clone(),
                        instance: app.id.instance_name(self.context.namespace()),
                        project: app.project.clone(),
                        namespace: app.destination.namespace.clone().unwrap_or_default(),
                    },
                    kube_version: self.client.catalog().kube_version(),
                },
            );
        }
        Ok(sources)
    }

    async fn has_report(&self, application: &Application) -> Result<bool, CommandError> {
        let id = application.id();
        let report = self.client.get_at(&kinds::drift_report(), Some(&id.namespace), &id.name).await;
        match report {
            Ok(report) => Ok(report.is_some()),
            // Without plumb's kinds, no engine of plumb runs here.
            Err(plumb_kube::ApiError::UnknownKind { .. }) => Ok(false),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(CommandError::api(format!("read the drift report of {id}"), error)),
        }
    }
}

/// Where the kinds of an app live, as its cluster knows it.
fn scopes(rendered: &RenderedApp) -> Scopes {
    let keys = rendered.desired().objects.keys();
    let scope = |key: &ObjectKey| if key.namespace.is_some() { Scope::Namespaced } else { Scope::Cluster };
    let mut scopes = Scopes::built_in();
    for key in keys {
        scopes.insert(key.group_kind(), scope(key));
    }
    scopes
}
