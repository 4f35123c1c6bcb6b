//! Rendering the sources of an app from the files of a repository.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use plumb_appset::ClusterRecord;
use plumb_core::app::{App, Source};
use plumb_core::source::SourceFiles;
use plumb_crd::Application;
use plumb_render::{
    AppFacts, ChartRepository, Charts, ClusterFacts, Freshness, LocalFiles, Overrides, RenderRequest,
    RenderSettings, Renderer, SourceType,
};

use super::RepositoryState;
use super::app::{Failure, Rendering};
use super::offline::records;
use super::sets::SetSources;
use crate::edit::file::read_text;
use crate::error::CommandError;
use crate::local::{Checkouts, overrides};
use crate::render_here::RenderArgs;

/// Renders apps.
pub(crate) struct RepositoryRenderer {
    renderer: Renderer,
    charts: Charts,
    /// Working copies of other repositories.
    checkouts: Option<Checkouts>,
    kube_version: String,
    /// Clusters for the generators of sets; `None` if no file names them.
    clusters: Option<Vec<ClusterRecord>>,
}

/// The files of one source.
type Files = (String, Arc<dyn SourceFiles>);

impl RepositoryRenderer {
    /// `repos` are working copies of other repositories: `REPO_URL=PATH`.
    pub(crate) fn new(args: &RenderArgs, repos: &[String], kube_version: &str) -> Result<Self, CommandError> {
        let checkouts = if repos.is_empty() { None } else { Some(Checkouts::parse("--repo", repos)?) };
        Ok(Self {
            renderer: args.renderer()?,
            charts: args.charts()?,
            checkouts,
            kube_version: kube_version.to_owned(),
            clusters: None,
        })
    }

    /// With the clusters of a file, for the generators of sets.
    pub(crate) fn with_clusters(mut self, file: Option<&str>) -> Result<Self, CommandError> {
        self.clusters = file.map(|file| records(&read_text(file)?)).transpose()?;
        Ok(self)
    }

    /// Where the generators of sets look.
    pub(super) fn set_sources<'a>(&'a self, state: &'a RepositoryState) -> SetSources<'a> {
        SetSources { state, checkouts: self.checkouts.as_ref(), clusters: self.clusters.as_deref() }
    }

    /// All sources of an Application; a second time too, if `twice` and a second render can differ.
    pub(super) async fn application(
        &self,
        state: &RepositoryState,
        application: &Application,
        (app, instance): (&App, &str),
        twice: bool,
    ) -> Rendering {
        let facts = AppFacts {
            name: app.id.name.clone(),
            instance: instance.to_owned(),
            project: app.project.clone(),
            namespace: app.destination.namespace.clone().unwrap_or_default(),
        };
        let mut gathered = Vec::with_capacity(app.sources.len());
        for source in &app.sources {
            match self.files(state, source).await {
                Ok(files) => gathered.push(files),
                Err(failure) => return Rendering { failure: Some(failure), ..Rendering::default() },
            }
        }
        let named = app.sources.iter().zip(&gathered);
        let refs: BTreeMap<String, Arc<dyn SourceFiles>> = named
            .filter_map(|(source, (_, files))| Some((source.ref_name.clone()?, Arc::clone(files))))
            .collect();
        let mut rendering = Rendering::default();
        for (index, (source, files)) in app.sources.iter().zip(gathered).enumerate() {
            let is_only_named = source.path.is_none() && source.chart.is_none() && source.ref_name.is_some();
            if !is_only_named {
                let own = Some(overrides(application, app, index));
                let request = self.request((source, index), files, (refs.clone(), own), facts.clone());
                self.add(request, twice, &mut rendering).await;
            }
        }
        rendering
    }

    /// A directory without an Application.
    pub(super) async fn directory(
        &self,
        state: &RepositoryState,
        source: &Source,
        name: &str,
        twice: bool,
    ) -> Rendering {
        let facts = AppFacts { name: name.to_owned(), instance: name.to_owned(), ..AppFacts::default() };
        let files = (state.revision.clone(), Arc::clone(&state.files));
        let mut rendering = Rendering::default();
        let request = self.request((source, 0), files, (BTreeMap::new(), None), facts);
        self.add(request, twice, &mut rendering).await;
        rendering
    }

