//! Gitea.

use plumb_crd::application_set::{GiteaPullRequests, GiteaRepositories};
use serde_json::Value as Json;

use super::client::{Client, Paging, ScmError, each, escape, names, text};
use super::filter::{Provider, has_labels};
use crate::facts::{PullRequest, Repository};

pub(super) fn base(api: &str) -> String {
    format!("{}/api/v1", api.trim_end_matches('/'))
}

pub(super) fn headers(token: Option<String>) -> Vec<(String, String)> {
    token.map(|token| ("Authorization".to_owned(), format!("token {token}"))).into_iter().collect()
}

pub(super) struct Gitea<'a> {
    pub(super) client: Client<'a>,
    pub(super) generator: &'a GiteaRepositories,
    pub(super) protocol: &'a str,
}

/// A server says how many items a page has at most, so all pages are read.
const PAGE: &str = "limit=50";

impl Gitea<'_> {
    fn place(repository: &Repository) -> String {
        format!("/repos/{}/{}", escape(&repository.organization), escape(&repository.repository))
    }
}

impl Provider for Gitea<'_> {
    fn repositories(&self) -> Result<Vec<Repository>, ScmError> {
        let owner = &self.generator.owner;
        let found = self.client.pages(&format!("/orgs/{}/repos?{PAGE}", escape(owner)), &Paging::Link)?;
        let url = match self.protocol {
            "" | "ssh" => "ssh_url",
            "https" => "html_url",
            other => return Err(ScmError::Failed(format!("unknown clone protocol for Gitea {other}"))),
        };
        let kept = found
            .iter()
            .filter(|repository| !self.generator.exclude_archived_repos || repository["archived"] != true);
        each(kept, |repository| {
            let name = text(&repository["name"]);
            let labels = format!("/repos/{}/{}/labels?{PAGE}", escape(owner), escape(&name));
            let labels = self.client.pages(&labels, &Paging::Link)?;
            Ok(Repository {
                organization: owner.clone(),
                repository: name,
                repository_id: repository["id"].clone(),
                url: text(&repository[url]),
                branch: text(&repository["default_branch"]),
                sha: String::new(),
                labels: names(&Json::Array(labels), "name"),
            })
        })
    }

    fn branches(&self, repository: &Repository) -> Result<Vec<Repository>, ScmError> {
        let place = Self::place(repository);
        let of = |branch: &Json| Repository {
            branch: text(&branch["name"]),
            sha: text(&branch["commit"]["id"]),
            ..repository.clone()
        };
        if self.generator.all_branches {
            let found = self.client.pages(&format!("{place}/branches?{PAGE}"), &Paging::Link)?;
            return Ok(found.iter().map(of).collect());
        }
        Ok(vec![of(&self.client.get(&format!("{place}/branches/{}", escape(&repository.branch)))?)])
    }

    fn has_path(&self, repository: &Repository, path: &str) -> Result<bool, ScmError> {
        let path = path.split('/').map(escape).collect::<Vec<_>>().join("/");
        let place = Self::place(repository);
        self.client.exists(&format!("{place}/contents/{path}?ref={}", escape(&repository.branch)))
    }
}

pub(super) fn pull_requests(
    client: &Client<'_>,
    generator: &GiteaPullRequests,
) -> Result<Vec<PullRequest>, ScmError> {
    let place = format!("/repos/{}/{}", escape(&generator.owner), escape(&generator.repo));
    let found = client.pages(&format!("{place}/pulls?{PAGE}&state=open"), &Paging::Link)?;
    let pulls = found.iter().map(|pull| PullRequest {
        number: pull["number"].as_i64().unwrap_or_default(),
        title: text(&pull["title"]),
        branch: text(&pull["head"]["ref"]),
        target_branch: text(&pull["base"]["ref"]),
        head_sha: text(&pull["head"]["sha"]),
        labels: names(&pull["labels"], "name"),
        author: text(&pull["user"]["login"]),
    });
    Ok(pulls.filter(|pull| has_labels(pull, &generator.labels)).collect())
}
