//! Resolves sources to commits or chart versions, and reads their files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use plumb_core::app::{CommitId, Source};
use plumb_core::plan::{CommitPair, ReplacedHistory};
use plumb_core::project::{Project, SignatureMode, SignatureRule, normalize_repo_url, shown_repo_url};
use plumb_core::source::{RepoAddress, SourceFiles};
use plumb_crd::application::ApplicationSource;
use plumb_git::{
    Mirror, Relation, RepoAccess, RepoUrl, RevisionSpec, SignaturePolicy, SourceTree, SyncedRevision,
    Transport,
};
use plumb_render::{Chart, ChartDependency, ChartRepository, Freshness, MemoryFiles, RenderRequest};

use super::error::SourceError;
use super::gather::Sources;
use super::inputs::RenderInputs;
use super::render::blocking;
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

    /// Fails if it is not known which rule about signatures counts for a repository.
    fn check_rule(&self, rule: &SignatureRule, repo_url: &str) -> Result<(), SourceError> {
        if rule.mode != SignatureMode::Conflict {
            return Ok(());
        }
        Err(SourceError::NotAllowed(format!(
            "several policies of sourceIntegrity in project '{}' match {}; except it from all but one with a pattern that \
             begins with `!`",
            self.project.name(),
            shown_repo_url(repo_url)
        )))
    }

    /// Checks that the project permits a repository and that its credentials can be used. Every repository passes here
    /// before it is asked anything, whoever names it: the spec, an operation, a submodule, a chart.
    pub(super) fn admit(&self, repo_url: &str) -> Result<(), SourceError> {
        if let Err(reason) = RepoAddress::parse(repo_url) {
            let repository = shown_repo_url(repo_url);
            return Err(SourceError::NotAllowed(format!("repository {repository:?}: {reason}")));
        }
        if let Some(why) = self.project.refuses_source(repo_url) {
            return Err(SourceError::NotAllowed(why));
        }
        let project = self.project.name();
        let broken = self.settings.broken_repository(repo_url, project).map(str::to_owned);
        match broken.or_else(|| self.settings.unusable_credentials(repo_url, project)) {
            Some(why) => {
                let repository = shown_repo_url(repo_url);
                Err(SourceError::NotAllowed(format!("repository {repository}: {why}")))
            }
            None => Ok(()),
        }
    }
}

