//! Resolves sources to commits or chart versions, and reads their files.

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
use super::inputs::RenderInputs;
use crate::apps::context::AppContext;
use crate::config::settings::Settings;
use crate::queue::RefreshDepth;

/// One source and what it resolves to now.
pub(super) struct Resolved {
    pub(super) source: Source,
    /// The source as the Application has it, for overrides.
    pub(super) written: ApplicationSource,
    /// The commit, or the version of the chart.
    pub(super) revision: String,
    content: SourceContent,
}

enum SourceContent {
    Git { mirror: Mirror, commit: CommitId },
    Chart(Arc<MemoryFiles>),
}

impl Resolved {
    /// True if other sources only refer to it. It renders nothing.
    pub(super) fn is_reference(&self) -> bool {
        self.source.path.is_none() && self.source.chart.is_none() && self.source.ref_name.is_some()
    }

    /// The files of its commit without submodules; `None` for a chart.
    pub(super) fn tree(&self) -> Option<SourceTree> {
        match &self.content {
            SourceContent::Git { mirror, commit } => mirror.tree(commit).ok(),
            SourceContent::Chart(_) => None,
        }
    }

    /// The files of another commit, if the mirror has it; `None` for a chart.
    pub(super) fn tree_at(&self, revision: &str) -> Option<SourceTree> {
        match &self.content {
            SourceContent::Git { mirror, .. } => mirror.tree(&revision.parse().ok()?).ok(),
            SourceContent::Chart(_) => None,
        }
    }
}

