//! One directory as an app.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use plumb_core::app::{App, AppId, DirectoryOptions, Source, SourceTool};
use plumb_core::desired::{DesiredSet, Scopes};
use plumb_core::drift::{Finding, Verdict};
use plumb_core::dump::{DumpedApp, LiveDump, judge_all, likely_namespace, tracking_app};
use plumb_core::ignore::IgnoreRules;
use plumb_core::object::ObjectKey;
use plumb_core::schema::SchemaSet;
use plumb_core::source::RepoPath;
use plumb_crd::settings::Settings;
use plumb_crd::{Application, source_with_overrides, to_app, written_sources};
use plumb_render::{AppFacts, Freshness, Overrides, Rendered, SourceType};

use super::renderer::marked_set;
use super::{LocalRenderer, LocalSource, RenderFacts};
use crate::context::Context;
use crate::error::CommandError;
use crate::render_here::checkout;

/// Version of Kubernetes for charts, as for `plumb render`.
const KUBE_VERSION: &str = "1.36.0";

/// What a dump says.
#[derive(Clone, Copy)]
pub(super) struct Dumped<'dump> {
    /// The objects of the cluster.
    pub(super) live: &'dump LiveDump,
    /// The Applications among them.
    pub(super) applications: &'dump [Application],
    /// Those of the control plane.
    pub(super) settings: &'dump Settings,
}

/// A directory of a working copy, rendered.
pub(crate) struct LocalApp {
    /// The Application, or the name of the directory.
    pub(crate) id: AppId,
    /// The Application, if the dump has it.
    pub(crate) application: Option<Application>,
    /// The directory.
    pub(crate) source: LocalSource,
    /// Its name in tracking marks; `None` if no app tracks the objects.
    pub(crate) instance: Option<String>,
    /// Namespace of objects that name none.
    pub(crate) namespace: Option<String>,
    /// Where the kinds of the cluster live.
    pub(crate) scopes: Scopes,
    /// What it asks for.
    pub(crate) desired: DesiredSet,
    /// The same, rendered once more, if a second render can differ.
    second: Option<DesiredSet>,
    /// One per object, once it was judged.
    pub(crate) verdicts: BTreeMap<ObjectKey, Verdict>,
}

impl LocalApp {
    /// Renders a directory, and finds out whose it is: the one Application with this path, else the one whose tracking
    /// marks most of its objects have in the cluster.
    pub(super) fn render(
        context: &Context,
        renderer: &LocalRenderer,
        directory: &Path,
        dumped: Dumped<'_>,
        namespace: Option<&str>,
    ) -> Result<Self, CommandError> {
        let Dumped { live, applications, settings } = dumped;
        let tracking = &settings.tracking;
        let (root, path) = checkout(directory, None)?;
        let name = root.join(&path).file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| "app".to_owned());
        let mut source = LocalSource::of_directory(root, &path, &name);
        let scopes = Scopes::built_in().with_crds(live.values());
        let mut output = renderer.render(&source, BTreeMap::new(), Freshness::Cached)?;
        let bare = marked_set(&output, (&name, tracking), None, &scopes);
        let likely = namespace.map(str::to_owned).or_else(|| likely_namespace(&bare, live));
        let by_path = only_with_path(applications, &path);
        let instance = if let Some(application) = by_path {
            Some(application.id().instance_name(context.namespace()))
        } else {
            let placed = marked_set(&output, (&name, tracking), likely.as_deref(), &scopes);
            tracking_app(&placed, live, tracking)
        };
        let of_app = |application: &&Application| match &instance {
            Some(instance) => application.id().instance_name(context.namespace()) == *instance,
            None => application.metadata.name == name,
        };
        let application = by_path.or_else(|| applications.iter().find(of_app)).cloned();
        let app = application.as_ref().and_then(|application| to_app(application).ok());
        if let (Some(application), Some(app)) = (&application, &app) {
            source.take_options(application, app, context.namespace());
            output = renderer.render(&source, BTreeMap::new(), Freshness::Cached)?;
        }
        let of_app = app.as_ref().and_then(|app| app.destination.namespace.clone());
        let namespace = namespace.map(str::to_owned).or(of_app).or(likely);
        let in_marks = instance.clone().unwrap_or_else(|| source.app.instance.clone());
        let build =
            |output: &Rendered| marked_set(output, (&in_marks, tracking), namespace.as_deref(), &scopes);
        let second = if output.source_type == SourceType::Directory {
            None
        } else {
            Some(build(&renderer.render(&source, BTreeMap::new(), Freshness::Fresh)?))
        };
        let own = AppId { namespace: context.namespace().to_owned(), name: instance.clone().unwrap_or(name) };
        Ok(Self {
            id: application.as_ref().map_or(own, Application::id),
            desired: build(&output),
            application,
            source,
            instance,
            namespace,
            scopes,
            second,
            verdicts: BTreeMap::new(),
        })
    }

    /// A verdict per object, beside what the other apps ask for.
    pub(super) fn judge(
        &self,
        (all, recorded_of_others): (&[Self], &[(String, BTreeSet<ObjectKey>)]),
        dumped: Dumped<'_>,
        schemas: &SchemaSet,
        now: Timestamp,
    ) -> BTreeMap<ObjectKey, Verdict> {
        let app = self.application.as_ref().and_then(|application| to_app(application).ok());
        let ignored = app.as_ref().map(|app| app.ignore_differences.clone()).unwrap_or_default();
        let (rules, _) = IgnoreRules::compile_all([ignored, dumped.settings.ignore_rules()]);
        let recorded = self.application.as_ref().map(Application::recorded_objects);
        let others: Vec<(&str, &DesiredSet)> =
            all.iter().filter_map(|other| Some((other.instance.as_deref()?, &other.desired))).collect();
        judge_all(&DumpedApp {
            instance: self.instance.as_deref(),
            desired: &self.desired,
            others: &others,
            recorded_of_others,
            live: dumped.live,
            schemas,
            tracking: &dumped.settings.tracking,
            rules: &rules,
            options: app.map(|app| app.compare_options).unwrap_or_default(),
            recorded: recorded.as_ref(),
            second: self.second.as_ref(),
            now,
        })
    }

    /// Every difference.
    pub(crate) fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.verdicts.values().flat_map(|verdict| verdict.findings.iter())
    }

    /// The objects that the status of the Application shows as `OutOfSync`; `None` if it is not known.
    pub(crate) fn red(&self) -> Option<BTreeSet<ObjectKey>> {
        let resources = &self.application.as_ref()?.status.resources;
        let red = resources.iter().filter(|resource| resource.status == "OutOfSync");
        Some(red.map(plumb_crd::application::ResourceStatus::key).collect())
    }
}

