//! Cases from a cluster: apps are rendered and judged here, as the engine does it, whichever engine runs there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use plumb_core::app::{App, Source};
use plumb_core::desired::{Scope, Scopes};
use plumb_core::fix::FixGoal;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::project::{normalize_repo_url, shown_repo_url};
use plumb_crd::application::ResourceStatus;
use plumb_crd::{Application, to_app};
use plumb_engine::{RenderedApp, Surveyed};
use plumb_kube::{ClusterClient, Selection};

use super::application_files::{ApplicationFiles, Written};
use super::case::{Case, CaseObject, SyncResult};
use super::readers::Reader;
use crate::context::Context;
use crate::error::CommandError;
use crate::facts::{engine_runs, survey_objects};
use crate::kinds;
use crate::local::{Checkouts, LocalSource, RenderFacts};
use crate::render_here::RenderArgs;
use crate::select::app;
use crate::select::namespaces::list_in;

/// So many missing directories are named.
const MOST_DIRECTORIES: usize = 3;

/// Which apps, and where their working copies are.
pub(super) struct Wanted<'args> {
    pub(super) apps: &'args [String],
    pub(super) namespace: Option<&'args str>,
    pub(super) checkouts: &'args Checkouts,
    pub(super) goal: Option<FixGoal>,
    /// The files of the working copies that describe Applications.
    pub(super) files: &'args ApplicationFiles,
}

/// What was found out.
pub(super) struct Found {
    /// One per app whose sources or whose Application are in a working copy.
    pub(super) cases: Vec<Case>,
    /// What all apps of the cluster are rendered from, as far as it is in a working copy.
    pub(super) readers: Vec<Reader>,
    /// Further Applications, which may be rendered from a working copy.
    pub(super) applications: Vec<Application>,
}

/// Judges apps. An app that cannot be rendered is named, and costs the others nothing.
pub(super) async fn cases(
    context: &Context,
    render: &RenderArgs,
    wanted: &Wanted<'_>,
) -> Result<Found, CommandError> {
    let client = context.client_of_all_kinds().await?;
    let (applications, objects) = applications(context, &client, wanted).await?;
    let all: Vec<Application> =
        objects.iter().filter_map(|object| Application::from_json(object.value()).ok()).collect();
    let has_engine = engine_runs(context, &client).await;
    let roots = wanted.checkouts.by_repository(&repositories(all.iter().chain(&applications)));
    let judging = Judging { context, client: &client, wanted, has_engine, roots };
    let mut readers: Vec<Reader> = all.iter().flat_map(|application| judging.readers(application)).collect();
    let is_in_no_file =
        |application: &Application| wanted.files.of(&application.id(), &Written::of(application)).is_err();
    let (mut prepared, mut away) = (Vec::new(), Vec::new());
    for application in &applications {
        match judging.prepare(application) {
            // Of a chart that is elsewhere, rules in the Application are what can be changed.
            Ok((_, sources)) if sources.is_empty() && is_in_no_file(application) => {
                away.push(application);
            }
            Ok((app, sources)) => prepared.push((application, app, sources)),
            Err(error) => judging.left_out(application, error)?,
        }
    }
    note_away(&judging, &away, prepared.is_empty())?;
    let clones = wanted.checkouts.clones(&repositories(applications.iter()));
    let ids = prepared.iter().map(|(application, ..)| application.id()).collect();
    let mut surveyed = survey_objects(context, render, (ids, clones), &objects).await?;
    let mut cases = Vec::new();
    for (application, app, sources) in prepared {
        let id = application.id();
        match surveyed.remove(&id) {
            Some(Ok(surveyed)) => {
                // Settings are those of the control plane; only apps of this cluster are judged.
                if let Some(facts) = surveyed.rendered.as_ref().map(render_facts) {
                    for reader in &mut readers {
                        reader.source.facts = facts.clone();
                    }
                }
                cases.extend(judging.case(application, &app, sources, surveyed));
            }
            Some(Err(error)) => {
                let error = CommandError::because(format!("render and compare {id}"), error)
                    .hint("repositories are read from this machine, with their registered credentials");
                judging.left_out(application, error)?;
            }
            None => {}
        }
    }
    Ok(Found { cases, readers, applications: Vec::new() })
}

