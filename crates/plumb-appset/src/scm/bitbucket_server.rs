//! Bitbucket Server.

use plumb_crd::application_set::{BitbucketServerPullRequests, BitbucketServerRepositories};
use serde_json::Value as Json;

use super::client::{Client, ScmError, each, escape, text};
use super::filter::Provider;
use crate::facts::{PullRequest, Repository};

pub(super) fn base(api: &str) -> String {
    let api = api.trim_end_matches('/');
    let rest = if api.ends_with("/rest") { "" } else { "/rest" };
    format!("{api}{rest}/api/1.0")
}

pub(super) struct BitbucketServer<'a> {
    pub(super) client: Client<'a>,
    pub(super) generator: &'a BitbucketServerRepositories,
    pub(super) protocol: &'a str,
}

fn place(project: &str, repository: &str) -> String {
    format!("/projects/{}/repos/{}", escape(project), escape(repository))
}

impl BitbucketServer<'_> {
    /// The default branch; `None` if the repository has none.
    fn default_branch(&self, repository: &Repository) -> Result<Option<Json>, ScmError> {
        let place = place(&repository.organization, &repository.repository);
        match self.client.get(&format!("{place}/branches/default")) {
            Ok(branch) => Ok(Some(branch)),
            Err(ScmError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn of(repository: &Repository, branch: &Json) -> Repository {
    Repository {
        branch: text(&branch["displayId"]),
        sha: text(&branch["latestCommit"]),
        ..repository.clone()
    }
}

impl Provider for BitbucketServer<'_> {
    fn repositories(&self) -> Result<Vec<Repository>, ScmError> {
        let project = &self.generator.project;
        let found = self.client.bitbucket_pages(&format!("/projects/{}/repos", escape(project)))?;
        let name = match self.protocol {
            "" | "ssh" => "ssh",
            "https" => "http",
            other => {
                return Err(ScmError::Failed(format!("unknown clone protocol for Bitbucket Server {other}")));
            }
        };
        let all = each(&found, |item| {
            let mut links = item["links"]["clone"].as_array().into_iter().flatten();
            let repository = Repository {
                organization: text(&item["project"]["key"]),
                repository: text(&item["name"]),
                repository_id: item["id"].clone(),
                url: links
                    .find(|link| link["name"] == name)
                    .map(|link| text(&link["href"]))
                    .unwrap_or_default(),
                ..Repository::default()
            };
            let branch = self.default_branch(&repository)?;
            Ok(branch.map(|branch| of(&repository, &branch)))
        })?;
        Ok(all.into_iter().flatten().collect())
    }

    fn branches(&self, repository: &Repository) -> Result<Vec<Repository>, ScmError> {
        if !self.generator.all_branches {
            return Ok(vec![repository.clone()]);
        }
        let place = place(&repository.organization, &repository.repository);
        let found = self.client.bitbucket_pages(&format!("{place}/branches"))?;
        Ok(found.iter().map(|branch| of(repository, branch)).collect())
    }

    fn has_path(&self, repository: &Repository, path: &str) -> Result<bool, ScmError> {
        let path = path.split('/').map(escape).collect::<Vec<_>>().join("/");
        let place = place(&repository.organization, &repository.repository);
        self.client.exists(&format!("{place}/browse/{path}?at={}", escape(&repository.branch)))
    }
}

pub(super) fn pull_requests(
    client: &Client<'_>,
    generator: &BitbucketServerPullRequests,
) -> Result<Vec<PullRequest>, ScmError> {
    let place = place(&generator.project, &generator.repo);
    let found = client.bitbucket_pages(&format!("{place}/pull-requests"))?;
    let pulls = found.iter().map(|pull| PullRequest {
        number: pull["id"].as_i64().unwrap_or_default(),
        title: text(&pull["title"]),
        branch: text(&pull["fromRef"]["displayId"]),
        target_branch: text(&pull["toRef"]["displayId"]),
        head_sha: text(&pull["fromRef"]["latestCommit"]),
        labels: Vec::new(),
        author: text(&pull["author"]["user"]["name"]),
    });
    Ok(pulls.collect())
}
