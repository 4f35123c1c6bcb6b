//! Which commit, or which version of a chart, a source means now, and its files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use plumb_core::app::{CommitId, Source};
use plumb_core::project::{Project, SignatureMode, normalize_repo_url, shown_repo_url};
use plumb_core::source::SourceFiles;
use plumb_crd::application::ApplicationSource;
use plumb_git::{Mirror, RepoUrl, RevisionSpec, SignaturePolicy, SourceTree, Transport};
use plumb_render::{Chart, ChartDependency, ChartRepository, Freshness, MemoryFiles, RenderRequest};

use super::error::SourceError;
use super::gather::Sources;
use crate::apps::context::AppContext;
use crate::config::settings::Settings;
use crate::queue::RefreshDepth;

/// One source and what it means now.
pub(super) struct Resolved {
    pub(super) source: Source,
    /// The same as the Application has it, for overrides.
    pub(super) written: ApplicationSource,
    /// The commit, or the version of the chart.
    pub(super) revision: String,
    place: Place,
}

enum Place {
    Git { mirror: Mirror, commit: CommitId },
    Chart(Arc<MemoryFiles>),
}

impl Resolved {
    /// Only referred to by others: it renders nothing.
    pub(super) fn is_reference(&self) -> bool {
        self.source.path.is_none() && self.source.chart.is_none() && self.source.ref_name.is_some()
    }

    /// The files of its commit without submodules; `None` for a chart.
    pub(super) fn tree(&self) -> Option<SourceTree> {
        match &self.place {
            Place::Git { mirror, commit } => mirror.tree(commit).ok(),
            Place::Chart(_) => None,
        }
    }

    /// The same repository at another commit, as far as it is known.
    pub(super) fn tree_at(&self, revision: &str) -> Option<SourceTree> {
        match &self.place {
            Place::Git { mirror, .. } => mirror.tree(&revision.parse().ok()?).ok(),
            Place::Chart(_) => None,
        }
    }
}

/// What it takes to speak with servers on behalf of an app.
#[derive(Clone)]
pub(super) struct Access {
    project: Arc<Project>,
    settings: Arc<Settings>,
}

impl Access {
    pub(super) fn of(context: &AppContext) -> Self {
        Self { project: Arc::clone(&context.project), settings: Arc::clone(&context.settings) }
    }
}

impl Sources {
    /// The commit, or the version, of each source. `pinned` revisions win over what the sources say.
    pub(super) async fn resolve(
        &self,
        reach: &Access,
        sources: &[(Source, ApplicationSource)],
        pinned: &[String],
        depth: RefreshDepth,
        since: Instant,
    ) -> Result<Vec<Resolved>, SourceError> {
        let mut resolved = Vec::with_capacity(sources.len());
        for (index, (source, written)) in sources.iter().enumerate() {
            if let Some(reason) = reach.settings.broken_repository(&source.repo_url) {
                let repository = shown_repo_url(&source.repo_url);
                return Err(SourceError::NotAllowed(format!("repository {repository}: {reason}")));
            }
            if let Some(reason) = reach.settings.unusable_credentials(&source.repo_url, reach.project.name())
            {
                let repository = shown_repo_url(&source.repo_url);
                return Err(SourceError::NotAllowed(format!("repository {repository}: {reason}")));
            }
            let pinned = pinned.get(index).filter(|revision| !revision.is_empty());
            let (revision, place) = match chart_address(source) {
                Some((url, name)) => {
                    let asked = pinned.or(source.target_revision.as_ref());
                    let version = asked.map_or("*", String::as_str);
                    self.chart(reach, source, (&url, &name, version), depth, since).await?
                }
                None => self.commit(reach, source, pinned, depth, since).await?,
            };
            resolved.push(Resolved { source: source.clone(), written: written.clone(), revision, place });
        }
        check_references(&resolved)?;
        Ok(resolved)
    }

    async fn chart(
        &self,
        reach: &Access,
        source: &Source,
        (url, name, version): (&str, &str, &str),
        depth: RefreshDepth,
        since: Instant,
    ) -> Result<(String, Place), SourceError> {
        let version = if version.is_empty() { "*" } else { version };
        let mut repository = reach.settings.chart_repository(url, reach.project.name());
        if let Some(plumb_core::app::SourceTool::Helm(options)) = &source.tool {
            repository.pass_credentials |= options.pass_credentials;
        }
        let freshness = if depth == RefreshDepth::Hard { Freshness::Renewed } else { Freshness::Cached };
        let chart = self.fetch_chart(&repository, name, version, freshness, since).await?;
        Ok((chart.version, Place::Chart(chart.files)))
    }