/// The project and settings that requests to servers need.
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
    /// The commit or chart version of each source. `pinned` revisions replace those of the sources. A pinned commit
    /// must be on a branch or tag, or on a ref that the source or the operation names in full.
    pub(super) async fn resolve(
        &self,
        app_access: &Access,
        inputs: &RenderInputs,
        pinned: &[String],
        depth: RefreshDepth,
        since: Instant,
    ) -> Result<Vec<Resolved>, SourceError> {
        let mut resolved = Vec::with_capacity(inputs.sources.len());
        for (index, (source, written)) in inputs.sources.iter().enumerate() {
            if let Some(reason) = app_access.settings.broken_repository(&source.repo_url) {
                let repository = shown_repo_url(&source.repo_url);
                return Err(SourceError::NotAllowed(format!("repository {repository}: {reason}")));
            }
            if let Some(reason) =
                app_access.settings.unusable_credentials(&source.repo_url, app_access.project.name())
            {
                let repository = shown_repo_url(&source.repo_url);
                return Err(SourceError::NotAllowed(format!("repository {repository}: {reason}")));
            }
            let pinned = pinned.get(index).filter(|revision| !revision.is_empty());
            let asked = inputs.asked.get(index).map(String::as_str);
            let spec = revision_spec(source, pinned, asked);
            let (revision, content) = match chart_address(source) {
                Some((url, name)) => {
                    let requested = pinned.or(source.target_revision.as_ref());
                    let version = requested.map_or("*", String::as_str);
                    self.chart(app_access, source, (&url, &name, version), depth, since).await?
                }
                None => self.commit(app_access, source, &spec, depth, since).await?,
            };
            resolved.push(Resolved { source: source.clone(), written: written.clone(), revision, content });
        }
        check_references(&resolved)?;
        Ok(resolved)
    }

    async fn chart(
        &self,
        app_access: &Access,
        source: &Source,
        (url, name, version): (&str, &str, &str),
        depth: RefreshDepth,
        since: Instant,
    ) -> Result<(String, SourceContent), SourceError> {
        let version = if version.is_empty() { "*" } else { version };
        let mut repository = app_access.settings.chart_repository(url, app_access.project.name());
        if let Some(plumb_core::app::SourceTool::Helm(options)) = &source.tool {
            repository.pass_credentials |= options.pass_credentials;
        }
        let freshness = if depth == RefreshDepth::Hard { Freshness::Renewed } else { Freshness::Cached };
        let chart = self.fetch_chart(&repository, name, version, freshness, since).await?;
        Ok((chart.version, SourceContent::Chart(chart.files)))
    }

    async fn commit(
        &self,
        app_access: &Access,
        source: &Source,
        spec: &RevisionSpec,
        depth: RefreshDepth,
        since: Instant,
    ) -> Result<(String, SourceContent), SourceError> {
        let url = RepoUrl::parse(&source.repo_url)?;
        let access = app_access.settings.access(&source.repo_url, app_access.project.name());
        // A commit never changes, so only branches, tags and the like are fetched again.
        let is_commit = spec.revision.parse::<CommitId>().is_ok();
        if depth >= RefreshDepth::Git && !is_commit {
            self.mirrors.fetch_since(&url, &access, since).await?;
        }
        let (mirror, commit) = self.mirrors.resolve(&url, &access, spec).await?;
        if let Some(rule) = app_access.project.signatures(&source.repo_url) {
            let keys = Arc::clone(&app_access.settings.gpg_keys);
            let keyring = self.mirrors.keyring(&keys).await?;
            let policy = SignaturePolicy {
                keys: rule.keys.clone(),
                whole_history: rule.mode == SignatureMode::Strict,
            };
            self.mirrors.check_signatures(&mirror, &access, spec, &commit, &policy, &keyring).await?;
        }
        Ok((commit.to_string(), SourceContent::Git { mirror, commit }))
    }

    /// The files of a source, with submodules if they are enabled.
    pub(super) async fn files(
        &self,
        context: &AppContext,
        resolved: &Resolved,
    ) -> Result<Arc<dyn SourceFiles>, SourceError> {
        let (mirror, commit) = match &resolved.content {
            SourceContent::Chart(files) => return Ok(Arc::clone(files) as Arc<dyn SourceFiles>),
            SourceContent::Git { mirror, commit } => (mirror, commit),
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

    /// Fetches the charts that a chart depends on and does not contain, from repositories that the project
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

/// The revision of a source. `pinned` replaces that of the source, and `asked` is what an operation asked for.
fn revision_spec(source: &Source, pinned: Option<&String>, asked: Option<&str>) -> RevisionSpec {
    let Some(pinned) = pinned else { return RevisionSpec::of(source) };
    RevisionSpec::new(pinned.clone()).or_on(source.target_revision.as_deref().into_iter().chain(asked))
}

/// A submodule may contain manifests too, so the project must permit its repository like that of a source.
fn permit_submodule(project: &Project, parent: &str, url: &RepoUrl) -> Result<(), String> {
    // File paths are compared in the form that the parent repository uses, with or without `file://`.
    let uses_file_url = url.transport() == Transport::File && parent.starts_with("file:");
    let scheme = if uses_file_url { "file://" } else { "" };
    if project.permits_source(&format!("{scheme}{}", url.with_user())) {
        return Ok(());
    }
    Err(format!("repository {url} is not permitted in project '{}'", project.name()))
}

/// Repository and name of the chart, if the source is a chart. `oci://host/charts/web` without `chart` is the
/// chart `web`.
fn chart_address(source: &Source) -> Option<(String, String)> {
    if let Some(chart) = source.chart.as_ref().filter(|chart| !chart.is_empty()) {
        return Some((source.repo_url.clone(), chart.clone()));
    }
    let address = source.repo_url.strip_prefix("oci://")?.trim_end_matches('/');
    let (repository, name) = address.rsplit_once('/')?;
    Some((format!("oci://{repository}"), name.to_owned()))
}

/// Checks references between sources. They cannot refer to charts, and to one repository at one commit only,
/// because a file path has only one content.
fn check_references(resolved: &[Resolved]) -> Result<(), SourceError> {
    let mut commits: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    let used: BTreeSet<&str> = resolved.iter().flat_map(|source| references(&source.source)).collect();
    for source in resolved {
        let Some(name) = source.source.ref_name.as_deref().filter(|name| used.contains(name)) else {
            continue;
        };
        if matches!(source.content, SourceContent::Chart(_)) {
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
    for source in resolved.iter().filter(|source| matches!(source.content, SourceContent::Git { .. })) {
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
    use plumb_git::HashRule;

    use super::*;

    #[test]
    fn a_pinned_commit_may_be_on_a_ref_that_the_source_or_the_operation_names() {
        let pinned = "1".repeat(40);
        let named = |target: &str, pinned: Option<&String>, asked: Option<&str>| {
            let target_revision = Some(target.to_owned());
            revision_spec(&Source { target_revision, ..Source::default() }, pinned, asked).hashes
        };
        let on = |names: &[&str]| HashRule::OnRefs(names.iter().map(|name| (*name).to_owned()).collect());
        for (target, asked, expected) in [
            ("main", None, on(&[])),
            ("refs/pull/7/head", None, on(&["refs/pull/7/head"])),
            ("main", Some("refs/pull/8/head"), on(&["refs/pull/8/head"])),
            ("refs/pull/7/head", Some("refs/pull/8/head"), on(&["refs/pull/7/head", "refs/pull/8/head"])),
            ("refs/heads/main", Some("refs/replace/x"), on(&[])),
        ] {
            assert_eq!(named(target, Some(&pinned), asked), expected, "{target} {asked:?}");
            assert_eq!(named(target, None, asked), on(&[]), "{target} {asked:?}");
        }
    }

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