    fn request(
        &self,
        (source, index): (&Source, usize),
        (revision, files): Files,
        (refs, overrides): (BTreeMap<String, Arc<dyn SourceFiles>>, Option<Overrides>),
        app: AppFacts,
    ) -> RenderRequest {
        RenderRequest {
            source: source.clone(),
            index,
            files,
            revision,
            refs,
            chart_dependencies: BTreeMap::new(),
            overrides,
            app,
            cluster: ClusterFacts { kube_version: Some(self.kube_version.clone()), api_versions: [].into() },
            settings: Arc::new(RenderSettings::default()),
        }
    }

    /// Adds the documents of one source, or the reason why there are none.
    async fn add(&self, mut request: RenderRequest, twice: bool, rendering: &mut Rendering) {
        if let Err(message) = self.fetch_dependencies(&mut request).await {
            rendering.failure.get_or_insert(Failure::Broken(message));
            return;
        }
        let rendered = match self.renderer.render(&request, Freshness::Cached) {
            Ok(rendered) => rendered,
            Err(error) => {
                rendering.failure.get_or_insert(Failure::Broken(error.full_message()));
                return;
            }
        };
        if twice {
            let is_plain = rendered.source_type == SourceType::Directory;
            // On another day, dates differ too.
            let mut renders = [Freshness::AnotherDay, Freshness::Fresh].into_iter().filter(|_| !is_plain);
            let again = renders.find_map(|freshness| self.renderer.render(&request, freshness).ok());
            let again = again.map_or_else(|| rendered.manifests.clone(), |again| again.manifests);
            rendering.second.get_or_insert_default().extend(again);
        }
        rendering.first.extend(rendered.manifests);
    }

    /// The revision and the files of a source. A path that the repository has is taken to be its own, whatever the URL
    /// says: a fork or a mirror has another one.
    async fn files(&self, state: &RepositoryState, source: &Source) -> Result<Files, Failure> {
        if let Some(chart) = source.chart.as_ref().filter(|chart| !chart.is_empty()) {
            let version = source.target_revision.as_deref().unwrap_or("*");
            let fetched =
                self.charts.fetch(&repository(&source.repo_url), chart, version, Instant::now()).await;
            let fetched = fetched
                .map_err(|error| Failure::Broken(format!("cannot fetch chart {chart} {version}: {error}")))?;
            return Ok((fetched.version, fetched.files));
        }
        if !state.is_named(&source.repo_url) {
            if let Some(Ok(directory)) = self.checkouts.as_ref().map(|checkouts| checkouts.of(source)) {
                let revision = plumb_git::checked_out(directory).unwrap_or_default();
                return Ok((revision, Arc::new(LocalFiles::new(directory))));
            }
            let is_here = source.path.as_deref().is_some_and(|path| state.has_directory(path));
            if !is_here {
                return Err(Failure::Elsewhere(source.repo_url.clone()));
            }
        }
        Ok((state.revision.clone(), Arc::clone(&state.files)))
    }

    async fn fetch_dependencies(&self, request: &mut RenderRequest) -> Result<(), String> {
        let missing = self.renderer.missing_dependencies(request).map_err(|error| error.full_message())?;
        for dependency in missing.into_iter().filter(|dependency| !dependency.is_local()) {
            let repository = repository(&dependency.repository);
            let chart = self
                .charts
                .fetch(&repository, &dependency.name, &dependency.version, Instant::now())
                .await
                .map_err(|error| format!("cannot fetch chart dependency {}: {error}", dependency.name))?;
            request.chart_dependencies.insert(dependency, chart.files);
        }
        Ok(())
    }
}

/// A repository without credentials.
fn repository(url: &str) -> ChartRepository {
    ChartRepository { url: url.to_owned(), ..ChartRepository::default() }
}