/// Names the repositories without a working copy, and directories that a working copy lacks. Where nothing is left, a wrong
/// directory must not look like a cluster without differences.
fn note_away(
    judging: &Judging<'_>,
    away: &[&Application],
    is_nothing_left: bool,
) -> Result<(), CommandError> {
    let (mut urls, mut lacking, mut n_apps, mut n_red) = (BTreeSet::new(), BTreeSet::new(), 0, 0);
    for application in away {
        let sources = to_app(application).map(|app| app.sources).unwrap_or_default();
        let in_git: Vec<&Source> = sources.iter().filter(|source| is_in_git(source)).collect();
        n_apps += usize::from(!in_git.is_empty());
        n_red += usize::from(!in_git.is_empty() && application.status.sync.status == "OutOfSync");
        for source in in_git {
            match judging.root_of(source) {
                Some(root) => {
                    let path = source.path.as_deref().unwrap_or(".");
                    lacking.insert(format!("{} has no directory {path}", root.display()));
                }
                None => {
                    urls.insert(shown_repo_url(&source.repo_url));
                }
            }
        }
    }
    if n_apps == 0 {
        return Ok(());
    }
    let apps = if n_apps == 1 { "1 app is".to_owned() } else { format!("{n_apps} apps are") };
    let urls: Vec<String> = urls.into_iter().collect();
    let lacks_copy = (!urls.is_empty()).then(|| format!("there is no working copy of {}", urls.join(", ")));
    let n_more = lacking.len().saturating_sub(MOST_DIRECTORIES);
    let more = (n_more > 0).then(|| format!("and {n_more} more"));
    let reasons: Vec<String> =
        lacks_copy.into_iter().chain(lacking.into_iter().take(MOST_DIRECTORIES)).chain(more).collect();
    let what = format!("{apps} not looked at ({n_red} OutOfSync), because {}", reasons.join("; "));
    if is_nothing_left {
        let hint = if urls.is_empty() {
            "check out the branch that the apps follow, or name another working copy: `--repo REPO_URL=PATH`"
        } else {
            "run it in a working copy, or name one: `--repo REPO_URL=PATH`"
        };
        return Err(CommandError::new(format!("cannot change Git: {what}")).hint(hint));
    }
    judging.context.out.note(&format!("note: {what}; `--repo REPO_URL=PATH` names one"));
    Ok(())
}

/// What an app was rendered with, beside its sources.
fn render_facts(rendered: &RenderedApp) -> RenderFacts {
    RenderFacts { cluster: rendered.cluster().clone(), settings: Arc::clone(rendered.settings()) }
}

/// The normalized URLs of all Git sources.
fn repositories<'apps>(applications: impl Iterator<Item = &'apps Application>) -> BTreeSet<String> {
    let apps = applications.filter_map(|application| to_app(application).ok());
    let sources = apps.flat_map(|app| app.sources).filter(|source| source.chart.is_none());
    sources.map(|source| normalize_repo_url(&source.repo_url)).collect()
}

fn is_in_git(source: &Source) -> bool {
    source.path.is_some() && source.chart.is_none()
}

/// The wanted Applications, and all of them as the cluster has them.
async fn applications(
    context: &Context,
    client: &ClusterClient,
    wanted: &Wanted<'_>,
) -> Result<(Vec<Application>, Vec<Manifest>), CommandError> {
    let list = async |namespace: Option<&str>| {
        let selection = Selection { namespace: namespace.map(str::to_owned), ..Selection::default() };
        context.list(client, &kinds::application(), &selection).await
    };
    let found = list_in(context, client, wanted.namespace, list).await?;
    let read = |object: &Manifest| Application::from_json(object.value()).ok();
    let mut applications: Vec<Application> = found.iter().filter_map(read).collect();
    applications.sort_by_cached_key(Application::id);
    if wanted.apps.is_empty() {
        return Ok((applications, found));
    }
    let mut named = Vec::with_capacity(wanted.apps.len());
    for name in wanted.apps {
        let target = app::target(context, name, wanted.namespace);
        // For its error: it names apps of the same name in other namespaces.
        named.push(app::read(context, client, &target).await?);
    }
    Ok((named, found))
}

/// An app, and its sources that have a working copy, by their place in the Application.
type Prepared = (App, BTreeMap<usize, LocalSource>);

