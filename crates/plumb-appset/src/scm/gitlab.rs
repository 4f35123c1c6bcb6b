//! GitLab.

use plumb_crd::application_set::{GitlabPullRequests, GitlabRepositories};
use serde_json::Value as Json;

use super::client::{Client, Paging, ScmError, escape, text};
use super::filter::Provider;
use super::github::texts;
use crate::facts::{PullRequest, Repository};

pub(super) fn base(api: &str) -> String {
    match api.trim_end_matches('/') {
        "" => "https://gitlab.com/api/v4".to_owned(),
        api if api.ends_with("/api/v4") => api.to_owned(),
        api => format!("{api}/api/v4"),
    }
}

pub(super) fn headers(token: Option<String>) -> Vec<(String, String)> {
    token.map(|token| ("Private-Token".to_owned(), token)).into_iter().collect()
}

pub(super) struct Gitlab<'a> {
    pub(super) client: Client<'a>,
    pub(super) generator: &'a GitlabRepositories,
    pub(super) protocol: &'a str,
}

impl Gitlab<'_> {
    fn place(repository: &Repository) -> String {
        format!("/projects/{}/repository", repository.repository_id)
    }
}

impl Provider for Gitlab<'_> {
    fn repositories(&self) -> Result<Vec<Repository>, ScmError> {
        let GitlabRepositories { group, include_subgroups, topic, .. } = self.generator;
        let shared = self.generator.include_shared_projects.unwrap_or(true);
        let archived =
            if self.generator.include_archived_repos == Some(true) { "&archived=true" } else { "" };
        let path = format!(
            "/groups/{}/projects?include_subgroups={include_subgroups}&per_page=100&topic={}\
             &with_shared={shared}{archived}",
            escape(group),
            escape(topic)
        );
        let found = self.client.pages(&path, &Paging::NextPage);
        let found = found.map_err(|error| error.during(&format!("error listing projects for {group}")))?;
        let url = match self.protocol {
            "" | "ssh" => "ssh_url_to_repo",
            "https" => "http_url_to_repo",
            other => return Err(ScmError::Failed(format!("unknown clone protocol for Gitlab {other}"))),
        };
        Ok(found
            .iter()
            .map(|project| {
                let topics = texts(&project["topics"]);
                Repository {
                    organization: text(&project["namespace"]["full_path"]),
                    repository: text(&project["path"]),
                    repository_id: project["id"].clone(),
                    url: text(&project[url]),
                    branch: text(&project["default_branch"]),
                    sha: String::new(),
                    labels: if topics.is_empty() { texts(&project["tag_list"]) } else { topics },
                }
            })
            .collect())
    }

    fn branches(&self, repository: &Repository) -> Result<Vec<Repository>, ScmError> {
        let place = Self::place(repository);
        let of = |branch: &Json| Repository {
            branch: text(&branch["name"]),
            sha: text(&branch["commit"]["id"]),
            ..repository.clone()
        };
        if self.generator.all_branches {
            let found = self.client.pages(&format!("{place}/branches?per_page=100"), &Paging::NextPage)?;
            return Ok(found.iter().map(of).collect());
        }
        match self.client.get(&format!("{place}/branches/{}", escape(&repository.branch))) {
            Ok(branch) => Ok(vec![of(&branch)]),
            Err(ScmError::NotFound(_)) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn has_path(&self, repository: &Repository, path: &str) -> Result<bool, ScmError> {
        let (place, branch) = (Self::place(repository), escape(&repository.branch));
        if self.client.exists(&format!("{place}/files/{}?ref={branch}", escape(path)))? {
            return Ok(true);
        }
        // A directory is not a file; GitLab answers with an empty list, or with 404, if there is none.
        match self.client.get(&format!("{place}/tree?path={}&ref={branch}", escape(path))) {
            Ok(tree) => Ok(tree.as_array().is_some_and(|entries| !entries.is_empty())),
            Err(ScmError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

pub(super) fn pull_requests(
    client: &Client<'_>,
    generator: &GitlabPullRequests,
) -> Result<Vec<PullRequest>, ScmError> {
    let project = &generator.project;
    let mut path = format!("/projects/{}/merge_requests?per_page=100", escape(project));
    if !generator.labels.is_empty() {
        path = format!("{path}&labels={}", escape(&generator.labels.join(",")));
    }
    if !generator.pull_request_state.is_empty() {
        path = format!("{path}&state={}", escape(&generator.pull_request_state));
    }
    let found = client.pages(&path, &Paging::NextPage);
    let found = found
        .map_err(|error| error.during(&format!("error listing merge requests for project '{project}'")))?;
    let pulls = found.iter().map(|pull| PullRequest {
        number: pull["iid"].as_i64().unwrap_or_default(),
        title: text(&pull["title"]),
        branch: text(&pull["source_branch"]),
        target_branch: text(&pull["target_branch"]),
        head_sha: text(&pull["sha"]),
        labels: texts(&pull["labels"]),
        author: text(&pull["author"]["username"]),
    });
    Ok(pulls.collect())
}
