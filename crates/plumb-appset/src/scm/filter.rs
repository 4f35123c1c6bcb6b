//! Which repositories, branches and pull requests count.

use plumb_crd::application_set::{PullRequestFilter, ScmProviderFilter};
use regex::{Regex, RegexBuilder};

use super::client::{ScmError, each};
use crate::facts::{PullRequest, Repository};

/// Most bytes of a compiled expression.
const REGEX_SIZE: usize = 1 << 20;

/// A provider, as filters use it.
pub(super) trait Provider {
    /// All repositories.
    fn repositories(&self) -> Result<Vec<Repository>, ScmError>;
    /// The branches of a repository that count, each with its commit.
    fn branches(&self, repository: &Repository) -> Result<Vec<Repository>, ScmError>;
    /// Is there something at this path of the branch?
    fn has_path(&self, repository: &Repository, path: &str) -> Result<bool, ScmError>;
}

fn compile(name: &str, pattern: Option<&String>) -> Result<Option<Regex>, ScmError> {
    let Some(pattern) = pattern else { return Ok(None) };
    let compiled = RegexBuilder::new(pattern).size_limit(REGEX_SIZE).build();
    let compiled = compiled.map_err(|error| {
        let cause = error.to_string();
        let cause = cause.lines().last().unwrap_or_default().trim().to_owned();
        ScmError::Failed(format!("error compiling {name} regexp {pattern:?}: error parsing regexp: {cause}"))
    })?;
    Ok(Some(compiled))
}

struct Compiled<'a> {
    repository: Option<Regex>,
    label: Option<Regex>,
    branch: Option<Regex>,
    paths: Vec<&'a str>,
    no_paths: Vec<&'a str>,
}

impl<'a> Compiled<'a> {
    fn new(filter: &'a ScmProviderFilter) -> Result<Self, ScmError> {
        let clean = |paths: &'a [String]| paths.iter().map(|path| path.trim_end_matches('/')).collect();
        Ok(Self {
            repository: compile("RepositoryMatch", filter.repository_match.as_ref())?,
            label: compile("LabelMatch", filter.label_match.as_ref())?,
            branch: compile("BranchMatch", filter.branch_match.as_ref())?,
            paths: clean(&filter.paths_exist),
            no_paths: clean(&filter.paths_do_not_exist),
        })
    }

    fn is_for_branches(&self) -> bool {
        self.branch.is_some() || !self.paths.is_empty() || !self.no_paths.is_empty()
    }

    fn matches_repository(&self, repository: &Repository) -> bool {
        self.repository.as_ref().is_none_or(|regex| regex.is_match(&repository.repository))
            && self
                .label
                .as_ref()
                .is_none_or(|regex| repository.labels.iter().any(|label| regex.is_match(label)))
    }

    fn matches(&self, provider: &dyn Provider, repository: &Repository) -> Result<bool, ScmError> {
        if !self.matches_repository(repository)
            || !self.branch.as_ref().is_none_or(|regex| regex.is_match(&repository.branch))
        {
            return Ok(false);
        }
        let wanted = self.paths.iter().map(|path| (path, true));
        let unwanted = self.no_paths.iter().map(|path| (path, false));
        let answers =
            each(
                wanted.chain(unwanted),
                |(path, exists)| Ok(provider.has_path(repository, path)? == exists),
            )?;
        Ok(answers.into_iter().all(|fits| fits))
    }
}

/// The branches that pass. Filters about branches and paths are a second round, after those about repositories.
pub(super) fn find(
    provider: &dyn Provider,
    filters: &[ScmProviderFilter],
) -> Result<Vec<Repository>, ScmError> {
    let compiled: Vec<Compiled<'_>> = filters.iter().map(Compiled::new).collect::<Result<_, _>>()?;
    let (of_branches, of_repositories): (Vec<_>, Vec<_>) =
        compiled.iter().partition(|filter| filter.is_for_branches());
    let mut repositories = provider.repositories()?;
    repositories.retain(|repository| {
        of_repositories.is_empty()
            || of_repositories.iter().any(|filter| filter.matches_repository(repository))
    });
    let branches = each(&repositories, |repository| provider.branches(repository))?;
    let branches: Vec<Repository> = branches.into_iter().flatten().collect();
    if of_branches.is_empty() {
        return Ok(branches);
    }
    let kept = each(branches, |branch| {
        let fits = each(&of_branches, |filter| filter.matches(provider, &branch))?;
        Ok(fits.into_iter().any(|fits| fits).then_some(branch))
    })?;
    Ok(kept.into_iter().flatten().collect())
}

/// The pull requests that pass one of the filters.
pub(super) fn keep(
    pulls: Vec<PullRequest>,
    filters: &[PullRequestFilter],
) -> Result<Vec<PullRequest>, ScmError> {
    let mut compiled = Vec::new();
    for filter in filters {
        compiled.push((
            compile("BranchMatch", filter.branch_match.as_ref())?,
            compile("TargetBranchMatch", filter.target_branch_match.as_ref())?,
            compile("TitleMatch", filter.title_match.as_ref())?,
        ));
    }
    let fits = |regex: &Option<Regex>, text: &str| regex.as_ref().is_none_or(|regex| regex.is_match(text));
    let kept = pulls.into_iter().filter(|pull| {
        compiled.is_empty()
            || compiled.iter().any(|(branch, target, title)| {
                fits(branch, &pull.branch) && fits(target, &pull.target_branch) && fits(title, &pull.title)
            })
    });
    Ok(kept.collect())
}

/// True if a pull request has all labels.
pub(super) fn has_labels(pull: &PullRequest, wanted: &[String]) -> bool {
    wanted.iter().all(|label| pull.labels.contains(label))
}