impl Sources {
    /// The commit or chart version of each source. `pinned` revisions replace those of the sources. The project is asked about
    /// every source first. A pinned commit must be on a branch or tag, or on a ref that the source or the operation names in
    /// full.
    pub(super) async fn resolve(
        &self,
        app_access: &Access,
        inputs: &RenderInputs,
        pinned: &[String],
        depth: RefreshDepth,
        since: Instant,
    ) -> Result<Vec<Resolved>, SourceError> {
        // All are checked before the first is asked.
        for (source, _) in &inputs.sources {
            app_access.admit(&source.repo_url)?;
        }
        let mut resolved = Vec::with_capacity(inputs.sources.len());
        for (index, (source, written)) in inputs.sources.iter().enumerate() {
            let pinned = pinned.get(index).filter(|revision| !revision.is_empty());
            let asked = inputs.asked.get(index).map(String::as_str);
            let spec = revision_spec(source, pinned, asked);
            let (revision, content) = if let Some((url, name)) = chart_address(source) {
                let requested = pinned.or(source.target_revision.as_ref());
                let version = requested.map_or("*", String::as_str);
                self.chart(app_access, source, (&url, &name, version), depth, since).await?
            } else {
                let stands_for = pinned.map_or_else(Vec::new, |_| stands_for(source, asked));
                self.commit(app_access, source, (&spec, &stands_for), depth, since).await?
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
        repository.policy = app_access.settings.addresses(&self.addresses, app_access.project.name());
        if let Some(plumb_core::app::SourceTool::Helm(options)) = &source.tool
            && options.pass_credentials
        {
            repository.pass_credentials = Some(Arc::clone(&app_access.project));
        }
        let freshness = if depth == RefreshDepth::Hard { Freshness::Renewed } else { Freshness::Cached };
        let chart = self.fetch_chart(&repository, name, version, freshness, since).await?;
        Ok((chart.version, SourceContent::Chart(chart.files)))
    }

    async fn commit(
        &self,
        app_access: &Access,
        source: &Source,
        specs: (&RevisionSpec, &[RevisionSpec]),
        depth: RefreshDepth,
        since: Instant,
    ) -> Result<(String, SourceContent), SourceError> {
        let checkout = self.checkouts.get(&normalize_repo_url(&source.repo_url));
        let url = RepoUrl::parse(checkout.unwrap_or(&source.repo_url))?;
        match self.commit_in_mirror(app_access, source, &url, specs, depth, since).await {
            // The next fetch makes the mirror again.
            Err(_) if self.mirrors.is_damaged(&url) => {
                self.commit_in_mirror(app_access, source, &url, specs, depth, Instant::now()).await
            }
            result => result,
        }
    }

    async fn commit_in_mirror(
        &self,
        app_access: &Access,
        source: &Source,
        url: &RepoUrl,
        (spec, stands_for): (&RevisionSpec, &[RevisionSpec]),
        depth: RefreshDepth,
        since: Instant,
    ) -> Result<(String, SourceContent), SourceError> {
        let policy = app_access.settings.addresses(&self.addresses, app_access.project.name());
        let access = app_access.settings.access(&source.repo_url, app_access.project.name());
        let access = RepoAccess { policy, ..access };
        // A commit never changes, so only branches, tags and the like are fetched again.
        let is_commit = spec.revision.parse::<CommitId>().is_ok();
        if depth >= RefreshDepth::Git && !is_commit {
            self.mirrors.fetch_since(url, &access, since).await?;
        }
        let (mirror, commit) = self.mirrors.resolve_since(url, &access, spec, since).await?;
        if let Some(rule) = app_access.project.signatures(&source.repo_url) {
            app_access.check_rule(rule, &source.repo_url)?;
            let keys = Arc::clone(&app_access.settings.gpg_keys);
            let keyring = self.mirrors.keyring(&keys).await?;
            let policy = SignaturePolicy {
                keys: rule.keys.clone(),
                whole_history: rule.mode == SignatureMode::Strict,
            };
            let synced = SyncedRevision { spec, commit: &commit, stands_for };
            self.mirrors.check_signatures(&mirror, &access, &synced, &policy, &keyring).await?;
        }
        Ok((commit.to_string(), SourceContent::Git { mirror, commit }))
    }

    /// The files of a revision for a set. Without a project its rules do not count, and only credentials for all projects do.
    pub(crate) async fn tree_for_set(
        &self,
        settings: &Arc<Settings>,
        project: Option<&Arc<Project>>,
        (repo_url, revision): (&str, &str),
        fetch_since: Option<Instant>,
    ) -> Result<SourceTree, String> {
        let text = |error: &dyn std::error::Error| plumb_core::error_chain::error_chain(error);
        let name = project.map_or("", |project| project.name());
        if let Some(project) = project {
            let access = Access { project: Arc::clone(project), settings: Arc::clone(settings) };
            access.admit(repo_url).map_err(|error| text(&error))?;
        }
        let url = RepoUrl::parse(repo_url).map_err(|error| text(&error))?;
        let policy = settings.addresses(&self.addresses, name);
        let access = RepoAccess { policy, ..settings.access(repo_url, name) };
        let spec = RevisionSpec::new(revision);
        let since = fetch_since.unwrap_or_else(Instant::now);
        if fetch_since.is_some() && revision.parse::<CommitId>().is_err() {
            self.mirrors.fetch_since(&url, &access, since).await.map_err(|error| text(&error))?;
        }
        let resolved = self.mirrors.resolve_since(&url, &access, &spec, since).await;
        let (mirror, commit) = resolved.map_err(|error| text(&error))?;
        if let Some(rule) = project.and_then(|project| project.signatures(repo_url)) {
            let keyring = self.mirrors.keyring(&settings.gpg_keys).await.map_err(|error| text(&error))?;
            let policy = SignaturePolicy {
                keys: rule.keys.clone(),
                whole_history: rule.mode == SignatureMode::Strict,
            };
            let synced = SyncedRevision { spec: &spec, commit: &commit, stands_for: &[] };
            let checked = self.mirrors.check_signatures(&mirror, &access, &synced, &policy, &keyring).await;
            checked.map_err(|error| text(&error))?;
        }
        mirror.tree(&commit).map_err(|error| text(&error))
    }

    /// The history of a repository, if the commit to sync shares none with the one that was synced last.
    pub(crate) async fn replaced_history(
        &self,
        context: &AppContext,
        pair: &CommitPair,
    ) -> Result<Option<ReplacedHistory>, SourceError> {
        let url = RepoUrl::parse(&pair.repo_url)?;
        let policy = context.settings.addresses(&self.addresses, context.project.name());
        let access = RepoAccess { policy, ..context.access(&pair.repo_url) };
        let relation = self.mirrors.relation(&url, &access, &pair.last, &pair.present).await?;
        Ok((relation != Relation::Related).then(|| ReplacedHistory {
            repository: shown_repo_url(&pair.repo_url),
            last: pair.last.to_string(),
            present: pair.present.to_string(),
            is_gone: relation == Relation::Gone,
        }))
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
        let policy = context.settings.addresses(&self.addresses, context.project.name());
        let access = |url: &RepoUrl| {
            permit_submodule(&Access::of(context), &resolved.source.repo_url, url)?;
            Ok(RepoAccess { policy: Arc::clone(&policy), ..context.access(&url.with_user()) })
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
            blocking(move || renderer.missing_dependencies(&request)).await?
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
            let policy = context.settings.addresses(&self.addresses, project);
            let repository = ChartRepository { policy, ..repository };
            let (name, version) = (&dependency.name, &dependency.version);
            Access::of(context)
                .admit(&repository.url)
                .map_err(|source| SourceError::Dependency { name: name.clone(), source: Box::new(source) })?;
            let chart = self
                .fetch_chart(&repository, name, version, freshness, since)
                .await
                .map_err(|source| SourceError::Dependency { name: name.clone(), source: Box::new(source) })?;
            fetched.insert(dependency, chart.files);
        }
        Ok(fetched)
    }

    pub(super) async fn fetch_chart(
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

/// The revisions that a pinned commit may stand for: that of the source, and that of the operation.
fn stands_for(source: &Source, asked: Option<&str>) -> Vec<RevisionSpec> {
    let of_source = RevisionSpec::of(source);
    let asked = asked.map(|asked| RevisionSpec { revision: asked.to_owned(), ..of_source.clone() });
    std::iter::once(of_source).chain(asked).collect()
}

/// A submodule may contain manifests too, so the project must permit its repository like that of a source.
fn permit_submodule(access: &Access, parent: &str, url: &RepoUrl) -> Result<(), String> {
    // File paths are compared in the form that the parent repository uses, with or without `file://`.
    let uses_file_url = url.transport() == Transport::File && parent.starts_with("file:");
    let scheme = if uses_file_url { "file://" } else { "" };
    access.admit(&format!("{scheme}{}", url.with_user())).map_err(|error| error.message())
}

/// Repository and name of the chart, if the source is a chart. `oci://host/charts/web` without `chart` is the
/// chart `web`.
pub(super) fn chart_address(source: &Source) -> Option<(String, String)> {
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
        let project = Arc::new(Project::compile(&rules).0);
        let permit = |parent: &str, address: &str| {
            let url = RepoUrl::parse(parent).unwrap().submodule(address).unwrap();
            let access = Access { project: Arc::clone(&project), settings: Arc::default() };
            permit_submodule(&access, parent, &url)
        };
        let parent = "https://host/team/app.git";
        assert_eq!(permit(parent, "../lib.git"), Ok(()));
        assert_eq!(permit(parent, "https://host/team/lib"), Ok(()));
        assert_eq!(
            permit(parent, "https://t0ken@host/other/lib.git").unwrap_err(),
            "application repo https://host/other/lib.git is not permitted in project 'team'"
        );
        assert!(permit(parent, "../../other/lib.git").is_err());
        assert_eq!(permit("file:///srv/team/app", "../lib"), Ok(()));
        assert!(permit("file:///srv/team/app", "../../other/lib").is_err());
    }
}