    async fn commit(
        &self,
        reach: &Access,
        source: &Source,
        pinned: Option<&String>,
        depth: RefreshDepth,
        since: Instant,
    ) -> Result<(String, Place), SourceError> {
        let url = RepoUrl::parse(&source.repo_url)?;
        let access = reach.settings.access(&source.repo_url, reach.project.name());
        let spec = match pinned {
            Some(revision) => RevisionSpec::new(revision.clone()),
            None => RevisionSpec::of(source),
        };
        // A commit never changes: only names are asked for anew.
        let is_commit = spec.revision.parse::<CommitId>().is_ok();
        if depth >= RefreshDepth::Git && !is_commit {
            self.mirrors.fetch_since(&url, &access, since).await?;
        }
        let (mirror, commit) = self.mirrors.resolve(&url, &access, &spec).await?;
        if let Some(rule) = reach.project.signatures(&source.repo_url) {
            let keys = Arc::clone(&reach.settings.gpg_keys);
            let keyring = self.mirrors.keyring(&keys).await?;
            let policy = SignaturePolicy {
                keys: rule.keys.clone(),
                whole_history: rule.mode == SignatureMode::Strict,
            };
            self.mirrors.check_signatures(&mirror, &access, &spec, &commit, &policy, &keyring).await?;
        }
        Ok((commit.to_string(), Place::Git { mirror, commit }))
    }

    /// The files of a source, with submodules where they are switched on.
    pub(super) async fn files(
        &self,
        context: &AppContext,
        resolved: &Resolved,
    ) -> Result<Arc<dyn SourceFiles>, SourceError> {
        let (mirror, commit) = match &resolved.place {
            Place::Chart(files) => return Ok(Arc::clone(files) as Arc<dyn SourceFiles>),
            Place::Git { mirror, commit } => (mirror, commit),
        };
        if !context.access(&resolved.source.repo_url).submodules {
            let tree = mirror.tree(commit)?;
            return Ok(Arc::new(tree));
        }
        let access = |url: &RepoUrl| {
            permit_submodule(&context.project, &resolved.source.repo_url, url)?;
            Ok(context.access(&url.with_user()))
        };
        let tree = self.mirrors.tree_with_submodules(mirror, commit, &access).await?;
        Ok(Arc::new(tree))
    }

    /// Fetches the charts that a chart depends on and does not bring along, from repositories that the project
    /// permits.
    pub(crate) async fn dependencies(
        &self,
        context: &AppContext,
        request: &RenderRequest,
        freshness: Freshness,
        since: Instant,
    ) -> Result<BTreeMap<ChartDependency, Arc<dyn SourceFiles>>, SourceError> {
        let mut fetched: BTreeMap<ChartDependency, Arc<dyn SourceFiles>> = BTreeMap::new();
        let missing = {
            let (renderer, request) = (Arc::clone(&self.renderer), request.clone());
            tokio::task::spawn_blocking(move || renderer.missing_dependencies(&request))
                .await
                .map_err(|source| SourceError::Aborted { what: "rendering", source })??
        };
        for dependency in missing.into_iter().filter(|dependency| !dependency.is_local()) {
            let project = context.project.name();
            let repository =
                context.settings.dependency_repository(&dependency.repository, project).ok_or_else(|| {
                    SourceError::NotAllowed(format!(
                        "chart dependency `{}`: no Helm repository is registered under the name {}",
                        dependency.name, dependency.repository
                    ))
                })?;
            if !context.project.permits_source(&repository.url) {
                return Err(SourceError::NotAllowed(format!(
                    "chart dependency `{}`: repository {} is not permitted in project '{project}'",
                    dependency.name,
                    shown_repo_url(&repository.url)
                )));
            }
            let (name, version) = (&dependency.name, &dependency.version);
            let chart = self
                .fetch_chart(&repository, name, version, freshness, since)
                .await
                .map_err(|source| SourceError::Dependency { name: name.clone(), source: Box::new(source) })?;
            fetched.insert(dependency, chart.files);
        }
        Ok(fetched)
    }

    async fn fetch_chart(
        &self,
        repository: &ChartRepository,
        name: &str,
        version: &str,
        freshness: Freshness,
        since: Instant,
    ) -> Result<Chart, SourceError> {
        let fetched = match freshness {
            Freshness::Renewed => self.charts.refetch(repository, name, version, since).await,
            Freshness::Cached | Freshness::Fresh | Freshness::AnotherDay => {
                self.charts.fetch(repository, name, version, since).await
            }
        };
        fetched.map_err(SourceError::Chart)
    }
}

