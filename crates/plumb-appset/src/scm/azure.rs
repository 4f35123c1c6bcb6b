//! Azure DevOps.

use plumb_crd::application_set::{AzureDevOpsPullRequests, AzureDevOpsRepositories};
use serde_json::Value as Json;

use super::client::{Client, ScmError, basic_login, escape, names, text};
use super::filter::{Provider, has_labels};
use crate::facts::{PullRequest, Repository};

const VERSION: &str = "api-version=7.1";
/// Most pull requests of one page.
const PAGE: usize = 100;
/// Most pages of one list.
const MOST_PAGES: usize = 200;

pub(super) fn base(api: &str, organization: &str) -> String {
    let api = if api.is_empty() { "https://dev.azure.com" } else { api.trim_end_matches('/') };
    format!("{api}/{}", escape(organization))
}

/// A personal access token is the password of a user without a name.
pub(super) fn headers(token: Option<String>) -> Vec<(String, String)> {
    token.map(|token| ("Authorization".to_owned(), basic_login("", &token))).into_iter().collect()
}

pub(super) struct Azure<'a> {
    pub(super) client: Client<'a>,
    pub(super) generator: &'a AzureDevOpsRepositories,
}

impl Azure<'_> {
    fn place(&self, repository: &Repository) -> String {
        let project = escape(&self.generator.team_project);
        format!("/{project}/_apis/git/repositories/{}", escape(&repository.repository))
    }
}

fn values(answer: &Json, what: &str) -> Result<Vec<Json>, ScmError> {
    let values = answer["value"].as_array().cloned();
    values.ok_or_else(|| ScmError::Failed(format!("the answer about {what} has no list")))
}

fn short(name: &Json) -> String {
    let name = text(name);
    name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned()
}

impl Provider for Azure<'_> {
    fn repositories(&self) -> Result<Vec<Repository>, ScmError> {
        let project = escape(&self.generator.team_project);
        let answer = self.client.get(&format!("/{project}/_apis/git/repositories?{VERSION}"))?;
        let found = values(&answer, "repositories")?;
        let has_branch = |item: &&Json| item["defaultBranch"].is_string() && item["isDisabled"] != true;
        Ok(found
            .iter()
            .filter(has_branch)
            .map(|item| Repository {
                organization: self.generator.organization.clone(),
                repository: text(&item["name"]),
                repository_id: item["id"].clone(),
                url: text(&item["remoteUrl"]),
                branch: short(&item["defaultBranch"]),
                ..Repository::default()
            })
            .collect())
    }

    fn branches(&self, repository: &Repository) -> Result<Vec<Repository>, ScmError> {
        let filter = if self.generator.all_branches {
            "heads/".to_owned()
        } else {
            format!("heads/{}", repository.branch)
        };
        let place = self.place(repository);
        let answer = self.client.get(&format!("{place}/refs?filter={}&{VERSION}", escape(&filter)))?;
        let branches = values(&answer, "branches")?.into_iter().map(|branch| Repository {
            branch: short(&branch["name"]),
            sha: text(&branch["objectId"]),
            ..repository.clone()
        });
        // The filter is a prefix.
        let counts = |branch: &Repository| self.generator.all_branches || branch.branch == repository.branch;
        Ok(branches.filter(counts).collect())
    }

    fn has_path(&self, repository: &Repository, path: &str) -> Result<bool, ScmError> {
        let (place, branch) = (self.place(repository), escape(&repository.branch));
        let path = escape(path);
        self.client.exists(&format!("{place}/items?path={path}&versionDescriptor.version={branch}&{VERSION}"))
    }
}

pub(super) fn pull_requests(
    client: &Client<'_>,
    generator: &AzureDevOpsPullRequests,
) -> Result<Vec<PullRequest>, ScmError> {
    let path = format!("/{}/_apis/git/pullrequests", escape(&generator.project));
    let mut found = Vec::new();
    for page in 0..=MOST_PAGES {
        if page == MOST_PAGES {
            return Err(ScmError::Failed(format!("there are more than {MOST_PAGES} pages of pull requests")));
        }
        let skip = page * PAGE;
        let answer =
            client.get(&format!("{path}?$top={PAGE}&$skip={skip}&searchCriteria.status=active&{VERSION}"))?;
        let values = values(&answer, "pull requests")?;
        let is_last = values.len() < PAGE;
        found.extend(values);
        if is_last {
            break;
        }
    }
    let here = found.iter().filter(|pull| pull["repository"]["name"] == generator.repo.as_str());
    let pulls = here.map(|pull| {
        let author = text(&pull["createdBy"]["uniqueName"]);
        PullRequest {
            number: pull["pullRequestId"].as_i64().unwrap_or_default(),
            title: text(&pull["title"]),
            branch: short(&pull["sourceRefName"]),
            target_branch: short(&pull["targetRefName"]),
            head_sha: text(&pull["lastMergeSourceCommit"]["commitId"]),
            labels: names(&pull["labels"], "name"),
            author: author.split('@').next().unwrap_or_default().to_owned(),
        }
    });
    Ok(pulls.filter(|pull| has_labels(pull, &generator.labels)).collect())
}