impl LocalSource {
    /// A directory of which no Application is known yet.
    fn of_directory(root: PathBuf, path: &str, name: &str) -> Self {
        Self {
            source: Source {
                path: Some(path.to_owned()),
                tool: plain(&root.join(path)),
                ..Source::default()
            },
            root,
            index: 0,
            overrides: None,
            app: AppFacts { name: name.to_owned(), instance: name.to_owned(), ..AppFacts::default() },
            facts: RenderFacts::of_version(KUBE_VERSION),
            refs: BTreeMap::new(),
        }
    }

    /// A source of an Application, in a working copy of its repository. `root_of` finds those of the other sources.
    pub(crate) fn of_app(
        root: &Path,
        application: &Application,
        app: &App,
        (index, source): (usize, &Source),
        control_plane: &str,
        facts: &RenderFacts,
        root_of: &dyn Fn(&Source) -> Option<PathBuf>,
    ) -> Self {
        let named = app.sources.iter().filter_map(|other| Some((other.ref_name.clone()?, root_of(other)?)));
        Self {
            refs: named.collect(),
            root: root.to_owned(),
            source: source.clone(),
            index,
            overrides: Some(overrides(application, app, index)),
            app: AppFacts {
                name: app.id.name.clone(),
                instance: app.id.instance_name(control_plane),
                project: app.project.clone(),
                namespace: app.destination.namespace.clone().unwrap_or_default(),
            },
            facts: facts.clone(),
        }
    }

    /// Takes over what the Application says about the tool. Of several sources, it is the one with this path.
    fn take_options(&mut self, application: &Application, app: &App, control_plane: &str) {
        let is_here = |source: &Source| source.path == self.source.path || app.sources.len() == 1;
        let Some(index) = app.sources.iter().position(is_here) else { return };
        let Some(source) = app.sources.get(index) else { return };
        self.source = Source { path: self.source.path.clone(), ..source.clone() };
        self.index = index;
        self.overrides = Some(overrides(application, app, index));
        self.app = AppFacts {
            name: app.id.name.clone(),
            instance: app.id.instance_name(control_plane),
            project: app.project.clone(),
            namespace: app.destination.namespace.clone().unwrap_or_default(),
        };
    }
}

/// The one Application that is rendered from this path of a repository.
fn only_with_path<'apps>(applications: &'apps [Application], path: &str) -> Option<&'apps Application> {
    let place = RepoPath::parse(path).ok()?;
    let has_path = |application: &&Application| {
        let sources = to_app(application).map(|app| app.sources).unwrap_or_default();
        let mut paths = sources.iter().filter_map(|source| source.path.as_deref());
        paths.any(|path| RepoPath::parse(path).is_ok_and(|path| path == place))
    };
    let mut found = applications.iter().filter(has_path);
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Options of a source that its own files set.
pub(crate) fn overrides(application: &Application, app: &App, index: usize) -> Overrides {
    let own = written_sources(&application.spec).get(index).cloned().unwrap_or_default();
    let multi = app.multi_source;
    Arc::new(move |patches| {
        source_with_overrides(&own, patches, multi)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    })
}

/// Plain manifests are read from all folders below; what a chart or an overlay reads, its tool decides.
fn plain(directory: &Path) -> Option<SourceTool> {
    let of_tools = ["Chart.yaml", "kustomization.yaml", "kustomization.yml", "Kustomization"];
    let is_plain = !of_tools.iter().any(|name| directory.join(name).is_file());
    let options = DirectoryOptions { recurse: true, ..DirectoryOptions::default() };
    is_plain.then_some(SourceTool::Directory(options))
}