/// A submodule is manifests too: what the project does not permit as a source comes in by no other way.
fn permit_submodule(project: &Project, parent: &str, url: &RepoUrl) -> Result<(), String> {
    // Paths are compared in the spelling of the source that has the submodule.
    let is_spelt_as_url = url.transport() == Transport::File && parent.starts_with("file:");
    let scheme = if is_spelt_as_url { "file://" } else { "" };
    if project.permits_source(&format!("{scheme}{}", url.with_user())) {
        return Ok(());
    }
    Err(format!("repository {url} is not permitted in project '{}'", project.name()))
}

/// Repository and name of the chart, if the source is one. `oci://host/charts/web` without `chart` is the chart
/// `web`.
fn chart_address(source: &Source) -> Option<(String, String)> {
    if let Some(chart) = source.chart.as_ref().filter(|chart| !chart.is_empty()) {
        return Some((source.repo_url.clone(), chart.clone()));
    }
    let address = source.repo_url.strip_prefix("oci://")?.trim_end_matches('/');
    let (repository, name) = address.rsplit_once('/')?;
    Some((format!("oci://{repository}"), name.to_owned()))
}

/// What may be referred to: no charts, and one repository at one commit only, since there is one file by one name.
fn check_references(resolved: &[Resolved]) -> Result<(), SourceError> {
    let mut commits: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    let used: BTreeSet<&str> = resolved.iter().flat_map(|source| references(&source.source)).collect();
    for source in resolved {
        let Some(name) = source.source.ref_name.as_deref().filter(|name| used.contains(name)) else {
            continue;
        };
        if matches!(source.place, Place::Chart(_)) {
            return Err(SourceError::References(format!(
                "source `{name}` is a chart: only Git sources can be referred to as ${name}"
            )));
        }
        let url = normalize_repo_url(&source.source.repo_url);
        match commits.get(&url) {
            Some((_, commit)) if *commit == source.revision => {}
            Some((other, commit)) => {
                return Err(SourceError::References(format!(
                    "sources `{other}` and `{name}` refer to {} at two commits ({commit} and {}): refer to one",
                    shown_repo_url(&source.source.repo_url),
                    source.revision
                )));
            }
            None => {
                commits.insert(url, (name, &source.revision));
            }
        }
    }
    for source in resolved.iter().filter(|source| matches!(source.place, Place::Git { .. })) {
        if references(&source.source).next().is_none() {
            continue;
        }
        let url = normalize_repo_url(&source.source.repo_url);
        if let Some((name, commit)) = commits.get(&url).filter(|(_, commit)| *commit != source.revision) {
            return Err(SourceError::References(format!(
                "source `{name}` refers to the repository of the source that uses it, {}, at another commit \
                 ({commit}, not {})",
                shown_repo_url(&source.source.repo_url),
                source.revision
            )));
        }
    }
    Ok(())
}

/// The names of other sources that a source's Helm options use.
fn references(source: &Source) -> impl Iterator<Item = &str> {
    let options = match &source.tool {
        Some(plumb_core::app::SourceTool::Helm(options)) => Some(options),
        _ => None,
    };
    let files = options.into_iter().flat_map(|options| {
        let parameters = options.file_parameters.iter().map(|parameter| &parameter.path);
        options.value_files.iter().chain(parameters)
    });
    files.filter_map(|file| {
        let rest = file.strip_prefix('$')?;
        Some(rest.split_once('/').map_or(rest, |(name, _)| name))
    })
}

#[cfg(test)]
mod tests {
    use plumb_core::project::ProjectRules;

    use super::*;

    #[test]
    fn submodules_come_from_permitted_repositories_only() {
        let rules = ProjectRules {
            name: "team".to_owned(),
            source_repos: vec!["https://host/team/*".to_owned(), "file:///srv/team/*".to_owned()],
            ..ProjectRules::default()
        };
        let (project, _) = Project::compile(&rules);
        let permit = |parent: &str, address: &str| {
            let url = RepoUrl::parse(parent).unwrap().submodule(address).unwrap();
            permit_submodule(&project, parent, &url)
        };
        let parent = "https://host/team/app.git";
        assert_eq!(permit(parent, "../lib.git"), Ok(()));
        assert_eq!(permit(parent, "https://host/team/lib"), Ok(()));
        assert_eq!(
            permit(parent, "https://t0ken@host/other/lib.git").unwrap_err(),
            "repository https://host/other/lib.git is not permitted in project 'team'"
        );
        assert!(permit(parent, "../../other/lib.git").is_err());
        assert_eq!(permit("file:///srv/team/app", "../lib"), Ok(()));
        assert!(permit("file:///srv/team/app", "../../other/lib").is_err());
    }
}