struct Judging<'run> {
    context: &'run Context,
    client: &'run ClusterClient,
    wanted: &'run Wanted<'run>,
    /// Does an engine of plumb run? Then the status is plumb's verdict.
    has_engine: bool,
    /// The working copies, by the normalized URL of their repository.
    roots: BTreeMap<String, PathBuf>,
}

impl Judging<'_> {
    /// An app that cannot be judged. If the user asked for it, there is no answer without it.
    fn left_out(&self, application: &Application, error: CommandError) -> Result<(), CommandError> {
        if !self.wanted.apps.is_empty() {
            return Err(error);
        }
        self.context.out.note(&format!("warning: {}: {}", application.id(), error.message()));
        Ok(())
    }

    /// The app and its sources with a working copy.
    fn prepare(&self, application: &Application) -> Result<Prepared, CommandError> {
        let id = application.id();
        let app = to_app(application).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            CommandError::new(format!("cannot read the Application {id}: {}", problems.join("; ")))
        })?;
        let sources = self.sources(application, &app)?;
        Ok((app, sources))
    }

    /// What an app is rendered from. One that cannot be read is rendered from nothing.
    fn readers(&self, application: &Application) -> Vec<Reader> {
        let Ok((app, sources)) = self.prepare(application) else { return Vec::new() };
        let reader = |source| Reader {
            app: Some(app.id.clone()),
            instance: app.id.instance_name(self.context.namespace()),
            namespace: app.destination.namespace.clone(),
            scopes: Scopes::built_in(),
            source,
        };
        sources.into_values().map(reader).collect()
    }

    fn case(
        &self,
        application: &Application,
        app: &App,
        mut sources: BTreeMap<usize, LocalSource>,
        surveyed: Surveyed,
    ) -> Option<Case> {
        let id = application.id();
        let rendered = surveyed.rendered?;
        for source in sources.values_mut() {
            source.facts = render_facts(&rendered);
        }
        let red: BTreeSet<ObjectKey> = application
            .status
            .resources
            .iter()
            .filter(|resource| resource.status == "OutOfSync")
            .map(ResourceStatus::key)
            .collect();
        let results = SyncResult::all(application);
        let objects = surveyed.objects.into_iter().map(|(key, object)| CaseObject {
            findings: object.verdict.findings.to_vec(),
            desired: CaseObject::in_git(rendered.desired(), &key),
            live: object.live.as_deref().cloned(),
            // Where plumb's engine runs, the status is plumb's verdict. What Argo CD would say is not known.
            is_red: (!self.has_engine).then(|| red.contains(&key)),
            last_sync: results.get(&key).cloned(),
        });
        let by_engine = if self.has_engine { FixGoal::Plumb } else { FixGoal::ArgoCd };
        Some(Case {
            objects: objects.collect(),
            instance: id.instance_name(self.context.namespace()),
            namespace: app.destination.namespace.clone(),
            scopes: scopes(&rendered),
            sources,
            goal: self.wanted.goal.unwrap_or(by_engine),
            written: Written::of(application),
            id,
        })
    }

    fn root_of(&self, source: &Source) -> Option<&PathBuf> {
        self.roots.get(&normalize_repo_url(&source.repo_url))
    }

    /// The sources that have a working copy.
    fn sources(
        &self,
        application: &Application,
        app: &App,
    ) -> Result<BTreeMap<usize, LocalSource>, CommandError> {
        let mut sources = BTreeMap::new();
        for (index, source) in app.sources.iter().enumerate().filter(|(_, source)| is_in_git(source)) {
            // A repository without a working copy is not an error: its changes become instructions.
            let Some(root) = self.root_of(source) else { continue };
            let root = root
                .canonicalize()
                .map_err(|error| CommandError::because(format!("open {}", root.display()), error))?;
            let path = source.path.as_deref().unwrap_or(".");
            if !root.join(path).is_dir() {
                continue;
            }
            let facts = RenderFacts::of_version(&self.client.catalog().kube_version());
            let namespace = self.context.namespace();
            let root_of = |other: &Source| self.root_of(other)?.canonicalize().ok();
            let local =
                LocalSource::of_app(&root, application, app, (index, source), namespace, &facts, &root_of);
            sources.insert(index, local);
        }
        Ok(sources)
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
