//! Single questions about repositories and charts, for users who look at them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use plumb_core::app::{App, Source};
use plumb_core::project::Project;
use plumb_core::source::SourceFiles;
use plumb_crd::Application;
use plumb_crd::settings::{Repository, RepositoryKind};
use plumb_git::{CommitDetails, Mirror, RepoAccess, RepoUrl, RevisionSpec};
use plumb_render::{ChartError, ChartRepository, ClusterFacts, Freshness, MemoryFiles, RenderRequest};

use super::error::SourceError;
use super::gather::{Sources, app_facts, overrides};
use super::resolve::{Access, chart_address};
use crate::apps::context::AppContext;
use crate::config::settings::Settings;

/// A chart that no repository has: its index is read to find that out.
const NO_CHART: &str = "plumb-connection-test";

impl Sources {
    /// What the commit of a revision says about itself.
    pub(crate) async fn commit_details(
        &self,
        context: &AppContext,
        source: &Source,
        revision: &str,
    ) -> Result<CommitDetails, SourceError> {
        Access::of(context).admit(&source.repo_url)?;
        let url = RepoUrl::parse(&source.repo_url)?;
        let policy = context.settings.addresses(&self.addresses, context.project.name());
        let access = RepoAccess { policy, ..context.access(&source.repo_url) };
        let spec = RevisionSpec::new(revision).or_on(source.target_revision.as_deref());
        let (mirror, commit) = self.mirrors.resolve_since(&url, &access, &spec, Instant::now()).await?;
        mirror.details(&commit).ok_or_else(|| SourceError::NotAllowed(format!("cannot read commit {commit}")))
    }

    /// The files of a version of a chart; `None` if the source is no chart.
    pub(crate) async fn chart_files(
        &self,
        context: &AppContext,
        source: &Source,
        version: &str,
    ) -> Result<Option<Arc<MemoryFiles>>, SourceError> {
        let Some((url, name)) = chart_address(source) else { return Ok(None) };
        Access::of(context).admit(&source.repo_url)?;
        let project = context.project.name();
        let policy = context.settings.addresses(&self.addresses, project);
        let repository = ChartRepository { policy, ..context.settings.chart_repository(&url, project) };
        let chart = self.fetch_chart(&repository, &name, version, Freshness::Cached, Instant::now()).await?;
        Ok(Some(chart.files))
    }

    /// The branches and tags of a repository, which is asked again.
    pub(crate) async fn mirror_of(
        &self,
        settings: &Arc<Settings>,
        project: Option<&Arc<Project>>,
        repo_url: &str,
    ) -> Result<Mirror, SourceError> {
        let name = project.map_or("", |project| project.name());
        let url = RepoUrl::parse(repo_url)?;
        let policy = settings.addresses(&self.addresses, name);
        let access = RepoAccess { policy, ..settings.access(repo_url, name) };
        Ok(self.mirrors.fetch_since(&url, &access, Instant::now()).await?.mirror)
    }

    /// Fails if a repository, which need not be registered yet, cannot be reached.
    pub(crate) async fn check_repository(
        &self,
        settings: &Settings,
        repository: Repository,
    ) -> Result<(), SourceError> {
        let repository = settings.complete(repository);
        let scope = repository.project.clone().unwrap_or_default();
        let policy = settings.addresses(&self.addresses, &scope);
        match repository.kind {
            RepositoryKind::Git => {
                let url = RepoUrl::parse(&repository.url)?;
                let access = RepoAccess { policy, ..settings.access_as(&repository.url, Some(&repository)) };
                self.mirrors.fetch_since(&url, &access, Instant::now()).await?;
                Ok(())
            }
            RepositoryKind::Helm { oci: false } => {
                let known = settings.chart_repository_as(&repository.url, Some(&repository));
                let charts = ChartRepository { policy, ..known };
                match self.charts.fetch(&charts, NO_CHART, "*", Instant::now()).await {
                    Ok(_) => Ok(()),
                    Err(error) if matches!(*error, ChartError::NotFound { .. }) => Ok(()),
                    Err(error) => Err(SourceError::Chart(error)),
                }
            }
            // A registry lists no charts: the first pull tells.
            RepositoryKind::Helm { oci: true } | RepositoryKind::Oci => Ok(()),
        }
    }

    /// Renders files in place of the app's only source. Returns the objects as JSON.
    pub(crate) async fn render_files(
        &self,
        application: &Application,
        app: &App,
        context: &AppContext,
        files: Arc<dyn SourceFiles>,
    ) -> Result<Vec<String>, SourceError> {
        let [source] = app.sources.as_slice() else {
            let message =
                "files can only replace the source of an app that has exactly one source".to_owned();
            return Err(SourceError::References(message));
        };
        let written = application.spec.source.as_deref().cloned().unwrap_or_default();
        let mut request = RenderRequest {
            source: source.clone(),
            index: 0,
            files,
            revision: String::new(),
            refs: BTreeMap::new(),
            chart_dependencies: BTreeMap::new(),
            overrides: Some(overrides(&written, false)),
            app: app_facts(app, context),
            cluster: ClusterFacts {
                kube_version: Some(context.cluster.client.catalog().kube_version()),
                api_versions: context.cluster.api_versions(),
            },
            settings: Arc::clone(&context.settings.render),
        };
        request.chart_dependencies =
            self.dependencies(context, &request, Freshness::Cached, Instant::now()).await?;
        let (output, _turn) = self.render(&app.id, request, Freshness::Fresh).await?;
        let manifests = output.manifests.into_iter().filter(|manifest| !manifest.is_passed_over());
        Ok(manifests.map(|manifest| manifest.value.to_string()).collect())
    }
}
