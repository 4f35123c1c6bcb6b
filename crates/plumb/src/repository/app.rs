//! One app of a repository, rendered.

use plumb_core::app::App;
use plumb_core::change::{AppState, unstable_fields};
use plumb_core::desired::{
    DesiredContext, DesiredProblem, DesiredSet, KindFilter, RenderedManifest, Scopes, build,
};
use plumb_core::object::ObjectKey;
use plumb_core::tracking::TrackingSettings;
use plumb_crd::Application;

/// The finalizers that delete the objects of an app with it begin like this.
const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

/// One app of a repository, rendered.
pub(crate) struct RepositoryApp {
    /// Its name.
    pub(crate) name: String,
    /// Its file in the repository, or its directory.
    pub(crate) file: String,
    /// The directories of its sources in the repository.
    pub(crate) paths: Vec<String>,
    /// The cluster that it is for.
    pub(crate) destination: String,
    /// What it asks for.
    pub(crate) desired: DesiredSet,
    /// The same, rendered once more, if that was asked for and can differ.
    pub(crate) second: Option<DesiredSet>,
    /// The namespace that its options create.
    pub(crate) creates: Option<ObjectKey>,
    /// Why it could not be rendered.
    pub(crate) failure: Option<Failure>,
    /// There is no Application: nothing says which namespace is meant.
    is_bare: bool,
    prunes: bool,
    cascades: bool,
    instance: String,
    namespace: Option<String>,
    rendered: Vec<RenderedManifest>,
    rendered_again: Option<Vec<RenderedManifest>>,
}

/// Why an app could not be rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Its source is another repository, and no checkout of it was given.
    Elsewhere(String),
    /// A generator of a set asks for what only a cluster or a server knows.
    NeedsCluster(String),
    /// Its source is wrong, or a tool or a server failed.
    Broken(String),
}

/// What the renderer gave for all sources of an app.
#[derive(Default)]
pub(super) struct Rendering {
    pub(super) first: Vec<RenderedManifest>,
    pub(super) second: Option<Vec<RenderedManifest>>,
    pub(super) failure: Option<Failure>,
}

impl RepositoryApp {
    /// An app of an Application. `control_plane` is the namespace of Applications.
    pub(super) fn of_application(
        application: &Application,
        app: &App,
        (file, control_plane): (&str, &str),
        rendering: Rendering,
    ) -> Self {
        let id = &app.id;
        let is_here = id.namespace.is_empty() || id.namespace == control_plane;
        let cluster = &app.destination.cluster;
        Self {
            name: if is_here { id.name.clone() } else { id.to_string() },
            file: file.to_owned(),
            paths: app.sources.iter().filter_map(|source| source.path.clone()).collect(),
            destination: if cluster.is_in_cluster() { String::new() } else { format!("{cluster:?}") },
            prunes: app.sync_policy.automated.as_ref().is_some_and(|automation| automation.prune),
            cascades: application.metadata.finalizers.iter().any(|name| name.starts_with(FINALIZER)),
            instance: if id.namespace.is_empty() { id.name.clone() } else { id.instance_name(control_plane) },
            namespace: app.destination.namespace.clone(),
            creates: app.asked_namespace(),
            ..Self::of_rendering(rendering)
        }
    }

    /// An app of a directory without an Application.
    pub(super) fn of_directory(name: &str, path: &str, rendering: Rendering) -> Self {
        Self {
            name: name.to_owned(),
            file: path.to_owned(),
            paths: vec![path.to_owned()],
            instance: name.to_owned(),
            // Nothing says otherwise, and a warning too many is better than one too few.
            prunes: true,
            is_bare: true,
            ..Self::of_rendering(rendering)
        }
    }

    /// A set whose Applications are not known: it stands for all of them.
    pub(super) fn of_set(name: &str, file: &str, failure: Failure) -> Self {
        let rendering = Rendering { failure: Some(failure), ..Rendering::default() };
        Self {
            name: format!("ApplicationSet {name}"),
            file: file.to_owned(),
            ..Self::of_rendering(rendering)
        }
    }

    fn of_rendering(rendering: Rendering) -> Self {
        Self {
            name: String::new(),
            file: String::new(),
            paths: Vec::new(),
            destination: String::new(),
            desired: DesiredSet::default(),
            second: None,
            creates: None,
            failure: rendering.failure,
            is_bare: false,
            prunes: false,
            cascades: false,
            instance: String::new(),
            namespace: None,
            rendered: rendering.first,
            rendered_again: rendering.second,
        }
    }

    /// Builds the desired sets, once the CRDs of all apps are known.
    pub(super) fn settle(&mut self, scopes: &Scopes) {
        let context = DesiredContext {
            app: &self.instance,
            destination_namespace: self.namespace.as_deref(),
            destination_server: "",
            scopes,
            tracking: &TrackingSettings::default(),
            filter: &KindFilter::default(),
        };
        self.desired = build(self.rendered.clone(), &context);
        if self.is_bare {
            let is_about_namespace =
                |problem: &DesiredProblem| matches!(problem, DesiredProblem::NamespaceMissing { .. });
            self.desired.problems.retain(|problem| !is_about_namespace(problem));
        }
        self.second = self.rendered_again.clone().map(|rendered| build(rendered, &context));
    }

    /// Its documents.
    pub(super) fn rendered(&self) -> &[RenderedManifest] {
        &self.rendered
    }

    /// For the comparison of two states.
    pub(crate) fn state(&self) -> AppState {
        AppState {
            name: self.name.clone(),
            destination: self.destination.clone(),
            prunes: self.prunes,
            cascades: self.cascades,
            desired: self.desired.clone(),
            unstable: self
                .second
                .as_ref()
                .map(|second| unstable_fields(&self.desired, second))
                .unwrap_or_default(),
            is_rendered: self.failure.is_none(),
        }
    }
}
